package proposals_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"koine/internal/proposals"
	"koine/kg"
)

// access permits everything until a test closes it.
type access struct {
	readOnly atomic.Bool
	editors  atomic.Bool // only agents with the role editor write
	hides    atomic.Pointer[func(p kg.Principal, predicate, graph kg.Term) bool]
}

func (a *access) Hides(p kg.Principal) func(predicate, graph kg.Term) bool {
	hides := a.hides.Load()
	if hides == nil || p.Trusted() {
		return nil
	}
	return func(predicate, graph kg.Term) bool { return (*hides)(p, predicate, graph) }
}

func (a *access) Allowed(p kg.Principal, _ kg.Term, right kg.Right) bool {
	return right != kg.Write || !a.readOnly.Load() && (!a.editors.Load() || p.HasRole("editor"))
}

// TestTheAuthorsStandingOfNowCounts proves that an approval applies a proposal with the
// author's current rights, and that the reviewer gets the reason if it cannot.
func TestTheAuthorsStandingOfNowCounts(t *testing.T) {
	editor := agent("ann", "editor")
	editor.ActFor, editor.Key = []kg.AgentID{"agent://team"}, "k1"
	refused := kg.Errorf(kg.CodePermissionDenied, "the agent agent://ann is suspended")
	kept := func(p kg.Principal) (kg.Principal, error) { return p, nil }
	for _, row := range []struct {
		name     string
		standing func(kg.Principal) (kg.Principal, error)
		readOnly bool
		conflict string // "" for one that is applied
	}{
		{"all as it was", kept, false, ""},
		{"suspended", func(kg.Principal) (kg.Principal, error) { return kg.Principal{}, refused }, false, "the author agent://ann no longer has the rights for it: the agent agent://ann is suspended"},
		{"may read only", kept, true, "not write it"},
		{"has lost the role", func(p kg.Principal) (kg.Principal, error) { p.Roles = nil; return p, nil }, false, "not write it"},
		{"may not act for the agent", func(p kg.Principal) (kg.Principal, error) { p.ActFor = nil; return p, nil }, false, "you may not act for agent://team"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var now atomic.Pointer[func(kg.Principal) (kg.Principal, error)]
			now.Store(&kept)
			w := newWorld(t, proposals.Options{CurrentRights: func(p kg.Principal) (kg.Principal, error) {
				if p.Key != "k1" || p.Method != "key" || !p.HasRole("editor") {
					t.Errorf("asked about %+v", p)
				}
				return (*now.Load())(p)
			}})
			w.access.editors.Store(true)
			r, err := w.update(kg.Meta{Principal: editor, Actor: "agent://team"}, set(pay, "more"))
			if err != nil {
				t.Fatal(err)
			}
			now.Store(&row.standing)
			w.access.readOnly.Store(row.readOnly)
			p, err := w.decide(bob, r.ProposalID, proposals.Approve)
			if err != nil {
				t.Fatal(err)
			}
			if row.conflict == "" {
				if p.Status != proposals.Applied {
					t.Errorf("it is %s: %s", p.Status, p.Conflict)
				}
				return
			}
			if p.Status != proposals.Conflicted || !strings.Contains(p.Conflict, row.conflict) || p.Approvals() != 1 {
				t.Errorf("it is %s: %q", p.Status, p.Conflict)
			}
			w.want("pay", w.objects(kg.View{Principal: admin}, pay))
		})
	}
}

// TestTheAuthorsStandingIsThatOfTheCommit proves that the suspension of an author
// during the application of its proposal counts.
func TestTheAuthorsStandingIsThatOfTheCommit(t *testing.T) {
	for last := 1; last < 4; last++ { // before the update, its trial, its commit
		var requests atomic.Int64
		w := newWorld(t, proposals.Options{CurrentRights: func(p kg.Principal) (kg.Principal, error) {
			if int(requests.Add(1)) >= last {
				return kg.Principal{}, kg.Errorf(kg.CodePermissionDenied, "suspended")
			}
			return p, nil
		}})
		id := w.propose(set(pay, "more"))
		p, err := w.decide(bob, id, proposals.Approve)
		if err != nil || p.Status != proposals.Conflicted || !strings.Contains(p.Conflict, "suspended") {
			t.Errorf("from call %d on: got %+v, %v", last, p, err)
		}
		if int(requests.Load()) < last {
			t.Errorf("asked %d times only", requests.Load())
		}
		w.want("pay", w.objects(kg.View{Principal: admin}, pay))
	}
}
