package graph_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/slowtest"
	"koine/kg"
)

// A filter that takes long for each text, or for each entity, ends when the
// operation's time is over, whether an index gives the entities or all are
// looked at.
func TestFiltersEndInTime(t *testing.T) {
	slowtest.Long(t)
	b := newBench(t, graph.Options{Limits: limit.Limits{Duration: 50 * time.Millisecond}})
	var patches []kg.Patch
	for i := range 400 {
		s := iri(fmt.Sprint("s", i))
		patches = append(patches, add(s, kg.IRI(kg.RDFType), iri("T")), add(s, iri("text"), kg.String(strings.Repeat("a", 20_000)+fmt.Sprint(i))), add(s, iri("next"), iri(fmt.Sprint("s", (i+1)%400))))
	}
	b.update(patches...)
	slow := `regex: "(?:a?){200}b"`
	for _, query := range []string{
		`entities(where: {property: {predicate: "ex:text", ` + slow + `}}) { totalCount }`,
		`entities(where: {or: {property: {predicate: "ex:text", ` + slow + `}}}) { totalCount }`,
		`entities(where: {type: {eq: "ex:T"}, or: {path: {path: "ex:text", value: {` + slow + `}}}}) { totalCount }`,
		`entities(where: {path: {path: "ex:next", where: {or: {property: {predicate: "ex:text", ` + slow + `}}}}}) { totalCount }`,
		`statements(where: {object: {` + slow + `}}) { totalCount }`,
		`entities(where: {type: {eq: "ex:T"}, path: {path: "ex:next+/ex:next+", count: {gt: 1000}}}) { totalCount }`,
	} {
		started := time.Now()
		result := b.execute(`{ `+query+` }`, "")
		if took := time.Since(started); len(result.Errors) == 0 || result.Errors[0].Extensions["code"] != "TIMEOUT" || took > slowtest.Slack(10*time.Second) {
			t.Errorf("%s: after %v got %v, want that the time is over", query, took, result.Errors)
		}
	}
}
