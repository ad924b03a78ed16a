package kg

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"koine/internal/slowtest"
	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// smallWhole are options with which graphs of more than 3 statements are replaced as a
// whole, in commits of 2.
func smallWhole() Options { return Options{wholeFrom: 3, wholeCommit: 2} }

// failingAfter are statements of the graph, and then an error.
func failingAfter(n int) iter.Seq2[Quad, error] {
	return func(yield func(Quad, error) bool) {
		for q := range wholeQuads(0, n) {
			if !yield(q, nil) {
				return
			}
		}
		yield(Quad{}, errSource)
	}
}

// entriesOf lists from when on the generations count that the table has entries of, and
// compares the table with its records in the index.
func entriesOf(t *testing.T, s *Store) (from []Revision) {
	t.Helper()
	p, err := s.pin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.unpin(p)
	stored, err := index.ReadGenerations(index.Dictionary{KV: p.kv, Cache: s.cache}, p.head.revision)
	if err != nil {
		t.Fatal(err)
	}
	if stored == nil {
		stored = index.NewGenerations()
	}
	for began, g := range stored.Entries {
		from = append(from, g.From)
		if p.head.generations.ByID(g.ID()) == nil {
			t.Errorf("the index has a record of the generation of %d, and the table no entry", began)
		}
	}
	n := 0
	if p.head.generations != nil {
		n = len(p.head.generations.Entries)
	}
	if n != len(from) {
		t.Errorf("the table has %d entries, the index %d records", n, len(from))
	}
	slices.Sort(from)
	return from
}

// TestTableOfGenerationsDoesNotGrow shows that the entries of generations which were given
// up, and of those before the one with which a graph began anew, leave the table and the
// index with their content; and that the answers of the store do not change, also when its
// index is rebuilt from the log or a checkpoint, and when it is restored.
func TestTableOfGenerationsDoesNotGrow(t *testing.T) {
	slowtest.Long(t)
	dir := filepath.Join(t.TempDir(), "data")
	s := openStore(t, dir, smallWhole())
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fail := func() {
		t.Helper()
		if _, err := s.ReplaceGraph(t.Context(), m, wholeGraph, failingAfter(9), ReplaceOptions{}); !errors.Is(err, errSource) {
			t.Fatalf("got %v", err)
		}
	}
	fail() // nothing but given up ones
	must(s.purgeGenerations(t.Context()))
	fail()
	must(s.purgeGenerations(t.Context()))
	if got := entriesOf(t, s); len(got) != 1 || got[0] != 0 {
		t.Errorf("the table has %v, want one that was given up", got)
	}
	mustBeClean(t, s)
	from := s.Head()
	var last ReplaceReport
	for i := range 4 {
		replaceWith(t, s, m, wholeQuads(i, i+5))
		fail()
		_, err := s.DropGraph(t.Context(), m, wholeGraph, DropOptions{Still: always, Anew: true})
		must(err)
	}
	replaceWith(t, s, m, wholeQuads(2, 9))
	last = replaceWith(t, s, m, wholeQuads(3, 9))
	fail()
	must(s.purgeGenerations(t.Context()))
	began := last.Revision // of the name's last use
	for r := range began {
		if c, err := s.readCommit(r + 1); err == nil && c.Replaced != nil && c.Replaced.Anew {
			began = r + 1
		}
	}
	verify := func(what string, s *Store) {
		t.Helper()
		// The one with which it began anew, and two replacements: both are read.
		if got := entriesOf(t, s); len(got) != 3 || got[0] != began || got[2] != last.Revision {
			t.Errorf("%s: the table has generations that count from %v, want 3 from %d to %d", what, got, began, last.Revision)
		}
		for r := Revision(1); r <= s.Head().Revision; r++ {
			var want []string
			switch {
			case r >= last.Revision:
				want = wholeObjects(3, 9)
			case r >= s.head.Load().generations.Timelines[idOf(t, s, wholeGraph)][1].From:
				want = wholeObjects(2, 9)
			}
			if got := holdsAt(t, s, r); !slices.Equal(got, want) {
				t.Errorf("%s: at %d it holds %v, want %v", what, r, got, want)
			}
			c, err := s.Commit(t.Context(), SystemPrincipal(), r)
			if err == nil && r < began && c.Replaced != nil {
				t.Errorf("%s: revision %d tells of what was deleted: %+v", what, r, c.Replaced)
			}
		}
		if _, end := told(t, s, Filter{Patterns: []Pattern{{Graph: wholeGraph}}, View: View{AllGraphs: true}}, Position{Epoch: s.Epoch(), Revision: from.Revision, Index: EndOfCommit}, 1); CodeOf(end) != CodeResync {
			t.Errorf("%s: who follows it from before gets %v", what, end)
		}
		mustBeClean(t, s)
	}
	verify("purged", s)
	_, err := s.Maintenance().Checkpoint(t.Context())
	must(err)
	var backup bytes.Buffer
	_, err = s.Maintenance().Backup(t.Context(), &backup, BackupOptions{})
	must(err)
	fail()
	for what, o := range map[string]Options{"opened again": smallWhole(), "made anew": {Rebuild: true}} {
		must(s.Close())
		s = openStore(t, dir, o)
		must(s.purgeGenerations(t.Context()))
		verify(what, s)
	}
	must(s.Close())
	must(os.RemoveAll(filepath.Join(dir, datadir.CheckpointName)))
	s = openStore(t, dir, Options{Rebuild: true})
	must(s.purgeGenerations(t.Context()))
	verify("made anew from the log", s)
	restored := filepath.Join(t.TempDir(), "restored")
	_, err = Restore(t.Context(), restored, []io.Reader{&backup}, RestoreOptions{})
	must(err)
	s = openStore(t, restored, smallWhole())
	must(s.purgeGenerations(t.Context()))
	verify("restored", s)
}

// TestTableOfGenerationsWithHistory shows that the entries of generations which no readable
// revision reaches leave the table, except for the last with which the graph began anew:
// the earlier content in the log stays hidden.
func TestTableOfGenerationsWithHistory(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, smallWhole())
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	replaceWith(t, s, m, wholeQuads(0, 6))
	if _, err := s.DropGraph(t.Context(), m, wholeGraph, DropOptions{}); err != nil {
		t.Fatal(err)
	}
	dropped := s.Head().Revision
	var third Revision
	for i := range 5 {
		if r := replaceWith(t, s, m, wholeQuads(i, 9)); i == 2 {
			third = r.Revision
		}
	}
	floor := third + 1
	if err := datadir.WriteHistory(s.dir.Join(datadir.HistoryName), floor); err != nil {
		t.Fatal(err)
	}
	s.oldest.Store(uint64(floor))
	if err := errors.Join(s.clearGenerations(t.Context(), floor), s.purgeGenerations(t.Context())); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		// The drop, and reads at the floor and after it.
		if got := entriesOf(t, s); len(got) != 4 || got[0] != dropped || got[1] != third {
			t.Errorf("the table has generations that count from %v, want 4 from %d and %d on", got, dropped, third)
		}
		if got := holdsAt(t, s, floor); !slices.Equal(got, wholeObjects(2, 9)) {
			t.Errorf("at the oldest revision it holds %v", got)
		}
		if !s.isDeletedAt(wholeGraph, dropped-1) || s.isDeletedAt(wholeGraph, dropped) {
			t.Error("what was deleted is not hidden any more")
		}
		for r := Revision(1); r <= s.Head().Revision; r++ { // removed content stays removed
			if c, err := s.readCommit(r); err == nil && c.Written != nil && c.Written.Began < dropped {
				if n := indexedOf(t, s, keys.Generation(uint64(c.Written.Began))); n != 0 {
					t.Errorf("%d keys are left of the generation of %d", n, c.Written.Began)
				}
			}
		}
		mustBeClean(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, dir, smallWhole())
	}
}
