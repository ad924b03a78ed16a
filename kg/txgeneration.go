package kg

import (
	"koine/kg/internal/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// beginGeneration makes a new generation of a graph, whose number is the update's
// revision, and gives the id in the index of what counts.
func (tx *Tx) beginGeneration(graph Term) (old ID, err error) {
	if IsOwnGraph(graph) {
		// Who keeps state from their commits would learn nothing of what came and went.
		return old, Errorf(CodeReserved, "the graph %s is koine's own and cannot be replaced as a whole", graph).At("graph")
	}
	if err := base.ValidGraph(graph, Term.Valid); err != nil { // not ValidNew: a graph that exists is emptied by any name
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
		name = tx.w.Create(graph)
	}
	if t := tx.w.Generations; t != nil && t.Writing[name] != nil {
		return old, errBeingReplaced(graph)
	}
	tx.written = &base.WrittenGeneration{Graph: graph, Began: tx.revision}
	return tx.w.Generations.Current(name), nil
}

// continueGeneration makes the update one that writes to a generation.
func (tx *Tx) continueGeneration(graph Term, began Revision) {
	tx.written = &base.WrittenGeneration{Graph: graph, Began: began}
}

// writeGeneration adds a statement to the generation. One that stands in what counts,
// kept under the id old, keeps what backs it.
func (tx *Tx) writeGeneration(p *Patch, old ID) (as writtenAs, err error) {
	if err := tx.checkAllowed(p); err != nil {
		return as, err
	}
	ids, known, err := tx.w.Resolve(&p.Quad, p.foreseen)
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
	a := Assertion{Source: p.Source, Time: index.Unsettled}
	had, same, err := joinSources(before.Assertions, &a, false)
	if err != nil {
		return as, err
	}
	if same {
		return writtenAs{new: true}, tx.writeStatement(p.Quad, before, ids)
	}
	if !known {
		tx.w.Assign(&p.Quad, &ids)
	}
	return writtenAs{new: true, changed: true, restates: len(before.Assertions) > 0, backs: !had}, tx.writeStatement(p.Quad, base.State{0, tx.assertionsAfter(before.Assertions, &a)}, ids)
}

// writtenAs is what became of a statement that was written into a generation: new tells
// that the generation did not have it, changed that it stands otherwise than in what
// counts, restates that it stands there by other assertions, and backs that the caller did
// not back it there.
type writtenAs struct{ new, changed, restates, backs bool }

// place writes a statement of the generation.
func (tx *Tx) writeStatement(q Quad, st base.State, ids IDQuad) error {
	ids.Graph = keys.Generation(uint64(tx.written.Began))
	tx.bytes += q.Subject.TextBytes() + q.Predicate.TextBytes() + q.Object.TextBytes() + 32*(1+len(st.Assertions))
	for i := range st.Assertions {
		tx.bytes += len(st.Assertions[i].Provenance)
	}
	if tx.bytes > MaxCommitBytes {
		return errCommitTooLarge()
	}
	tx.written.Statements = append(tx.written.Statements, base.WrittenStatement{q.Subject, q.Predicate, q.Object, st.Since, st.Assertions})
	return tx.w.WriteGeneration(&tx.written.Statements[len(tx.written.Statements)-1], &q, ids)
}

// carryOver adds statements to the generation as they are.
func (tx *Tx) carryOver(list []base.WrittenStatement) error {
	for i := range list {
		s := &list[i]
		ids, known, err := tx.w.Resolve(new(s.Quad(tx.written.Graph)), nil)
		if err != nil {
			return err
		}
		if !known {
			return Errorf(CodeInternal, "a statement that stands has a term that is not known")
		}
		if err := tx.writeStatement(s.Quad(tx.written.Graph), base.State{s.Since, s.Assertions}, ids); err != nil {
			return err
		}
	}
	return nil
}

// countGeneration makes a generation the one that counts, from the update's revision
// on.
//
// The right to write is asked for again: it may have been taken away while the content was
// written and judged. Who deletes a graph needs none.
func (tx *Tx) countGeneration(r *GraphReplacement) error {
	if !r.Deleted {
		if err := tx.mayWrite(r.Graph); err != nil {
			return err
		}
	}
	tx.replaced = r
	if r.Anew {
		tx.w.Create(index.Placeholder(r.Began))
	}
	return tx.w.CountReplaced(r)
}

// parseLastChange reads the newest change of a subject in a graph.
func parseLastChange(value []byte) (Revision, error) {
	r := codec.NewReader(value)
	last := Revision(r.Uvarint())
	return last, r.Close()
}
