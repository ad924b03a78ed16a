package textindex

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"koine/internal/textindex/words"
)

// Gathered texts become a segment when there are maxPendingTexts of them, or maxPendingPlaces
// places of terms.
func TestPendingTextsAreBounded(t *testing.T) {
	add := func(x *Index, n int, value string) {
		x.Add(Text{Subject: Subject{uint64(n), id(2, n)}, Ref: Ref{id(2, 1), id(2, 2), id(4, n)}, Language: words.Other, Value: value})
	}
	x := New()
	for n := range maxPendingTexts - 1 {
		add(x, n, "cell")
	}
	if len(x.segments) != 0 {
		t.Errorf("%d texts are in %d segments", maxPendingTexts-1, len(x.segments))
	}
	add(x, maxPendingTexts, "cell")
	if len(x.segments) != 1 || x.segments[0].textCount() != maxPendingTexts || len(x.pending.keys) != 0 {
		t.Errorf("%d texts are in %d segments", maxPendingTexts, len(x.segments))
	}
	x = New()
	for n, value := 0, strings.Repeat("cell ", maxPendingPlaces/16); n < 15; n++ {
		add(x, n, value)
	}
	add(x, 15, strings.Repeat("cell ", maxPendingPlaces/16-1))
	if len(x.segments) != 0 {
		t.Errorf("%d places are in %d segments", maxPendingPlaces-1, len(x.segments))
	}
	add(x, 16, "cell")
	if len(x.segments) != 1 || x.segments[0].textCount() != 17 {
		t.Errorf("%d places are in %d segments", maxPendingPlaces, len(x.segments))
	}
}

// The texts after a full segment are gathered in its room, and nothing of it is in theirs.
func TestBuilderStartsAnew(t *testing.T) {
	texts := func(b *builder, from int) *builder {
		for n := range 50 {
			value := strings.Repeat("cell ", 1+n%3) + strconv.Itoa(from+n)
			b.addText(&Text{Subject: Subject{uint64(n), id(2, n)}, Ref: Ref{id(2, 1), id(2, 2), id(4, n)}, Language: words.English, Value: value})
		}
		b.dropText(b.keys[1])
		return b
	}
	first := texts(newBuilder(), 0)
	places := &first.places[0]
	again := texts(first.startAnew(), 100)
	if &again.places[0] != places {
		t.Error("the room is not used again")
	}
	if got, want := again.buildSegment().image, texts(newBuilder(), 100).buildSegment().image; !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d, or others", len(got), len(want))
	}
}

// A text that is not tagged has the stems of its words in the language that is detected.
func TestUntaggedTextsHaveStems(t *testing.T) {
	for text, want := range map[string]string{
		"Die Zellen und die Größe": "\x12zell", "the cells of the battery": "\x11cell", "cells": "\x11cell",
	} {
		b := newBuilder()
		b.addText(&Text{Subject: Subject{1, id(2, 1)}, Language: words.Untagged, Value: text})
		if _, ok := b.numbers[want]; !ok {
			t.Errorf("%q has the terms %q, want %q", text, b.terms, want)
		}
		for term := range readTerms(&Text{Language: words.Untagged, Value: text}) {
			if _, ok := b.numbers[term]; !ok {
				t.Errorf("%q is removed with the term %q, which is not added: %q", text, term, b.terms)
			}
		}
	}
}

// Blocks of postings end between subjects, and no text exceeds all impacts of its block.
func TestBlocks(t *testing.T) {
	b := newBuilder()
	blockOf := map[uint32]uint32{} // of subjects
	for n := range 1000 {
		subject := n / 3
		if n > 700 {
			subject = 700 // has more texts than a block
		}
		value := strings.Repeat("cell ", 1+n%7*(n%3)) + strings.Repeat("filler ", n%11)
		b.addText(&Text{Subject: Subject{uint64(subject), id(2, subject)}, Ref: Ref{id(2, 1), id(2, 2), id(4, n)}, Language: words.Other, Value: value})
	}
	s := b.buildSegment()
	number, _ := s.terms.findTerm(exactKey("cell"))
	c := newCursor(s, number)
	if c.blockCount() < 5 {
		t.Fatalf("%d texts have %d blocks", s.textCount(), c.blockCount())
	}
	n := 0
	for ; !c.done; c.nextText() {
		n++
		subject := s.subjectOf(c.doc)
		length := uint32(s.length.valueAt(c.doc))
		for _, list := range [][]byte{c.impactsOf(c.number), c.whole} {
			exceeded := true
			for rest := list; len(rest) > 0; {
				var times, words uint64
				times, rest = uvarint(rest)
				words, rest = uvarint(rest)
				exceeded = exceeded && (times < uint64(c.times) || words > uint64(length))
			}
			if exceeded {
				t.Fatalf("text %d has the term %d times in %d words, which exceeds the impacts %v", c.doc, c.times, length, list)
			}
		}
		if before, ok := blockOf[subject]; ok && before != c.number {
			t.Fatalf("subject %d is in the blocks %d and %d", subject, before, c.number)
		}
		blockOf[subject] = c.number
	}
	if n != 1000 {
		t.Errorf("%d texts have the word, want 1000", n)
	}
}
