package main

import "testing"

// A line says whose a statement was, who changed it, and what went, up to a
// bound.
func TestChangeLine(t *testing.T) {
	old := func(text string) changed {
		return changed{Object: node{Value: []byte(text)}, Source: "agent://x"}
	}
	half := 0.5
	certain := old("1")
	certain.Certainty = &half
	for _, c := range []struct {
		op       string
		actor    string
		previous []changed
		remains  bool
		want     string
	}{
		{"add", "agent://s", nil, false, "+ 7  urn:s  urn:p  2  by agent://s"},
		{"add", "agent://a", nil, false, "+ 7  urn:s  urn:p  2  by agent://s  recorded by agent://a"},
		{"remove", "agent://a", nil, false, "- 7  urn:s  urn:p  2  of agent://s  removed by agent://a"},
		{"remove", "agent://s", nil, true, "- 7  urn:s  urn:p  2  of agent://s  removed by agent://s, others still assert it"},
		{"replace", "agent://s", []changed{certain}, false, "~ 7  urn:s  urn:p  2  by agent://s  in place of 1 0.5 of agent://x"},
		{"replace", "agent://s", []changed{old("1"), old("3"), old("4")}, false, "~ 7  urn:s  urn:p  2  by agent://s  in place of 1 of agent://x, 3 of agent://x, 4 of agent://x"},
		{"replace", "agent://s", []changed{old("1"), old("3"), old("4"), old("5")}, false, "~ 7  urn:s  urn:p  2  by agent://s  in place of 1 of agent://x, 3 of agent://x, 4 of agent://x and 1 more"},
	} {
		e := change{Op: c.op, Statement: changed{Subject: node{ID: "urn:s"}, Predicate: node{ID: "urn:p"}, Object: node{Value: []byte("2")}}}
		m := &e.Metadata
		m.Revision, m.Actor, m.Source, m.Previous, m.StatementRemains = 7, c.actor, "agent://s", c.previous, c.remains
		if got := e.line(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
