package kg_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

// TestRulesThatChangeBeforeTheCommit proves that a verdict uses the rules that are in force
// when the update is committed or held, and that an update is judged once if the rules do
// not change.
func TestRulesThatChangeBeforeTheCommit(t *testing.T) {
	accept, hold := kg.Verdict{}, kg.Verdict{Outcome: kg.Held, Reason: "h", Hold: &kg.Hold{Rules: []string{"h"}}}
	reject, breach := kg.Verdict{Outcome: kg.Rejected, Reason: "r"}, kg.Verdict{Outcome: kg.Violation, Reason: "v"}
	for _, row := range []struct {
		name          string
		first, second kg.Verdict // the second by the changed rules; the same for none
		changes       bool
		looks         int
		want          kg.Outcome
		code          kg.Code
		kept          int
	}{
		{"accepted, no change", accept, accept, false, 1, kg.Accepted, "", 0},
		{"accepted twice", accept, accept, true, 2, kg.Accepted, "", 0},
		{"accepted, then rejected", accept, reject, true, 2, kg.Rejected, "", 0},
		{"accepted, then a violation", accept, breach, true, 2, kg.Accepted, kg.CodeConstraintViolation, 0},
		{"accepted, then held", accept, hold, true, 2, kg.Held, "", 1},
		{"held, no change", hold, hold, false, 1, kg.Held, "", 1},
		{"held twice", hold, hold, true, 2, kg.Held, "", 1},
		{"held, then accepted", hold, accept, true, 2, kg.Accepted, "", 0},
		{"held, then rejected", hold, reject, true, 2, kg.Rejected, "", 0},
	} {
		k, v := &keeper{}, &salaries{}
		var version atomic.Uint64
		s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Verifier: v, Holder: k, RulesVersion: version.Load}})
		looks := 0
		v.mind = func(j kg.Judgement) kg.Verdict {
			if slices.ContainsFunc(j.Changes, func(c kg.Change) bool { return kg.IsOwnGraph(c.Quad.Graph) }) {
				return accept // the writes of the keeper
			}
			if looks++; looks == 1 {
				if row.changes {
					version.Add(1)
				}
				return row.first
			}
			return row.second
		}
		r, err := s.Update(within(t), kg.Meta{Principal: tester, HasExpected: true, ExpectedRevision: s.Head().Revision}, applying(salary(1)))
		if kg.CodeOf(err) != row.code || r.Verdict.Outcome != row.want || looks != row.looks || len(k.held) != row.kept {
			t.Errorf("%s: got %+v, %v after %d looks, %d kept", row.name, r, err, looks, len(k.held))
		}
		if r.Committed != (row.code == "" && row.want == kg.Accepted) || (r.ProposalID != "") != (row.kept > 0) {
			t.Errorf("%s: got %+v", row.name, r)
		}
	}
}
