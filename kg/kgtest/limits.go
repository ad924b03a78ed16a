package kgtest

import (
	"fmt"
	"strings"
	"testing"

	"koine/kg"
)

// testLimits tests each limit at its maximum and one beyond. A rejected update leaves nothing.
func testLimits(t *testing.T, f Factory) {
	q := quad("s", "p", "o")
	text := func(n int) string { return strings.Repeat("x", n) }
	json := func(n int) []byte { return []byte(`"` + text(n-2) + `"`) }
	withMeta := func(change func(m *kg.Meta, n int)) func(int) (kg.Meta, []kg.Patch) {
		return func(n int) (kg.Meta, []kg.Patch) {
			m := kg.Meta{Principal: tester}
			change(&m, n)
			return m, []kg.Patch{add(q, "")}
		}
	}
	withPatch := func(change func(p *kg.Patch, n int)) func(int) (kg.Meta, []kg.Patch) {
		return func(n int) (kg.Meta, []kg.Patch) {
			p := add(q, "")
			change(&p, n)
			return kg.Meta{Principal: tester}, []kg.Patch{p}
		}
	}
	for _, row := range []struct {
		name  string
		bound int
		make  func(n int) (kg.Meta, []kg.Patch)
	}{
		{"MaxAssertions", kg.MaxAssertions, func(n int) (kg.Meta, []kg.Patch) {
			patches := make([]kg.Patch, n)
			for i := range patches {
				patches[i] = add(q, kg.AgentID(fmt.Sprint("agent://", i)))
			}
			return kg.Meta{Principal: tester}, patches
		}},
		{"DefaultLiteralBytes of a string", kg.DefaultLiteralBytes, withPatch(func(p *kg.Patch, n int) { p.Quad.Object = kg.String(text(n)) })},
		{"DefaultLiteralBytes with a datatype", kg.DefaultLiteralBytes, withPatch(func(p *kg.Patch, n int) { p.Quad.Object = kg.Typed(text(n), "urn:t") })},
		{"MaxResourceBytes of an IRI", kg.MaxResourceBytes, withPatch(func(p *kg.Patch, n int) { p.Quad.Subject = kg.IRI("urn:" + text(n-4)) })},
		{"MaxResourceBytes of a blank node", kg.MaxResourceBytes, withPatch(func(p *kg.Patch, n int) { p.Quad.Object = kg.Blank(text(n)) })},
		{"MaxLiteralKindBytes of a datatype", kg.MaxLiteralKindBytes, withPatch(func(p *kg.Patch, n int) { p.Quad.Object = kg.Typed("x", "urn:"+text(n-4)) })},
		{"MaxProvenanceBytes", kg.MaxProvenanceBytes, withPatch(func(p *kg.Patch, n int) { p.Provenance = json(n) })},
		{"MaxEmbeddingNumbers", kg.MaxEmbeddingNumbers, withPatch(func(p *kg.Patch, n int) {
			p.Embedding = &kg.Embedding{Model: "m", Vector: append(make([]float32, n-1), 1)}
		})},
		{"MaxEmbeddingModelBytes", kg.MaxEmbeddingModelBytes, withPatch(func(p *kg.Patch, n int) { p.Embedding = &kg.Embedding{Model: text(n), Vector: []float32{1}} })},
		{"MaxAgentIDBytes of a source", kg.MaxAgentIDBytes, withPatch(func(p *kg.Patch, n int) { p.Source = kg.AgentID("agent://" + text(n-8)) })},
		{"MaxAgentIDBytes of the actor", kg.MaxAgentIDBytes, withMeta(func(m *kg.Meta, n int) { m.Actor = kg.AgentID("agent://" + text(n-8)) })},
		{"MaxJustificationBytes", kg.MaxJustificationBytes, withMeta(func(m *kg.Meta, n int) { m.Justification = text(n) })},
		{"MaxIdempotencyKeyBytes", kg.MaxIdempotencyKeyBytes, withMeta(func(m *kg.Meta, n int) { m.IdempotencyKey = text(n) })},
		{"MaxReferenceBytes of the task", kg.MaxReferenceBytes, withMeta(func(m *kg.Meta, n int) { m.TaskID = text(n) })},
		{"MaxReferenceBytes of the session", kg.MaxReferenceBytes, withMeta(func(m *kg.Meta, n int) { m.SessionID = text(n) })},
		{"MaxReferenceBytes of the message", kg.MaxReferenceBytes, withMeta(func(m *kg.Meta, n int) { m.MessageID = text(n) })},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBoth(t, f, kg.Options{})
			meta, patches := row.make(row.bound + 1)
			_, err := b.Update(within(t), meta, applyPatches(patches))
			if code := kg.CodeOf(err); code != kg.CodeLimitExceeded {
				t.Errorf("past the bound: got %q (%.200v), want %q", code, err, kg.CodeLimitExceeded)
			}
			if got := b.Head().Revision; got != 0 {
				t.Errorf("past the bound: made revision %d", got)
			}
			meta, patches = row.make(row.bound)
			b.update(meta, patches...)
			b.Reopen()
			sameEverything(t, b.model, b.Store)
		})
	}
	t.Run("MaxCommitBytes", func(t *testing.T) { maxCommitBytes(t, f) })
	t.Run("MaxSources", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		for n := 1; n <= kg.MaxSources+1; n++ {
			b.update(kg.Meta{}, add(q, kg.AgentID(fmt.Sprint("agent://", n))))
			snap := open(t, b.Store, kg.View{Principal: tester})
			sameStatements(t, b.model, snap, kg.Pattern{})
			if got, want := len(snap.Sources()), min(n, kg.MaxSources); got != want {
				t.Errorf("of %d sources: got %d, want %d", n, got, want)
			}
			snap.Close()
		}
	})
	t.Run("MaxTokenBytes", func(t *testing.T) {
		store := f(t, kg.Options{})
		longest := 0
		for n := range kg.MaxTokenBytes {
			token := store.Seal(make([]byte, n), nil)
			if len(token) > kg.MaxTokenBytes {
				break
			}
			longest = n
		}
		if _, err := store.Unseal(store.Seal(make([]byte, longest), nil), nil); err != nil {
			t.Errorf("the longest token: %v", err)
		}
		if _, err := store.Unseal(store.Seal(make([]byte, longest+1), nil), nil); kg.CodeOf(err) != kg.CodeCursorForeign {
			t.Errorf("one byte more: got %v, want %s", err, kg.CodeCursorForeign)
		}
	})
	t.Run("MaxChanges", func(t *testing.T) { maxChanges(t, f) })
}

// maxChanges proves that the limit applies to the resulting changes, of which a replace makes many.
func maxChanges(t *testing.T, f Factory) {
	long(t)
	store := f(t, kg.Options{})
	addMany := func(n int) func(*kg.Tx) error {
		return func(tx *kg.Tx) error {
			for i := range n {
				if err := tx.Apply(add(quad("s", "p", fmt.Sprint("o", i)), "")); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for _, row := range []struct {
		name  string
		do    func(*kg.Tx) error
		code  kg.Code
		count uint64
	}{
		{"adding as many as can be", addMany(kg.MaxChanges), "", kg.MaxChanges},
		{"replacing one too many", applyPatches([]kg.Patch{replace(quad("s", "p", "new"), "")}), kg.CodeLimitExceeded, kg.MaxChanges},
	} {
		_, err := store.Update(within(t), kg.Meta{Principal: tester}, row.do)
		if code := kg.CodeOf(err); code != row.code {
			t.Errorf("%s: got %q (%v), want %q", row.name, code, err, row.code)
		}
		snap := open(t, store, kg.View{Principal: tester})
		if n, err := snap.Count(kg.Pattern{}); err != nil || n != row.count {
			t.Errorf("%s: got %d statements, %v, want %d", row.name, n, err, row.count)
		}
		snap.Close()
	}
}

// maxCommitBytes fills commits with large terms: a commit below the limit is accepted and readable,
// one above it is rejected.
func maxCommitBytes(t *testing.T, f Factory) {
	long(t)
	store := f(t, kg.Options{})
	ctx, d := within(t), newDice(3)
	noise := func() string {
		text := make([]byte, kg.MaxResourceBytes)
		for j := range text {
			text[j] = byte('a' + d.IntN(26))
		}
		return string(text)
	}
	large := func(n int) []kg.Patch {
		patches := make([]kg.Patch, n)
		for i := range patches {
			patches[i] = add(kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String(noise())}, "")
		}
		return patches
	}
	fits := kg.MaxCommitBytes/kg.MaxResourceBytes - 1
	_, err := store.Update(ctx, kg.Meta{Principal: tester}, applyPatches(large(fits+2)))
	if code := kg.CodeOf(err); code != kg.CodeLimitExceeded {
		t.Errorf("past the bound: got %q (%.200v), want %q", code, err, kg.CodeLimitExceeded)
	}
	if _, err := store.Update(ctx, kg.Meta{Principal: tester}, applyPatches(large(fits))); err != nil {
		t.Fatalf("below the bound: %.200v", err)
	}
	wide := large(fits + 2) // in as many graphs: the graph names exceed the limit
	for i := range wide {
		wide[i].Quad.Object, wide[i].Quad.Graph = kg.Integer(int64(i)), kg.IRI("urn:"+noise()[4:])
	}
	_, err = store.Update(ctx, kg.Meta{Principal: tester}, applyPatches(wide))
	if code := kg.CodeOf(err); code != kg.CodeLimitExceeded {
		t.Errorf("past the bound with the names of graphs: got %q (%.200v), want %q", code, err, kg.CodeLimitExceeded)
	}
	store.Reopen()
	c, err := store.Commit(ctx, tester, 1)
	if err != nil || len(c.Changes) != fits {
		t.Errorf("reading it back: %v", err)
	}
}
