package kg

import (
	"context"
	"testing"
)

// TestLately proves that readers of the log that reach the same commit decode it once, that
// only a few commits are cached, and none that is large.
func TestLately(t *testing.T) {
	s, err := Open(t.TempDir(), Options{RingCommits: 1, RingBytes: 40_000})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 8 {
		commitOf(t, s, numbered(i))
	}
	var many []Quad
	for i := range 100 {
		many = append(many, numbered(100+i))
	}
	commitOf(t, s, many...)
	commitOf(t, s, numbered(8)) // so that the large one is not in the ring
	read := func(r Revision) *Commit {
		t.Helper()
		l, err := s.ReadLog(context.Background(), Filter{}, LogRange{
			After: Position{Epoch: s.Epoch(), Revision: r - 1, Index: EndOfCommit}, Until: Position{Epoch: s.Epoch(), Revision: r, Index: EndOfCommit}})
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range l.Events() {
			if err != nil || e.Commit.Revision != r {
				t.Fatalf("revision %d: got %v, %v", r, e.Commit, err)
			}
			return e.Commit
		}
		t.Fatalf("revision %d has no event", r)
		return nil
	}
	first := read(1)
	if read(1) != first {
		t.Error("a commit is decoded again right away")
	}
	for r := Revision(2); r < 2+Revision(len(s.recentCommits.commits)); r++ {
		read(r)
	}
	if read(1) == first {
		t.Error("a commit is kept for longer than there is room")
	}
	if large := read(9); read(9) == large {
		t.Error("a large commit is kept")
	}
}
