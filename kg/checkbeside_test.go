package kg_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"koine/kg"
)

// A round of the history option beside a check of a store in which nothing else
// happens: it waits for the check, which finds nothing wrong.
func TestCheckBesideRetain(t *testing.T) {
	dir := t.TempDir()
	a, _ := newAging(t, dir, 30)
	mustClose(t, a.Store)
	var pruned atomic.Bool
	retained := make(chan error, 1)
	o := agingOptions(a.clock).WithFaults(kg.Faults{LogSegmentBytes: 1 << 10, AfterRetain: func(part string) {
		if part == "past" {
			pruned.Store(true)
		}
	}})
	var s *kg.Store
	armed := false
	o.FreeBytes = func(string) (uint64, error) {
		if armed { // the check's first temporary file: it reads the log
			armed = false
			before := s.Stats().OldestReadable
			go func() { _, err := s.Maintenance().Retain(within(t)); retained <- err }()
			for ctx := within(t); s.Stats().OldestReadable == before; {
				if ctx.Err() != nil {
					t.Fatal("the history does not become shorter")
				}
			}
			for range 100 { // a round that does not wait goes on between these
				s.Exclusive(func() {}) // as after a second without updates
			}
			if pruned.Load() { // not behind the check, when it may be
				t.Error("what a check reads was pruned")
			}
		}
		return 1 << 40, nil
	}
	s = openStore(t, dir, o)
	s.Exclusive(func() {})
	armed = true
	r, err := s.Maintenance().Check(within(t), kg.CheckOptions{}.WithBounds(1500, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if err := <-retained; err != nil {
		t.Fatal(err)
	}
	if !r.Clean() {
		t.Errorf("beside Retain: %d problems: %s", r.Total, strings.Join(r.Problems[:min(4, len(r.Problems))], "\n"))
	}
	mustCheck(t, s)
}

// An order that has a key which it must not hold, and lacks another.
func TestCheckFindsAKeyTooMany(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, tinyLog())
	q := func(s string, o kg.Term) kg.Patch {
		return kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(s), Predicate: kg.IRI("urn:p"), Object: o}}
	}
	if _, err := s.Update(within(t), kg.Meta{Principal: tester}, apply([]kg.Patch{q("urn:a", kg.String("text")), q("urn:b", kg.IRI("urn:c"))})); err != nil {
		t.Fatal(err)
	}
	mustCheck(t, s)
	mustClose(t, s)
	editRows(func(rows []string) (put, gone []string) {
		for _, row := range rows {
			key, _, _ := strings.Cut(row, " = ")
			if strings.HasPrefix(row, "12") {
				gone = append(gone, row)
			}
			if strings.HasPrefix(row, "10") {
				sub, p, o, g := key[2:20], key[20:38], key[38:56], key[56:74]
				twin := "12" + o + sub + p + g
				if !slices.ContainsFunc(rows, func(r string) bool { return strings.HasPrefix(r, twin) }) {
					put = append(put, twin+" = ")
				}
			}
		}
		if len(put) != 1 || len(gone) != 1 {
			t.Fatalf("%d to put, %d to take", len(put), len(gone))
		}
		return put, gone
	})(t, dir)
	s = openStore(t, dir, tinyLog())
	r, err := s.Maintenance().Check(within(t), kg.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Clean() {
		t.Error("the check is clean, and OSPG lacks a statement (who refers to urn:c finds nobody)")
	}
}

// The log is cut beside a check, which reads it: nothing is cut before the check ends.
func TestCheckBesideCutLog(t *testing.T) {
	dir := t.TempDir()
	a, _ := newAging(t, dir, 30)
	mustClose(t, a.Store)
	o := agingOptions(a.clock).WithFaults(kg.Faults{LogSegmentBytes: 1 << 10})
	var s *kg.Store
	armed := false
	o.FreeBytes = func(string) (uint64, error) {
		if armed { // the check's first temporary file: it reads the log
			armed = false
			if err := s.Maintenance().CutLog(within(t), s.Head().Revision); err != nil {
				t.Error(err)
			}
		}
		return 1 << 40, nil
	}
	s = openStore(t, dir, o)
	armed = true
	r, err := s.Maintenance().Check(within(t), kg.CheckOptions{}.WithBounds(1500, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Clean() || armed {
		t.Errorf("beside a cut of the log (not tried: %t): %d problems: %s", armed, r.Total, strings.Join(r.Problems[:min(4, len(r.Problems))], "\n"))
	}
	mustCheck(t, s)
}
