package kg_test

import (
	"context"
	"sync"
	"testing"

	"koine/kg"
)

// A patch that one store foresaw is applied to another.
func TestForeseenByAnotherStore(t *testing.T) {
	one, two := openStore(t, t.TempDir(), tinyLog()), openStore(t, t.TempDir(), tinyLog())
	add := func(s *kg.Store, subjects ...string) {
		for _, n := range subjects {
			p := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(n), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1)}}
			if _, err := s.Update(within(t), kg.Meta{Principal: tester}, apply([]kg.Patch{p})); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(one, "urn:a", "urn:b")
	add(two, "urn:x", "urn:y")
	p := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:a"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(2)}}
	if err := one.NewTermPrefetch("agent://a", 1).Prefetch(&p); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Update(within(t), kg.Meta{Principal: tester}, apply([]kg.Patch{p})); err != nil {
		t.Fatal(err)
	}
	mustCheck(t, two)
}

// A term that is in the log and invisible to readers, because the next group is being
// executed: a dry run, which reads an earlier revision, treats it as new, with any
// prefetch.
func TestForeseenAheadOfTheTrial(t *testing.T) {
	appended := make(chan struct{}, 8)
	o := smallOptions().WithFaults(kg.Faults{OverlapFrom: 1, AfterAppend: func() error { appended <- struct{}{}; return nil }})
	s := openStore(t, t.TempDir(), o)
	said := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:new"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(2)}}
	early, late := said, said
	if err := s.NewTermPrefetch("agent://tester", 1).Prefetch(&early); err != nil {
		t.Fatal(err)
	}
	busy, release, stuck, end := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	update := func(fn func(*kg.Tx) error) {
		wg.Go(func() {
			if _, err := s.Update(context.Background(), kg.Meta{Principal: tester}, fn); err != nil {
				t.Error(err)
			}
		})
	}
	update(func(tx *kg.Tx) error {
		close(busy)
		<-release
		return adds("urn:new")(tx)
	})
	<-busy
	update(func(*kg.Tx) error { close(stuck); <-end; return nil })
	waitQueued(t, s, 1)
	close(release)
	<-stuck
	<-appended
	for known := false; !known; { // until the cache has the number of urn:new
		snap, err := s.View(within(t), kg.View{Principal: tester, AllGraphs: true})
		if err != nil {
			t.Fatal(err)
		}
		_, known, err = snap.ID(said.Quad.Subject)
		snap.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.NewTermPrefetch("agent://tester", 1).Prefetch(&late); err != nil {
		t.Fatal(err)
	}
	r, err := s.Update(within(t), kg.Meta{Principal: tester, DryRun: true}, apply([]kg.Patch{early, late}))
	if err != nil || r.Affected != 1 {
		t.Errorf("a dry run of one statement makes %d changes, %v", r.Affected, err)
	}
	close(end)
	wg.Wait()
	mustCheck(t, s)
}
