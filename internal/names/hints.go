package names

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"koine/internal/operation"
	"koine/internal/suggest"
	"koine/kg"
)

// Limits of the hints about one update.
const (
	maxLooks      = 32   // names looked up in the store
	maxCandidates = 2000 // predicates or classes compared with a new one
	maxPrefixes   = 64   // prefixes tried for a bare name

	// hintTime limits the time of the search: if many statements are hidden from the
	// caller, finding a visible one takes time.
	hintTime = 50 * time.Millisecond
)

// Hint examines a patch that passed Check, before it is applied: whether its predicate
// or class is new and similar to a used one, whether its object is a literal although
// all others are resources, and whether an id without a prefix exists with one. Names
// in use are cached, so most patches cost one map lookup.
func (g *Judging) Hint(p *kg.Patch, index int) {
	if p.Op == kg.Remove {
		return
	}
	q := &p.Quad
	g.index, g.part = index, "subject"
	g.hintBareName(q.Subject)
	if q.Predicate.Value() == kg.RDFType {
		if g.part = "type"; q.Object.Kind() == kg.KindIRI {
			g.hintSimilar("class", q.Object)
		}
		return
	}
	g.part = "object"
	g.hintBareName(q.Object)
	g.part = "predicate"
	g.hintSimilar("predicate", q.Predicate)
	if g.part = "object"; q.Object.IsLiteral() {
		g.hintLiteral(q.Predicate)
	}
}

// Hints returns the hints found, at most operation.MaxHints.
func (g *Judging) Hints() []operation.Hint { return g.hints }

// Close releases the snapshots.
func (g *Judging) Close() {
	if g.existing != nil {
		g.existing.Close()
		g.existing = nil
	}
	g.closeSnapshot()
}

// SuggestPrefixed adds to an error about a name without a prefix (kg.BareNameError) the
// prefixed names that exist in statements visible to the caller. It returns other
// errors unchanged.
func (j *Judge) SuggestPrefixed(ctx context.Context, p kg.Principal, err error) error {
	var bare *kg.BareNameError
	var known *kg.Error
	if !errors.As(err, &bare) || !errors.As(err, &known) {
		return err
	}
	g := j.Begin(ctx, p)
	defer g.Close()
	found := g.findPrefixed(bare.Name)
	if len(found) == 0 {
		return err
	}
	e := *known
	e.Err = nil // the message contains it
	e.Message += fmt.Sprintf("; did you mean %s?", strings.Join(found, " or "))
	return &e
}

// guesser searches the statements visible to the caller. It opens its snapshot on first
// use. An error ends the search without failing the update.
type guesser struct {
	ctx       context.Context
	judge     *Judge
	principal kg.Principal

	all    *kg.Snapshot // all graphs that the caller may read
	cancel context.CancelFunc
	failed error
	looks  int
	hints  []operation.Hint
	last   use    // the last use examined
	index  int    // of the patch being examined
	part   string // of that patch
	names  map[string][]string
}

// use is a use of a name by a principal.
type use struct {
	principal kg.AgentID
	what      string
	term      kg.Term
}

func (g *guesser) openSnapshot() bool {
	if g.all == nil && g.failed == nil {
		var ctx context.Context
		ctx, g.cancel = context.WithTimeout(g.ctx, hintTime)
		g.all, g.failed = g.judge.store.View(ctx, kg.View{Principal: g.principal, AllGraphs: true, Now: time.Now()})
	}
	return g.failed == nil
}

func (g *guesser) closeSnapshot() {
	if g.cancel != nil {
		g.cancel()
	}
	if g.all != nil {
		g.all.Close()
		g.all = nil
	}
}

// shouldLookUp reports whether a use must be looked up: it is not cached and within the limits.
func (g *guesser) shouldLookUp(u use) bool {
	if g.last == u || g.judge.seen.contains(u) {
		return false
	}
	g.last = u
	if len(g.hints) == operation.MaxHints || g.looks == maxLooks {
		return false
	}
	g.looks++
	return g.openSnapshot()
}

// hintSimilar adds a hint for a predicate or class that is new and similar to a used one.
func (g *guesser) hintSimilar(what string, t kg.Term) {
	u := use{g.principal.ID, what, t}
	if !g.shouldLookUp(u) {
		return
	}
	found, err := occursAs(g.all, what, t)
	if found {
		g.judge.seen.add(u)
	}
	if found || err != nil {
		g.failed = err
		return
	}
	near := suggest.IRIs(t.Value(), g.listUsed(what), maxNearest)
	if len(near) == 0 {
		return
	}
	g.addHint(operation.Hint{
		Message: fmt.Sprintf("the %s %s is new among the statements visible to you; did you mean %s?", what, g.shorten(t.Value()), strings.Join(g.shortenAll(near), " or ")),
		Nearest: near,
	})
}

// listUsed lists the predicates or classes visible to the caller, the most used first.
func (g *guesser) listUsed(what string) []string {
	if list, ok := g.names[what]; ok {
		return list
	}
	countTerms := g.all.Predicates
	if what == "class" {
		countTerms = g.all.Classes
	}
	counts, err := countTerms()
	g.failed = err
	slices.SortStableFunc(counts, func(a, b kg.TermCount) int { return int(min(max(int64(b.Count)-int64(a.Count), -1), 1)) })
	list := make([]string, 0, min(len(counts), maxCandidates))
	for _, c := range counts {
		if len(list) < maxCandidates && !strings.HasPrefix(c.Term.Value(), kg.OwnVocabulary) {
			list = append(list, c.Term.Value())
		}
	}
	if g.names == nil {
		g.names = map[string][]string{}
	}
	g.names[what] = list
	return list
}

// hintLiteral adds a hint for a literal if all objects of the predicate are resources.
func (g *guesser) hintLiteral(predicate kg.Term) {
	u := use{g.principal.ID, "literal", predicate}
	if !g.shouldLookUp(u) {
		return
	}
	id, known, err := g.all.ID(predicate)
	if err != nil || !known {
		g.failed = err
		return
	}
	literal, err := g.all.HasLiteralOf(id)
	if err != nil || literal {
		g.failed = err
		g.judge.seen.add(u) // or the predicate has too many statements to search
		return
	}
	for row, err := range g.all.MatchIDs(kg.IDPattern{Predicate: id}, nil) {
		if err != nil {
			g.failed = err
			return
		}
		hint := operation.Hint{Message: fmt.Sprintf("all visible objects of %s are resources, and this one is a literal; to refer to a resource, set id instead of value", g.shorten(predicate.Value()))}
		if example, err := g.all.Term(row.Object); err == nil && example.Kind() == kg.KindIRI {
			hint.Message += ", as in " + g.shorten(example.Value())
		}
		g.addHint(hint)
		return
	}
}

// hintBareName adds a hint for an id without a prefix that exists with one.
func (g *guesser) hintBareName(t kg.Term) {
	text, ok := strings.CutPrefix(t.Value(), kg.ForeignIDPrefix)
	if !ok || t.Kind() != kg.KindIRI {
		return
	}
	u := use{g.principal.ID, "id", t}
	if !g.shouldLookUp(u) {
		return
	}
	for _, what := range [...]string{"subject", "object"} {
		found, err := occursAs(g.all, what, t)
		if err != nil {
			g.failed = err
			return
		}
		if found {
			g.judge.seen.add(u)
			return
		}
	}
	found := g.findPrefixed(text)
	if len(found) == 0 {
		return
	}
	hint := operation.Hint{Message: fmt.Sprintf("%q has no prefix and is written as %s; %s exists", text, t.Value(), strings.Join(found, ", and so does "))}
	for _, name := range found {
		hint.Nearest = append(hint.Nearest, g.expandName(name))
	}
	g.addHint(hint)
}

func (g *guesser) addHint(h operation.Hint) {
	h.Path = operation.PartOf(g.index, g.part)
	g.hints = append(g.hints, h)
}

// findPrefixed lists the prefixed forms of a name that exist in visible statements.
func (g *guesser) findPrefixed(text string) (found []string) {
	if text == "" || len(text) > 256 || !g.openSnapshot() {
		return nil
	}
	prefixes := g.judge.store.Prefixes().All()
	kept := g.judge.store.KeptPrefixes()
	slices.SortStableFunc(prefixes, func(a, b kg.Prefix) int { // registered prefixes before built-in ones
		_, x := kept[a.Name]
		_, y := kept[b.Name]
		switch {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
	for _, p := range prefixes[:min(len(prefixes), maxPrefixes)] {
		t, err := kg.ParseIRI(p.Namespace + text)
		if err != nil {
			continue
		}
		for _, what := range [...]string{"subject", "object", "predicate", "graph"} {
			exists, err := occursAs(g.all, what, t)
			if err != nil {
				g.failed = err
				return found
			}
			if exists {
				found = append(found, p.Name+":"+text)
				break
			}
		}
		if len(found) == maxNearest {
			break
		}
	}
	return found
}

func (g *guesser) shorten(iri string) string { return clipText(g.judge.store.Prefixes().Shorten(iri)) }

func (g *guesser) shortenAll(iris []string) (out []string) {
	for _, iri := range iris {
		out = append(out, g.shorten(iri))
	}
	return out
}

func (g *guesser) expandName(name string) string {
	if t, err := g.judge.store.Prefixes().Resource(name); err == nil {
		return t.Value()
	}
	return name
}

// occursAs reports whether the snapshot shows a statement with the term as subject,
// predicate, object, class or graph.
func occursAs(s *kg.Snapshot, what string, t kg.Term) (bool, error) {
	id, known, err := s.ID(t)
	if err != nil || !known {
		return false, err
	}
	var p kg.IDPattern
	switch what {
	case "subject", "object":
		if p.Subject = id; what == "object" {
			p = kg.IDPattern{Object: id}
		}
		for _, err := range s.MatchIDs(p, nil) {
			return err == nil, err
		}
		return false, nil
	case "predicate":
		p.Predicate = id
	case "graph":
		p.Graph = id
	case "class":
		typeID, known, err := s.ID(kg.IRI(kg.RDFType))
		if err != nil || !known {
			return false, err
		}
		p.Predicate, p.Object = typeID, id
	}
	n, _, err := s.Estimate(p) // by the catalogue
	return n > 0, err
}

// maxSeen limits the cached uses.
const maxSeen = 10_000

// useCache caches which principal saw which name in use. A stale entry only suppresses a
// hint. Safe for concurrent use.
type useCache struct {
	mu   sync.RWMutex
	uses map[use]struct{} // guarded by mu; emptied when full
}

func (s *useCache) contains(u use) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.uses[u]
	return ok
}

func (s *useCache) add(u use) {
	if len(u.term.Value()) > 1024 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses == nil || len(s.uses) >= maxSeen {
		s.uses = map[use]struct{}{}
	}
	s.uses[u] = struct{}{}
}
