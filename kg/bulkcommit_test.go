package kg

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg/internal/index"
	"koine/kg/internal/logentry"
	"koine/kg/internal/wal"
)

// TestBulkCommitsFitIntoTheLog loads existing statements with long assertions, more of them
// in one batch than an entry of the log may have.
func TestBulkCommitsFitIntoTheLog(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	const n = 4000 // of 4 KB: 16 MB
	s := openTest(t, Options{bulkFrom: 1})
	long := []byte(`"` + strings.Repeat("x", MaxProvenanceBytes-2) + `"`)
	for i := 0; i < n; i += n / 4 {
		_, err := s.Update(context.Background(), Meta{Actor: "agent://ann"}, func(tx *Tx) error {
			for j := range n / 4 {
				if err := tx.Apply(Patch{Op: Add, Quad: numbered(i + j), Provenance: long}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	before := s.head.Load().revision
	source := func(yield func(Quad, error) bool) {
		for i := range n {
			if !yield(numbered(i), nil) {
				return
			}
		}
	}
	m := Meta{Actor: "agent://bob", SessionID: "a load"}
	report := mustLoad(t, s, m, iter.Seq2[Quad, error](source), LoadOptions{Place: func(n uint64) string { return strconv.FormatUint(n, 10) }})
	if !report.Bulk || report.Read != n || report.Statements != n || report.Commits != uint64(report.Revision-before) {
		t.Errorf("got %+v", report)
	}
	loaded := 0
	for r := before + 1; r <= report.Revision; r++ {
		c, err := s.readCommit(r)
		if err != nil {
			t.Fatal(err)
		}
		if size := len(logentry.AppendEntry(nil, c)); size > MaxCommitBytes {
			t.Errorf("commit %d has %d bytes", r, size)
		}
		if loaded += len(c.Changes); c.MessageID != strconv.Itoa(loaded) {
			t.Errorf("commit %d says that %s quads are loaded, want %d", r, c.MessageID, loaded)
		}
	}
	if check, err := s.Maintenance().Check(context.Background(), CheckOptions{}); err != nil || !check.Clean() {
		t.Errorf("Check: %+v, %v", check, err)
	}
}

// inBulk calls fn with a bulk load that nothing was added to, and ends it.
func inBulk(t *testing.T, s *Store, fn func(b *bulk)) (err error) {
	t.Helper()
	ended := make(chan struct{})
	s.exclusive <- func() {
		defer close(ended)
		b := newBulk(s, Meta{Principal: SystemPrincipal(), Actor: "agent://ann"}, LoadOptions{})
		fn(b)
		err = b.finishLoad(&load{}, nil)
	}
	<-ended
	return err
}

// TestBulkEntryThatTheLogRefuses shows that an entry of which the log has written nothing
// fails the load, and not the store.
func TestBulkEntryThatTheLogRefuses(t *testing.T) {
	t.Parallel()
	s := openTest(t, Options{})
	loaded := inBulk(t, s, func(b *bulk) {
		refused := make(chan preparedEntry, 1)
		refused <- preparedEntry{err: fmt.Errorf("%w: of a test", wal.ErrTooLarge)}
		b.pending = append(b.pending, refused)
		b.revision++
	})
	if CodeOf(loaded) != CodeLimitExceeded {
		t.Errorf("the load ends with %v", loaded)
	}
	commitOf(t, s, numbered(1))
}

// TestBulkRoundEndsWithItsRuns shows that a round of a load that cannot write to disk any
// more accepts no more statements: its memory has no other bound.
func TestBulkRoundEndsWithItsRuns(t *testing.T) {
	t.Parallel()
	s := openTest(t, Options{})
	err := inBulk(t, s, func(b *bulk) {
		if b.isFull() {
			t.Error("the round is full before anything is in it")
		}
		b.index.Failed = errors.New("the run could not be written")
		if !b.isFull() {
			t.Error("the round goes on")
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestBulkCountsStatesThatStood shows that a chunk goes to disk for the bytes of states too,
// and that those that are taken back do not count.
func TestBulkCountsStatesThatStood(t *testing.T) {
	t.Parallel()
	s := openTest(t, Options{})
	value := make([]byte, 1<<20)
	fill := func(b *bulk) {
		for range bulkChunkText / len(value) {
			b.index.Chunk.AddPair([]byte("key"), value)
		}
	}
	_ = inBulk(t, s, func(b *bulk) {
		before := b.index.Size()
		fill(b)
		b.index.Truncate(before)
		if b.index.SpillIfFull(); b.index.Spilling != nil || b.index.Chunk.PairBytes != 0 {
			t.Errorf("%d bytes are left of what was taken back", b.index.Chunk.PairBytes)
		}
		fill(b)
		if b.index.SpillIfFull(); b.index.Spilling == nil {
			t.Error("the chunk stays in memory")
		}
		if err := b.index.Await(); err != nil || b.index.Spare.PairBytes != 0 || b.index.Chunk.PairBytes != 0 {
			t.Errorf("%v; the next chunk has %d bytes already", err, b.index.Spare.PairBytes)
		}
	})
}

// TestBulkForgetsGraphs shows that a load with more graphs than its cache continues, and
// caches none with a long name.
func TestBulkForgetsGraphs(t *testing.T) {
	t.Parallel()
	s := openTest(t, Options{})
	err := inBulk(t, s, func(b *bulk) {
		known := make(map[ID]bool)
		for i := range maxBulkGraphs + 10 {
			id, err := b.graphID(IRI(fmt.Sprint("urn:graph:", i)))
			if err != nil {
				t.Error(err)
				return
			}
			known[id] = true
		}
		if len(known) != maxBulkGraphs+10 || len(b.graphs) > maxBulkGraphs {
			t.Errorf("%d graphs, %d are remembered", len(known), len(b.graphs))
		}
		again, err := b.graphID(IRI("urn:graph:0"))
		if err != nil || !known[again] {
			t.Errorf("a graph that was forgotten is %v, %v", again, err)
		}
		n := len(b.graphs)
		if _, err := b.graphID(IRI("urn:graph:" + strings.Repeat("x", index.MaxCachedTerm))); err != nil || len(b.graphs) != n {
			t.Errorf("a graph of a long name: %v, %d are remembered, want %d", err, len(b.graphs), n)
		}
		b.resetToMark() // nothing was logged
	})
	if err != nil {
		t.Error(err)
	}
}

// TestBulkLoadKnowsTheHashOfItsLog shows that the head after a bulk load has the hash of
// the last entry of the log, after one append and after several, and that the next update
// and the next start continue from there.
func TestBulkLoadKnowsTheHashOfItsLog(t *testing.T) {
	dir := t.TempDir()
	o := Options{ReserveBytes: 1, bulkFrom: 1}
	s := openStore(t, dir, o)
	same := func(what string) {
		t.Helper()
		h := s.head.Load()
		want, err := s.wal.Hash(uint64(h.revision))
		if err != nil {
			t.Fatal(err)
		}
		if h.hash != want {
			t.Errorf("%s: the head of revision %d has the hash %x, the log %x", what, h.revision, h.hash, want)
		}
	}
	const quads, perCommit = 300, 20 // more commits than share an append
	for i := range 2 {
		report := mustLoad(t, s, Meta{Actor: "agent://ann"}, func(yield func(Quad, error) bool) {
			for n := range quads {
				if !yield(numbered(i*quads+n), nil) {
					return
				}
			}
		}, LoadOptions{CommitQuads: perCommit})
		if !report.Bulk || report.Commits != quads/perCommit || report.Commits <= bulkGroup {
			t.Fatalf("got %+v", report)
		}
		same("behind a load")
	}
	commitOf(t, s, numbered(-1))
	same("behind an update")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, o)
	same("opened again")
	mustBeClean(t, s)
}
