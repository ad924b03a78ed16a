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
		where := pick([]string{"first: 2", `where: {graph: {eq: "ex:g1"}}`, fmt.Sprintf(`where: {predicate: {eq: %q}}`, predicate)})
		key := pick([]string{"OBJECT", "SUBJECT", "PREDICATE", "GRAPH"})
		return fmt.Sprintf(`{ statements(%s%%s) { %s } }`, where, field(groupFields, fmt.Sprintf(`{as: "k", by: %s}`, key), "k"))
	}
	name := pick([]string{"a", "b"})
	tests := pick([]string{"", "", `{s: "?a", p: "rdf:type", o: "ex:Thing"}, `, fmt.Sprintf(`{s: "?a", p: "rdf:type", o: "ex:Thing"}, {s: "?a", p: %q, o: %q}, `, other, pick([]string{"ex:a", "ex:leaf", "ex:bud"})),
		fmt.Sprintf(`{s: "?a", p: %q, o: %q}, `, other, pick([]string{"ex:a", "ex:leaf", "ex:bud"})), `{s: "?a", p: "rdf:type", o: "ex:Unknown"}, `})
	return fmt.Sprintf(`{ match(pattern: {triples: [%s{s: "?a", p: %q, o: "?b"}]}%%s) { totalCount %s } }`, tests, predicate, field(groupFields, fmt.Sprintf(`{var: %q}`, name), name))
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

// TestGroupsFromCachedRuns compares answers of a store that keeps decoded runs with those of one
// that does not: groups, counts of cycles and what they cost, for two readers of whom one does not
// see a graph, each asked twice, while statements come and go. The bytes are the same.
func TestGroupsFromCachedRuns(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", s)
	r := &random{Rand: rand.New(rand.NewPCG(s, 4))}
	hidden := kg.IRI(ex + "hidden")
	keep := func(cache int64) func(*kg.Options) {
		return func(o *kg.Options) { o.Governor.Access, o.RunCacheBytes = keepsGraph{hidden}, cache }
	}
	stores := []*bench{newBench(t, graph.Options{}, keep(0)), newBench(t, graph.Options{}, keep(-1))}
	other := reader
	other.ID = "agent://other"
	var known []kg.Patch
	for i := range 12 {
		var patches []kg.Patch
		for range 20 {
			p := r.patch()
			if r.IntN(3) == 0 {
				p.Quad.Graph = hidden
			}
			if r.IntN(3) == 0 && p.Quad.Object.IsResource() {
				p.Quad.Object = r.resource() // for cycles
			}
			if len(known) > 0 && r.IntN(3) == 0 {
				p = kg.Patch{Op: kg.Remove, Quad: known[r.IntN(len(known))].Quad}
			} else {
				known = append(known, p)
			}
			patches = append(patches, p)
		}
		for _, b := range stores {
			_, err := b.store.Update(t.Context(), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
				for _, p := range patches {
					if err := tx.Apply(p); err != nil && kg.CodeOf(err) != kg.CodeNotFound {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 15 {
			q := r.groupQuery()
			if r.IntN(4) == 0 {
				a, b, c := r.predicate().Name(), r.predicate().Name(), r.predicate().Name()
				q = fmt.Sprintf(`{ match(first: 0, pattern: {triples: [{s: "?a", p: %q, o: "?b"}, {s: "?b", p: %q, o: "?c"}, {s: "?a", p: %q, o: "?c"}]}%%s) { totalCount } }`, a, b, c)
			}
			q = strings.ReplaceAll(q, "%s", "")
			for time := range 2 {
				for _, who := range []*kg.Principal{&reader, &other} {
					var told [2]string
					for n, b := range stores {
						b.reading = who
						res := b.execute(q, "")
						told[n] = fmt.Sprintf("%s %v %v %v, %d statements and %d scans of %v", res.Data, res.Errors, res.Cuts, res.Hints, res.StatementsRead, res.Scans, res.Sources)
					}
					if told[0] != told[1] {
						t.Fatalf("update %d, time %d, %s: %s\nwith the cache %s\nwithout it     %s", i, time, who.ID, q, told[0], told[1])
					}
				}
			}
		}
	}
}

// keepsGraph keeps a graph from the reader.
type keepsGraph struct{ graph kg.Term }

func (k keepsGraph) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return graph != k.graph || p.ID != reader.ID
}
