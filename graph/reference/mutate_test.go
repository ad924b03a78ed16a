package reference

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// lexemes are the tokens of a document.
var lexemes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\.\.\.|[_A-Za-z][_0-9A-Za-z]*|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|[!$&()=:@\[\]{|}]`)

// strangers are tokens that a document may lack.
var strangers = []string{
	"Entity", "Node", "Term", "Query", "Literal", "String", "Int", "IRI", "StatementFilter", "F0", "F1", "F9", "$v0", "$v1", "$none", "null", "true", "1", "2.5", `"x"`, "ENUM", "[]", "{}", "id", "iri", "label", "nowhere",
	"first", "where", "@skip(if: true)", "@include(if: 1)", "@unknown", "@budget(maxBytes: 100000)", "!", "...", "__typename", "on", "subscription", "mutation",
}

// mutate changes a few tokens of a document: a name becomes another one of the document or a
// stranger, tokens are lost, doubled, or change places.
func mutate(r *rand.Rand, text string) string {
	all := lexemes.FindAllString(text, -1)
	for range 1 + r.IntN(5)/4 {
		if len(all) < 4 {
			break
		}
		i, j := r.IntN(len(all)), r.IntN(len(all))
		switch r.IntN(12) {
		case 0:
			all = slices.Delete(all, i, i+1)
		case 1:
			all = slices.Insert(all, i, all[i])
		case 2:
			all[i], all[j] = all[j], all[i]
		case 3, 4:
			all[i] = strangers[r.IntN(len(strangers))]
		case 5:
			all = slices.Insert(all, i, strangers[r.IntN(len(strangers))])
		default: // a token becomes another one of its kind
			for range 50 {
				if j = r.IntN(len(all)); kindOf(all[j]) == kindOf(all[i]) && all[i] != all[j] {
					all[i] = all[j]
					break
				}
			}
		}
	}
	return strings.Join(all, " ")
}

func kindOf(token string) string {
	switch c := token[0]; {
	case c == '"', c == '-', c >= '0' && c <= '9':
		return "value"
	case c == '_', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		return "name"
	}
	return token
}
