package graph_test

import (
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/operation"
)

// An event is written once for all streams of a document that show the same of it, and for each stream
// if it reads the store or shows an agent.
func TestEventsAreWrittenOnce(t *testing.T) {
	b := newBench(t, graph.Options{})
	for document, want := range map[string]bool{
		`subscription { statementChanged { ... on StatementChange { op statement { subject { iri } object { ... on Literal { value } } assertions { certainty } } commit { revision } position } } }`: true,
		`subscription { statementChanged { ... on StatementChange { statement { id } } } }`:                                                                                                           false,
		`subscription { statementChanged { ... on StatementChange { statement { subject { iri label } } } } }`:                                                                                        false,
		`subscription { statementChanged { ... on StatementChange { statement { subject { id } } } } }`:                                                                                               false,
		`subscription { statementChanged { ... on StatementChange { statement { evidence { totalCount } } } } }`:                                                                                      false,
		`subscription { statementChanged { ... on StatementChange { statement { assertions { source { id } } } } } }`:                                                                                 false,
		`subscription { statementChanged { ... on StatementChange { commit { principal { id } } } } }`:                                                                                                false,
	} {
		one, other := b.follow(t, document, "", operation.Resume{}), b.follow(t, document, "", operation.Resume{})
		b.update(set("p", int64(len(document))))
		first, text := one.event()
		second, same := other.event()
		if text != same {
			t.Errorf("%s: one stream is sent %s, the other %s", document, text, same)
		}
		if once := &first.Result.Data[0] == &second.Result.Data[0]; once != want {
			t.Errorf("%s: written once: %t, want %t", document, once, want)
		}
		one.stop()
		other.stop()
	}
	// A plan holds its document, and is not kept for others if that is long.
	for padding, want := range map[int]bool{graph.MaxSharedPlan: true, graph.MaxSharedPlan + 1: false} {
		document := `subscription { statementChanged { ... on StatementChange { op } } }`
		document += strings.Repeat(" ", padding-len(document))
		one, other := b.follow(t, document, "", operation.Resume{}), b.follow(t, document, "", operation.Resume{})
		b.update(set("p", int64(padding)))
		first, _ := one.event()
		second, _ := other.event()
		if once := &first.Result.Data[0] == &second.Result.Data[0]; once != want {
			t.Errorf("a document of %d bytes: written once: %t, want %t", padding, once, want)
		}
		one.stop()
		other.stop()
	}
	// Streams of one document with other variables have other plans.
	const named = `subscription($with: Boolean!) { statementChanged { ... on StatementChange { op statement { predicate graph @include(if: $with) } } } }`
	with, without := b.follow(t, named, `{"with":true}`, operation.Resume{}), b.follow(t, named, `{"with":false}`, operation.Resume{})
	b.update(set("p", 7))
	with.want(`{"statementChanged":{"op":"replace","statement":{"predicate":"https://example.org/p","graph":null}}}`)
	without.want(`{"statementChanged":{"op":"replace","statement":{"predicate":"https://example.org/p"}}}`)
}
