package search

import (
	"strings"
	"unicode/utf8"

	"koine/internal/textindex"
	"koine/internal/textindex/words"
)

// MaxExcerptBytes bounds the text of a match, and lead is how much of it may come before the
// first word of the query.
const (
	MaxExcerptBytes = 300
	lead            = 60
)

// excerptOf returns the part of a text around the first word of a query, on one line and in
// pieces. "…" stands for the rest. Every second piece, from the second on, is a word of the
// query; the others may be empty.
func excerptOf(text string, language words.Language, q *textindex.Query, st *textindex.Statistics) (pieces []string) {
	language = language.ResolveFor(text)
	first := len(text)
	for start := range q.WordsIn(text, language, st) {
		first = start
		break
	}
	from := 0
	if first < len(text) && first > lead && len(text) > MaxExcerptBytes {
		from = first - lead
		if i := strings.IndexByte(text[from:first], ' '); i >= 0 {
			from += i + 1
		}
	}
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	const mark = "…"
	out, room := "", MaxExcerptBytes
	if from > 0 {
		out, room = mark, room-len(mark)
	}
	if rest := text[from:]; len(rest) <= room {
		out += rest
	} else {
		end := room - len(mark)
		for !utf8.RuneStart(rest[end]) {
			end--
		}
		out += rest[:end] + mark
	}
	return markWords(strings.Join(strings.Fields(out), " "), language, q, st)
}

// markWords divides a text at the words of a query. Words that overlap are one piece.
func markWords(text string, language words.Language, q *textindex.Query, st *textindex.Statistics) (pieces []string) {
	behind, start, end := 0, 0, 0
	marked := func() {
		if end > start {
			pieces = append(pieces, text[behind:start], text[start:end])
			behind = end
		}
	}
	for from, to := range q.WordsIn(text, language, st) {
		if from >= end {
			marked()
			start = from
		}
		end = to
	}
	marked()
	if behind < len(text) || pieces == nil {
		pieces = append(pieces, text[behind:])
	}
	return pieces
}
