package kg_test

import (
	"context"
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

// refusing rejects updates that add one object, and calls trial after each
// verdict.
type refusing struct {
	object kg.Term
	after  func()
}

func (r *refusing) Verify(_ context.Context, j kg.Judgement) (v kg.Verdict, err error) {
	for _, c := range j.Changes {
		if c.Quad.Object == r.object {
			v = kg.Verdict{Outcome: kg.Rejected, Reason: "refused"}
		}
	}
	if after := r.after; after != nil {
		r.after = nil
		after()
	}
	return v, nil
}

// TestVerdictIsOnWhatIsCommitted proves that an update which depends on its reads is judged
// again when its effect changes, although no subject of it has changed.
func TestVerdictIsOnWhatIsCommitted(t *testing.T) {
	bad := kg.String("bad")
	v := &refusing{object: bad}
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Verifier: v}})
	said := kg.Quad{Subject: kg.IRI("urn:read"), Predicate: kg.IRI("urn:p"), Object: kg.String("said")}
	v.after = func() {
		if err := addOne(s.Store, within(t), said); err != nil {
			t.Error(err)
		}
	}
	receipt, err := s.Update(within(t), kg.Meta{}, func(tx *kg.Tx) error {
		q := kg.Quad{Subject: kg.IRI("urn:written"), Predicate: kg.IRI("urn:p"), Object: kg.String("good")}
		for _, err := range tx.Match(kg.Pattern{Subject: said.Subject}) {
			if err != nil {
				return err
			}
			q.Object = bad
		}
		return tx.Apply(kg.Patch{Op: kg.Add, Quad: q})
	})
	if err != nil || receipt.Verdict.Outcome != kg.Rejected || receipt.Committed {
		t.Errorf("got %+v, %v, want a rejection", receipt, err)
	}
}
