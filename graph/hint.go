package graph

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/operation"
	"koine/internal/query"
	"koine/internal/suggest"
	"koine/kg"
)

// Bounds of hints.
const (
	maxMentions   = 100 // predicates, classes and graphs examined per operation
	maxNearest    = 3   // names suggested per hint
	maxCandidates = 10_000
)

// findHints returns hints about predicates, classes, graphs and entities of the
// operation that do not occur in the caller's view, with similar names that
// do. Names that the catalogue knows cost nothing more. A panic costs the
// hints, not the answer.
func (r *run) findHints(ctx context.Context, opCtx *graphql.OperationContext) (out []operation.Hint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			r.engine.presentErrors(r.engine.recoverPanic(ctx, p)) // present logs it
			out = nil
		}
	}()
	var seen [8]mention
	var path [8]string
	m := mentionChecker{ctx: ctx, run: r, variables: opCtx.Variables, seen: seen[:0], path: path[:0], hints: r.notedHints}
	switch {
	case len(r.snapshots) > 0:
		m.snapshot = r.snapshots[0].snapshot
	case opCtx.Operation.Operation == ast.Query:
		return nil // nothing was read
	}
	defer m.guesser.close()
	m.checkSet(opCtx.Operation.SelectionSet)
	return m.hints
}

// lookUp checks whether a mentioned name occurs, and adds a hint if it does not.
func (m *mentionChecker) lookUp(x mention) {
	e, principal := m.run.engine, m.run.request.Principal.ID
	if e.occurrences.has(principal, x) {
		return
	}
	t, err := e.deps.Prefixes.Resource(x.text)
	if err != nil || len(m.hints) == operation.MaxHints {
		return // reported as an error elsewhere
	}
	var h operation.Hint
	var ok bool
	switch x.kind {
	case "entity":
		h, ok = m.guesser.entityHint(m.ctx, m.run, t)
	case mentionLiteral, mentionValue:
		h, ok = m.guesser.literalHint(m.ctx, m.run, x, t)
	default:
		if m.snapshot == nil && m.guesser.openViews(m.ctx, m.run) == nil {
			m.snapshot = m.guesser.all
		}
		if m.snapshot == nil {
			return
		}
		there, err := termOccurs(m.snapshot, x.kind, t)
		if there {
			e.occurrences.add(principal, x)
		}
		if there || err != nil {
			return
		}
		h, ok = m.guesser.suggestHint(m.ctx, m.run, x, t)
	}
	if !ok {
		return
	}
	for _, name := range m.path {
		h.Path = append(h.Path, ast.PathName(name))
	}
	m.hints = append(m.hints, h)
}

// occurrenceCache caches names that were seen to occur, so that the common case is a
// map lookup. A name that has disappeared since only gets no hint. It is safe
// for concurrent use.
type occurrenceCache struct {
	mu    sync.RWMutex
	known map[occurrence]struct{} // guarded by mu; emptied when full
}

// occurrence is a mention together with the principal that may see it.
type occurrence struct {
	principal kg.AgentID
	mention
}

const maxOccurring = 10_000

func (o *occurrenceCache) has(principal kg.AgentID, x mention) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	_, ok := o.known[occurrence{principal, x}]
	return ok
}

func (o *occurrenceCache) add(principal kg.AgentID, x mention) {
	if len(x.text) > 1024 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil || len(o.known) >= maxOccurring {
		o.known = map[occurrence]struct{}{}
	}
	x.text = strings.Clone(x.text) // do not retain the query's text
	o.known[occurrence{principal, x}] = struct{}{}
}

// termOccurs reports whether the view shows a statement with the subject,
// predicate or object, of the class, or in the graph.
func termOccurs(s *kg.Snapshot, what string, t kg.Term) (bool, error) {
	id, known, err := s.ID(t)
	if err != nil || !known {
		return false, err
	}
	p := kg.IDPattern{Predicate: id}
	switch what {
	case "subject":
		return query.Shows(s, kg.IDPattern{Subject: id})
	case "object":
		return query.Shows(s, kg.IDPattern{Object: id})
	case "graph":
		p = kg.IDPattern{Graph: id}
	case "class":
		typeID, known, err := s.ID(query.RDFType)
		if err != nil || !known {
			return false, err
		}
		p = kg.IDPattern{Predicate: typeID, Object: id}
	}
	n, _, err := s.Estimate(p)
	return n > 0, err
}

// nameSuggester suggests names for a name that does not occur. Occurrence is checked
// in all graphs that the caller may read. Suggestions come from the graphs
// that the caller reads by default.
type nameSuggester struct {
	all, ordinary  *kg.Snapshot
	names          map[string][]string
	failed, opened bool
}

func (g *nameSuggester) openViews(ctx context.Context, r *run) (err error) {
	if g.opened {
		return nil
	}
	g.opened = true
	principal, store := r.request.Principal, r.engine.deps.Store
	now := time.Now() // the views have no bound on age
	if g.all, err = store.View(ctx, kg.View{Principal: principal, AllGraphs: true, Now: now}); err != nil {
		return err
	}
	g.ordinary, err = store.View(ctx, kg.View{Principal: principal, Now: now})
	g.names = map[string][]string{}
	return err
}

func (g *nameSuggester) close() {
	for _, s := range []*kg.Snapshot{g.all, g.ordinary} {
		if s != nil {
			s.Close()
		}
	}
}

func (g *nameSuggester) suggestHint(ctx context.Context, r *run, x mention, t kg.Term) (h operation.Hint, ok bool) {
	if g.failed {
		return h, false
	}
	err := g.openViews(ctx, r)
	there := false
	if err == nil {
		there, err = termOccurs(g.all, x.kind, t)
	}
	if err == nil && !there {
		err = g.loadNames(x.kind)
	}
	if err != nil || there {
		g.failed = err != nil // a failure costs the hint only
		return h, false
	}
	h = operation.Hint{Message: fmt.Sprintf("the graphs that you may read have no %s %s", x.kind, t.Value())}
	if x.kind == "graph" {
		h.Message = fmt.Sprintf("there is no visible graph %s", t.Value())
	}
	h.Nearest = suggest.IRIs(t.Value(), g.names[x.kind], maxNearest)
	if prefix, local, ok := r.engine.splitUnregistered(t.Value()); ok && len(h.Nearest) == 0 {
		tellPrefix(&h, r.engine.deps.Prefixes, prefix, local)
	}
	return h, true
}

// loadNames loads the names of a kind.
func (g *nameSuggester) loadNames(what string) error {
	if g.names[what] != nil {
		return nil
	}
	of := g.ordinary.Predicates
	switch what {
	case "class":
		of = g.ordinary.Classes
	case "graph":
		of = g.ordinary.Graphs
	}
	counts, err := of()
	names := make([]string, 0, min(len(counts), maxCandidates))
	for _, c := range counts[:min(len(counts), maxCandidates)] {
		names = append(names, c.Term.Value())
	}
	g.names[what] = names
	return err
}
