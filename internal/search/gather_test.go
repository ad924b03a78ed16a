package search

import (
	"reflect"
	"strings"
	"testing"

	"koine/kg"
)

// What gathers is bounded by the number of texts and by their size; statements without
// texts, and assertions beside others, are no changes of texts.
func TestGatheredTextsAreBounded(t *testing.T) {
	change := func(object kg.Term, before, after int) kg.Change {
		return kg.Change{Quad: kg.Quad{Object: object, Graph: kg.DefaultGraph}, Before: make([]kg.Assertion, before), After: make([]kg.Assertion, after)}
	}
	commit := func(n int, c kg.Change) *kg.Commit {
		out := &kg.Commit{}
		for range n {
			out.Changes = append(out.Changes, c)
		}
		return out
	}
	var g gathered
	for _, c := range []kg.Change{
		change(kg.IRI("urn:a"), 0, 1), change(kg.Integer(1), 0, 1), change(kg.String("x"), 1, 2), change(kg.String("x"), 2, 1),
	} {
		if g.addCommit(commit(1, c)); !g.isEmpty() {
			t.Fatalf("%+v changes a text", c)
		}
	}
	g.addCommit(commit(MaxGathered-2, change(kg.String("x"), 0, 1)))
	g.addCommit(commit(1, change(kg.String("x"), 1, 0)))
	if n := len(g.list); g.isFull() || n != MaxGathered-1 || g.list[n-1].add || !g.list[n-2].add {
		t.Errorf("%d texts are gathered, full: %v", n, g.isFull())
	}
	if g.addCommit(commit(1, change(kg.String("x"), 0, 1))); !g.isFull() {
		t.Errorf("%d texts are not enough", MaxGathered)
	}
	g = gathered{}
	g.addCommit(commit(15, change(kg.String(strings.Repeat("x", MaxGatheredBytes/16)), 0, 1)))
	g.addCommit(commit(1, change(kg.String(strings.Repeat("x", MaxGatheredBytes/16-1)), 0, 1)))
	if g.isFull() {
		t.Errorf("%d bytes are full", g.bytes)
	}
	if g.addCommit(commit(1, change(kg.String("x"), 0, 1))); !g.isFull() {
		t.Errorf("%d bytes are not enough", g.bytes)
	}
}

// Embeddings come and go with the assertion that has them, beside a text or without one.
func TestEmbeddingsAreGathered(t *testing.T) {
	with := kg.Assertion{Source: "agent://ann", Embedding: &kg.Embedding{Model: "m", Vector: []float32{1}}}
	without := kg.Assertion{Source: "agent://ann"}
	for _, row := range []struct {
		change kg.Change
		want   []textChange
	}{
		{kg.Change{Op: kg.Add, Assertion: with, After: []kg.Assertion{with}}, []textChange{{text: true, add: true, assertions: []kg.Assertion{with}}}},
		{kg.Change{Op: kg.Add, Assertion: with, Before: []kg.Assertion{without}, After: []kg.Assertion{with}}, []textChange{{add: true, assertions: []kg.Assertion{with}}}},
		{kg.Change{Op: kg.Add, Assertion: without, Before: []kg.Assertion{with}, After: []kg.Assertion{without}}, []textChange{{assertions: []kg.Assertion{with}}}},
		{kg.Change{Op: kg.Remove, Assertion: with, Before: []kg.Assertion{with}}, []textChange{{text: true, assertions: []kg.Assertion{with}}}},
	} {
		row.change.Quad = kg.Quad{Object: kg.String("x"), Graph: kg.DefaultGraph}
		for i := range row.want {
			row.want[i].quad, row.want[i].revision = row.change.Quad, 7
		}
		var g gathered
		if g.addCommit(&kg.Commit{Revision: 7, Changes: []kg.Change{row.change}}); !reflect.DeepEqual(g.list, row.want) {
			t.Errorf("%+v gathers\n%+v, want\n%+v", row.change, g.list, row.want)
		}
	}
}
