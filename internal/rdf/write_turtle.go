package rdf

import (
	"bufio"
	"strings"

	"koine/kg"
)

// turtleWriter writes Turtle and TriG. It compares each quad with the last one and writes
// the difference.
type turtleWriter struct {
	graphs   bool
	prefixes *kg.Prefixes
	usable   map[string]bool // prefixes that Turtle can express
	last     kg.Quad
	open     bool // the last statement has no dot yet
	started  bool
	buf      []byte
}

func newTurtleWriter(graphs bool, prefixes *kg.Prefixes) *turtleWriter {
	t := &turtleWriter{graphs: graphs, prefixes: prefixes, usable: map[string]bool{}}
	if prefixes != nil {
		for _, p := range prefixes.All() {
			t.usable[p.Name] = plainName(p.Name) && !isDigit(p.Name[0])
		}
	}
	return t
}

func (t *turtleWriter) encodeQuad(out *bufio.Writer, q kg.Quad) error {
	b := t.buf[:0]
	if !t.started {
		b = t.appendHeader(b)
	}
	if !t.graphs || !q.Graph.IsResource() {
		q.Graph = kg.DefaultGraph
	}
	same := t.open && q.Graph == t.last.Graph && q.Subject == t.last.Subject
	switch {
	case same && q.Predicate == t.last.Predicate:
		b = append(b, ", "...)
	case same:
		b = t.appendPredicate(append(b, ";\n"...), q)
	default:
		b = t.appendSubject(b, q)
	}
	b = append(t.appendTerm(b, q.Object), ' ')
	t.last, t.open, t.started, t.buf = q, true, true, b
	_, err := out.Write(b)
	return err
}

// appendSubject ends the previous statement and begins one about another subject, in
// another graph block if necessary.
func (t *turtleWriter) appendSubject(b []byte, q kg.Quad) []byte {
	b = t.appendDot(b)
	if t.last.Graph != q.Graph {
		b = t.appendBrace(b)
		if q.Graph != kg.DefaultGraph {
			b = append(t.appendTerm(append(b, '\n'), q.Graph), " {\n"...)
		}
	}
	b = append(b, t.indent(q)...)
	b = append(t.appendTerm(b, q.Subject), ' ')
	return t.appendVerb(b, q.Predicate)
}

func (t *turtleWriter) appendPredicate(b []byte, q kg.Quad) []byte {
	b = append(append(b, t.indent(q)...), "    "...)
	return t.appendVerb(b, q.Predicate)
}

func (t *turtleWriter) appendVerb(b []byte, p kg.Term) []byte {
	if p.Value() == kg.RDFType {
		return append(b, "a "...)
	}
	return append(t.appendTerm(b, p), ' ')
}

func (t *turtleWriter) indent(q kg.Quad) string {
	if q.Graph == kg.DefaultGraph {
		return ""
	}
	return "  "
}

func (t *turtleWriter) appendDot(b []byte) []byte {
	if t.open {
		b = append(b, ".\n"...)
	}
	return b
}

func (t *turtleWriter) appendBrace(b []byte) []byte {
	if t.last.Graph.IsResource() {
		b = append(b, "}\n"...)
	}
	return b
}

func (t *turtleWriter) encodeEnd(out *bufio.Writer) error {
	b := t.buf[:0]
	if !t.started {
		b = t.appendHeader(b)
	}
	_, err := out.Write(t.appendBrace(t.appendDot(b)))
	return err
}

func (t *turtleWriter) appendHeader(b []byte) []byte {
	if t.prefixes == nil {
		return b
	}
	for _, p := range t.prefixes.All() {
		if t.usable[p.Name] {
			b = append(append(append(b, "@prefix "...), p.Name...), ": "...)
			b = append(appendIRI(b, p.Namespace), " .\n"...)
		}
	}
	return append(b, '\n')
}

// appendTerm appends a term in Turtle syntax, as short as possible.
func (t *turtleWriter) appendTerm(b []byte, term kg.Term) []byte {
	switch term.Kind() {
	case kg.KindIRI:
		return t.appendIRI(b, term.Value())
	case kg.KindLiteral:
		return t.appendLiteral(b, term)
	}
	return appendTerm(b, term)
}

func (t *turtleWriter) appendIRI(b []byte, iri string) []byte {
	if t.prefixes != nil {
		short := t.prefixes.Shorten(iri)
		name, local, ok := strings.Cut(short, ":")
		if ok && short != iri && t.usable[name] && plainName(local) {
			return append(b, short...)
		}
	}
	return appendIRI(b, iri)
}

func (t *turtleWriter) appendLiteral(b []byte, l kg.Term) []byte {
	switch d := l.Datatype(); {
	case d == kg.XSDBoolean && (l.Value() == "true" || l.Value() == "false"),
		d == kg.XSDInteger && plainInteger(l.Value()):
		return append(b, l.Value()...)
	case d != kg.XSDString && l.Lang() == "":
		return t.appendIRI(append(appendQuoted(b, l.Value()), "^^"...), d)
	}
	return appendTerm(b, l)
}

func plainInteger(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// plainName reports whether a prefix or local name needs no escape: it has ASCII letters
// and digits, "_", and "-" except at the beginning.
func plainName(s string) bool {
	return s != "" && s[0] != '-' && strings.IndexFunc(s, func(r rune) bool {
		return r >= 0x80 || !isAlnum(byte(r)) && r != '_' && r != '-'
	}) < 0
}
