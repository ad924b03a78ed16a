package graph_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/query"
	"koine/kg"
)

// groupFields are fields `groups` of which only numbers are asked; %[1]s is the key, and
// %[2]s the name of the key.
var groupFields = []string{
	`groups(by: [%[1]s], first: 3) { keys count }`,
	`groups(by: [%[1]s], first: 1000) { keys values count }`,
	`groups(by: [%[1]s], first: 2, orderBy: [{as: "count", direction: ASC}]) { keys count }`,
	`groups(by: [%[1]s], first: 4, orderBy: [{as: "count"}, {as: "%[2]s", direction: DESC}]) { keys count }`,
	`groups(by: [%[1]s], first: 4, orderBy: [{as: "%[2]s", direction: DESC}]) { keys count }`,
	`groups(by: [%[1]s], first: 5, compute: [{as: "n", fn: COUNT}], orderBy: [{as: "n", direction: ASC}]) { keys values count }`,
	`groups(by: [%[1]s], first: 5, having: [{as: "%[2]s", exists: true}]) { keys count }`,
	`groups(by: [%[1]s], first: 5, having: [{as: "%[2]s", exists: false}]) { keys count }`,
	`groups(by: [%[1]s], first: 5, having: [{as: "count", gte: 2}]) { keys count }`,
	`groups(by: [%[1]s], first: 5, having: [{as: "%[2]s", ne: "two"}]) { keys count }`,
	`groups(by: [%[1]s], first: 0) { keys count }`,
}

// computedFields compute more than numbers, of the property %[3]s.
var computedFields = []string{
	`groups(by: [%[1]s], first: 3, compute: [{as: "v", fn: AVG, property: %[3]q}]) { keys values count }`,
	`groups(by: [%[1]s], first: 3, compute: [{as: "v", fn: MAX, property: %[3]q}], orderBy: [{as: "v", direction: DESC}]) { keys values count }`,
	`groups(by: [%[1]s, {as: "more", property: %[3]q}], first: 4, compute: [{as: "v", fn: SUM, property: %[3]q}], orderBy: [{as: "v"}]) { keys values count }`,
	`groups(by: [%[1]s, {as: "more", property: %[3]q}], first: 4, orderBy: [{as: "more"}]) { keys values count }`,
	`groups(by: [], compute: [{as: "v", fn: COUNT_DISTINCT, property: %[3]q}]) { keys values count }`,
}

// random groups of entities, of statements and of the rows of a pattern. The bound %s is
// in the place of further arguments.
func (r *random) groupQuery() string {
	predicate, other := r.predicate().Name(), r.predicate().Name()
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	field := func(list []string, key, name string) string {
		return strings.NewReplacer("%[1]s", key, "%[2]s", name, "%[3]q", strconv.Quote(other)).Replace(pick(list))
	}
	switch r.IntN(4) {
	case 0, 1:
		where := pick([]string{"first: 2", `where: {type: {eq: "ex:Thing"}}`, fmt.Sprintf(`where: {type: {eq: "ex:Thing"}, property: [{predicate: %q, exists: true}]}`, other),
			fmt.Sprintf(`where: {property: [{predicate: %q, exists: true}]}`, predicate), fmt.Sprintf(`where: {not: {property: [{predicate: %q, exists: true}]}}`, other)})
		list := groupFields
		if r.IntN(2) == 0 {
			list = computedFields
		}
		return fmt.Sprintf(`{ entities(%s%%s) { %s } }`, where, field(list, fmt.Sprintf(`{as: "k", property: %q}`, predicate), "k"))
	case 2:
		where := pick([]string{"first: 2", fmt.Sprintf(`where: {predicate: {eq: %q}}`, predicate)})
		key := pick([]string{"OBJECT", "SUBJECT", "PREDICATE", "GRAPH"})
		return fmt.Sprintf(`{ statements(%s%%s) { %s } }`, where, field(groupFields, fmt.Sprintf(`{as: "k", by: %s}`, key), "k"))
	}
	name := pick([]string{"a", "b"})
	return fmt.Sprintf(`{ match(pattern: {triples: [{s: "?a", p: %q, o: "?b"}]}%%s) { totalCount %s } }`, predicate, field(groupFields, fmt.Sprintf(`{var: %q}`, name), name))
}

// TestGroupsBothWays compares groups that are counted from whole properties with those of
// the same query under a budget, for which the elements are read one by one: the bytes are
// the same, in views of all kinds. What the reader may not read changes nothing: a store
// without it gives the same answers.
func TestGroupsBothWays(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", s)
	r := &random{Rand: rand.New(rand.NewPCG(s, 3))}
	hidden := kg.IRI(ex + "hidden")
	keep := func(o *kg.Options) { o.Governor.Access = keepsGraph{hidden} }
	whole, without := newBench(t, graph.Options{}, keep), newBench(t, graph.Options{}, keep)
	for i := range 4 {
		var patches, shown []kg.Patch
		for range 60 {
			p := r.patch()
			if r.IntN(4) == 0 {
				p = add(p.Quad.Subject, query.RDFType, iri("Thing"))
			}
			shown = append(shown, p)
			patches = append(patches, p)
			if r.IntN(2) == 0 {
				secret := r.patch()
				secret.Quad.Graph = hidden
				patches = append(patches, secret)
			}
		}
		whole.update(patches...)
		without.update(shown...)
		for range 60 {
			q := r.groupQuery()
			view := ""
			if r.IntN(5) == 0 {
				view = `, view: {minCertainty: 0.5}`
			}
			ask := func(b *bench, more string) string {
				t.Helper()
				res := b.execute(strings.ReplaceAll(q, "%s", view+more), "")
				if len(res.Errors) > 0 {
					t.Fatalf("%s: %v", q, res.Errors)
				}
				return string(res.Data)
			}
			got, want, elsewhere := ask(whole, ""), ask(whole, ", budget: {maxStatements: 1000000}"), ask(without, "")
			if got != want {
				t.Fatalf("update %d: %s\n%s\nunder a budget:\n%s", i, q, got, want)
			}
			if got != elsewhere {
				t.Fatalf("update %d: %s\n%s\nwithout what is hidden:\n%s", i, q, got, elsewhere)
			}
		}
	}
}

// keepsGraph keeps a graph from the reader.
type keepsGraph struct{ graph kg.Term }

func (k keepsGraph) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return graph != k.graph || p.ID != reader.ID
}
