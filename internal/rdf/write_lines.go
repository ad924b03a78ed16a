package rdf

import (
	"bufio"

	"koine/kg"
)

// lineWriter writes N-Triples and N-Quads.
type lineWriter struct {
	graphs bool
	line   []byte
}

func (l *lineWriter) encodeQuad(out *bufio.Writer, q kg.Quad) error {
	b := appendTerm(l.line[:0], q.Subject)
	b = appendTerm(append(b, ' '), q.Predicate)
	b = appendTerm(append(b, ' '), q.Object)
	if l.graphs && q.Graph.IsResource() {
		b = appendTerm(append(b, ' '), q.Graph)
	}
	l.line = append(b, " .\n"...)
	_, err := out.Write(l.line)
	return err
}

func (l *lineWriter) encodeEnd(*bufio.Writer) error { return nil }

// appendTerm appends a term in N-Triples syntax.
func appendTerm(b []byte, t kg.Term) []byte {
	switch t.Kind() {
	case kg.KindIRI:
		return appendIRI(b, t.Value())
	case kg.KindBlank:
		return append(append(b, "_:"...), t.Value()...)
	}
	b = appendQuoted(b, t.Value())
	if t.Lang() != "" {
		return append(append(b, '@'), t.Lang()...)
	}
	if d := t.Datatype(); d != kg.XSDString {
		return appendIRI(append(b, "^^"...), d)
	}
	return b
}

func appendIRI(b []byte, iri string) []byte {
	return append(append(append(b, '<'), iri...), '>')
}

// appendQuoted appends the text of a string literal in quotes. It also escapes control
// characters, most of which the grammar allows, so that a document survives editors and
// terminals.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			const hex = "0123456789ABCDEF"
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, s[from:]...), '"')
}
