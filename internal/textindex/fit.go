package textindex

import (
	"slices"
	"strings"

	"koine/internal/textindex/words"
	"koine/kg"
)

// Fit returns the texts with words of the query of a subject that has all of these texts, or nothing
// if they do not make it a hit. The query is taken as it is spelt: see Request.AsSpelt.
func (q *Query) Fit(subject kg.ID, texts []Text, filter *Filter) ([]Ref, error) {
	return q.fit(subject, texts, filter, nil)
}

// fit is Fit with more terms that words stand for.
func (q *Query) fit(subject kg.ID, texts []Text, filter *Filter, known map[queryWord][]form) (with []Ref, err error) {
	found := make([]bool, len(q.phrases))
	for i := range texts {
		t := &texts[i]
		terms := readTerms(t)
		if q.hasUnwanted(terms, known) {
			return nil, nil
		}
		if !slices.ContainsFunc(q.words, func(w queryWord) bool { return terms.haveWord(w, known[w]) }) ||
			filter.Group != nil && !filter.Group(t.Ref.Graph, t.Ref.Predicate) {
			continue
		}
		if filter.Text != nil {
			if admitted, err := filter.Text(subject, t.Ref); err != nil {
				return nil, err
			} else if !admitted {
				continue
			}
		}
		with = append(with, t.Ref)
		for k, phrase := range q.phrases {
			found[k] = found[k] || terms.havePhrase(phrase)
		}
	}
	if len(with) == 0 || slices.Contains(found, false) {
		return nil, nil
	}
	if filter.Subject != nil {
		if admitted, err := filter.Subject(subject); err != nil || !admitted {
			return nil, err
		}
	}
	return with, nil
}

// hasUnwanted reports whether a text has a word, or all words of a phrase in order, that is not
// wanted.
func (q *Query) hasUnwanted(terms textTerms, known map[queryWord][]form) bool {
	return slices.ContainsFunc(q.without, func(list []queryWord) bool {
		if len(list) == 1 {
			return terms.haveWord(list[0], known[list[0]])
		}
		return terms.havePhrase(foldedWords(list))
	})
}

// Concerns reports whether a text has a word that is wanted, or one that is not.
func (q *Query) Concerns(t *Text) bool {
	terms := readTerms(t)
	return q.hasUnwanted(terms, nil) || slices.ContainsFunc(q.words, func(w queryWord) bool { return terms.haveWord(w, nil) })
}

// standsFor reports whether a word, as it is written, stands for a term.
func (w queryWord) standsFor(term string) bool {
	if term[0] == exactTerm {
		return term[1:] == w.folded || w.prefix && strings.HasPrefix(term[1:], w.folded)
	}
	return w.lower != "" && words.Language(term[0]-stemTerm).Stem(w.lower) == term[1:]
}

// textTerms has the positions of each term in a text.
type textTerms map[string][]int

func readTerms(t *Text) textTerms {
	terms, n, language := textTerms{}, 0, t.Language.ResolveFor(t.Value)
	for w := range words.Split(t.Value) {
		if n++; n > MaxTextWords {
			break
		}
		exact := exactKey(w.Folded)
		terms[exact] = append(terms[exact], w.Position)
		if language != words.Other && w.Lower != "" {
			stem := stemKey(language, language.Stem(w.Lower))
			terms[stem] = append(terms[stem], w.Position)
		}
	}
	return terms
}

// haveWord reports whether a word stands for one of the terms, or one of its known forms is among
// them.
func (t textTerms) haveWord(w queryWord, known []form) bool {
	if t.have(exactKey(w.folded)) {
		return true
	}
	if w.lower != "" {
		for l := words.English; l <= words.Spanish; l++ {
			if t.have(stemKey(l, l.Stem(w.lower))) {
				return true
			}
		}
	}
	if w.prefix {
		for term := range t {
			if w.standsFor(term) {
				return true
			}
		}
	}
	return slices.ContainsFunc(known, func(f form) bool { return t.have(f.term) })
}

func (t textTerms) have(term string) bool { return len(t[term]) > 0 }

// havePhrase reports whether words follow each other.
func (t textTerms) havePhrase(phrase []string) bool {
	return slices.ContainsFunc(t[exactKey(phrase[0])], func(at int) bool {
		for i, word := range phrase {
			if !slices.Contains(t[exactKey(word)], at+i) {
				return false
			}
		}
		return true
	})
}
