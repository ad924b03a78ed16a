package textindex

import (
	"slices"
	"strings"

	"koine/internal/textindex/words"
)

// Fit returns the texts of one subject that have words of the query, and reports whether they make
// it a hit. Beginnings stand for all words that begin so, and misspelt words for none.
func (q *Query) Fit(texts []Text) (with []Text, fits bool) { return q.fit(texts, nil, nil) }

// fit is Fit with more terms that words stand for. Wanted words are looked for in the texts that are
// searched; nil stands for all.
func (q *Query) fit(texts []Text, searched []bool, known map[queryWord][]form) (with []Text, fits bool) {
	found := make([]bool, len(q.phrases))
	for i := range texts {
		terms := readTerms(&texts[i])
		for _, list := range q.without {
			if len(list) == 1 && terms.haveWord(list[0], known[list[0]]) || len(list) > 1 && terms.havePhrase(foldedWords(list)) {
				return nil, false
			}
		}
		if searched != nil && !searched[i] || !slices.ContainsFunc(q.words, func(w queryWord) bool { return terms.haveWord(w, known[w]) }) {
			continue
		}
		with = append(with, texts[i])
		for k, phrase := range q.phrases {
			found[k] = found[k] || terms.havePhrase(phrase)
		}
	}
	return with, len(with) > 0 && !slices.Contains(found, false)
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
