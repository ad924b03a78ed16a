package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// A line has the source of a statement, the author of the change, and the removed
// statements, up to a bound.
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

// A statement of a snapshot is shown with its strongest assertion: a fact before a lesser
// certainty, and of two equal ones the newest.
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

// TestWatchRereadsOnlyTheReplacedGraph follows two graphs of a server behind the
// replacement of one of them as a whole: that one is read again as of the replacement, page
// by page, the other is not, and later changes follow once.
func TestWatchRereadsOnlyTheReplacedGraph(t *testing.T) {
	_, url := startServer(t)
	ask := func(method, graph, text string) (position string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, url+"/data?graph="+graph, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/n-triples")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var report struct{ Position string }
		if err := json.NewDecoder(response.Body).Decode(&report); err != nil || response.StatusCode/100 != 2 {
			t.Fatalf("%s: %s, %v", method, response.Status, err)
		}
		return report.Position
	}
	numbered := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "<urn:s%d> <urn:p> \"v\" .\n", i)
		}
		return b.String()
	}
	const many = kg.MaxPatches + 1
	ask("PUT", "urn:other", numbered(0, 3))
	from := ask("PUT", "urn:large", numbered(0, many))
	ask("PUT", "urn:large", numbered(1, many+1))
	ask("POST", "urn:other", numbered(3, 4))
	ask("POST", "urn:large", numbered(many+1, many+2))
	var out, said strings.Builder
	args := []string{"watch", "--url", url, "--csv", "--from", from, "--graph", "urn:large", "--graph", "urn:other", "--count", "3"}
	if code := execute(t.Context(), args, terminal{in: strings.NewReader(""), out: &out, err: &said}); code != exitOK {
		t.Fatalf("exit code %d: %s", code, said.String())
	}
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for _, row := range rows {
		told[row[0]+" "+row[6]]++
	}
	want := map[string]int{"op graph": 1, "graphReplaced urn:large": 1, "resync urn:large": 1, "snapshot urn:large": many, "add urn:other": 1, "add urn:large": 1}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("what is told (-want +got):\n%s\n%s", diff, said.String())
	}
}
