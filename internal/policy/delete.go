package policy

import (
	"context"

	"koine/kg"
)

// Deletion is what became of a graph that was deleted.
type Deletion struct {
	Removed   uint64 // statements, by this call
	Remaining uint64 // that nobody sees any more: another call removes them
	Receipt   kg.Receipt
}

// Delete takes a graph of any size away. From its first commit on nobody reads or writes
// it, and what stood in it is found by nobody any more, at whatever revision; who owned
// it, and administrators, may make it again. To ask again is to finish what was cut
// short. With an expected revision, no statement of the graph changed after it; else the
// error is a CodeRevisionConflict. Errors are those of Set.
func (g *Graphs) Delete(ctx context.Context, m kg.Meta, graph kg.Term) (d Deletion, err error) {
	switch {
	case graph == kg.DefaultGraph:
		return d, kg.Errorf(kg.CodeInvalid, "the default graph cannot be deleted: remove its statements, or set its policy").At("graph")
	case kg.IsOwnGraph(graph):
		return d, errReservedName().At("graph")
	}
	m = requestMeta(m, "delete", graph)
	bury := func() error {
		d.Receipt, err = g.commitUpdate(ctx, m, func(tx *kg.Tx) error { return g.writeTombstone(tx, graph) })
		return err
	}
	drop := kg.Meta{Principal: m.Principal, Actor: m.Actor}
	var dropped kg.Dropped
	if m.HasExpected && !m.DryRun && g.Allowed(m.Principal, graph, kg.Manage) {
		drop.HasExpected, drop.ExpectedRevision = true, m.ExpectedRevision
		dropped, err = g.store.DropUnchangedGraph(ctx, drop, graph, bury)
	} else {
		if err = bury(); err != nil || m.DryRun || d.Receipt.Replayed && !g.isDeleted(graph) {
			return d, err
		}
		// Whoever may make it again may have done so meanwhile.
		dropped, err = g.store.DropGraphIf(ctx, drop, graph, func() bool { return g.isDeleted(graph) })
	}
	switch {
	case err == nil && dropped.Revision > d.Receipt.Revision:
		d.Removed = dropped.Removed
		d.Receipt.Revision, d.Receipt.Position = dropped.Revision, dropped.Position
	case kg.CodeOf(err) == kg.CodeTimeout && d.Receipt.Revision > 0: // it is deleted; the rest can wait
		err = nil
	}
	if err == nil && g.isDeleted(graph) {
		d.Remaining, err = g.countRemaining(graph)
	}
	return d, err
}

// isDeleted tells whether the graph is one that was deleted.
func (g *Graphs) isDeleted(graph kg.Term) bool {
	p := g.table.Load().find(graph)
	return p != nil && p.Deleted
}

// writeTombstone puts the tombstone. Whoever owned a deleted graph may ask for that again.
func (g *Graphs) writeTombstone(tx *kg.Tx, graph kg.Term) error {
	who := tx.Meta().Principal
	if p := g.table.Load().find(graph); p != nil && p.Deleted && (who.IsAdmin() || p.isOwnedBy(&who)) {
		return nil
	}
	if err := g.checkManage(tx, graph); err != nil {
		return err
	}
	p, _ := g.PolicyOf(graph)
	p.Deleted, p.Public, p.Writers, p.Readers = true, false, nil, nil
	return Write(tx, p)
}

// countRemaining counts the statements that still stand in a deleted graph.
func (g *Graphs) countRemaining(graph kg.Term) (uint64, error) {
	s, err := g.store.View(context.Background(), kg.View{Principal: kg.SystemPrincipal(), Graphs: []kg.Term{graph}})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return s.Count(kg.Pattern{Graph: graph})
}
