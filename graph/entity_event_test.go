package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/changefeed"
	"koine/internal/operation"
	"koine/kg"
)

const entityChanges = `__typename
	... on EntityChange { entity { iri label value(predicate: "ex:age") } changes { op statement { subject { iri } predicate object { ... on Literal { value } } } } snapshot commit { revision } }
	... on Progress { revision }`

// One event for each commit: the entity as of the commit, and its changes.
func TestEntityChanged(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(set("p", 1))
	f := b.follow(t, `subscription { e: entityChanged(iri: "ex:s", resume: "snapshot") { `+entityChanges+` } }`, "", operation.Resume{})
	label := kg.IRI(kg.RDFSLabel)
	b.update(set("age", 1), add(iri("s"), label, kg.String("S"))) // written after the snapshot was taken and before it is read
	b.update(set("age", 2), add(iri("other"), label, kg.String("O")))
	b.update(add(iri("other"), iri("knows"), iri("s"))) // not a statement of s
	b.update(kg.Patch{Op: kg.Remove, Quad: set("age", 2).Quad})
	const s = `{"iri":"https://example.org/s","label":%s,"value":%s}`
	if e := f.want(`{"e":{"__typename":"EntityChange","entity":` + fmt.Sprintf(s, "null", "null") + `,"changes":[],"snapshot":true,"commit":null}}`); !e.SnapshotEnd || e.Position.Revision != 1 {
		t.Errorf("got %+v, want the whole snapshot, of revision 1", e)
	}
	change := func(op, predicate, value string) string {
		return fmt.Sprintf(`{"op":%q,"statement":{"subject":{"iri":"https://example.org/s"},"predicate":%q,"object":{"value":%s}}}`, op, predicate, value)
	}
	event := func(label, age, changes string, r int) string {
		return fmt.Sprintf(`{"e":{"__typename":"EntityChange","entity":`+s+`,"changes":[%s],"snapshot":false,"commit":{"revision":%d}}}`, label, age, changes, r)
	}
	first := f.want(event(`"S"`, "1", change("add", ex+"age", "1")+","+change("add", kg.RDFSLabel, `"S"`), 2))
	f.want(event(`"S"`, "2", change("replace", ex+"age", "2"), 3))
	f.want(event(`"S"`, "null", change("remove", ex+"age", "2"), 5))
	// A position within the commit, as one of statementChanged is: the rest of it.
	within := first.Changes[0].Position
	f = b.follow(t, `subscription { e: entityChanged(iri: "ex:s") { `+entityChanges+` } }`, "", operation.Resume{Start: operation.After, After: within})
	if e := f.want(event(`"S"`, "1", change("add", kg.RDFSLabel, `"S"`), 2)); e.Position != first.Position || e.Result.Position != first.Position {
		t.Errorf("got the position %v, want %v, behind the commit", e.Position, first.Position)
	}
}

// An entity that the view does not show is null, and an event when it appears.
func TestEntityChangedOfNothing(t *testing.T) {
	b := newBench(t, graph.Options{})
	f := b.follow(t, `subscription { e: entityChanged(iri: "ex:s", resume: "snapshot", view: {minCertainty: 0.5}) { ... on EntityChange { entity { iri } position } } }`, "", operation.Resume{})
	b.update(by("agent://a", 0.4, set("p", 1)))
	b.update(by("agent://a", 0.6, set("p", 1)))
	b.update(kg.Patch{Op: kg.Remove, Quad: set("p", 1).Quad})
	for i, want := range []string{"null", `{"iri":"https://example.org/s"}`, "null"} {
		at := []kg.Revision{0, 2, 3}[i]
		f.want(`{"e":{"entity":` + want + `,"position":"` + b.store.FormatPosition(kg.Position{Epoch: b.store.Epoch(), Revision: at, Index: kg.EndOfCommit}) + `"}}`)
	}
}

// The surroundings of the entity, up to the requested depth.
func TestEntityChangedDepth(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(add(iri("s"), iri("knows"), iri("a")), add(iri("a"), iri("knows"), iri("b")), add(iri("b"), iri("knows"), iri("c")))
	var tails []*tail
	for depth := range changefeed.MaxDepth + 1 {
		tails = append(tails, b.follow(t, fmt.Sprintf(`subscription { e: entityChanged(iri: "ex:s", depth: %d) { ... on EntityChange { changes { statement { subject { iri } } } } } }`, depth), "", operation.Resume{}))
	}
	for _, name := range []string{"c", "b", "a"} {
		b.update(add(iri(name), iri("likes"), kg.Integer(1)))
	}
	b.update(add(iri("x"), iri("knows"), iri("s")))
	b.update(add(iri("s"), iri("likes"), kg.Integer(1)))
	for depth, want := range []string{"s", "x s", "a x s", "b a x s"} {
		for name := range strings.SplitSeq(want, " ") {
			if e, got := tails[depth].event(); got != `{"e":{"changes":[{"statement":{"subject":{"iri":"https://example.org/`+name+`"}}}]}}` {
				t.Errorf("depth %d: got %s of %d, want %s", depth, got, e.Position.Revision, name)
			}
		}
	}
}

func TestEntityChangedRefuses(t *testing.T) {
	b := newBench(t, graph.Options{Limits: limit.Limits{WatchedEntities: 2}})
	b.update(add(iri("s"), iri("knows"), iri("a")))
	b.update(add(iri("s"), iri("knows"), iri("b")))
	for query, want := range map[string]string{
		`entityChanged(iri: "ex:s", depth: 4)`:                         "depth must be between 0 and 3, not 4",
		`entityChanged(iri: "ex:s", depth: -1)`:                        "depth must be between 0 and 3, not -1",
		`entityChanged(iri: "ex:s", view: {at: 1})`:                    "changes cannot be followed in a view with at or maxAgeSeconds",
		`entityChanged(iri: "x")`:                                      `"x" is neither an absolute IRI nor a registered prefix:name`,
		`entityChanged(iri: "ex:s", depth: 2)`:                         "the entity has more entities around it at revision 2 than the limit of 2",
		`entityChanged(iri: "ex:s", depth: 2, resume: "snapshot")`:     "the entity has more entities around it at revision 2 than the limit of 2",
		`entityChanged(iri: "ex:s", resume: "` + "AgAAAAAAAAAL" + `")`: "the position is not of this log",
	} {
		sub, err := b.engine.Subscribe(t.Context(), b.request(`subscription { `+query+` { __typename } }`, ""))
		if err == nil {
			sub.Close()
			t.Errorf("%s was accepted", query)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", query, err, want)
		}
	}
	// The maximum number of watched entities, at an older revision; the stream ends with
	// the commit that exceeds it.
	first := kg.Position{Epoch: b.store.Epoch(), Revision: 1, Index: kg.EndOfCommit}
	f := b.follow(t, `subscription { entityChanged(iri: "ex:s", depth: 2) { __typename } }`, "", operation.Resume{Start: operation.After, After: first})
	if _, err, _ := f.next(); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("got %v, want %s", err, kg.CodeLimitExceeded)
	}
}
