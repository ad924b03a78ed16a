package remember

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"koine/internal/compact"
	"koine/internal/suggest"
	"koine/kg"
)

const (
	maxVocabulary = 2_000 // predicates, or classes, that words are compared with
	maxNearest    = 3     // that an error lists
)

// vocabularyKind is predicates or classes.
type vocabularyKind struct {
	name     string
	declared []string // the classes of terms that may not be in use yet
}

const (
	rdfs = "http://www.w3.org/2000/01/rdf-schema#"
	owl  = "http://www.w3.org/2002/07/owl#"
)

var (
	predicates = vocabularyKind{"predicate", []string{kg.RDF + "Property", owl + "ObjectProperty", owl + "DatatypeProperty", owl + "FunctionalProperty"}}
	classes    = vocabularyKind{"class", []string{rdfs + "Class", owl + "Class"}}
)

// typeWords are the words for rdf:type.
var typeWords = []string{"a", "an", "isa", "isan", "type", "instanceof"}

// vocabularyTerm is a term with the folded words that name it.
type vocabularyTerm struct {
	term  kg.Term
	count uint64
	words []string
}

// vocabulary finds the predicates, or the classes, that a snapshot shows by words.
type vocabulary struct {
	*Rememberer
	kind  vocabularyKind
	terms []vocabularyTerm
	read  bool
}

// readTerms lists the terms, the most used first.
func (v *vocabulary) readTerms(s *kg.Snapshot) error {
	if v.read {
		return nil
	}
	inUse, err := s.Predicates()
	if v.kind.name == classes.name {
		inUse, err = s.Classes()
	}
	if err != nil {
		return err
	}
	slices.SortStableFunc(inUse, func(a, b kg.TermCount) int { return cmp.Compare(b.Count, a.Count) })
	seen := map[kg.Term]bool{}
	add := func(t kg.Term, count uint64) error {
		if seen[t] || t.Kind() != kg.KindIRI || strings.HasPrefix(t.Value(), kg.OwnVocabulary) || len(v.terms) == maxVocabulary {
			return nil
		}
		seen[t] = true
		words := []string{foldWord(localName(t.Value()))}
		for _, p := range v.LabelPredicates {
			for st, err := range s.Match(kg.Pattern{Subject: t, Predicate: kg.IRI(p)}) {
				if err != nil {
					return err
				}
				words = append(words, foldWord(st.Object.Value()))
			}
		}
		v.terms = append(v.terms, vocabularyTerm{t, count, words})
		return nil
	}
	var declared []kg.Term
	for _, class := range v.kind.declared {
		for st, err := range s.Match(kg.Pattern{Predicate: rdfType, Object: kg.IRI(class)}) {
			if err != nil {
				return err
			}
			if declared = append(declared, st.Subject); len(declared) > maxVocabulary {
				break
			}
		}
	}
	slices.SortFunc(declared, kg.Term.Compare)
	for _, t := range inUse {
		if err := add(t.Term, t.Count); err != nil {
			return err
		}
	}
	for _, t := range declared {
		if err := add(t, 0); err != nil {
			return err
		}
	}
	v.read = true
	return nil
}

// findWord returns the term that a word names: by its label, or by the end of its IRI, in any
// case and with any separators.
func (v *vocabulary) findWord(s *kg.Snapshot, word string) (kg.Term, error) {
	folded := foldWord(word)
	if v.kind.name == predicates.name && slices.Contains(typeWords, folded) {
		return rdfType, nil
	}
	if err := v.readTerms(s); err != nil {
		return kg.Term{}, err
	}
	var found []string
	var term kg.Term
	for _, t := range v.terms {
		if slices.Contains(t.words, folded) {
			term, found = t.term, append(found, v.Prefixes.Shorten(t.term.Value()))
		}
	}
	switch {
	case len(found) == 1:
		return term, nil
	case len(found) > 1:
		return kg.Term{}, kg.Errorf(kg.CodeInvalid, "several of the vocabulary are called %q; write the name of the %s that you mean: %s", word, v.kind.name, strings.Join(found[:min(len(found), maxListed)], "; "))
	}
	e := kg.Errorf(kg.CodeInvalid, "no %s is called %q", v.kind.name, word)
	if near := v.nearest(folded); len(near) > 0 {
		e.Message += fmt.Sprintf("; the nearest are %s", strings.Join(near, ", "))
	}
	e.Message += fmt.Sprintf(". Use an existing one, or define %q as a new %s", word, v.kind.name)
	e.Err = errNoWord
	return kg.Term{}, e
}

// errNoWord is the cause of the error for a word that names nothing.
var errNoWord = errors.New("no term of the vocabulary")

// nearest lists the names of terms that are similar to a word, or else those most in use.
func (v *vocabulary) nearest(folded string) (out []string) {
	byWord := map[string]string{}
	var words []string
	for _, t := range v.terms {
		for _, w := range t.words {
			if _, known := byWord[w]; !known && w != "" {
				byWord[w] = v.Prefixes.Shorten(t.term.Value())
				words = append(words, w)
			}
		}
	}
	add := func(name string) {
		if len(out) < maxNearest && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, w := range suggest.Names(folded, words, maxNearest) {
		add(byWord[w])
	}
	for _, w := range words {
		if strings.Contains(w, folded) || strings.Contains(folded, w) {
			add(byWord[w])
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, t := range v.terms {
		add(v.Prefixes.Shorten(t.term.Value()))
	}
	return out
}

// foldWord returns the letters and digits of a word in lower case.
func foldWord(word string) string {
	return strings.Map(func(r rune) rune {
		if isSeparator(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, word)
}

// localName returns the part of an IRI behind the last separator.
func localName(iri string) string {
	return iri[strings.LastIndexAny(iri, "/#:")+1:]
}

// replaceWords puts terms in place of the words for predicates and classes. Those that are
// defined in the request stay labels, and get a fact with their class.
func (r *Rememberer) replaceWords(s *kg.Snapshot, facts []compact.Fact, defined []string) ([]compact.Fact, error) {
	p, c := &vocabulary{Rememberer: r, kind: predicates}, &vocabulary{Rememberer: r, kind: classes}
	made := map[string]bool{}
	for i := range facts {
		f := facts[i]
		for _, word := range [...]struct {
			of  *compact.Ref
			in  *vocabulary
			use bool
		}{{&facts[i].Predicate, p, true}, {&facts[i].Object, c, f.Predicate.Term == rdfType || slices.Contains(typeWords, foldWord(f.Predicate.Label))}} {
			if !word.use || !word.of.Term.IsZero() {
				continue
			}
			t, err := word.in.findWord(s, word.of.Label)
			if errors.Is(err, errNoWord) && slices.Contains(defined, word.of.Label) {
				if !made[word.of.Label] {
					made[word.of.Label] = true
					facts = append(facts, compact.Fact{Graph: f.Graph, Subject: *word.of, Predicate: compact.Ref{Term: rdfType}, Object: compact.Ref{Term: kg.IRI(word.in.kind.declared[0])}})
				}
				continue
			}
			if err != nil {
				return nil, atFact(err, i)
			}
			word.of.Term, word.of.Label = t, ""
		}
	}
	return facts, nil
}
