package online

import (
	"encoding/json"
	"testing"
)

// A line says whose a statement was, who changed it, and what went, up to a
// bound.
func TestChangeLine(t *testing.T) {
	old := func(text string) changedStatement {
		return changedStatement{Object: node{Value: []byte(text)}, Source: "agent://x"}
	}
	half := 0.5
	certain := old("1")
	certain.Certainty = &half
	for _, c := range []struct {
		op       string
		actor    string
		previous []changedStatement
		remains  bool
		want     string
	}{
		{"add", "agent://s", nil, false, "+ 7  urn:s  urn:p  2  by agent://s"},
		{"add", "agent://a", nil, false, "+ 7  urn:s  urn:p  2  by agent://s  recorded by agent://a"},
		{"remove", "agent://a", nil, false, "- 7  urn:s  urn:p  2  of agent://s  removed by agent://a"},
		{"remove", "agent://s", nil, true, "- 7  urn:s  urn:p  2  of agent://s  removed by agent://s, others still assert it"},
		{"replace", "agent://s", []changedStatement{certain}, false, "~ 7  urn:s  urn:p  2  by agent://s  replaces 1 0.5 of agent://x"},
		{"replace", "agent://s", []changedStatement{old("1"), old("3"), old("4")}, false, "~ 7  urn:s  urn:p  2  by agent://s  replaces 1 of agent://x, 3 of agent://x, 4 of agent://x"},
		{"replace", "agent://s", []changedStatement{old("1"), old("3"), old("4"), old("5")}, false, "~ 7  urn:s  urn:p  2  by agent://s  replaces 1 of agent://x, 3 of agent://x, 4 of agent://x and 1 more"},
	} {
		e := change{Op: c.op, Statement: changedStatement{Subject: node{ID: "urn:s"}, Predicate: node{ID: "urn:p"}, Object: node{Value: []byte("2")}}}
		m := &e.Metadata
		m.Revision, m.Actor, m.Source, m.Previous, m.StatementRemains = 7, c.actor, "agent://s", c.previous, c.remains
		if got := e.lineText(nil); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// A statement of a snapshot is shown with its strongest assertion: a fact
// before what is less than certain, and of two alike the newest.
func TestStoodLine(t *testing.T) {
	for list, want := range map[string]string{
		`{"source": "agent://a", "certainty": 0.5, "revision": 9}, {"source": "agent://b", "revision": 3}`:                   "= 9  urn:s  urn:p  2  by agent://b",
		`{"source": "agent://a", "certainty": 0.5, "revision": 3}, {"source": "agent://b", "certainty": 0.5, "revision": 9}`: "= 9  urn:s  urn:p  2  0.5  by agent://b",
		`{"source": "agent://a", "certainty": 0.7, "revision": 3}, {"source": "agent://b", "certainty": 0.5, "revision": 9}`: "= 9  urn:s  urn:p  2  0.7  by agent://a",
		`{"source": "agent://a", "certainty": 0, "revision": 9}`:                                                             "= 9  urn:s  urn:p  2  0  by agent://a",
	} {
		var s snapshotStatement
		text := `{"subject": {"id": "urn:s"}, "predicate": "urn:p", "object": {"value": 2}, "graph": null, "revision": 9, "assertions": [` + list + `]}`
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		if got := s.strongestChange().lineText(nil); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
