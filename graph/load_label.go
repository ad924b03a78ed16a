package graph

import (
	"cmp"
	"slices"
	"strings"

	"koine/kg"
)

func lowerAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.ToLower(s)
	}
	return out
}

func (l *loader) label(found []candidate, langs []string, b []byte) ([]byte, error) {
	t, err := bestLabel(l.snapshot, found, langs)
	if err != nil || t.IsZero() {
		return append(b, "null"...), err
	}
	return appendString(b, t.Value()), nil
}

// bestLabel chooses by language, then by property, then by text; the zero Term
// when no label was found.
func bestLabel(s *kg.Snapshot, found []candidate, langs []string) (best kg.Term, err error) {
	bestRank, bestLang := 0, 0
	for _, c := range found {
		t, err := s.Term(c.row.Object)
		if err != nil {
			return best, err
		}
		if !t.IsLiteral() {
			continue
		}
		lang := langRank(t.LangKey(), langs)
		if best.IsZero() || cmp.Or(cmp.Compare(lang, bestLang), cmp.Compare(c.rank, bestRank), t.Compare(best)) < 0 {
			best, bestRank, bestLang = t, c.rank, lang
		}
	}
	return best, nil
}

// langRank is how well a language is liked, the best with the lowest number:
// those asked for in their order, then none, then any.
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
