package names

import (
	"context"
	"fmt"
	"strings"
	"time"

	"koine/internal/operation"
	"koine/internal/suggest"
	"koine/kg"
)

// Mode selects the treatment of unknown names.
type Mode string

// The modes. The zero Mode is Strict.
const (
	Strict  Mode = "strict"  // refuse them
	Lenient Mode = "lenient" // write them and add a hint
)

// Valid returns an error for an undefined mode.
func (m Mode) Valid() error {
	switch m {
	case "", Strict, Lenient:
		return nil
	}
	return kg.Errorf(kg.CodeInvalid, "the mode of names must be %s or %s, not %q", Strict, Lenient, string(m))
}

// Judge checks names in the updates of one store. Safe for concurrent use.
type Judge struct {
	store   *kg.Store
	lenient bool
	seen    useCache
}

// NewJudge returns the judge of a store.
func NewJudge(store *kg.Store, mode Mode) *Judge {
	return &Judge{store: store, lenient: mode == Lenient}
}

// Judging is the check of one update. It belongs to one goroutine and must be closed.
type Judging struct {
	*guesser
	judge *Judge
	// known is the last scheme found to be known, with its colon: most names of an
	// update share it.
	known  string
	hinted map[string]bool // schemes with a hint
	// existing is the snapshot for looking up names that the store may already have;
	// nil until needed.
	existing *kg.Snapshot
	// proposed means that the update comes from a proposal: its names are in the store
	// because of the proposal, so pending statements do not count.
	proposed bool
}

// Begin starts the check of an update by the principal.
func (j *Judge) Begin(ctx context.Context, p kg.Principal) *Judging {
	return &Judging{guesser: &guesser{ctx: ctx, judge: j, principal: p}, judge: j}
}

// Check returns CodeUnknownPrefix if a subject, predicate, object, graph or datatype of
// a patch has an unknown name, with the part as Field. It ignores removals. implied is
// the part of the mutation, like "subject.type", if the patch states an implied type,
// and otherwise "".
func (g *Judging) Check(p *kg.Patch, index int, implied string) error {
	if p.Op == kg.Remove {
		return nil
	}
	g.index = index
	q := &p.Quad
	if implied != "" {
		return g.checkName(q.Object, implied)
	}
	if err := g.checkName(q.Subject, "subject"); err != nil {
		return err
	}
	if err := g.checkName(q.Predicate, "predicate"); err != nil {
		return err
	}
	if err := g.checkName(q.Object, "object"); err != nil {
		return err
	}
	return g.checkName(q.Graph, "graph")
}

func (g *Judging) checkName(t kg.Term, field string) error {
	iri := iriOf(t)
	if iri == "" || g.known != "" && strings.HasPrefix(iri, g.known) {
		return nil
	}
	scheme, _, ok := strings.Cut(iri, ":")
	if !ok {
		return nil // Patch.Normalise returns the error
	}
	if g.judge.store.KnowsScheme(scheme) {
		g.known = iri[:len(scheme)+1]
		return nil
	}
	if stored, err := g.isStored(t, iri); stored || err != nil {
		return err
	}
	e := g.judge.unknownError(iri, scheme)
	if !g.judge.lenient {
		if t.IsLiteral() {
			field += ".type"
		}
		return e.At(field)
	}
	if len(g.hinted) < operation.MaxHints && !g.hinted[scheme] {
		if g.hinted == nil {
			g.hinted = map[string]bool{}
		}
		g.hinted[scheme] = true
		g.part, _, _ = strings.Cut(field, ".")
		g.addHint(operation.Hint{Message: e.Message, Nearest: nearestTo(g.judge.store, iri, scheme)})
	}
	return nil
}

// iriOf returns the IRI of a term: its own, or that of its datatype.
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

// isStored reports whether the store already has the name, as far as the caller may know:
// administrators see all names, others those in the statements that they may read; the
// same limit applies to all for a proposal.
func (g *Judging) isStored(t kg.Term, iri string) (bool, error) {
	if g.existing == nil {
		view := kg.View{Principal: g.principal, AllGraphs: !g.proposed, Now: time.Now()}
		s, err := g.judge.store.View(g.ctx, view)
		if err != nil {
			return false, err
		}
		g.existing = s
	}
	s := g.existing
	if t.IsLiteral() && g.principal.IsAdmin() {
		return s.HasDatatype(iri)
	}
	if _, known, err := s.ID(t); err != nil || !known || g.principal.IsAdmin() && !g.proposed {
		return known, err
	}
	for _, what := range [...]string{"subject", "predicate", "object", "graph"} {
		if found, err := occursAs(s, what, t); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

func (j *Judge) unknownError(iri, scheme string) *kg.Error {
	e := kg.Errorf(kg.CodeUnknownPrefix, "%s: %s is neither a registered prefix nor a known URI scheme", clipText(iri), clipText(scheme))
	if near := nearestTo(j.store, iri, scheme); len(near) > 0 {
		e.Message += fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
	}
	e.Hint = "Write the full IRI, or ask an administrator to register the prefix (registerPrefix, koine prefix add) or allow the scheme (koine scheme add)."
	return e
}

// maxNearest limits the suggested names.
const maxNearest = 3

// nearestTo lists similar known names.
func nearestTo(store Known, iri, scheme string) (out []string) {
	rest := iri[min(len(iri), len(scheme)+1):]
	var candidates []string
	if !strings.HasPrefix(rest, "//") {
		for _, p := range store.Prefixes().All() {
			if p.Name == scheme { // registered after the name was written
				return []string{clipText(p.Namespace + rest)}
			}
			candidates = append(candidates, p.Name)
		}
	}
	candidates = append(candidates, "http", "https", "urn", "agent", "mailto", "tel")
	candidates = append(candidates, store.KeptSchemes()...)
	for _, name := range suggest.Names(scheme, candidates, maxNearest) {
		out = append(out, name+":"+clipText(rest))
	}
	return out
}

// clipText limits the length of client text in a message.
func clipText(s string) string { return kg.Excerpt(s, 120) }

// CheckTerm checks a single name that an update will add, with field as Field.
func (j *Judge) CheckTerm(ctx context.Context, p kg.Principal, t kg.Term, field string) error {
	g := j.Begin(ctx, p)
	defer g.Close()
	return g.checkName(t, field)
}

// CheckPatches checks the patches of a proposal that is about to be applied. A name is not
// known merely because a proposal has it. Field is the index of the patch with the
// part.
func (j *Judge) CheckPatches(ctx context.Context, p kg.Principal, patches []kg.Patch) error {
	g := j.Begin(ctx, p)
	g.proposed = true
	defer g.Close()
	for i := range patches {
		if err := g.Check(&patches[i], i, ""); err != nil {
			e := kg.AsError(err).At(fmt.Sprintf("[%d]", i))
			if e.Code == kg.CodeUnknownPrefix { // registering a prefix now does not change the proposed names
				e.Hint = "Reject the proposal and submit it again with full IRIs, or ask an administrator to allow the scheme (koine scheme add)."
			}
			return e
		}
	}
	return nil
}
