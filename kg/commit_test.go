package kg_test

import (
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

// only lets one agent read and write everything, and others some graphs.
type only struct {
	agent  kg.AgentID
	others []kg.Term
}

func (o only) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	for _, g := range o.others {
		if g == graph {
			return true
		}
	}
	return p.ID == o.agent
}

// TestCommitsTellNothingHidden proves that neither a commit without changes nor
// the hash of what was asked for tells of a graph that may not be read.
func TestCommitsTellNothingHidden(t *testing.T) {
	other := kg.Principal{ID: "agent://other"}
	s := kgtest.Disk(t, kg.Options{Access: only{tester.ID, []kg.Term{kg.DefaultGraph}}})
	hidden := integer(1)
	hidden.Graph = kg.IRI("urn:hidden")
	update := func(key string, patches ...kg.Patch) {
		t.Helper()
		meta := kg.Meta{Principal: tester, Justification: "about what is hidden", IdempotencyKey: key, ContentHash: [32]byte{1}}
		_, err := s.Update(within(t), meta, func(tx *kg.Tx) error {
			for _, p := range patches {
				if err := tx.Apply(p); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	update("a", kg.Patch{Op: kg.Add, Quad: hidden}, kg.Patch{Op: kg.Add, Quad: integer(1)})
	update("b", kg.Patch{Op: kg.Add, Quad: hidden}) // changes nothing
	if c, err := s.Commit(within(t), other, 1); err != nil || len(c.Changes) != 1 || c.ContentHash != [32]byte{} {
		t.Errorf("a commit in part: got %+v, %v", c, err)
	}
	if c, err := s.Commit(within(t), other, 2); kg.CodeOf(err) != kg.CodeNotFound {
		t.Errorf("a commit without changes: got %+v, %v, want %s", c, err, kg.CodeNotFound)
	}
	for r := kg.Revision(1); r <= 2; r++ {
		if c, err := s.Commit(within(t), tester, r); err != nil || c.ContentHash != [32]byte{1} {
			t.Errorf("revision %d by who made it: got %+v, %v", r, c, err)
		}
	}
}
