package compact

import (
	"encoding/json"
	"strings"
	"unicode"

	"koine/internal/plainjson"
	"koine/kg"
)

// appendTerm appends a term as ReadTerm reads it.
func (w *writer) appendTerm(b []byte, t kg.Term) []byte {
	switch {
	case t.IsLiteral():
		return appendLiteral(b, w.prefixes, t)
	case t.Kind() == kg.KindBlank:
		return append(b, t.Name()...)
	}
	iri := t.Value()
	if short := w.prefixes.Shorten(iri); short != iri && isBare(short) {
		return append(b, short...)
	}
	if namespace, local := splitNamespace(iri); local != "" && w.own[namespace] != "" {
		return append(append(append(b, w.own[namespace]...), ':'), local...)
	}
	return append(append(append(b, '<'), iri...), '>')
}

// isBare reports whether a name can stand without brackets or quotes.
func isBare(name string) bool {
	for _, r := range name {
		if !isBareRune(r) {
			return false
		}
	}
	return name != "" && !strings.HasSuffix(name, ".")
}

func isBareRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.:/%~+#?=&@", r)
}

// appendLiteral appends a literal: bare if its bare form is read as the same literal.
func appendLiteral(b []byte, p *kg.Prefixes, t kg.Term) []byte {
	if t.ExplicitDatatype() != "" && isBare(t.Value()) {
		if u, ok := bareLiteral(t.Value()); ok && u == t {
			return append(b, t.Value()...)
		}
	}
	b = append(b, quoteText(t.Value())...)
	switch {
	case t.Lang() != "":
		return append(append(b, '@'), t.Lang()...)
	case t.ExplicitDatatype() != "":
		b = append(b, "^^"...)
		if short := p.Shorten(t.Datatype()); short != t.Datatype() && isBare(short) {
			return append(b, short...)
		}
		return append(append(append(b, '<'), t.Datatype()...), '>')
	}
	return b
}

// bareLiteral returns the literal that a text without quotes stands for: a number, true or
// false, a date or a time.
func bareLiteral(text string) (kg.Term, bool) {
	if text == "true" || text == "false" {
		return kg.Boolean(text == "true"), true
	}
	if json.Valid([]byte(text)) {
		t, err := kg.LiteralFromJSON([]byte(text), "", "")
		return t, err == nil
	}
	for _, datatype := range []string{kg.XSDDate, kg.XSDDateTime} {
		if t := kg.Typed(text, datatype); t.FitsDatatype() {
			return t, true
		}
	}
	return kg.Term{}, false
}

// quoteText returns a string in quotes, with the escapes of JSON.
func quoteText(text string) string { return string(plainjson.MustEncode(text)) }

// labelEscapes are the characters of a label that are written with a backslash.
var labelEscapes = strings.NewReplacer(`\`, `\\`, `)`, `\)`, "\n", `\n`, "\r", `\r`)

// appendLabel appends a label in parentheses.
func appendLabel(b []byte, label string) []byte {
	b = append(b, '(')
	b = append(b, labelEscapes.Replace(label)...)
	return append(b, ')')
}
