package kg

import (
	"koine/kg/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// beginGeneration creates a generation of a graph, numbered by the update's revision, and
// returns the id of the current one.
func (tx *Tx) beginGeneration(graph Term) (old ID, err error) {
	if IsOwnGraph(graph) {
		// Observers derive state from single changes of these graphs and would miss the
		// replacement.
		return old, Errorf(CodeReserved, "the graph %s is koine's own and cannot be replaced as a whole", graph).At("graph")
	}
	if err := base.ValidGraph(graph, Term.Valid); err != nil { // not ValidNew: an existing graph with an invalid name can be emptied
		return old, err
	}
	if err := tx.mayWrite(graph); err != nil {
		return old, err
	}
	name, known, err := tx.w.ResolveTerm(&graph, nil, nil)
	if err != nil {
		return old, err
	}
	if !known {
		name = tx.w.CreateTerm(graph)
	}
	if t := tx.w.Generations; t != nil && t.Writing[name] != nil {
		return old, errBeingReplaced(graph)
	}
	tx.written = &base.WrittenGeneration{Graph: graph, Began: tx.revision}
	return tx.w.Generations.CurrentID(name), nil
}

// continueGeneration makes the update write to a generation.
func (tx *Tx) continueGeneration(graph Term, began Revision) {
	tx.written = &base.WrittenGeneration{Graph: graph, Began: began}
}

// writeGeneration adds a statement to the generation. A statement of the current content,
// under the id old, keeps its assertions.
func (tx *Tx) writeGeneration(p *Patch, old ID) (as writtenAs, err error) {
	if err := tx.checkAllowed(p); err != nil {
		return as, err
	}
	ids, known, err := tx.w.Resolve(&p.Quad, p.prefetched)
	if err != nil {
		return as, err
	}
	var before base.State
	if known {
		ids.Graph = keys.Generation(uint64(tx.written.Began))
		there, err := tx.w.State(ids)
		if err != nil || len(there.Assertions) > 0 {
			return as, err
		}
		ids.Graph = old
		if before, err = tx.w.State(ids); err != nil {
			return as, err
		}
	}
	a := Assertion{Source: p.Source, Time: index.UnsettledTime}
	had, same, err := joinSources(before.Assertions, &a, false)
	if err != nil {
		return as, err
	}
	if same {
		return writtenAs{new: true}, tx.writeStatement(p.Quad, before, ids)
	}
	if !known {
		tx.w.AssignNumbers(&p.Quad, &ids)
	}
	return writtenAs{new: true, changed: true, restates: len(before.Assertions) > 0, backs: !had}, tx.writeStatement(p.Quad, base.State{Since: 0, Assertions: tx.assertionsAfter(before.Assertions, &a)}, ids)
}

// writtenAs classifies a statement written to a generation: new if the generation did not have
// it, changed if it differs from the current content, restates if it is there with other
// assertions, and backs if the caller was not a source of it there.
type writtenAs struct{ new, changed, restates, backs bool }

// writeStatement writes a statement of the generation.
func (tx *Tx) writeStatement(q Quad, st base.State, ids IDQuad) error {
	ids.Graph = keys.Generation(uint64(tx.written.Began))
	tx.bytes += q.Subject.TextBytes() + q.Predicate.TextBytes() + q.Object.TextBytes() + 32*(1+len(st.Assertions))
	for i := range st.Assertions {
		tx.bytes += st.Assertions[i].ContentBytes()
	}
	if tx.bytes > MaxCommitBytes {
		return errCommitTooLarge()
	}
	tx.written.Statements = append(tx.written.Statements, base.WrittenStatement{Subject: q.Subject, Predicate: q.Predicate, Object: q.Object, Since: st.Since, Assertions: st.Assertions})
	return tx.w.WriteGeneration(&tx.written.Statements[len(tx.written.Statements)-1], &q, ids)
}

// carryOver copies statements to the generation unchanged.
func (tx *Tx) carryOver(list []base.WrittenStatement) error {
	for i := range list {
		s := &list[i]
		ids, known, err := tx.w.Resolve(new(s.Quad(tx.written.Graph)), nil)
		if err != nil {
			return err
		}
		if !known {
			return Errorf(CodeInternal, "a current statement has an unknown term")
		}
		if err := tx.writeStatement(s.Quad(tx.written.Graph), base.State{Since: s.Since, Assertions: s.Assertions}, ids); err != nil {
			return err
		}
	}
	return nil
}

// switchGeneration makes a generation the current one from the update's revision on.
//
// It checks the right to write again, which may have been revoked while the content was
// written and judged. The deletion of a graph needs none.
func (tx *Tx) switchGeneration(r *GraphReplacement) error {
	if !r.Deleted {
		if err := tx.mayWrite(r.Graph); err != nil {
			return err
		}
	}
	tx.replaced = r
	if r.Anew {
		tx.w.CreateTerm(index.PlaceholderTerm(r.Began))
	}
	return tx.w.CountReplacement(r)
}

// parseLastChange parses the newest change of a subject in a graph.
func parseLastChange(value []byte) (Revision, error) {
	r := codec.NewReader(value)
	last := Revision(r.Uvarint())
	return last, r.Close()
}
