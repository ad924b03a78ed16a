package kgtest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"koine/kg"
	"koine/kg/kgtest"
)

var (
	subject   = kg.IRI("urn:s")
	predicate = kg.IRI("urn:p")
	everyone  = kg.Filter{View: kg.View{AllGraphs: true}}
)

// told is a history as it must be, of a model with a commit of several
// changes, a replace, an empty commit, and one more.
func told(t *testing.T) (*kgtest.Model, kgtest.History) {
	t.Helper()
	m := kgtest.NewModel(kg.Epoch{1}, nil)
	say := func(meta kg.Meta, patches ...kg.Patch) {
		at := time.Unix(int64(m.Head()), 0)
		if a := m.Update(meta, patches, kgtest.Stamp{Revision: m.Head() + 1, Time: at}); a.Code != "" || !a.Receipt.Committed {
			t.Fatalf("the model refuses: %+v", a)
		}
	}
	patch := func(op kg.Op, n int64) kg.Patch {
		return kg.Patch{Op: op, Source: "agent://a", Quad: kg.Quad{Subject: subject, Predicate: predicate, Object: kg.Integer(n), Graph: kg.DefaultGraph}}
	}
	say(kg.Meta{}, patch(kg.Add, 1), patch(kg.Add, 2), patch(kg.Add, 3))
	say(kg.Meta{}, patch(kg.Replace, 4))
	say(kg.Meta{IdempotencyKey: "k"})
	say(kg.Meta{}, patch(kg.Remove, 4))
	from := kg.Position{Epoch: kg.Epoch{1}, Index: kg.EndOfCommit}
	return m, kgtest.History{From: from, Events: m.Events(everyone, from)}
}

func TestCheckersPassATrueHistory(t *testing.T) {
	m, h := told(t)
	if len(h.Events) != 5 {
		t.Fatalf("got %d events, want 3 adds, a replace and a remove", len(h.Events))
	}
	for name, err := range checks(m, h) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func checks(m *kgtest.Model, h kgtest.History) map[string]error {
	return map[string]error{
		"ordered":  kgtest.Ordered(h),
		"unique":   kgtest.Unique(h),
		"gapless":  kgtest.Gapless(h, m.Commits),
		"atomic":   kgtest.Atomic(h, m.Commits),
		"filtered": kgtest.Filtered(h, m, everyone),
		"resumable": kgtest.Resumable(h, 100, func(from kg.Position, n int) ([]kg.Event, error) {
			return m.Events(everyone, from), nil
		}),
	}
}

// Each checker must notice its own kind of fault.
func TestCheckersNotice(t *testing.T) {
	for _, row := range []struct {
		name  string
		broke func(h *kgtest.History)
		by    []string
	}{
		{"two events swapped", func(h *kgtest.History) { h.Events[0], h.Events[1] = h.Events[1], h.Events[0] }, []string{"ordered", "filtered"}},
		{"two commits swapped", func(h *kgtest.History) { h.Events[3], h.Events[4] = h.Events[4], h.Events[3] }, []string{"ordered", "filtered"}},
		{"an event of another log", func(h *kgtest.History) { h.Events[2].Position.Epoch = kg.Epoch{2} }, []string{"ordered"}},
		{"an event of another commit", func(h *kgtest.History) { h.Events[2].Commit = h.Events[4].Commit }, []string{"ordered"}},
		{"an event of no commit", func(h *kgtest.History) { h.Events[2].Commit = nil }, []string{"ordered"}},
		{"time that goes back", func(h *kgtest.History) {
			back := *h.Events[4].Commit
			back.Time = time.Unix(0, 0)
			h.Events[4].Commit = &back
		}, []string{"ordered"}},
		{"an event twice", func(h *kgtest.History) { h.Events = slices.Insert(h.Events, 1, h.Events[0]) }, []string{"unique", "filtered", "resumable"}},
		{"an event before the start", func(h *kgtest.History) { h.From.Revision = 1 }, []string{"unique", "ordered", "filtered"}},
		{"what a replace took away told by itself as well", func(h *kgtest.History) {
			own := h.Events[3]
			own.Op, own.Previous, own.Position.Index = kg.Remove, nil, 1
			h.Events = slices.Insert(h.Events, 3, own)
		}, []string{"unique", "filtered", "resumable"}},
		{"a commit missing", func(h *kgtest.History) { h.Events = slices.Delete(h.Events, 3, 4) }, []string{"gapless", "filtered", "resumable"}},
		{"the first commit missing", func(h *kgtest.History) { h.Events = h.Events[3:] }, []string{"gapless", "filtered", "resumable"}},
		{"half a commit missing", func(h *kgtest.History) { h.Events = slices.Delete(h.Events, 1, 2) }, []string{"atomic", "filtered", "resumable"}},
		{"a commit in two parts", func(h *kgtest.History) {
			first := h.Events[0]
			h.Events = append(slices.Delete(h.Events, 0, 1), first)
		}, []string{"atomic", "ordered", "filtered"}},
		{"a replace that does not tell what went", func(h *kgtest.History) { h.Events[3].Previous = h.Events[3].Previous[:1] }, []string{"atomic", "filtered", "resumable"}},
		{"another statement", func(h *kgtest.History) { h.Events[1].Statement.Object = kg.Integer(9) }, []string{"filtered", "resumable"}},
		{"another certainty", func(h *kgtest.History) {
			a := h.Events[1].Statement.Assertions[0]
			a.HasCertainty, a.Certainty = true, 0.3
			h.Events[1].Statement.Assertions = []kg.Assertion{a}
		}, []string{"filtered", "resumable"}},
		{"another operation", func(h *kgtest.History) { h.Events[1].Op = kg.Replace }, []string{"filtered", "resumable"}},
		{"a statement said to remain", func(h *kgtest.History) { h.Events[4].StatementRemains = true }, []string{"filtered", "resumable"}},
		{"an event of a commit that is not there", func(h *kgtest.History) { h.Events[4].Position.Revision = 9 }, []string{"atomic", "filtered", "resumable"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, h := told(t)
			row.broke(&h)
			found := checks(m, h)
			for _, name := range row.by {
				if found[name] == nil {
					t.Errorf("%s does not notice", name)
				}
			}
		})
	}
}

// A start inside a commit is one from which only the rest of it is told.
func TestCheckersKnowAStartInsideACommit(t *testing.T) {
	m, h := told(t)
	h.From, h.Events = h.Events[0].Position, h.Events[1:]
	for name, err := range checks(m, h) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestResumableTellsWhyWatchingFailed(t *testing.T) {
	_, h := told(t)
	err := kgtest.Resumable(h, 1, func(kg.Position, int) ([]kg.Event, error) { return nil, kg.Errorf(kg.CodeClosed, "gone") })
	if err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("got %v, want that it is gone", err)
	}
}

// Replaying a log must notice one that does not follow from itself.
func TestReplayNotices(t *testing.T) {
	for _, row := range []struct {
		name  string
		broke func(commits []kg.Commit)
	}{
		{"a missing commit", func(c []kg.Commit) { c[1].Revision = 3 }},
		{"time that goes back", func(c []kg.Commit) { c[1].Time = c[0].Time.Add(-time.Second) }},
		{"a state before that was not", func(c []kg.Commit) { c[1].Changes[0].Before = nil }},
		{"a state before that is of another revision", func(c []kg.Commit) { c[1].Changes[0].Since = 7 }},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, _ := told(t)
			var commits []kg.Commit
			for _, c := range m.Commits {
				own := *c
				own.Changes = slices.Clone(c.Changes)
				commits = append(commits, own)
			}
			if err := replay(commits); err != nil {
				t.Fatalf("before: %v", err)
			}
			row.broke(commits)
			if replay(commits) == nil {
				t.Error("is not noticed")
			}
		})
	}
}

func replay(commits []kg.Commit) error {
	m := kgtest.NewModel(kg.Epoch{1}, nil)
	for i := range commits {
		if err := m.Replay(&commits[i]); err != nil {
			return err
		}
	}
	return nil
}
