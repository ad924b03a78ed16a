// Package hint says how an operation that is wrong, or has names that do not occur,
// would be right. Hints on the form of a document (AddForms, AddNames,
// OfSyntax) are made of the schema and of the document alone. A Finder looks into the
// data for the names in a valid operation, and suggests similar ones for those that
// do not occur.
package hint

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

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

// Store is the part of a kg.Store that a Finder reads.
type Store interface {
	View(ctx context.Context, v kg.View) (*kg.Snapshot, error)
	// KnowsScheme reports whether IRIs may begin with the URI scheme.
	KnowsScheme(scheme string) bool
}

// Finder finds the names in operations that do not occur. It is safe for
// concurrent use.
type Finder struct {
	store       Store
	prefixes    *kg.Prefixes
	occurrences occurrenceCache
}

// NewFinder returns a finder that looks into a store.
func NewFinder(store Store, prefixes *kg.Prefixes) *Finder {
	return &Finder{store: store, prefixes: prefixes}
}

// Find returns hints about predicates, classes, graphs and entities of a
// selection set that do not occur in the caller's view, with similar names that
// do. Names that the catalogue knows cost nothing more. snapshot is one that the
// operation has read, nil for none. The hints follow those that are known.
func (f *Finder) Find(
	ctx context.Context, principal kg.Principal, snapshot *kg.Snapshot, set ast.SelectionSet, variables map[string]any, known []operation.Hint,
) []operation.Hint {
	var seen [8]mention
	var path [8]string
	m := mentionChecker{
		ctx: ctx, finder: f, principal: principal, snapshot: snapshot, variables: variables, seen: seen[:0], path: path[:0], hints: known,
		guesser: nameSuggester{finder: f, principal: principal},
	}
	defer m.guesser.close()
	m.checkSet(set)
	return m.hints
}

// lookUp checks whether a mentioned name occurs, and adds a hint if it does not.
func (m *mentionChecker) lookUp(x mention) {
	known, principal := &m.finder.occurrences, m.principal.ID
	if known.has(principal, x) {
		return
	}
	t, err := m.finder.prefixes.Resource(x.text)
	if err != nil || len(m.hints) == operation.MaxHints {
		return // reported as an error elsewhere
	}
	var h operation.Hint
	var ok bool
	switch x.kind {
	case "entity":
		h, ok = m.guesser.entityHint(m.ctx, t)
	case mentionLiteral, mentionValue:
		h, ok = m.guesser.literalHint(m.ctx, x, t)
	default:
		if m.snapshot == nil && m.guesser.openViews(m.ctx) == nil {
			m.snapshot = m.guesser.all
		}
		if m.snapshot == nil {
			return
		}
		there, err := termOccurs(m.snapshot, x.kind, t)
		if there {
			known.add(principal, x)
		}
		if there || err != nil {
			return
		}
		h, ok = m.guesser.suggestHint(m.ctx, x, t)
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
	finder         *Finder
	principal      kg.Principal
	all, ordinary  *kg.Snapshot
	names          map[string][]string
	failed, opened bool
}

func (g *nameSuggester) openViews(ctx context.Context) (err error) {
	if g.opened {
		return nil
	}
	g.opened = true
	principal, store := g.principal, g.finder.store
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

func (g *nameSuggester) suggestHint(ctx context.Context, x mention, t kg.Term) (h operation.Hint, ok bool) {
	if g.failed {
		return h, false
	}
	err := g.openViews(ctx)
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
	if prefix, local, ok := g.finder.splitUnregistered(t.Value()); ok && len(h.Nearest) == 0 {
		tellPrefix(&h, g.finder.prefixes, prefix, local)
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
