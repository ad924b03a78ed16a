package rdfdata_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"koine/internal/dialect/rdfdata"
	"koine/internal/slowtest"
	"koine/kg"
)

// numbered is a document with so many statements.
func numbered(from, n int) io.Reader {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<urn:s:%d> <urn:p> \"%d\" .\n", from+i, from+i)
	}
	return strings.NewReader(b.String())
}

// A graph larger than one commit of changes is created, replaced, emptied, deleted and
// created again like a small one, with entity tags and conditions.
func TestGraphsOfAnySize(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	f := start(t, rdfdata.Options{})
	const large, graph = kg.MaxPatches + 1, "?graph=urn:g"
	put := func(document io.Reader, header ...string) answer {
		t.Helper()
		return f.ask("PUT", graph, document, append(header, "Content-Type: application/n-triples")...)
	}
	tag := func() string { return f.get(graph).header.Get("ETag") }
	holds := func(want int) {
		t.Helper()
		if got := strings.Count(string(f.get(graph).body), "\n"); got != want {
			t.Errorf("the graph has %d statements, want %d", got, want)
		}
	}
	a := put(numbered(0, large))
	if r := a.report(t); a.status != 201 || a.header.Get("Location") != "urn:g" || r.Statements != large || r.Removed != 0 {
		t.Errorf("made: %d %+v", a.status, r)
	}
	holds(large)
	first := tag()
	a = put(numbered(large-1, large))
	if r := a.report(t); a.status != 200 || r.Statements != large-1 || r.Removed != large-1 {
		t.Errorf("replaced: %d %+v", a.status, r)
	}
	holds(large)
	second := tag()
	if first == second || second == "" {
		t.Errorf("replaced, it has the tag %s, before %s", second, first)
	}
	if stale := put(numbered(0, large), "If-Match: "+first).problem(t); stale.Status != 412 {
		t.Errorf("with the tag of before: %+v", stale)
	}
	if fresh := put(numbered(0, large), "If-Match: "+second); fresh.status != 200 {
		t.Errorf("with its tag: %d %s", fresh.status, fresh.body)
	}
	before := f.store.Head().Revision
	if bad := put(io.MultiReader(numbered(0, large), strings.NewReader("oops\n"))).problem(t); bad.Status != 400 || bad.Line != large+1 || f.store.Head().Revision != before {
		t.Errorf("a fault in the last line: %+v", bad)
	}
	if r := put(strings.NewReader("")).report(t); r.Removed != large {
		t.Errorf("emptied: %+v", r)
	}
	if a := f.get(graph); a.status != 404 {
		t.Errorf("the empty graph: %d", a.status)
	}
	if a := put(numbered(0, large)); a.status != 201 {
		t.Errorf("filled again: %d %s", a.status, a.body)
	}
	stood := f.store.Head().Revision
	if r := f.ask("DELETE", graph, nil).report(t); r.Removed != large {
		t.Errorf("deleted: %+v", r)
	}
	if a := f.get(graph); a.status != 404 {
		t.Errorf("the deleted graph: %d", a.status)
	}
	if a := put(strings.NewReader("<urn:s> <urn:p> \"again\" .\n"), "If-None-Match: *"); a.status != 201 || a.header.Get("Location") != "urn:g" {
		t.Errorf("made again: %d %s", a.status, a.body)
	}
	holds(1)
	f.ask("DELETE", graph, nil).report(t)
	if a := f.post(graph, "text/turtle", "<urn:s> <urn:p> \"once more\" ."); a.status != 201 {
		t.Errorf("made again by POST: %d %s", a.status, a.body)
	}
	holds(1)
	if a := f.get(fmt.Sprint(graph, "&at=", stood)); strings.Contains(string(a.body), "urn:s:") {
		t.Errorf("what stood under the name before is found: %.200s", a.body)
	}
}
