package rdf

import (
	"bytes"
	"unicode/utf8"

	"koine/kg"
)

// lineParser parses one statement of N-Triples or N-Quads at a time.
type lineParser struct {
	graphs  bool
	options *Options
	graph   kg.Term // for statements without a graph
	iris    *iriCache
	blanks  blankNodes
	scratch []byte

	line []byte
	pos  int
}

func newLineParser(f Format, o Options) *lineParser {
	return &lineParser{graphs: f.HasGraphs(), options: &o, graph: o.Graph, iris: newInterned(&o), blanks: blankNodes{tag: o.Tag}}
}

// parse returns the line's statement; ok is false for an empty line or a comment.
func (p *lineParser) parse(line []byte) (q kg.Quad, ok bool, err error) {
	p.line, p.pos = bytes.TrimSuffix(line, []byte{'\r'}), 0
	p.skipSpace()
	if p.isAtEnd() {
		return kg.Quad{}, false, nil
	}
	if q.Subject, err = p.parseResource("a subject"); err != nil {
		return kg.Quad{}, false, err
	}
	p.skipSpace()
	if p.peek() != '<' {
		return kg.Quad{}, false, p.errUnexpected("a predicate, which is an IRI in <>")
	}
	if q.Predicate, err = p.parseIRI(); err != nil {
		return kg.Quad{}, false, err
	}
	p.skipSpace()
	if p.peek() == '"' {
		q.Object, err = p.parseLiteral()
	} else {
		q.Object, err = p.parseResource("an object")
	}
	if err != nil {
		return kg.Quad{}, false, err
	}
	p.skipSpace()
	q.Graph = p.graph
	if c := p.peek(); c != '.' {
		if q.Graph, err = p.graphName(c); err != nil {
			return kg.Quad{}, false, err
		}
		p.skipSpace()
	}
	return q, true, p.parseEnd()
}

func (p *lineParser) graphName(c byte) (kg.Term, error) {
	switch {
	case !p.graphs:
		return kg.Term{}, p.errUnexpected("the dot that ends a statement")
	case c == '<':
		return p.parseIRI()
	case c == '_':
		return p.parseBlank()
	}
	return kg.Term{}, p.errUnexpected("a graph's name or the dot that ends a statement")
}

func (p *lineParser) parseEnd() error {
	if p.peek() != '.' {
		return p.errUnexpected("the dot that ends a statement")
	}
	p.pos++
	p.skipSpace()
	if !p.isAtEnd() {
		return p.errUnexpected("the end of the line")
	}
	return nil
}

// parseResource parses an IRI or a blank node.
func (p *lineParser) parseResource(what string) (kg.Term, error) {
	switch p.peek() {
	case '<':
		return p.parseIRI()
	case '_':
		return p.parseBlank()
	}
	return kg.Term{}, p.errUnexpected(what)
}

func (p *lineParser) parseIRI() (kg.Term, error) {
	rest := p.line[p.pos+1:]
	n := bytes.IndexByte(rest, '>')
	if n < 0 {
		return kg.Term{}, invalid("an IRI is not terminated: %s", excerpt(p.line[p.pos:]))
	}
	text := rest[:n]
	p.pos += n + 2
	if bytes.IndexByte(text, '\\') >= 0 {
		plain, err := unescape(p.scratch[:0], text, true)
		if err != nil {
			return kg.Term{}, err
		}
		p.scratch, text = plain, plain
	}
	return p.iris.lookUpIRI(text)
}

func (p *lineParser) parseBlank() (kg.Term, error) {
	if p.pos+1 >= len(p.line) || p.line[p.pos+1] != ':' {
		return kg.Term{}, p.errUnexpected("a blank node, as _:label")
	}
	start := p.pos + 2
	end := start
	for end < len(p.line) && (labelByte[p.line[end]] || p.line[end] == '.') {
		end++
	}
	for end > start && p.line[end-1] == '.' {
		end-- // the statement's dot
	}
	p.pos = end
	label := p.line[start:end]
	if !validLabel(label) {
		return kg.Term{}, invalid("%s is not a blank node label", excerpt(label))
	}
	return p.blanks.namedNode(label), nil
}

func (p *lineParser) parseLiteral() (kg.Term, error) {
	text, escaped, err := p.parseQuoted()
	if err != nil {
		return kg.Term{}, err
	}
	if escaped {
		plain, err := unescape(p.scratch[:0], text, false)
		if err != nil {
			return kg.Term{}, err
		}
		p.scratch, text = plain, plain
	}
	lexical := string(text)
	switch p.peek() {
	case '@':
		start := p.pos + 1
		for p.pos++; p.pos < len(p.line) && (isAlnum(p.line[p.pos]) || p.line[p.pos] == '-'); {
			p.pos++
		}
		if start == p.pos {
			return kg.Term{}, p.errUnexpected("a language tag")
		}
		return p.options.checkedLiteral(lexical, string(p.line[start:p.pos]), kg.Term{})
	case '^':
		if !bytes.HasPrefix(p.line[p.pos:], []byte("^^<")) {
			return kg.Term{}, p.errUnexpected("a datatype, as ^^<IRI>")
		}
		p.pos += 2
		datatype, err := p.parseIRI()
		if err != nil {
			return kg.Term{}, err
		}
		return p.options.checkedLiteral(lexical, "", datatype)
	}
	return p.options.checkedLiteral(lexical, "", kg.Term{})
}

// parseQuoted returns the text between the quotes, with its escapes.
func (p *lineParser) parseQuoted() (text []byte, escaped bool, err error) {
	start := p.pos + 1
	at := start
	for {
		n := bytes.IndexByte(p.line[at:], '"')
		if n < 0 {
			return nil, false, invalid("a literal is not terminated: %s", excerpt(p.line[p.pos:]))
		}
		at += n
		if p.line[at-1] == '\\' && oddBackslashes(p.line[start:at]) {
			at++
			continue
		}
		text = p.line[start:at]
		p.pos = at + 1
		if bytes.IndexByte(text, '\r') >= 0 {
			return nil, false, invalid("a line break in a literal must be written \\r or \\n")
		}
		return text, bytes.IndexByte(text, '\\') >= 0, nil
	}
}

// oddBackslashes reports whether the last byte is an unescaped backslash.
func oddBackslashes(text []byte) bool {
	n := 0
	for n < len(text) && text[len(text)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

func (p *lineParser) skipSpace() {
	for p.pos < len(p.line) && (p.line[p.pos] == ' ' || p.line[p.pos] == '\t') {
		p.pos++
	}
}

// peek returns the next byte, 0 at the end of the line.
func (p *lineParser) peek() byte {
	if p.pos < len(p.line) {
		return p.line[p.pos]
	}
	return 0
}

func (p *lineParser) isAtEnd() bool {
	return p.pos == len(p.line) || p.line[p.pos] == '#'
}

func (p *lineParser) errUnexpected(wanted string) error {
	if p.pos >= len(p.line) {
		return invalid("unexpected end of the line, expected %s", wanted)
	}
	if rest := p.line[p.pos:]; utf8.Valid(rest) {
		return invalid("found %s, expected %s", excerpt(rest), wanted)
	}
	return invalid("invalid UTF-8, expected %s", wanted)
}
