package textindex

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"koine/internal/textindex/words"
	"koine/kg"
)

// The bounds of a query.
const (
	MaxQueryBytes = 1 << 10
	MaxQueryWords = 32
)

// Query is a parsed query.
type Query struct {
	words   []queryWord
	phrases [][]string // folded words that follow each other
	without [][]queryWord
}

// queryWord is a word of a query, or the beginning of one.
type queryWord struct {
	folded, lower string
	prefix        bool
	function      bool // a function word of the query's language
}

// ParseQuery reads a query: words; "words in this order"; begin*, for words that begin so;
// and -word, for words that are not wanted. A text without any word that is wanted is an error.
func ParseQuery(text string) (*Query, error) {
	switch {
	case len(text) > MaxQueryBytes:
		return nil, kg.Errorf(kg.CodeLimitExceeded, "query has %d bytes; at most %d are allowed", len(text), MaxQueryBytes)
	case !utf8.ValidString(text):
		return nil, kg.Errorf(kg.CodeInvalid, "query is not valid UTF-8")
	}
	q := &Query{}
	n := 0
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		unwanted := false
		if strings.HasPrefix(rest, "-") {
			unwanted, rest = true, rest[1:]
		}
		var part string
		quoted := strings.HasPrefix(rest, `"`)
		if quoted {
			part, rest, _ = strings.Cut(rest[1:], `"`)
		} else if i := strings.IndexAny(rest, " \t\n\""); i >= 0 {
			part, rest = rest[:i], rest[i:]
		} else {
			part, rest = rest, ""
		}
		list := wordsOf(part, !quoted && strings.HasSuffix(part, "*"))
		if n += len(list); n > MaxQueryWords {
			return nil, kg.Errorf(kg.CodeLimitExceeded, "query has more than %d words", MaxQueryWords)
		}
		switch {
		case len(list) == 0:
		case unwanted:
			q.without = append(q.without, list)
		default:
			q.words = append(q.words, list...)
			if quoted && len(list) > 1 || !quoted && len(list) > 1 && list[0].lower == "" {
				q.phrases = append(q.phrases, foldedWords(list))
			}
		}
	}
	if len(q.words) == 0 {
		return nil, kg.Errorf(kg.CodeInvalid, "query %q has no word to search for", kg.Excerpt(text, 40))
	}
	q.markFunctionWords(text)
	return q, nil
}

// HasUnwanted reports whether the query has -words.
func (q *Query) HasUnwanted() bool { return len(q.without) > 0 }

// markFunctionWords marks the function words of the query's language. A query that is too short to
// detect it counts as English, as a text does: "die casting" has none.
func (q *Query) markFunctionWords(text string) {
	language, sure := words.Detect(text)
	if !sure {
		language = words.English
	}
	for i := range q.words {
		w := &q.words[i]
		w.function = !w.prefix && language.HasFunctionWord(w.folded)
	}
}

func wordsOf(text string, prefix bool) (list []queryWord) {
	for w := range words.Split(text) {
		list = append(list, queryWord{folded: w.Folded, lower: w.Lower})
	}
	if prefix && len(list) > 0 {
		list[len(list)-1].prefix = true
	}
	return list
}

func foldedWords(list []queryWord) (out []string) {
	for _, w := range list {
		out = append(out, w.folded)
	}
	return out
}

// WordsIn yields where the words of a text are that the query asks for, in one of their forms:
// those that st has counted; nil has none for misspelt words. Function words count if the query has no others.
func (q *Query) WordsIn(text string, language words.Language, st *Statistics) iter.Seq2[int, int] {
	language = language.ResolveFor(text)
	return func(yield func(start, end int) bool) {
		for w := range words.Split(text) {
			if q.asksFor(w, language, st) && !yield(w.Start, w.End) {
				return
			}
		}
	}
}

// asksFor reports whether a word of a text is a form of a word of the query.
func (q *Query) asksFor(w words.Word, language words.Language, st *Statistics) bool {
	onlyFunction := !slices.ContainsFunc(q.words, func(w queryWord) bool { return !w.function })
	for i, of := range q.words {
		if of.function && !onlyFunction {
			continue
		}
		if of.standsFor(exactKey(w.Folded)) {
			return true
		}
		if w.Lower == "" || of.lower == "" {
			continue
		}
		stem := language.Stem(w.Lower)
		if language != words.Other && of.standsFor(stemKey(language, stem)) {
			return true
		}
		if most := maxTypos(of.folded); most > 0 && st != nil && st.Words[i].Misspelt &&
			(editDistance(of.folded, w.Folded, most) <= most || editDistance(language.Stem(of.lower), stem, most) <= most) {
			return true
		}
	}
	return false
}
