package kg

import (
	"cmp"
	"maps"
	"slices"

	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
)

// beginGeneration makes a new generation of a graph, whose number is the update's
// revision, and gives the id in the index of what counts.
func (tx *Tx) beginGeneration(graph Term) (old ID, err error) {
	if IsOwnGraph(graph) {
		// Who keeps state from their commits would learn nothing of what came and went.
		return old, Errorf(CodeReserved, "the graph %s is koine's own and cannot be replaced as a whole", graph).At("graph")
	}
	if err := validGraph(graph, Term.Valid); err != nil { // not ValidNew: a graph that exists is emptied by any name
		return old, err
	}
	if err := tx.mayWrite(graph); err != nil {
		return old, err
	}
	name, known, err := tx.w.resolveTerm(&graph, nil, nil)
	if err != nil {
		return old, err
	}
	if !known {
		name = tx.w.create(graph)
	}
	if t := tx.w.generations; t != nil && t.writing[name] != nil {
		return old, errBeingReplaced(graph)
	}
	tx.written = &writtenGeneration{graph: graph, began: tx.revision}
	return tx.w.generations.current(name), nil
}

// continueGeneration makes the update one that writes to a generation.
func (tx *Tx) continueGeneration(graph Term, began Revision) {
	tx.written = &writtenGeneration{graph: graph, began: began}
}

// writeGeneration adds a statement to the generation. One that stands in what counts,
// kept under the id old, keeps what backs it.
func (tx *Tx) writeGeneration(p *Patch, old ID) (as writtenAs, err error) {
	if err := tx.may(p); err != nil {
		return as, err
	}
	ids, known, err := tx.w.resolve(&p.Quad, p.foreseen)
	if err != nil {
		return as, err
	}
	var before state
	if known {
		ids.Graph = keys.Generation(uint64(tx.written.began))
		there, err := tx.w.state(ids)
		if err != nil || len(there.assertions) > 0 {
			return as, err
		}
		ids.Graph = old
		if before, err = tx.w.state(ids); err != nil {
			return as, err
		}
	}
	a := Assertion{Source: p.Source, Time: unsettled}
	had, same, err := joinSources(before.assertions, &a, false)
	if err != nil {
		return as, err
	}
	if same {
		return writtenAs{new: true}, tx.writeStatement(p.Quad, before, ids)
	}
	if !known {
		tx.w.assign(&p.Quad, &ids)
	}
	return writtenAs{new: true, changed: true, restates: len(before.assertions) > 0, backs: !had}, tx.writeStatement(p.Quad, state{0, tx.after(before.assertions, &a)}, ids)
}

// writtenAs is what became of a statement that was written into a generation: new tells
// that the generation did not have it, changed that it stands otherwise than in what
// counts, restates that it stands there by other assertions, and backs that the caller did
// not back it there.
type writtenAs struct{ new, changed, restates, backs bool }

// place writes a statement of the generation.
func (tx *Tx) writeStatement(q Quad, st state, ids IDQuad) error {
	ids.Graph = keys.Generation(uint64(tx.written.began))
	tx.bytes += q.Subject.textBytes() + q.Predicate.textBytes() + q.Object.textBytes() + 32*(1+len(st.assertions))
	for i := range st.assertions {
		tx.bytes += len(st.assertions[i].Provenance)
	}
	if tx.bytes > MaxCommitBytes {
		return errCommitTooLarge()
	}
	tx.written.statements = append(tx.written.statements, writtenStatement{q.Subject, q.Predicate, q.Object, st.since, st.assertions})
	return tx.w.writeGeneration(&tx.written.statements[len(tx.written.statements)-1], &q, ids)
}

// carryOver adds statements to the generation as they are.
func (tx *Tx) carryOver(list []writtenStatement) error {
	for i := range list {
		s := &list[i]
		ids, known, err := tx.w.resolve(new(s.quad(tx.written.graph)), nil)
		if err != nil {
			return err
		}
		if !known {
			return Errorf(CodeInternal, "a statement that stands has a term that is not known")
		}
		if err := tx.writeStatement(s.quad(tx.written.graph), state{s.since, s.assertions}, ids); err != nil {
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
		tx.w.create(placeholder(r.Began))
	}
	return tx.w.countReplaced(r)
}

func sortedShares(shares map[AgentID]int64) (out []sourceShare) {
	for _, source := range slices.SortedFunc(maps.Keys(shares), func(a, b AgentID) int { return cmp.Compare(a, b) }) {
		if by := shares[source]; by != 0 {
			out = append(out, sourceShare{source, by})
		}
	}
	return out
}

// parseLastChange reads the newest change of a subject in a graph.
func parseLastChange(value []byte) (Revision, error) {
	r := codec.NewReader(value)
	last := Revision(r.Uvarint())
	return last, r.Close()
}
