package policy

import (
	"context"

	"koine/kg"
)

// Deletion is the result of deleting a graph.
type Deletion struct {
	Removed   uint64 // statements removed by this call
	Remaining uint64 // statements left, which are invisible; another call removes them
	Receipt   kg.Receipt
}

// Delete deletes a graph of any size. From its first commit on, the graph can be
// neither read nor written, and its former content cannot be read at any revision. Its
// owners and administrators may create it again. Repeating the call completes an
// interrupted deletion. With an expected revision, Delete fails with
// CodeRevisionConflict if a statement of the graph changed after it. Other errors are
// those of Set.
func (g *Graphs) Delete(ctx context.Context, m kg.Meta, graph kg.Term) (d Deletion, err error) {
	switch {
	case graph == kg.DefaultGraph:
		return d, kg.Errorf(kg.CodeInvalid, "the default graph cannot be deleted: remove its statements, or set its policy").At("graph")
	case kg.IsOwnGraph(graph):
		return d, errReservedName().At("graph")
	}
	m = requestMeta(m, "delete", graph)
	buryGraph := func() error {
		d.Receipt, err = g.commitUpdate(ctx, m, func(tx *kg.Tx) error { return g.writeTombstone(tx, graph) })
		return err
	}
	drop := kg.Meta{Principal: m.Principal, Actor: m.Actor}
	var dropped kg.Dropped
	if m.HasExpected && !m.DryRun && g.Allowed(m.Principal, graph, kg.Manage) {
		drop.HasExpected, drop.ExpectedRevision = true, m.ExpectedRevision
		dropped, err = g.store.DropGraph(ctx, drop, graph, kg.DropOptions{Bury: buryGraph})
	} else {
		if err = buryGraph(); err != nil || m.DryRun || d.Receipt.Replayed && !g.isDeleted(graph) {
			return d, err
		}
		// The graph may have been created again concurrently.
		dropped, err = g.store.DropGraph(ctx, drop, graph, kg.DropOptions{Still: func() bool { return g.isDeleted(graph) }})
	}
	switch {
	case err == nil && dropped.Revision > d.Receipt.Revision:
		d.Removed = dropped.Removed
		d.Receipt.Revision, d.Receipt.Position = dropped.Revision, dropped.Position
	case kg.CodeOf(err) == kg.CodeTimeout && d.Receipt.Revision > 0: // the graph is deleted; its statements can be removed later
		err = nil
	}
	if err == nil && g.isDeleted(graph) {
		d.Remaining, err = g.countRemaining(graph)
	}
	return d, err
}

func (g *Graphs) isDeleted(graph kg.Term) bool {
	p := g.table.Load().find(graph)
	return p != nil && p.Deleted
}

// writeTombstone marks a graph as deleted. Owners of a deleted graph may repeat it.
func (g *Graphs) writeTombstone(tx *kg.Tx, graph kg.Term) error {
	principal := tx.Meta().Principal
	if p := g.table.Load().find(graph); p != nil && p.Deleted && (principal.IsAdmin() || p.isOwnedBy(&principal)) {
		return nil
	}
	if err := g.checkManage(tx, graph); err != nil {
		return hintAbsent(err)
	}
	p, _ := g.PolicyOf(graph)
	p.Deleted, p.Public, p.Writers, p.Readers = true, false, nil, nil
	return Write(tx, p)
}

// hintAbsent says what to do where there is no graph to delete. It is the same for one that
// was deleted, one that is hidden and one that never was.
func hintAbsent(err error) error {
	e := *kg.AsError(err)
	if e.Code == kg.CodeGraphNotFound {
		e.Hint = "A graph that was deleted before is hidden from all but its owners and administrators. Otherwise check the name: graphs lists those that you may read."
	}
	return &e
}

// countRemaining counts the statements left in a deleted graph.
func (g *Graphs) countRemaining(graph kg.Term) (uint64, error) {
	s, err := g.store.View(context.Background(), kg.View{Principal: kg.SystemPrincipal(), Graphs: []kg.Term{graph}})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return s.Count(kg.Pattern{Graph: graph})
}
