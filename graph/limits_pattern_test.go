package graph_test

import (
	"strings"

	"koine/graph/limit"
)

// patternLimitCases are those of patterns, paths and traversals.
func patternLimitCases() []limited {
	// Of ages there are three, of names four.
	ages := func(arguments string) string {
		return `{ match(pattern: {triples: [{s: "?a", p: "ex:age", o: "?b"}]}` + arguments + `) { nodes { values } } }`
	}
	names := func(arguments string) string { return strings.Replace(ages(arguments), "age", "name", 1) }
	following := func(path string) string {
		return `{ entity(iri: "ex:ada") { follow(path: "` + path + `") { nodes { iri } } } }`
	}
	triples := func(n int) string {
		same := repeat(n, func(int) string { return `{s: "?a", p: "ex:age", o: "?b"} ` })
		return `{ match(first: 1, pattern: {triples: [` + same + `]}) { nodes { values } } }`
	}
	return []limited{
		{
			name: "rows", limits: limit.Limits{Rows: 3}, limit: "rows",
			at: ages(""), past: names(""), message: "the pattern needs more than 3 intermediate rows",
		},
		{
			name: "kept rows, distinct", limits: limit.Limits{KeptRows: 3}, limit: "keptRows",
			at: ages(", distinct: true"), past: names(", distinct: true"), message: "more than 3 rows would have to be held in memory",
		},
		{
			name: "kept rows, ordered", limits: limit.Limits{KeptRows: 3}, limit: "keptRows",
			at: ages(`, orderBy: {var: "a"}`), past: names(`, orderBy: {var: "a"}`), message: "more than 3 rows would have to be held in memory",
		},
		{
			name: "reads of a pattern", limits: limit.Limits{Reads: 3}, limit: "reads",
			at: ages(""), past: names(""), message: "the pattern needs more than 3 statements",
		},
		{
			name: "reads of a path", limits: limit.Limits{Reads: 3}, limit: "reads",
			at: following("ex:knows"), past: following("ex:knows/ex:knows"), message: "following the path reads more than 3 statements",
		},
		{
			name: "reads around", limits: limit.Limits{Reads: 3}, limit: "reads",
			at:      `{ entity(iri: "ex:ada") { neighborhood(predicates: ["ex:knows"], direction: OUT) { entities { iri } } } }`,
			past:    `{ entity(iri: "ex:ada") { neighborhood(predicates: ["ex:knows"], direction: OUT, depth: 2) { entities { iri } } } }`,
			message: "the search reads more than 3 statements",
		},
		{
			name: "reads of ways", limits: limit.Limits{Reads: 5}, limit: "reads",
			at:      `{ shortestPaths(from: "ex:ada", to: "ex:cy", predicates: ["ex:knows"], direction: OUT) { length } }`,
			past:    `{ shortestPaths(from: "ex:ada", to: "ex:cy") { length } }`,
			message: "the search reads more than 5 statements",
		},
		{
			name: "nodes of a path", limits: limit.Limits{PathNodes: 3}, limit: "pathNodes",
			at: following("ex:knows"), past: following("ex:knows+"), message: "the path leads to more than 3 nodes",
		},
		{
			name: "nodes of a path in a pattern", limits: limit.Limits{PathNodes: 3}, limit: "pathNodes",
			at:      `{ match(pattern: {triples: [{s: "ex:ada", p: "ex:knows", o: "?b"}]}) { nodes { values } } }`,
			past:    `{ match(pattern: {triples: [{s: "ex:ada", p: "ex:knows+", o: "?b"}]}) { nodes { values } } }`,
			message: "the path leads to more than 3 nodes",
		},
		{
			name: "triples of a pattern", limit: "pattern",
			at: triples(64), past: triples(65), message: "a pattern has at most 64 triples",
		},
	}
}
