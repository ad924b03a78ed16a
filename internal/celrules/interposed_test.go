package celrules_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"koine/internal/celrules"
	"koine/kg"
)

// before calls fn once, before it is asked for its first verdict.
type before struct{ fn func() }

func (b *before) Verify(context.Context, kg.Judgement) (kg.Verdict, error) {
	if fn := b.fn; fn != nil {
		b.fn = nil
		fn()
	}
	return kg.Verdict{}, nil
}

// alone refuses a second statement with the same property, as far as it sees.
type alone struct{ looks int }

func (a *alone) Verify(_ context.Context, j kg.Judgement) (v kg.Verdict, err error) {
	a.looks++
	n := 0
	for _, err := range j.After.Match(kg.Pattern{Predicate: j.Changes[0].Quad.Predicate}) {
		if err != nil {
			return v, err
		}
		if n++; n > 1 {
			v = kg.Verdict{Outcome: kg.Rejected, Reason: "not alone"}
		}
	}
	return v, nil
}

// TestReloadBetweenVerdictAndCommit proves that an update is committed under the newest
// rules, if they come into force while it is in progress: rules that judge it, and
// rules that hide statements from it.
func TestReloadBetweenVerdictAndCommit(t *testing.T) {
	const (
		nothing = "rules: []\n"
		hidden  = "rules:\n  - {name: h, on: read, when: 'statement.predicate == \"urn:p\"', effect: hide}\n"
		late    = "rules:\n  - {name: late, on: update, when: 'true', effect: reject}\n"
	)
	for _, row := range []struct {
		name, first, then string
		early             bool // before the rules judge, or behind
		want              string
		looks             int
	}{
		{"no reload", nothing, nothing, false, "not alone", 1},
		{"a rule on updates, behind the verdict", hidden, late, false, "Rule late", 2},
		{"a rule on updates, before the verdict", hidden, late, true, "Rule late", 1},
		{"what was hidden is seen, behind the verdict", hidden, nothing, false, "not alone", 2},
		{"what was hidden is seen, before the verdict", hidden, nothing, true, "not alone", 2},
		{"hidden all along", hidden, hidden, false, "", 1},
	} {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		write := func(text string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(row.first)
		f, err := celrules.Open(path, celrules.Options{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		reload := &before{}
		judge := new(alone)
		verifiers := kg.Verifiers(f, judge, reload)
		if row.early {
			verifiers = kg.Verifiers(reload, f, judge)
		}
		s, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: ruled{File: f}, Verifier: verifiers, RulesVersion: f.Reloads}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := apply(s, kg.Meta{Principal: kg.Principal{ID: "agent://old"}}, patch(kg.Add, "urn:s", "urn:p", kg.Integer(1))); err != nil {
			t.Fatal(err)
		}
		judge.looks = 0
		reload.fn = func() {
			write(row.then)
			if err := f.Reload(); err != nil {
				t.Error(err)
			}
		}
		r, err := apply(s, kg.Meta{Principal: caller("ann")}, patch(kg.Add, "urn:t", "urn:p", kg.Integer(2)))
		if err != nil || r.Verdict.Reason != row.want || judge.looks != row.looks || r.Committed != (row.want == "") {
			t.Errorf("%s: got %+v, %v after %d looks", row.name, r, err, judge.looks)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
