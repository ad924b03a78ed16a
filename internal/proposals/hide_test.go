package proposals_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/internal/proposals"
	"koine/kg"
)

// TestHiddenStatementsAreHiddenInProposals proves that statements hidden from an agent
// in a graph are hidden in proposals about that graph, in any form, before and after
// the decision, and that an agent that does not see all patches cannot decide.
func TestHiddenStatementsAreHiddenInProposals(t *testing.T) {
	secrets := kg.IRI("urn:secrets")
	hides := func(p kg.Principal, predicate, graph kg.Term) bool {
		return p.ID == bob.ID && graph == secrets && predicate == pay
	}
	w := newWorld(t, proposals.Options{})
	w.access.hides.Store(&hides)
	raise := func(graph kg.Term) string {
		p := set(pay, "more")
		p.Quad.Graph = graph
		return w.propose(p, set(note, "n"))
	}
	hidden, open := raise(secrets), raise(kg.DefaultGraph)
	// all lists the objects of a property that the principal sees, also in removed
	// statements.
	all := func(p kg.Principal, id string, property kg.Term) (list []string) {
		list = w.objects(kg.View{Principal: p, Graphs: []kg.Term{kg.IRI(kg.PendingGraphPrefix + id), kg.IRI(kg.ProposalGraphPrefix + id)}}, property)
		for r := kg.Revision(1); r <= w.store.Head().Revision; r++ {
			c, err := w.store.Commit(t.Context(), p, r)
			if kg.CodeOf(err) == kg.CodeNotFound {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			for _, ch := range c.Changes {
				if ch.Quad.Predicate == property && strings.HasSuffix(ch.Quad.Graph.Value(), id) && ch.Op == kg.Add {
					list = append(list, ch.Quad.Object.Value())
				}
			}
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	patches := kg.IRI(kg.OwnVocabulary + "patches")
	check := func(when string) {
		t.Helper()
		w.want(when+": hidden from bob", all(bob, hidden, pay))
		w.want(when+": the rest for bob", all(bob, hidden, note), "n")
		w.want(when+": for carol", all(carol, hidden, pay), "more")
		w.want(when+": another graph for bob", all(bob, open, pay), "more")
		for _, row := range []struct {
			p     kg.Principal
			id    string
			json  int
			shown int
		}{{bob, hidden, 0, 1}, {carol, hidden, 1, 2}, {bob, open, 1, 2}} {
			if got := all(row.p, row.id, patches); len(got) != row.json {
				t.Errorf("%s: %s reads the patches %q", when, row.p.ID, got)
			}
			one, err := w.service.Get(t.Context(), by(row.p), row.id)
			if err != nil || len(one.Patches) != row.shown || one.Hidden != 2-row.shown {
				t.Errorf("%s: %s gets %+v, %v", when, row.p.ID, one, err)
			}
			past, err := w.service.GetAt(t.Context(), by(row.p), row.id, 2)
			if err != nil || len(past.Patches) != row.shown {
				t.Errorf("%s: %s gets of the past %+v, %v", when, row.p.ID, past, err)
			}
			page, err := w.service.List(t.Context(), by(row.p), proposals.Query{})
			if err != nil || len(page.Proposals) != 2 {
				t.Fatal(page, err)
			}
			for _, p := range page.Proposals {
				if p.ID == row.id && len(p.Patches) != row.shown {
					t.Errorf("%s: %s lists %+v", when, row.p.ID, p)
				}
			}
		}
	}
	check("while it waits")
	w.restart()
	check("after a restart")
	for _, d := range []proposals.Decision{proposals.Approve, proposals.Reject} {
		if _, err := w.decide(bob, hidden, d); kg.CodeOf(err) != kg.CodePermissionDenied || !strings.Contains(err.Error(), "hidden from you") {
			t.Errorf("bob says %s: %v", d, err)
		}
	}
	for p, id := range map[*kg.Principal]string{&bob: open, &carol: hidden} {
		if done, err := w.decide(*p, id, proposals.Approve); err != nil || done.Status != proposals.Applied {
			t.Fatalf("%s: %+v, %v", p.ID, done, err)
		}
	}
	w.want("applied", w.objects(kg.View{Principal: carol, AllGraphs: true}, pay), "more", "more")
	w.want("applied, for bob", w.objects(kg.View{Principal: bob, AllGraphs: true}, pay), "more")
	check("when it was decided")
}

// TestProposalsAboutVeryManyPlaces proves that a proposal with more places than are
// stored shows no statements if anything is hidden, and still shows its patches.
func TestProposalsAboutVeryManyPlaces(t *testing.T) {
	w := newWorld(t, proposals.Options{})
	hides := func(p kg.Principal, predicate, _ kg.Term) bool {
		return p.ID == bob.ID && predicate == kg.IRI("urn:none")
	}
	w.access.hides.Store(&hides)
	for _, row := range []struct{ places, seen int }{{256, 256}, {257, 0}} {
		patches := []kg.Patch{set(pay, "more")}
		for i := range row.places - 1 {
			patches = append(patches, set(kg.IRI(fmt.Sprint("urn:p", i)), "x"))
		}
		id := w.propose(patches...)
		pending := []kg.Term{kg.IRI(kg.PendingGraphPrefix + id)}
		if n := len(w.objects(kg.View{Principal: bob, Graphs: pending}, kg.Term{})); n != row.seen {
			t.Errorf("of %d bob sees %d", row.places, n)
		}
		if p, err := w.service.Get(t.Context(), by(bob), id); err != nil || len(p.Patches) != row.places {
			t.Errorf("of %d bob gets %+v, %v", row.places, p, err)
		}
		w.access.hides.Store(nil)
		if n := len(w.objects(kg.View{Principal: bob, Graphs: pending}, kg.Term{})); n != row.places {
			t.Errorf("of %d bob sees %d where nothing is hidden", row.places, n)
		}
		w.access.hides.Store(&hides)
	}
}
