package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/kg"
)

// A cursor of a revision that is older than the history is CURSOR_GONE, and
// reading that revision REVISION_GONE; with the same query a new walk begins.
func TestCursorBehindHistory(t *testing.T) {
	b := newBench(t, graph.Options{}, func(o *kg.Options) {
		begun := o.Clock()
		o.History, o.Uptime = time.Minute, func() time.Duration { return o.Clock().Sub(begun) }
	})
	b.things(10)
	query := walks["entities by type"]
	var page struct{ C connection }
	b.data(query, `{"first": 3}`, &page)
	after := fmt.Sprintf(`{"first": 3, "after": %q}`, page.C.PageInfo.EndCursor)
	b.data(query, after, &page)
	if len(page.C.Nodes) != 3 {
		t.Fatalf("the second page: %+v", page.C)
	}
	for i := range 100 { // each is a second
		b.update(add(iri("thing/000"), iri("seen"), kg.Integer(int64(i))))
	}
	if r, err := b.store.Maintenance().Retain(context.Background()); err != nil || r.Oldest < 2 {
		t.Fatalf("Retain: %+v, %v", r, err)
	}
	for code, ask := range map[string][2]string{
		"CURSOR_GONE":   {query, after},
		"REVISION_GONE": {`{ entities(where: {type: {eq: "ex:Thing"}}, view: {at: "1"}) { totalCount } }`, ""},
	} {
		text, err := json.Marshal(b.execute(ask[0], ask[1]).Errors)
		if err != nil || !strings.Contains(string(text), `"code":"`+code+`"`) {
			t.Errorf("got %s, %v, want %s", text, err, code)
		}
	}
	b.data(query, `{"first": 3}`, &page)
	b.data(query, fmt.Sprintf(`{"first": 3, "after": %q}`, page.C.PageInfo.EndCursor), &page)
	if len(page.C.Nodes) != 3 {
		t.Errorf("a new walk: %+v", page.C)
	}
}
