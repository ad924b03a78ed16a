package graph

import (
	"context"
	"math"
	"slices"

	"koine/graph/internal/knowledge"
	"koine/internal/policy"
	"koine/kg"
)

// DefaultGraphs is the default page size of Query.graphs.
const DefaultGraphs = 100

// Graph is a graph that the caller may read.
type Graph struct {
	term kg.Term
	at   kg.Revision // revision at which its statements are counted; 0 for the operation's
}

// graphService returns the service that keeps graph policies.
func (r *run) graphService() (*policy.Graphs, error) {
	if r.engine.deps.Graphs == nil {
		return nil, kg.Errorf(kg.CodeInvalid, "graph policies are disabled on this server")
	}
	return r.engine.deps.Graphs, nil
}

// Graphs answers Query.graphs.
func (*queryRoot) Graphs(ctx context.Context, first *int, after *Cursor, last *int, before *Cursor) (*GraphConnection, error) {
	r := runOf(ctx)
	graphs, err := r.graphService()
	if err != nil {
		return nil, err
	}
	p, err := r.openRange("graphs", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, DefaultGraphs, math.MaxInt)
	if err != nil {
		return nil, err
	}
	s, err := knowledge.OpenView(ctx, nil)
	if err != nil {
		return nil, err
	}
	held, err := s.Graphs()
	if err != nil {
		return nil, err
	}
	known := graphs.Discoverable(r.request.Principal)
	for _, c := range held {
		known = append(known, c.Term)
	}
	if graphs.Allowed(r.request.Principal, kg.DefaultGraph, kg.Read) {
		known = append(known, kg.DefaultGraph)
	}
	known = slices.DeleteFunc(known, kg.IsOwnGraph)
	slices.SortFunc(known, kg.Term.Compare)
	known = slices.Compact(known)
	return pageOfSlice(p, known, graphKey, func(t *kg.Term) Graph { return Graph{term: *t} }), nil
}

// graphKey is the key by which graphs are sorted: the default graph is the first.
func graphKey(t *kg.Term) string {
	if *t == kg.DefaultGraph {
		return ""
	}
	return t.Value()
}

// readGraph answers Query.graph.
func readGraph(ctx context.Context, name *kg.Term) (*Graph, error) {
	graphs, err := runOf(ctx).graphService()
	if err != nil {
		return nil, err
	}
	g := &Graph{term: graphNamed(name)}
	if !graphs.Allowed(runOf(ctx).request.Principal, g.term, kg.Read) {
		return nil, nil
	}
	if _, stored := graphs.PolicyOf(g.term); stored || g.term == kg.DefaultGraph {
		return g, nil
	}
	if n, err := g.StatementCount(ctx); n == 0 || err != nil {
		return nil, err
	}
	return g, nil
}

// graphNamed returns the graph with an optional name, the default graph for
// nil.
func graphNamed(name *kg.Term) kg.Term {
	if name == nil {
		return kg.DefaultGraph
	}
	return *name
}

// Iri is the graph's name, nil for the default graph.
func (g *Graph) Iri() *kg.Term {
	if g.term == kg.DefaultGraph {
		return nil
	}
	return &g.term
}

// StatementCount counts the statements of the graph that the operation's view
// shows.
func (g *Graph) StatementCount(ctx context.Context) (int64, error) {
	r := runOf(ctx)
	view, err := r.fieldView(nil)
	if err != nil {
		return 0, err
	}
	if view.Graphs != nil && !slices.Contains(view.Graphs, g.term) {
		return 0, nil
	}
	view.Graphs = []kg.Term{g.term}
	if g.at != 0 {
		view.At = g.at
	}
	s, err := r.openSnapshot(ctx, view)
	if err != nil {
		return 0, err
	}
	n, err := s.Count(kg.Pattern{Graph: g.term})
	return int64(n), err
}

// Rights lists the caller's rights on the graph.
func (g *Graph) Rights(ctx context.Context) ([]GraphRight, error) {
	graphs, err := runOf(ctx).graphService()
	if err != nil {
		return nil, err
	}
	out := []GraphRight{}
	for _, right := range graphs.Rights(runOf(ctx).request.Principal, g.term) {
		out = append(out, graphRights[right])
	}
	return out, nil
}

var graphRights = map[kg.Right]GraphRight{
	kg.Discover: GraphRightDiscover, kg.Read: GraphRightRead, kg.Write: GraphRightWrite, kg.Manage: GraphRightManage,
}

// Policy is the graph's policy, nil unless the caller may manage the graph.
func (g *Graph) Policy(ctx context.Context) (*GraphPolicy, error) {
	graphs, err := runOf(ctx).graphService()
	if err != nil || !graphs.Allowed(runOf(ctx).request.Principal, g.term, kg.Manage) {
		return nil, err
	}
	p, stored := graphs.PolicyOf(g.term)
	out := &GraphPolicy{Visibility: GraphVisibilityPrivate, Owners: granteeTexts(p.Owners), Writers: granteeTexts(p.Writers), Readers: granteeTexts(p.Readers)}
	if p.Public {
		out.Visibility = GraphVisibilityPublic
	}
	if stored {
		out.Revision = &p.Revision
	}
	return out, nil
}

func granteeTexts(list []policy.Grantee) []string {
	out := make([]string, len(list))
	for i, g := range list {
		out[i] = string(g)
	}
	return out
}
