package kg

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"koine/kg/internal/bulkindex"
	"koine/kg/internal/keys"
)

// warnings is a slog.Handler that sends the messages of warnings.
type warnings chan string

func (w warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (w warnings) WithAttrs([]slog.Attr) slog.Handler           { return w }
func (w warnings) WithGroup(string) slog.Handler                { return w }
func (w warnings) Handle(_ context.Context, r slog.Record) error {
	select {
	case w <- r.Message:
	default: // the test has seen enough
	}
	return nil
}

// TestPurgeIsTriedAgain shows that a failed removal of unreachable content is repeated
// until it succeeds, though nothing else happens in the store.
func TestPurgeIsTriedAgain(t *testing.T) {
	failed := make(warnings, 3)
	refusal := errReadOnly("the test refuses it", errors.New("for the test"))
	var s *Store
	var armed atomic.Bool
	o := smallWhole()
	o.purgeRetry, o.Logger = time.Millisecond, slog.New(failed)
	o.afterAppend = func() error {
		if armed.Load() && s.head.Load().generations != nil && len(s.head.Load().generations.Writing) > 0 {
			armed.Store(false) // the switch is in the log: the old content cannot be removed
			s.refused.Store(refusal)
		}
		return nil
	}
	s = openStore(t, t.TempDir(), o)
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	replaceWith(t, s, m, wholeQuads(0, 8))
	id := s.head.Load().generations.CurrentID(idOf(t, s, wholeGraph))
	armed.Store(true)
	if _, err := s.DropGraph(t.Context(), m, wholeGraph, DropOptions{}); err != nil {
		t.Fatal(err)
	}
	for range cap(failed) { // it fails, and again
		select {
		case <-failed:
		case <-time.After(time.Minute):
			t.Fatal("the removal is not tried again")
		}
	}
	if n := indexedOf(t, s, id); n == 0 {
		t.Fatal("it did not fail: the test shows nothing")
	}
	s.refused.Store(nil)
	for end := time.Now().Add(time.Minute); s.head.Load().generations.ByID(id) != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("what is not kept is not removed")
		}
	}
	if n := indexedOf(t, s, id); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	mustBeClean(t, s)
}

// TestCheckBesideThePurgeOfCounts shows that a check finds nothing wrong which looks at the
// store when the counts of a generation that is not kept are out of the index and not yet
// out of memory.
func TestCheckBesideThePurgeOfCounts(t *testing.T) {
	s := openStore(t, t.TempDir(), smallWhole())
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	replaceWith(t, s, m, wholeQuads(0, 8))
	id := s.head.Load().generations.CurrentID(idOf(t, s, wholeGraph))
	second := replaceWith(t, s, m, wholeQuads(3, 9))
	counts := 0
	s.Between(func() { // nothing else is removed meanwhile
		h := *s.head.Load()
		next := *h.generations.ByID(h.generations.CurrentID(idOf(t, s, wholeGraph)))
		if next.From != second.Revision {
			t.Errorf("what counts does so from %d", next.From)
		}
		next.Cleared = true
		h.generations = h.generations.WithEntries(&next)
		var gone []bulkindex.KeyValue
		for _, prefix := range [...]byte{keys.PrefixPredicate, keys.PrefixClass} {
			h.catalogue.Each(prefix, id, func(graph, counted ID, _ uint64) {
				gone = append(gone, bulkindex.KeyValue{Key: slices.Concat([]byte{prefix}, graph[:], counted[:])})
			})
		}
		counts = len(gone)
		if err := s.deleteNow(gone); err != nil {
			t.Error(err)
		}
		s.replaceHead(&h)
		if r, err := s.Maintenance().Check(t.Context(), CheckOptions{}); err != nil || !r.Clean() {
			t.Errorf("check: %v, %v", r, err)
		}
	})
	if counts == 0 {
		t.Error("the generation has no counts: the test shows nothing")
	}
	if err := s.purgeGenerations(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, s)
}
