package names

import (
	"context"
	"fmt"
	"strings"
	"time"

	"koine/internal/nearest"
	"koine/internal/operation"
	"koine/kg"
)

// Mode says what becomes of names that the store does not know.
type Mode string

// The modes. The zero Mode is Strict.
const (
	Strict  Mode = "strict"  // they are refused
	Lenient Mode = "lenient" // they are written, with a hint
)

// Valid reports a mode that there is not.
func (m Mode) Valid() error {
	switch m {
	case "", Strict, Lenient:
		return nil
	}
	return kg.Errorf(kg.CodeInvalid, "names are judged %s or %s, not %q", Strict, Lenient, string(m))
}

// Judge judges names in the updates of one store. It may be used concurrently.
type Judge struct {
	store   *kg.Store
	lenient bool
	seen    seen
}

// NewJudge returns the judge of a store.
func NewJudge(store *kg.Store, mode Mode) *Judge {
	return &Judge{store: store, lenient: mode == Lenient}
}

// Judging is the judging of one update. It belongs to one goroutine and must be closed.
type Judging struct {
	*guesser
	judge *Judge
	// known is the scheme that was found to be known last, with its colon: most names of
	// an update begin alike.
	known string
	said  map[string]bool // schemes that a hint was given about
	// standing is what names are looked for in that the store may have already; nil until
	// there is one.
	standing *kg.Snapshot
	// proposed tells that the update has waited for review: its names are in the store by
	// its proposal already, and what only waits is not counted.
	proposed bool
}

// Begin begins to judge an update of the principal's.
func (j *Judge) Begin(ctx context.Context, p kg.Principal) *Judging {
	return &Judging{guesser: &guesser{ctx: ctx, judge: j, principal: p}, judge: j}
}

// Check refuses the patch at an index, not a removal, of which a subject, predicate, object, graph or
// datatype has a name that the store does not know, with CodeUnknownPrefix and the part
// as Field. implied is the part of the mutation, like "subject.type", where the patch
// states a type on the side, and otherwise "".
func (g *Judging) Check(p *kg.Patch, index int, implied string) error {
	if p.Op == kg.Remove {
		return nil
	}
	g.index = index
	q := &p.Quad
	if implied != "" {
		return g.name(q.Object, implied)
	}
	if err := g.name(q.Subject, "subject"); err != nil {
		return err
	}
	if err := g.name(q.Predicate, "predicate"); err != nil {
		return err
	}
	if err := g.name(q.Object, "object"); err != nil {
		return err
	}
	return g.name(q.Graph, "graph")
}

// name judges one term.
func (g *Judging) name(t kg.Term, field string) error {
	iri := iriOf(t)
	if iri == "" || g.known != "" && strings.HasPrefix(iri, g.known) {
		return nil
	}
	scheme, _, ok := strings.Cut(iri, ":")
	if !ok {
		return nil // Patch.Normalise refuses it
	}
	if g.judge.store.KnowsScheme(scheme) {
		g.known = iri[:len(scheme)+1]
		return nil
	}
	if stands, err := g.stands(t, iri); stands || err != nil {
		return err
	}
	e := g.judge.unknown(iri, scheme)
	if !g.judge.lenient {
		if t.IsLiteral() {
			field += ".type"
		}
		return e.At(field)
	}
	if len(g.said) < operation.MaxHints && !g.said[scheme] {
		if g.said == nil {
			g.said = map[string]bool{}
		}
		g.said[scheme] = true
		g.part, _, _ = strings.Cut(field, ".")
		g.add(operation.Hint{Message: e.Message, Nearest: g.judge.nearest(iri, scheme)})
	}
	return nil
}

// iriOf is the IRI that a term has: its own, or that of its datatype.
func iriOf(t kg.Term) string {
	switch t.Kind() {
	case kg.KindIRI:
		return t.Value()
	case kg.KindLiteral:
		if d := t.Datatype(); !strings.HasPrefix(d, kg.XSD) && !strings.HasPrefix(d, kg.RDF) {
			return d
		}
	}
	return ""
}

// stands tells whether the store has the name already, as far as the caller may know:
// administrators may know all of it, others what occurs in the statements that they read,
// and so do both for what was proposed.
func (g *Judging) stands(t kg.Term, iri string) (bool, error) {
	if g.standing == nil {
		view := kg.View{Principal: g.principal, AllGraphs: !g.proposed, Now: time.Now()}
		s, err := g.judge.store.View(g.ctx, view)
		if err != nil {
			return false, err
		}
		g.standing = s
	}
	s := g.standing
	if t.IsLiteral() && g.principal.IsAdmin() {
		return s.HasDatatype(iri)
	}
	if _, known, err := s.ID(t); err != nil || !known || g.principal.IsAdmin() && !g.proposed {
		return known, err
	}
	for _, what := range [...]string{"subject", "predicate", "object", "graph"} {
		if there, err := occurs(s, what, t); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

// unknown is the error about a name that the store does not know.
func (j *Judge) unknown(iri, scheme string) *kg.Error {
	e := kg.Errorf(kg.CodeUnknownPrefix, "%s: %s is neither a registered prefix nor a known URI scheme", clip(iri), clip(scheme))
	if near := j.nearest(iri, scheme); len(near) > 0 {
		e.Message += fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
	}
	e.Hint = "Write the whole IRI, or have an administrator register the prefix (registerPrefix, koine prefix add) or allow the scheme (koine scheme add)."
	return e
}

// maxNearest bounds the names that may have been meant.
const maxNearest = 3

// nearest are the names that may have been meant, as they may be written.
func (j *Judge) nearest(iri, scheme string) []string { return nearestTo(j.store, iri, scheme) }

func nearestTo(store Known, iri, scheme string) (out []string) {
	rest := iri[min(len(iri), len(scheme)+1):]
	var candidates []string
	if !strings.HasPrefix(rest, "//") {
		for _, p := range store.Prefixes().All() {
			if p.Name == scheme { // registered since the name was written
				return []string{clip(p.Namespace + rest)}
			}
			candidates = append(candidates, p.Name)
		}
	}
	candidates = append(candidates, "http", "https", "urn", "agent", "mailto", "tel")
	candidates = append(candidates, store.KeptSchemes()...)
	for _, name := range nearest.Names(scheme, candidates, maxNearest) {
		out = append(out, name+":"+clip(rest))
	}
	return out
}

// clip bounds a name from outside that goes into a message.
func clip(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Term judges a name that an update is about to bring in by itself, with field as Field.
func (j *Judge) Term(ctx context.Context, p kg.Principal, t kg.Term, field string) error {
	g := j.Begin(ctx, p)
	defer g.Close()
	return g.name(t, field)
}

// Patches judges the patches of a proposal that is about to be applied. That a proposal
// brings a name does not make it known. Field is the index of the patch with the part.
func (j *Judge) Patches(ctx context.Context, p kg.Principal, patches []kg.Patch) error {
	g := j.Begin(ctx, p)
	g.proposed = true
	defer g.Close()
	for i := range patches {
		if err := g.Check(&patches[i], i, ""); err != nil {
			e := kg.AsError(err).At(fmt.Sprintf("[%d]", i))
			if e.Code == kg.CodeUnknownPrefix { // its names are what was proposed: a prefix of now changes none
				e.Hint = "Reject the proposal and have it made again with whole IRIs, or, where it is no prefix, have an administrator allow the scheme (koine scheme add)."
			}
			return e
		}
	}
	return nil
}
