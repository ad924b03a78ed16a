package kg_test

import (
	"strings"
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

// TestCommitsTellNothingHidden proves that neither a commit without changes nor the hash of
// a request reveals an unreadable graph.
func TestCommitsTellNothingHidden(t *testing.T) {
	other := kg.Principal{ID: "agent://other"}
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Access: only{tester.ID, []kg.Term{kg.DefaultGraph}}}})
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

// TestMotives proves that the reason of a commit is visible to readers of all of it and to
// its author, through every call, and to no other caller.
func TestMotives(t *testing.T) {
	agent := func(id kg.AgentID) kg.Principal { return kg.Principal{ID: id} }
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Access: only{"agent://all", []kg.Term{kg.DefaultGraph}}}})
	hidden := integer(1)
	hidden.Graph = kg.IRI("urn:hidden")
	meta := kg.Meta{Principal: agent("agent://all"), Actor: "agent://actor", Justification: "why", TaskID: "task", SessionID: "session", MessageID: "message", IdempotencyKey: "key"}
	for i, patches := range [][]kg.Patch{{{Op: kg.Add, Quad: integer(1)}}, {{Op: kg.Add, Quad: integer(2)}, {Op: kg.Add, Quad: hidden}}} {
		meta.IdempotencyKey = []string{"whole", "part"}[i]
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
	motives := func(c *kg.Commit) string {
		return c.Justification + " " + c.TaskID + " " + c.SessionID + " " + c.MessageID + " " + c.IdempotencyKey
	}
	for _, row := range []struct {
		who  kg.AgentID
		want [2]string
	}{
		{"agent://all", [2]string{"why task session message whole", "why task session message part"}},
		{"agent://actor", [2]string{"why task session message whole", "why task session message part"}},
		{"agent://other", [2]string{"why task session message whole", "    "}},
	} {
		f := kg.Filter{View: kg.View{Principal: agent(row.who), Graphs: []kg.Term{kg.DefaultGraph}}}
		w, err := s.Watch(within(t), f, s.Oldest())
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.ReadLog(within(t), f, kg.LogRange{After: s.Oldest(), Until: s.Head()})
		if err != nil {
			t.Fatal(err)
		}
		told := map[string][]*kg.Commit{}
		for e, err := range w.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if told["watched"] = append(told["watched"], e.Commit); e.Commit.Revision == 2 {
				break
			}
		}
		w.Close()
		for e, err := range l.Events() {
			if err != nil {
				t.Fatal(err)
			}
			told["read"] = append(told["read"], e.Commit)
		}
		for r := range kg.Revision(2) {
			c, err := s.Commit(within(t), agent(row.who), r+1)
			if err != nil {
				t.Fatal(err)
			}
			told["asked for"] = append(told["asked for"], c)
		}
		snapshot, err := s.View(within(t), f.View)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range row.want {
			got, err := snapshot.Justification(kg.Revision(i + 1))
			if reason, _, _ := strings.Cut(want, " "); err != nil || got != reason {
				t.Errorf("%s, by the snapshot: got %q, %v of revision %d, want %q", row.who, got, err, i+1, reason)
			}
		}
		snapshot.Close()
		for how, commits := range told {
			for i, want := range row.want {
				if len(commits) != 2 || motives(commits[i]) != want {
					t.Errorf("%s, %s: got %q of revision %d, want %q", row.who, how, motives(commits[i]), i+1, want)
				}
			}
		}
	}
}
