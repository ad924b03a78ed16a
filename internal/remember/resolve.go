package remember

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"koine/internal/compact"
	"koine/kg"
)

const (
	maxCandidates = 100 // entities with one label that are read
	maxListed     = 5   // of them, the entities that an error lists
	maxClasses    = 100 // of an entity that are read
	maxSlugBytes  = 64
	maxNumbered   = 100 // numbers that are tried behind a slug before a UUID
)

var rdfType = kg.IRI(kg.RDFType)

// matcher reads statements: kg.Tx.Match or kg.Snapshot.Match.
type matcher func(kg.Pattern) iter.Seq2[kg.Statement, error]

// resolver finds the entities that the labels of a request stand for. It belongs to one
// request.
type resolver struct {
	*Rememberer
	labels  []*label
	byText  map[string]*label
	current map[kg.Term]kg.Term // the entity of each placeholder, by the last resolve
}

// label is a label of a request.
type label struct {
	text    string
	classes []kg.Term // that the request gives to the entity
	stated  []kg.Term // entities to which the request gives the label
	key     *Key      // instead of a label
	lookups []kg.Pattern
	// placeholder stands for the entity in patches. It names the entity if one is made
	// without NewNames.
	placeholder kg.Term
}

func (r *Rememberer) newResolver(facts []compact.Fact, key *Key) (*resolver, error) {
	z := &resolver{Rememberer: r, byText: map[string]*label{}}
	for i := range facts {
		for _, ref := range [...]compact.Ref{facts[i].Subject, facts[i].Predicate, facts[i].Object} {
			if !ref.Term.IsZero() {
				continue
			}
			if err := z.addLabel(ref.Label, key); err != nil {
				return nil, atFact(err, i)
			}
		}
	}
	for i := range facts {
		f := &facts[i]
		if l := z.byText[f.Subject.Label]; l != nil && f.Subject.Term.IsZero() && f.Predicate.Term == rdfType && !f.Object.Term.IsZero() {
			l.classes = append(l.classes, f.Object.Term)
		}
		if l := z.byText[f.Object.Term.Value()]; l != nil && f.Object.Term.IsLiteral() && !f.Subject.Term.IsZero() && slices.Contains(r.LabelPredicates, f.Predicate.Term.Value()) {
			l.stated = append(l.stated, f.Subject.Term)
		}
	}
	return z, nil
}

// addLabel adds a label. The empty one stands for the entity with the key.
func (z *resolver) addLabel(text string, key *Key) error {
	if z.byText[text] != nil {
		return nil
	}
	if len(z.labels) == MaxLabels {
		return kg.Errorf(kg.CodeLimitExceeded, "the request has more than %d labels; send the rest in another request", MaxLabels)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	l := &label{text: text, placeholder: kg.IRI("urn:uuid:" + id.String())}
	if text != "" {
		z.addLookups(l, kg.String(text))
	} else if l.key = key; key == nil {
		return kg.Errorf(kg.CodeInvalid, "the fact has no subject")
	} else {
		l.text, l.lookups = key.Value.Value(), []kg.Pattern{{Predicate: key.Predicate, Object: key.Value}}
	}
	z.labels, z.byText[text] = append(z.labels, l), l
	return nil
}

// addLookups looks the literal up as a label.
func (z *resolver) addLookups(l *label, form kg.Term) {
	for _, predicate := range z.LabelPredicates {
		l.lookups = append(l.lookups, kg.Pattern{Predicate: kg.IRI(predicate), Object: form})
	}
}

// naming is the predicate and the object of the statement that names a new entity.
func (l *label) naming() (predicate, object kg.Term) {
	if l.key != nil {
		return l.key.Predicate, l.key.Value
	}
	return kg.IRI(kg.RDFSLabel), kg.String(l.text)
}

// termOf returns the term of a Ref, or the placeholder of its label.
func (z *resolver) termOf(ref compact.Ref) kg.Term {
	if ref.Term.IsZero() {
		return z.byText[ref.Label].placeholder
	}
	return ref.Term
}

// replaceNames returns a statement with the entities of the last resolve in place of
// placeholders.
func (z *resolver) replaceNames(q kg.Quad) kg.Quad {
	for _, t := range [...]*kg.Term{&q.Subject, &q.Predicate, &q.Object} {
		if now, ok := z.current[*t]; ok {
			*t = now
		}
	}
	return q
}

// checkLabels looks the labels up in a snapshot, so that most errors cost the committer nothing,
// and learns in which languages there are literals with their texts.
func (z *resolver) checkLabels(s *kg.Snapshot) error {
	for _, l := range z.labels {
		if l.key == nil {
			known, _, err := s.Literals(l.text)
			if err != nil {
				return err
			}
			for _, t := range known {
				if t.Lang() != "" {
					z.addLookups(l, t)
				}
			}
		}
		if _, err := z.findEntity(s.Match, l); err != nil {
			return err
		}
	}
	return nil
}

// resolve looks the labels up in an update, and makes the entities that are not found.
func (z *resolver) resolve(tx *kg.Tx, patches []kg.Patch) ([]Entity, error) {
	z.current = make(map[kg.Term]kg.Term, len(z.labels))
	out := make([]Entity, len(z.labels))
	for i, l := range z.labels {
		t, err := z.findEntity(tx.Match, l)
		if err != nil {
			return nil, err
		}
		made := t.IsZero()
		if made {
			if t, err = z.newName(tx.Match, l); err != nil {
				return nil, err
			}
			first := slices.IndexFunc(patches, func(p kg.Patch) bool {
				return p.Quad.Subject == l.placeholder || p.Quad.Predicate == l.placeholder || p.Quad.Object == l.placeholder
			})
			named := kg.Quad{Subject: t, Graph: patches[first].Quad.Graph}
			named.Predicate, named.Object = l.naming()
			if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: named}); err != nil {
				return nil, atFact(err, first)
			}
		}
		z.current[l.placeholder] = t
		out[i] = Entity{Label: l.text, Term: t, Made: made}
	}
	return out, nil
}

// findEntity returns the entity that a label stands for, or the zero Term if none is made yet.
func (z *resolver) findEntity(match matcher, l *label) (kg.Term, error) {
	found, err := z.candidates(match, l)
	if err != nil {
		return kg.Term{}, err
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return kg.Term{}, z.ambiguous(match, l, found)
	}
	return kg.Term{}, nil
}

// candidates returns the entities to which the request gives the label, or else those that
// have it and a class of the request, or else those that have it and no class at all.
func (z *resolver) candidates(match matcher, l *label) ([]kg.Term, error) {
	if len(l.stated) > 0 {
		found := slices.SortedFunc(slices.Values(l.stated), kg.Term.Compare)
		return slices.Compact(found), nil
	}
	var found []kg.Term
	for _, p := range l.lookups {
		for st, err := range match(p) {
			if err != nil {
				return nil, err
			}
			if !kg.IsOwnGraph(st.Graph) && !slices.Contains(found, st.Subject) {
				found = append(found, st.Subject)
			}
			if len(found) > maxCandidates {
				return nil, kg.Errorf(kg.CodeInvalid, "more than %d entities have the label %q; write the name of the one that you mean", maxCandidates, l.text)
			}
		}
	}
	slices.SortFunc(found, kg.Term.Compare)
	if len(l.classes) == 0 || l.key != nil {
		return found, nil
	}
	var fit, unclassed []kg.Term
	for _, t := range found {
		classes, err := classesOf(match, t)
		if err != nil {
			return nil, err
		}
		switch {
		case len(classes) == 0:
			unclassed = append(unclassed, t)
		case slices.ContainsFunc(classes, func(c kg.Term) bool { return slices.Contains(l.classes, c) }):
			fit = append(fit, t)
		}
	}
	if len(fit) > 0 {
		return fit, nil
	}
	return unclassed, nil
}

// classesOf returns up to maxClasses classes of an entity.
func classesOf(match matcher, t kg.Term) (list []kg.Term, err error) {
	for st, err := range match(kg.Pattern{Subject: t, Predicate: rdfType}) {
		if err != nil {
			return nil, err
		}
		if list = append(list, st.Object); len(list) == maxClasses {
			break
		}
	}
	slices.SortFunc(list, kg.Term.Compare)
	return slices.Compact(list), nil
}

// ambiguous returns the error for a label that several entities have.
func (z *resolver) ambiguous(match matcher, l *label, found []kg.Term) error {
	var list []string
	for _, t := range found[:min(len(found), maxListed)] {
		classes, err := classesOf(match, t)
		if err != nil {
			return err
		}
		name := z.Prefixes.Shorten(t.Name())
		for _, class := range classes[:min(len(classes), maxListed)] {
			name += " a " + z.Prefixes.Shorten(class.Name())
		}
		list = append(list, name)
	}
	return kg.Errorf(kg.CodeInvalid, "%d entities have the label %q; write the name of the one that you mean, or its class: %s", len(found), l.text, strings.Join(list, "; "))
}

// newName returns the name of a new entity. Only statements that the caller may read make a slug taken.
func (z *resolver) newName(match matcher, l *label) (kg.Term, error) {
	slug := slugOf(l.text)
	if z.NewNames == "" || slug == "" {
		return l.placeholder, nil
	}
	for n := 1; n <= maxNumbered; n++ {
		name := z.NewNames + slug
		if n > 1 {
			name += fmt.Sprintf("-%d", n)
		}
		t, err := kg.ParseIRI(name)
		if err != nil {
			return t, err
		}
		if taken, err := isUsed(match, t); !taken || err != nil {
			return t, err
		}
	}
	return kg.ParseIRI(z.NewNames + slug + "-" + strings.TrimPrefix(l.placeholder.Value(), "urn:uuid:"))
}

func isUsed(match matcher, t kg.Term) (bool, error) {
	for _, p := range [...]kg.Pattern{{Subject: t}, {Object: t}} {
		for _, err := range match(p) {
			return err == nil, err
		}
	}
	return false, nil
}

func isSeparator(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
