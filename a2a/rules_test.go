package a2a_test

import (
	"context"
	"fmt"
	"testing"

	"koine/a2a"
	"koine/internal/sse"
	"koine/kg"
)

// readers may read urn:open, none urn:hidden, and only the owner writes urn:open.
type rules struct{}

func (rules) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	switch graph {
	case kg.IRI("urn:hidden"):
		return false
	case kg.IRI("urn:open"):
		return right == kg.Read || right == kg.Discover || p.ID == "agent://owner"
	}
	return true
}

func (rules) Verify(_ context.Context, j kg.Judgement) (kg.Verdict, error) {
	for _, c := range j.Changes {
		switch c.Quad.Object {
		case kg.String("unlikely"):
			return kg.Verdict{Outcome: kg.Rejected, Reason: "Constraint Violation", Details: "nothing is unlikely"}, nil
		case kg.String("forbidden"):
			return kg.Verdict{Outcome: kg.Violation, Reason: "Forbidden", Details: "one does not say that"}, nil
		}
	}
	return kg.Verdict{}, nil
}

func updateOf(graph, value string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"mutations":[`+
		`{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":"fine"}}},`+
		`{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":%q},"graph":%q}}]}}`, value, graph)
}

// Decisions of access and verification on the wire. A refused update leaves nothing
// behind.
func TestRules(t *testing.T) {
	s := newTestServerWith(t, kg.Options{Governor: kg.Governor{Access: rules{}, Verifier: rules{}}}, sse.Options{}, a2a.Options{})
	for _, row := range []struct{ name, graph, value, want string }{
		{"a graph that may be read, not written", "urn:open", "x",
			`"error":{"code":-32011,"message":"you may read the graph <urn:open>, not write it","data":{"reason":"PERMISSION_DENIED","domain":"koine","field":"mutations[1].statement.graph"}}`},
		{"a graph that is hidden", "urn:hidden", "x",
			`"error":{"code":-32011,"message":"there is no graph <urn:hidden>","data":{"reason":"GRAPH_NOT_FOUND","domain":"koine","field":"mutations[1].statement.graph"}}`},
		{"rejected", "urn:g", "unlikely",
			`"result":{"success":false,"statementsAffected":0,"affectedIds":[],"verificationStatus":"Rejected - Constraint Violation","verificationDetails":"nothing is unlikely","revision":0,"position":"<position>","commitId":null}`},
		{"a violation", "urn:g", "forbidden",
			`"error":{"code":-32013,"message":"Forbidden: one does not say that","data":{"reason":"CONSTRAINT_VIOLATION","domain":"koine"}}`},
	} {
		got := s.post(t, updateOf(row.graph, row.value))
		if want := "200 application/json\n" + `{"jsonrpc":"2.0","id":1,` + row.want + "}\n"; got != want {
			t.Errorf("%s:\ngot  %swant %s", row.name, got, want)
		}
	}
	if head := s.store.Head().Revision; head != 0 {
		t.Errorf("refused, but revision %d is there", head)
	}
}

// A subscriber gets neither changes nor snapshots of statements that it may not read.
func TestSubscribersSeeWhatTheyMayRead(t *testing.T) {
	s := newTestServerWith(t, kg.Options{Governor: kg.Governor{Access: hides{}}}, sse.Options{}, a2a.Options{})
	s.post(t, updateOf("urn:secret", "before"))
	for _, row := range []struct {
		agent string
		want  []string
	}{
		{"agent://insider", []string{"add urn:s before", "add urn:s fine", "add urn:t now"}},
		{"agent://outsider", []string{"add urn:s fine", "add urn:u after"}},
	} {
		sub := s.subscribe(t, `{"snapshot":true}`, "X-Agent-ID: "+row.agent)
		if _, err := s.store.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
			p := patch(kg.Add, "urn:t", kg.String("now"), "agent://x")
			p.Quad.Graph = kg.IRI("urn:secret")
			return tx.Apply(p)
		}); err != nil {
			t.Fatal(err)
		}
		if row.agent == "agent://outsider" {
			s.set(t, kg.Add, "urn:u", kg.String("after"), "agent://x")
		}
		sub.expect(row.want...)
		sub.cancel()
	}
}

// hides hides urn:secret from outsiders.
type hides struct{}

func (hides) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return p.ID != "agent://outsider" || graph != kg.IRI("urn:secret")
}
