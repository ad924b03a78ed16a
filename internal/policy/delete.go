package policy

import (
	"context"

	"koine/kg"
)

// Bounds of Delete.
const (
	// MaxDeleted is how many statements one call removes.
	MaxDeleted = 100_000
	// deletedCommit and deletedCommitBytes bound those of one commit: others wait
	// behind it.
	deletedCommit      = 1_000
	deletedCommitBytes = 2 << 20
)

// Deletion is what became of a graph that was deleted.
type Deletion struct {
	Removed   uint64 // statements, by this call
	Remaining uint64 // that nobody sees any more: another call removes them
	Receipt   kg.Receipt
}

// Delete takes a graph away for good. From its first commit on nobody reads or
// writes it, and its name is not used again; its statements go in as many commits
// as they need. To ask again is to go on where that ended. Errors are those of
// Set.
func (g *Graphs) Delete(ctx context.Context, m kg.Meta, graph kg.Term) (d Deletion, err error) {
	switch {
	case graph == kg.DefaultGraph:
		return d, kg.Errorf(kg.CodeInvalid, "the default graph cannot be deleted: remove its statements, or set its policy").At("graph")
	case kg.IsOwnGraph(graph):
		return d, errOwn().At("graph")
	}
	m = asking(m, "delete", graph)
	var removed int
	d.Receipt, err = g.update(ctx, m, func(tx *kg.Tx) (err error) {
		if err := g.bury(tx, graph); err != nil {
			return err
		}
		removed, err = empty(tx, graph)
		return err
	})
	if err != nil || m.DryRun {
		return d, err
	}
	if d.Receipt.Replayed {
		removed = 0
	}
	d.Removed = uint64(removed)
	m.IdempotencyKey, m.HasExpected = "", false
	for removed > 0 && d.Removed < MaxDeleted && err == nil {
		var receipt kg.Receipt
		receipt, err = g.update(ctx, m, func(tx *kg.Tx) (err error) {
			removed, err = empty(tx, graph)
			return err
		})
		if err == nil {
			d.Removed += uint64(removed)
			d.Receipt.Revision, d.Receipt.Position = receipt.Revision, receipt.Position
		}
	}
	if kg.CodeOf(err) == kg.CodeTimeout { // it is deleted; the rest can wait
		err = nil
	}
	if err == nil {
		d.Remaining, err = g.remaining(graph)
	}
	return d, err
}

// bury puts the tombstone. Whoever owned a deleted graph may ask for that again.
func (g *Graphs) bury(tx *kg.Tx, graph kg.Term) error {
	who := tx.Meta().Principal
	if p := g.table.Load().find(graph); p != nil && p.Deleted && (who.IsAdmin() || p.owned(&who)) {
		return nil
	}
	if err := g.mayManage(tx, graph); err != nil {
		return err
	}
	p, _ := g.Of(graph)
	p.Deleted, p.Public, p.Writers, p.Readers = true, false, nil, nil
	return Write(tx, p)
}

// empty removes as many statements of the graph as fit into one commit.
func empty(tx *kg.Tx, graph kg.Term) (removed int, err error) {
	var gone []kg.Quad
	bytes := 0
	for st, err := range tx.MatchOwn(kg.Pattern{Graph: graph}) {
		if err != nil {
			return 0, err
		}
		gone = append(gone, st.Quad)
		bytes += len(st.Subject.Value()) + len(st.Object.Value())
		for _, a := range st.Assertions {
			bytes += len(a.Provenance) + len(a.Source)
		}
		if len(gone) == deletedCommit || bytes >= deletedCommitBytes {
			break
		}
	}
	for _, q := range gone {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
			return 0, err
		}
	}
	return len(gone), nil
}

// remaining counts the statements that still stand in a deleted graph.
func (g *Graphs) remaining(graph kg.Term) (uint64, error) {
	s, err := g.store.View(context.Background(), kg.View{Principal: kg.SystemPrincipal(), Graphs: []kg.Term{graph}})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return s.Count(kg.Pattern{Graph: graph})
}
