package policy_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"koine/internal/policy"
	"koine/kg"
)

// TestNoStaleAnswers closes one graph after the other while many read them. A statement
// added to a graph after that must never be read: an answer that outlives its policy shows
// it.
func TestNoStaleAnswers(t *testing.T) {
	b := newBench(t, policy.Options{})
	ann := kg.Principal{ID: "agent://ann", Method: "key"}
	scribe := kg.Principal{ID: "agent://ann", Roles: []string{"scribe"}, Method: "jwt"}
	readers := []kg.Principal{eve, ann, scribe}
	read := func(p kg.Principal) (n int, err error) {
		s, err := b.store.View(context.Background(), kg.View{Principal: p})
		if err != nil {
			return 0, err
		}
		defer s.Close()
		for st, err := range s.Match(kg.Pattern{Subject: iri("urn:s")}) {
			if err != nil {
				return 0, err
			}
			if n++; strings.HasPrefix(st.Object.Value(), "secret") {
				return n, fmt.Errorf("%v reads %s at revision %d", p, st.Object, s.Revision())
			}
		}
		// A graph that is shut has two statements, and must not be counted.
		if counted, err := s.Count(kg.Pattern{Predicate: iri("urn:p")}); err != nil || counted > 1 {
			return n, fmt.Errorf("%v counts %d statements at revision %d: %w", p, counted, s.Revision(), err)
		}
		return n, nil
	}
	var stop atomic.Bool
	var during sync.WaitGroup
	defer during.Wait()
	defer stop.Store(true)
	for _, p := range append(readers, readers...) {
		during.Go(func() {
			for !stop.Load() {
				if _, err := read(p); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	sees := func(want int, state string) {
		t.Helper()
		for _, p := range readers {
			if n, err := read(p); err != nil || n != want {
				t.Errorf("%s: %v sees %d, %v, want %d", state, p, n, err, want)
			}
		}
	}
	for i := range 30 {
		graph := iri(fmt.Sprint("https://example.org/graph/", i))
		open := []policy.PolicyUpdate{
			{Graph: graph, Public: yes()},
			{Graph: graph, Readers: []policy.Grantee{policy.Role("scribe"), policy.Agent("eve"), policy.Agent("ann")}},
		}[i%2]
		b.must(b.add(admin, graph, "open"))
		sees(0, "before there is a policy")
		b.must(b.set(admin, open))
		sees(1, "open")
		if i%3 == 0 {
			at := b.store.Head().Revision
			if _, err := b.graphs.Delete(context.Background(), meta(admin), graph); err != nil {
				t.Fatal(err)
			}
			for _, p := range append(readers, admin) {
				if n := b.countAt(p, graph, at); n != 0 {
					t.Errorf("%v sees %d of the past of a deleted graph", p, n)
				}
			}
			continue
		}
		b.must(b.set(admin, policy.PolicyUpdate{Graph: graph, Public: no(), Readers: []policy.Grantee{}}))
		b.must(b.add(admin, graph, "secret"))
		sees(0, "shut")
	}
}
