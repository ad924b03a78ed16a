package search

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"koine/internal/textindex"
	"koine/internal/textindex/words"
	"koine/kg"
)

// MaxTextBytes bounds the indexed part of a text.
const MaxTextBytes = 256 << 10

// mayHaveText reports whether textOf may find a text in a statement.
func mayHaveText(q *kg.Quad) bool {
	switch {
	case !q.Object.IsLiteral():
		return false
	case kg.IsOwnGraph(q.Graph):
		return q.Predicate == kg.Parts
	}
	return q.Object.ExplicitDatatype() == ""
}

// TextOf returns the text of a statement that is searched, and false if there is none.
func TextOf(q *kg.Quad) (string, bool) {
	text, _, ok := textOf(q)
	return text, ok
}

// textOf returns the text of a statement, and false for one that is not searched.
func textOf(q *kg.Quad) (text string, language words.Language, ok bool) {
	if !mayHaveText(q) {
		return "", 0, false
	}
	switch {
	case kg.IsOwnGraph(q.Graph):
		text, language = partsText(q.Object.Value()), words.Untagged
	case q.Object.Lang() != "":
		text, language = q.Object.Value(), words.LanguageOf(q.Object.Lang())
	default:
		text, language = q.Object.Value(), words.Untagged
	}
	text = text[:min(len(text), MaxTextBytes)]
	return text, language, strings.TrimSpace(text) != ""
}

// partsText returns the texts of a message's parts and the strings in their data, each on
// a line.
func partsText(parts string) string {
	if text, ok := plainPartsText(parts); ok {
		return text
	}
	return decodedPartsText(parts)
}

// decodedPartsText is partsText for any parts.
func decodedPartsText(parts string) string {
	var list []struct {
		Text string
		Data json.RawMessage
	}
	if json.Unmarshal([]byte(parts), &list) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range list {
		appendLine(&b, p.Text)
		if p.Data != nil {
			var data any
			if json.Unmarshal(p.Data, &data) == nil {
				appendStrings(&b, data)
			}
		}
	}
	return b.String()
}

// plainPartsText is partsText for parts whose members are strings without escapes, as those of
// most messages are, in a fraction of the time. It reports false for others.
func plainPartsText(parts string) (string, bool) {
	inside, isList := strings.CutPrefix(parts, "[")
	var b strings.Builder
	for more := isList; more; {
		if inside, more = strings.CutPrefix(inside, "{"); !more {
			return "", false
		}
		text, found := "", false
		for isEnd := false; !isEnd; {
			var name, value string
			var ok bool
			if name, inside, ok = cutPlainString(inside); !ok {
				return "", false
			}
			if inside, ok = strings.CutPrefix(inside, ":"); !ok {
				return "", false
			}
			if value, inside, ok = cutPlainString(strings.TrimPrefix(inside, " ")); !ok {
				return "", false
			}
			switch {
			case name == "text" && !found:
				text, found = value, true
			case strings.EqualFold(name, "text") || strings.EqualFold(name, "data"):
				return "", false
			}
			if isEnd = strings.HasPrefix(inside, "}"); !isEnd && !strings.HasPrefix(inside, ",") {
				return "", false
			}
			if inside = inside[1:]; !isEnd {
				inside = strings.TrimPrefix(inside, " ")
			}
		}
		appendLine(&b, text)
		inside, more = strings.CutPrefix(inside, ",")
	}
	return b.String(), inside == "]"
}

// cutPlainString returns the content of the JSON string that a text begins with, and the rest. It
// reports false if there is none, or one that has another content than its bytes.
func cutPlainString(text string) (content, rest string, ok bool) {
	if text == "" || text[0] != '"' {
		return "", "", false
	}
	isASCII := true
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			content = text[1:i]
			return content, text[i+1:], isASCII || utf8.ValidString(content)
		case c == '\\' || c < ' ':
			return "", "", false
		case c >= utf8.RuneSelf:
			isASCII = false
		}
	}
	return "", "", false
}

func appendLine(b *strings.Builder, text string) {
	if text != "" {
		b.WriteString(text)
		b.WriteByte('\n')
	}
}

// appendStrings appends the strings in a JSON value, in the order of their names.
func appendStrings(b *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		appendLine(b, v)
	case []any:
		for _, e := range v {
			appendStrings(b, e)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			appendStrings(b, v[name])
		}
	}
}

// subjectOf returns a subject of the index. Its order follows from its name alone.
func subjectOf(t kg.Term, id kg.ID) textindex.Subject {
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.String()))
	return textindex.Subject{Order: uint64(h.Sum32()), ID: id}
}

// newText returns the text of a statement for the index, without its ids, and false if the
// statement is not searched.
func newText(q *kg.Quad) (textindex.Text, bool) {
	text, language, ok := textOf(q)
	return textindex.Text{Language: language, Value: text}, ok
}

// identify sets the ids of a text.
func identify(t *textindex.Text, subject kg.Term, ids kg.IDQuad) {
	t.Subject = subjectOf(subject, ids.Subject)
	t.Ref = textindex.Ref{Graph: ids.Graph, Predicate: ids.Predicate, Object: ids.Object}
}
