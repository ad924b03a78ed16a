package search

import (
	"encoding/json"
	"hash/fnv"
	"strings"

	"koine/internal/textindex"
	"koine/internal/textindex/words"
	"koine/kg"
)

// MaxTextBytes bounds the indexed part of a text.
const MaxTextBytes = 256 << 10

// textOf returns the text of a statement, and false for one that is not searched.
func textOf(q *kg.Quad) (text string, language words.Language, ok bool) {
	switch {
	case !q.Object.IsLiteral():
		return "", 0, false
	case kg.IsOwnGraph(q.Graph):
		if q.Predicate != kg.Parts {
			return "", 0, false
		}
		text = partsText(q.Object.Value())
		language = words.Detect(text)
	case q.Object.Lang() != "":
		text, language = q.Object.Value(), words.LanguageOf(q.Object.Lang())
	case q.Object.ExplicitDatatype() == "":
		text = q.Object.Value()
		language = words.Detect(text)
	default:
		return "", 0, false
	}
	text = text[:min(len(text), MaxTextBytes)]
	return text, language, strings.TrimSpace(text) != ""
}

// partsText returns the texts of a message's parts and the strings in their data, each on
// a line.
func partsText(parts string) string {
	var b strings.Builder
	for d := json.NewDecoder(strings.NewReader(parts)); ; {
		token, err := d.Token()
		if err != nil {
			return b.String()
		}
		if s, ok := token.(string); ok {
			b.WriteString(s)
			b.WriteByte('\n')
		}
	}
}

// subjectOf returns a subject of the index. Its order follows from its name alone.
func subjectOf(t kg.Term, id kg.ID) textindex.Subject {
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.String()))
	return textindex.Subject{Order: uint64(h.Sum32()), ID: id}
}

// indexed returns a statement as a text of the index.
func indexed(q *kg.Quad, ids kg.IDQuad) (textindex.Text, bool) {
	text, language, ok := textOf(q)
	return textindex.Text{
		Subject:  subjectOf(q.Subject, ids.Subject),
		Ref:      textindex.Ref{Graph: ids.Graph, Predicate: ids.Predicate, Object: ids.Object},
		Language: language,
		Value:    text,
	}, ok
}
