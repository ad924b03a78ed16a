package query

import (
	"cmp"
	"slices"
	"strings"

	"koine/kg"
)

// Candidate is a statement whose object may be shown.
type Candidate struct {
	Row  kg.Row
	Rank int // of its predicate; lower is better
}

// BestLabel chooses by language, then by property, then by text. It returns
// the zero Term if there is no label.
func BestLabel(s *kg.Snapshot, found []Candidate, langs []string) (best kg.Term, err error) {
	bestRank, bestLang := 0, 0
	for _, c := range found {
		t, err := s.Term(c.Row.Object)
		if err != nil {
			return best, err
		}
		if !t.IsLiteral() {
			continue
		}
		lang := langRank(t.LangKey(), langs)
		if best.IsZero() || cmp.Or(cmp.Compare(lang, bestLang), cmp.Compare(c.Rank, bestRank), t.Compare(best)) < 0 {
			best, bestRank, bestLang = t, c.Rank, lang
		}
	}
	return best, nil
}

// langRank ranks a language; lower is better: the requested languages in their
// order, then no language, then any other.
func langRank(lang string, liked []string) int {
	lang = strings.ToLower(lang)
	i := slices.IndexFunc(liked, func(l string) bool {
		return lang == l || strings.HasPrefix(lang, l) && lang[len(l)] == '-'
	})
	switch {
	case i >= 0 && lang != "":
		return i
	case lang == "":
		return len(liked)
	}
	return len(liked) + 1
}
