package rdf

import (
	"bufio"
	"strings"

	"koine/kg"
)

// turtleWriter writes Turtle and TriG. It compares each quad with the last one and writes the difference.
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

func (t *turtleWriter) quad(out *bufio.Writer, q kg.Quad) error {
	b := t.buf[:0]
	if !t.started {
		b = t.header(b)
	}
	if !t.graphs || !q.Graph.IsResource() {
		q.Graph = kg.DefaultGraph
	}
	same := t.open && q.Graph == t.last.Graph && q.Subject == t.last.Subject
	switch {
	case same && q.Predicate == t.last.Predicate:
		b = append(b, ", "...)
	case same:
		b = t.predicate(append(b, ";\n"...), q)
	default:
		b = t.subject(b, q)
	}
	b = append(t.term(b, q.Object), ' ')
	t.last, t.open, t.started, t.buf = q, true, true, b
	_, err := out.Write(b)
	return err
}

// subject ends the previous statement and begins one about another subject, in another graph block if necessary.
func (t *turtleWriter) subject(b []byte, q kg.Quad) []byte {
	b = t.dot(b)
	if t.last.Graph != q.Graph {
		b = t.brace(b)
		if q.Graph != kg.DefaultGraph {
			b = append(t.term(append(b, '\n'), q.Graph), " {\n"...)
		}
	}
	b = append(b, t.indent(q)...)
	b = append(t.term(b, q.Subject), ' ')
	return t.verb(b, q.Predicate)
}

func (t *turtleWriter) predicate(b []byte, q kg.Quad) []byte {
	b = append(append(b, t.indent(q)...), "    "...)
	return t.verb(b, q.Predicate)
}

func (t *turtleWriter) verb(b []byte, p kg.Term) []byte {
	if p.Value() == kg.RDFType {
		return append(b, "a "...)
	}
	return append(t.term(b, p), ' ')
}

func (t *turtleWriter) indent(q kg.Quad) string {
	if q.Graph == kg.DefaultGraph {
		return ""
	}
	return "  "
}

func (t *turtleWriter) dot(b []byte) []byte {
	if t.open {
		b = append(b, ".\n"...)
	}
	return b
}

func (t *turtleWriter) brace(b []byte) []byte {
	if t.last.Graph.IsResource() {
		b = append(b, "}\n"...)
	}
	return b
}

func (t *turtleWriter) end(out *bufio.Writer) error {
	b := t.buf[:0]
	if !t.started {
		b = t.header(b)
	}
	_, err := out.Write(t.brace(t.dot(b)))
	return err
}

func (t *turtleWriter) header(b []byte) []byte {
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

// term appends a term in Turtle syntax, as short as possible.
func (t *turtleWriter) term(b []byte, term kg.Term) []byte {
	switch term.Kind() {
	case kg.KindIRI:
		return t.iri(b, term.Value())
	case kg.KindLiteral:
		return t.literal(b, term)
	}
	return appendTerm(b, term)
}

func (t *turtleWriter) iri(b []byte, iri string) []byte {
	if t.prefixes != nil {
		short := t.prefixes.Shorten(iri)
		name, local, ok := strings.Cut(short, ":")
		if ok && short != iri && t.usable[name] && plainName(local) {
			return append(b, short...)
		}
	}
	return appendIRI(b, iri)
}

func (t *turtleWriter) literal(b []byte, l kg.Term) []byte {
	switch d := l.Datatype(); {
	case d == kg.XSDBoolean && (l.Value() == "true" || l.Value() == "false"),
		d == kg.XSDInteger && plainInteger(l.Value()):
		return append(b, l.Value()...)
	case d != kg.XSDString && l.Lang() == "":
		return t.iri(append(appendQuoted(b, l.Value()), "^^"...), d)
	}
	return appendTerm(b, l)
}

func plainInteger(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// plainName reports whether a prefix or local name needs no escape: it has ASCII letters and digits, "_", and "-" except
// at the beginning.
func plainName(s string) bool {
	return s != "" && s[0] != '-' && strings.IndexFunc(s, func(r rune) bool {
		return r >= 0x80 || !isAlnum(byte(r)) && r != '_' && r != '-'
	}) < 0
}
