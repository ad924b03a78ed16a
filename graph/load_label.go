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

func (l *loader) appendLabel(found []candidate, langs []string, b []byte) ([]byte, error) {
	t, err := bestLabel(l.snapshot, found, langs)
	if err != nil || t.IsZero() {
		return append(b, "null"...), err
	}
	return appendString(b, t.Value()), nil
}

// bestLabel chooses by language, then by property, then by text. It returns
// the zero Term if there is no label.
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
