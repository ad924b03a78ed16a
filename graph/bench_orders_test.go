package graph_test

import (
	"testing"

	"koine/internal/social"
	"koine/kg"
)

// BenchmarkOrders asks for ranges, orders and prefixes of a social network, in turns with the same
// questions under a budget, for which all orders are sorted, and with a walk over the statements of
// the property.
func BenchmarkOrders(b *testing.B) {
	t := newBench(b, unlimited, func(o *kg.Options) { o.TermCache, o.RunCacheBytes = 1<<19, -1 })
	t.socialNetwork(b, *groupedStatements)
	ns := social.Vocabulary
	posts, created := `type: {eq: "`+ns+`Post"}`, `predicate: "`+ns+`created"`
	for _, q := range []struct{ name, predicate, query string }{
		{"range", "created", `entities(first: 10, where: {property: [{` + created + `, gte: "2020-01-10T10:00:00Z", lt: "2020-01-10T10:10:00Z"}]}%s) { totalCount nodes { iri } }`},
		{"range/class", "created", `entities(first: 10, where: {` + posts + `, property: [{` + created + `, gte: "2020-01-10T10:00:00Z", lt: "2020-01-10T10:10:00Z"}]}%s) { totalCount nodes { iri } }`},
		{"first", "created", `entities(first: 10, where: {` + posts + `}, orderBy: [{property: "` + ns + `created"}]%s) { totalCount nodes { iri } }`},
		{"last", "created", `entities(first: 10, where: {` + posts + `}, orderBy: [{property: "` + ns + `created", direction: DESC}]%s) { nodes { iri } }`},
		{"oldest", "age", `entities(first: 10, where: {type: {eq: "` + ns + `Person"}}, orderBy: [{property: "` + ns + `age", direction: DESC}]%s) { nodes { iri } }`},
		{"equal", "age", `entities(first: 10, where: {type: {eq: "` + ns + `Person"}, property: [{predicate: "` + ns + `age", eq: 42}]}%s) { totalCount nodes { iri } }`},
		{"match/last", "created", `match(first: 10, pattern: {triples: [{s: "?post", p: "rdf:type", o: "` + ns + `Post"}, {s: "?post", p: "<` + ns + `created>", o: "?at"}, {s: "?post", p: "<` + ns + `creator>", o: "?who"}]}, orderBy: [{var: "at", direction: DESC}]%s) { nodes { values } }`},
		{"label", "name", `entities(first: 10, where: {property: [{predicate: "` + ns + `name", startsWith: "morning coffee 1"}]}%s) { totalCount nodes { iri } }`},
		{"iri", "name", `entities(first: 10, where: {iri: {startsWith: "` + social.Namespace + `person/1234"}}%s) { totalCount nodes { iri } }`},
	} {
		b.Run(q.name, func(b *testing.B) { t.askInTurns(b, ns+q.predicate, q.query) })
	}
}
