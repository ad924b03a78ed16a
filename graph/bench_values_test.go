package graph_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"koine/internal/social"
	"koine/kg"
)

// valuesOfPosts yields values of posts that are in the dictionary: a price, which is a decimal that few
// share, a rating, one of fifty decimals, and the time at which it was sent, with an offset.
func valuesOfPosts(n int) func(yield func(kg.Quad, error) bool) {
	return func(yield func(kg.Quad, error) bool) {
		dice := rand.New(rand.NewPCG(3, 4))
		for i := range n {
			post := kg.IRI(fmt.Sprint(social.Namespace, "post/", i))
			for _, v := range []struct {
				property string
				value    kg.Term
			}{
				{"price", kg.Typed(fmt.Sprintf("%.2f", dice.Float64()*100*float64(n)/100), kg.XSDDecimal)},
				{"rating", kg.Typed(fmt.Sprintf("%.1f", float64(dice.IntN(50))/10), kg.XSDDecimal)},
				{"sent", kg.Typed(fmt.Sprintf("20%02d-%02d-%02dT%02d:%02d:%02d+01:00", 10+dice.IntN(10), 1+dice.IntN(12), 1+dice.IntN(28), dice.IntN(24), dice.IntN(60), dice.IntN(60)), kg.XSDDateTime)},
			} {
				if !yield(kg.Quad{Subject: post, Predicate: kg.IRI(social.Vocabulary + v.property), Object: v.value, Graph: kg.DefaultGraph}, nil) {
					return
				}
			}
		}
	}
}

// BenchmarkValues asks for ranges and orders of decimals and of times with an offset, in turns as
// BenchmarkOrders does.
func BenchmarkValues(b *testing.B) {
	t := newBench(b, unlimited, func(o *kg.Options) { o.TermCache, o.RunCacheBytes = 1<<19, -1 })
	t.socialNetwork(b, *groupedStatements)
	posts := *groupedStatements / 21 * 2
	if _, err := t.store.Load(b.Context(), kg.Meta{}, valuesOfPosts(posts), kg.LoadOptions{}); err != nil {
		b.Fatal(err)
	}
	ns := social.Vocabulary
	class := `type: {eq: "` + ns + `Post"}`
	property := func(name, condition string) string {
		return `property: [{predicate: "` + ns + name + `", ` + condition + `}]`
	}
	orderBy := func(name, direction string) string {
		return `orderBy: [{property: "` + ns + name + `", direction: ` + direction + `}]`
	}
	triples := func(name string) string {
		return `{s: "?post", p: "rdf:type", o: "` + ns + `Post"}, {s: "?post", p: "<` + ns + name + `>", o: "?value"}`
	}
	for _, q := range []struct{ name, predicate, query string }{
		{"range", "price", `entities(first: 10, where: {` + property("price", `gte: 1000, lt: 1010`) + `}%s) { totalCount nodes { iri } }`},
		{"range/time", "sent", `entities(first: 10, where: {` + property("sent", `gte: "2015-06-01T10:00:00Z", lt: "2015-06-01T12:00:00Z"`) + `}%s) { totalCount nodes { iri } }`},
		{"range/match", "price", `match(first: 10, pattern: {triples: [` + triples("price") + `], filter: [{var: "value", value: {gte: 1000, lt: 1010}}]}%s) { totalCount nodes { values } }`},
		{"equal", "price", `entities(first: 10, where: {` + class + `, ` + property("price", `eq: 1000.5`) + `}%s) { totalCount nodes { iri } }`},
		{"equal/many", "rating", `entities(first: 10, where: {` + class + `, ` + property("rating", `eq: 2.5`) + `}%s) { totalCount nodes { iri } }`},
		{"first", "price", `entities(first: 10, where: {` + class + `}, ` + orderBy("price", "ASC") + `%s) { totalCount nodes { iri } }`},
		{"last", "price", `entities(first: 10, where: {` + class + `}, ` + orderBy("price", "DESC") + `%s) { nodes { iri } }`},
		{"last/rating", "rating", `entities(first: 10, where: {` + class + `}, ` + orderBy("rating", "DESC") + `%s) { nodes { iri } }`},
		{"last/time", "sent", `entities(first: 10, where: {` + class + `}, ` + orderBy("sent", "DESC") + `%s) { nodes { iri } }`},
		{"match/last", "price", `match(first: 10, pattern: {triples: [` + triples("price") + `]}, orderBy: [{var: "value", direction: DESC}]%s) { nodes { values } }`},
		{"wide", "price", `entities(first: 10, where: {` + property("price", `gte: 10`) + `}%s) { totalCount nodes { iri } }`},
		{"wide/time", "sent", `entities(first: 10, where: {` + property("sent", `gte: "2012-01-01T00:00:00Z"`) + `}%s) { totalCount nodes { iri } }`},
	} {
		b.Run(q.name, func(b *testing.B) { t.askInTurns(b, ns+q.predicate, q.query) })
	}
}
