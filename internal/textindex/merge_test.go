package textindex

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"koine/internal/sealed"
	"koine/internal/textindex/words"
	"koine/kg"
)

// segmentsOf returns segments of random texts, of which some are removed: subjects have several of
// them, and several have one order.
func segmentsOf(random *rand.Rand, n, texts int) (list []*segment) {
	for range n {
		b := newBuilder()
		for range texts {
			t := randomText(random, texts/2+1, 3)
			t.Subject.Order = uint64(random.IntN(texts/4 + 1))
			b.addText(&t)
		}
		s := b.buildSegment()
		for range texts / 10 {
			if doc := uint32(random.IntN(int(s.textCount()))); !s.isRemoved(doc) {
				s.markRemoved(doc)
			}
		}
		list = append(list, s)
	}
	return list
}

// A segment that is merged in a file is, to the byte, the one that is merged in memory, and nothing
// of the work is left beside it.
func TestMergeInFile(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(1, seed))
	t.Log("seed", seed)
	for _, texts := range []int{1, 70, 3000, 30_000} {
		list := segmentsOf(random, 3, texts)
		x := New()
		x.dir = t.TempDir()
		inFile, err := x.mergeInFile(list)
		if err != nil {
			t.Fatal(err)
		}
		defer inFile.release()
		inMemory := writeSegment(func(w *segmentWriter) { mergeInto(w, list, nil) })
		if !bytes.Equal(inFile.image, inMemory.image) {
			t.Errorf("of %d texts, the images of %d and %d bytes differ", texts, len(inFile.image), len(inMemory.image))
		}
		if _, err := sealed.Open(inFile.image); err != nil {
			t.Error(err)
		}
		if files, err := os.ReadDir(x.dir); err != nil || len(files) != 1 {
			t.Errorf("%d files are left, %v, want 1", len(files), err)
		}
	}
}

// A merge allocates a few bytes for each text, whatever the texts have beside it in the segment.
func TestMemoryOfMerge(t *testing.T) {
	const texts, each = 200_000, 10
	list := []*segment{}
	for part := range 2 {
		b := newBuilder()
		for n := range texts / 2 {
			b.addText(&Text{Subject: Subject{Order: rand.Uint64(), ID: id(1, part*texts+n)}, Ref: Ref{Object: kg.ID{5, byte(n)}}, Value: "a word of many"})
		}
		list = append(list, b.buildSegment())
	}
	x := New()
	x.dir = t.TempDir()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := x.mergeInFile(list)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	defer s.release()
	if s.textCount() != texts {
		t.Fatalf("%d texts are merged, want %d", s.textCount(), texts)
	}
	const fixed = 6 << 20 // buffers, and the postings of one term
	if got := after.TotalAlloc - before.TotalAlloc; got > texts*each+fixed {
		t.Errorf("%d bytes are allocated, want at most %d for each of %d texts and %d", got, each, texts, fixed)
	}
}

// A word and its stem have one list of postings. Words of one text alone take no memory for that.
func TestSharedPostings(t *testing.T) {
	const texts = 1000
	b := newBuilder()
	for n := range texts {
		b.addText(&Text{Subject: Subject{Order: uint64(n), ID: id(1, n)}, Ref: Ref{Object: kg.ID{5, byte(n)}}, Language: words.English, Value: fmt.Sprintf("paper %d", 1_000_000+n)})
	}
	w := newSegmentWriter(&imageWriter{out: new(bytes.Buffer)})
	mergeInto(w, []*segment{b.buildSegment()}, nil)
	if len(w.lists) != 1 {
		t.Errorf("the places of %d lists are kept, want that of one", len(w.lists))
	}
	// The list of paper has 2,247 bytes, and those of a number and its stem have 14.
	if most := uint64(texts * 17); uint64(w.out.size) > most {
		t.Errorf("the postings have %d bytes, want at most %d", w.out.size, most)
	}
}

// The marks of subjects agree with a comparison of the subjects.
func TestTextStarts(t *testing.T) {
	var starts textStarts
	var subjects, orders []int
	subject, order := 0, 0
	for doc := range 1000 {
		isSubject := doc == 0 || rand.IntN(3) == 0
		isOrder := doc == 0 || isSubject && rand.IntN(2) == 0
		if isSubject {
			subject++
		}
		if isOrder {
			order++
		}
		starts.add(isSubject, isOrder)
		subjects, orders = append(subjects, subject), append(orders, order)
	}
	for range 10_000 {
		a, b := rand.IntN(1000), rand.IntN(1000)
		if starts.sameSubject(uint32(a), uint32(b)) != (subjects[a] == subjects[b]) {
			t.Fatalf("the subjects of %d and %d are %d and %d", a, b, subjects[a], subjects[b])
		}
		if starts.sameOrder(uint32(a), uint32(b)) != (orders[a] == orders[b]) {
			t.Fatalf("the orders of %d and %d are %d and %d", a, b, orders[a], orders[b])
		}
		several := a > 0 && subjects[a-1] == subjects[a] || a+1 < 1000 && subjects[a+1] == subjects[a]
		if starts.isOneOfSeveral(uint32(a)) != several {
			t.Fatalf("%d is one of several: want %v", a, several)
		}
	}
}

// A merge that cannot write its file is made in memory, and leaves nothing behind that takes space.
func TestMergeWithoutSpace(t *testing.T) {
	list := segmentsOf(rand.New(rand.NewPCG(1, 2)), 3, 3000)
	x := New()
	x.dir = t.TempDir()
	sp, err := newSpool(x.dir)
	if err != nil {
		t.Fatal(err)
	}
	sp.file.Close() // every write fails
	w := newSegmentWriter(&imageWriter{out: new(bytes.Buffer)})
	mergeInto(w, list, sp)
	if err := w.finishSegment(); err != nil {
		t.Error(err)
	}
	if err := sp.close(); err == nil {
		t.Error("the spool tells of no error")
	}
	x.dir += "/none"
	if s, err := x.mergeInFile(list); err == nil {
		t.Errorf("a segment of %d texts in a directory that is not there", s.textCount())
	}
	if files, err := os.ReadDir(x.dir[:len(x.dir)-len("/none")]); err != nil || len(files) != 0 {
		t.Errorf("%d files are left, %v", len(files), err)
	}
}
