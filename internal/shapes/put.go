package shapes

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	"koine/internal/rdf"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Limits of the stored shapes.
const (
	MaxTextBytes  = 1 << 20
	MaxStatements = 50_000 // of the shapes graph
)

// Writer is the part of kg.Store that updates the graph.
type Writer interface {
	Update(context.Context, kg.Meta, func(*kg.Tx) error) (kg.Receipt, error)
}

// Parse parses shapes in Turtle. A syntax error is a *rdf.SyntaxError with the line.
// Characters that an IRI may not contain are percent-encoded: schema.org's shapes have an
// IRI with two "#".
func Parse(turtle string) ([]kg.Quad, error) {
	if len(turtle) > MaxTextBytes {
		return nil, tooMuch("the shapes have %d bytes; the limit is %d", len(turtle), MaxTextBytes)
	}
	var quads []kg.Quad
	o := rdf.Options{Tag: rdf.DocumentTag(sha256.Sum256([]byte(turtle))), Graph: kg.ShapesGraph, FixIRIs: true}
	for q, err := range rdf.Read(strings.NewReader(turtle), rdf.Turtle, o) {
		if err != nil {
			return nil, kg.Errorf(kg.CodeInvalid, "the shapes are not valid Turtle: %w", err)
		}
		quads = append(quads, q)
	}
	return quads, nil
}

// Put stores shapes. The shapes that the statements name replace those of the same names;
// the others stay. If any part is unsupported or the shapes do not compile together,
// nothing changes. Only administrators may call it.
func Put(ctx context.Context, store Writer, m kg.Meta, quads []kg.Quad) (kg.Receipt, error) {
	r, _, err := put(ctx, store, m, quads, false)
	return r, err
}

// PutSupported is Put for shapes with unsupported parts. It returns the omitted parts of
// these shapes, and those of the stored shapes that are omitted because of them.
func PutSupported(ctx context.Context, store Writer, m kg.Meta, quads []kg.Quad) (kg.Receipt, []LeftOut, error) {
	return put(ctx, store, m, quads, true)
}

func put(ctx context.Context, store Writer, m kg.Meta, quads []kg.Quad, supportedOnly bool) (r kg.Receipt, left []LeftOut, err error) {
	names, written := map[kg.Term]bool{}, map[kg.Term]bool{}
	for i := range quads {
		quads[i].Graph = kg.ShapesGraph
		s := quads[i].Subject
		written[s] = true
		if s.Kind() == kg.KindIRI {
			names[s] = true
		}
	}
	if err := requireAdmin(&m); err != nil {
		return kg.Receipt{}, nil, err
	}
	if len(names) == 0 {
		return kg.Receipt{}, nil, invalid("the document has no named shape: give each shape an IRI, so that it can be replaced and removed")
	}
	r, err = changeShapes(ctx, store, m, func(kept []kg.Quad) ([]kg.Quad, error) {
		next := slices.DeleteFunc(slices.Clone(kept), func(q kg.Quad) bool { return names[q.Subject] })
		// Remove the parts that only the old shapes used.
		return append(reachableStatements(next), quads...), nil
	}, func(kept, next []kg.Quad) error {
		issues, err := newIssues(kept, next, written)
		if err != nil || len(issues) == 0 {
			left = nil
			return err
		}
		p := newLocator(documentOf(next))
		if !supportedOnly {
			return p.errorFor(issues)
		}
		if len(issues) > MaxLeftOut {
			return tooMuch("%d parts would be left out; the limit is %d; the first is %s", len(issues), MaxLeftOut, p.leftOut(issues[0]))
		}
		left = p.listIssues(issues)
		return nil
	})
	if err != nil {
		left = nil
	}
	return r, left, err
}

// newIssues returns the issues of next that belong to a written subject or that kept does
// not have.
func newIssues(kept, next []kg.Quad, written map[kg.Term]bool) ([]issue, error) {
	after, err := compileShapes(documentOf(next))
	if err != nil || len(after.issues) == 0 {
		return nil, err
	}
	old := map[issueKey]bool{}
	if before, err := compileShapes(documentOf(kept)); err == nil {
		for _, x := range before.issues {
			old[x.issueKey] = true
		}
	}
	return slices.DeleteFunc(after.issues, func(x issue) bool { return !written[x.subject] && old[x.issueKey] }), nil
}

// Remove removes shapes and the parts that only they use. For an unknown shape it returns
// CodeNotFound. Only administrators may call it.
func Remove(ctx context.Context, store Writer, m kg.Meta, ids []kg.Term) (kg.Receipt, error) {
	return changeShapes(ctx, store, m, func(kept []kg.Quad) ([]kg.Quad, error) {
		gone := map[kg.Term]bool{}
		for _, id := range ids {
			gone[id] = false
		}
		var next []kg.Quad
		for _, q := range kept {
			if _, listed := gone[q.Subject]; listed {
				gone[q.Subject] = true
			} else {
				next = append(next, q)
			}
		}
		for _, id := range ids {
			if !gone[id] {
				return nil, kg.Errorf(kg.CodeNotFound, "shape %s not found", id)
			}
		}
		return reachableStatements(next), nil
	}, func(kept, next []kg.Quad) error {
		issues, err := newIssues(kept, next, nil)
		if err == nil && len(issues) > 0 {
			err = newLocator(documentOf(next)).errorFor(issues)
		}
		return err
	})
}

func requireAdmin(m *kg.Meta) error {
	if !m.Principal.IsAdmin() {
		return kg.Errorf(kg.CodePermissionDenied, "only an administrator can change shapes")
	}
	return nil
}

// changeShapes replaces the shapes graph by the result of fn if admit accepts it.
func changeShapes(ctx context.Context, store Writer, m kg.Meta, fn func(kept []kg.Quad) ([]kg.Quad, error), admit func(kept, next []kg.Quad) error) (kg.Receipt, error) {
	if err := requireAdmin(&m); err != nil {
		return kg.Receipt{}, err
	}
	return store.Update(ctx, m, func(tx *kg.Tx) error {
		kept, err := systemgraph.Quads(tx.MatchOwn, graph)
		if err != nil {
			return err
		}
		next, err := fn(kept)
		if err != nil {
			return err
		}
		if err := checkShapesGraph(next); err != nil {
			return err
		}
		if err := admit(kept, next); err != nil {
			return err
		}
		return replaceStatements(tx, kept, next)
	})
}

// checkShapesGraph returns an error if the statements are not a valid shapes graph.
func checkShapesGraph(quads []kg.Quad) error {
	if len(quads) > MaxStatements {
		return tooMuch("the shapes have %d statements; the limit is %d", len(quads), MaxStatements)
	}
	if named := reachableStatements(quads); len(named) < len(quads) {
		return invalid("a shape has no name: give it an IRI, so that it can be replaced and removed")
	}
	return nil
}

// replaceStatements applies the difference.
func replaceStatements(tx *kg.Tx, kept, next []kg.Quad) error {
	has, wants := setOf(kept), setOf(next)
	for _, q := range kept {
		if !wants[q] {
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
				return err
			}
		}
	}
	for _, q := range next {
		if !has[q] {
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
	}
	return nil
}

// reachableStatements returns the statements of named resources and of the blank nodes that they
// reference.
func reachableStatements(quads []kg.Quad) []kg.Quad {
	blanks := map[kg.Term][]kg.Term{} // blank objects of a subject
	var at []kg.Term
	seen := map[kg.Term]bool{}
	for _, q := range quads {
		if q.Object.Kind() == kg.KindBlank {
			blanks[q.Subject] = append(blanks[q.Subject], q.Object)
		}
		if q.Subject.Kind() == kg.KindIRI && !seen[q.Subject] {
			seen[q.Subject] = true
			at = append(at, q.Subject)
		}
	}
	for len(at) > 0 {
		next := blanks[at[len(at)-1]]
		at = at[:len(at)-1]
		for _, t := range next {
			if !seen[t] {
				seen[t] = true
				at = append(at, t)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(quads), func(q kg.Quad) bool { return !seen[q.Subject] })
}
