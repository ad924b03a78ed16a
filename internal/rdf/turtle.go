package rdf

import (
	"errors"
	"io"
	"iter"

	"koine/kg"
)

// errStopped ends the parser when the consumer of the quads stops.
var errStopped = errors.New("rdf: stopped")

// readTurtle reads Turtle and TriG (RDF 1.1 Turtle, RDF 1.1 TriG).
func readTurtle(r io.Reader, f Format, o Options) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		t := &turtleParser{
			src:      newSource(r),
			graphs:   f.HasGraphs(),
			outer:    o.Graph,
			graph:    o.Graph,
			base:     o.Base,
			prefixes: map[string]string{},
			declared: o.Prefix,
			options:  &o,
			iris:     newInterned(&o),
			blanks:   blankNodes{tag: o.Tag},
			yield:    yield,

			tokenBytes: o.TokenBytes(),
		}
		err := t.parseDocument()
		if broken := t.src.readErr(); broken != nil && !errors.Is(err, errStopped) {
			err = broken
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(kg.Quad{}, o.errorAt(t.src.line, err))
		}
	}
}

// turtleParser is a recursive-descent parser for the Turtle and TriG grammars. Each
// method begins at its first character and ends after its last.
type turtleParser struct {
	src      *source
	graphs   bool    // TriG
	outer    kg.Term // graph of statements outside of graph blocks
	graph    kg.Term // current graph
	base     string
	declared func(name, namespace string) // called for each prefix; may be nil
	prefixes map[string]string
	options  *Options
	iris     *iriCache
	blanks   blankNodes
	token    []byte // current term
	plain    []byte // current term without escapes
	// tokenBytes is the largest length of token.
	tokenBytes int
	yield      func(kg.Quad, error) bool
}

func (t *turtleParser) parseDocument() error {
	for {
		t.src.skipSpace()
		if t.src.isAtEnd() {
			return nil
		}
		if err := t.parseStatement(); err != nil {
			return err
		}
	}
}

// parseStatement parses a directive, a graph block or triples.
func (t *turtleParser) parseStatement() error {
	switch {
	case t.src.peek() == '@':
		return t.atDirective()
	case t.consumeKeyword("PREFIX"):
		return t.parsePrefix()
	case t.consumeKeyword("BASE"):
		return t.setBase()
	case t.graphs && t.consumeKeyword("GRAPH"):
		return t.namedBlock()
	case t.graphs && t.src.peek() == '{':
		return t.parseBlock(t.outer)
	}
	compound := t.src.peek() == '('
	subject, bracketed, err := t.parseSubject()
	if err != nil {
		return err
	}
	t.src.skipSpace()
	if t.graphs && t.src.peek() == '{' && !bracketed && !compound {
		return t.parseBlock(subject)
	}
	if err := t.parseRest(subject, bracketed); err != nil {
		return err
	}
	return t.expectByte('.', "the dot that ends a statement")
}

func (t *turtleParser) namedBlock() error {
	t.src.skipSpace()
	name, err := t.graphName()
	if err != nil {
		return err
	}
	t.src.skipSpace()
	if t.src.peek() != '{' {
		return t.errUnexpected("the { of a graph")
	}
	return t.parseBlock(name)
}

// graphName parses an IRI or a blank node ([7g]) without properties.
func (t *turtleParser) graphName() (kg.Term, error) {
	if t.src.peek() != '[' {
		return t.parseResource("the name of a graph")
	}
	name, filled, err := t.parseBrackets(1)
	if err == nil && filled {
		err = invalid("the brackets that name a graph are empty")
	}
	return name, err
}

// parseBlock parses the triples of one graph in braces (TriG grammar, [5g]).
func (t *turtleParser) parseBlock(graph kg.Term) error {
	t.src.skip(1)
	t.graph = graph
	defer func() { t.graph = t.outer }()
	for {
		t.src.skipSpace()
		if t.src.peek() == '}' {
			t.src.skip(1)
			return nil
		}
		subject, bracketed, err := t.parseSubject()
		if err != nil {
			return err
		}
		if err := t.parseRest(subject, bracketed); err != nil {
			return err
		}
		t.src.skipSpace()
		if t.src.peek() == '}' {
			continue // the last dot is optional
		}
		if err := t.expectByte('.', "the dot that ends a statement or the } of a graph"); err != nil {
			return err
		}
	}
}

// parseSubject also reports whether the subject is a bracketed node with properties,
// which can be a statement by itself and cannot name a graph.
func (t *turtleParser) parseSubject() (s kg.Term, bracketed bool, err error) {
	switch t.src.peek() {
	case '[':
		return t.parseBrackets(1)
	case '(':
		s, err = t.parseList(1)
		return s, false, err
	}
	s, err = t.parseResource("a subject")
	return s, false, err
}

// parseRest parses the properties of a subject. They are optional after a bracketed node
// with properties.
func (t *turtleParser) parseRest(subject kg.Term, bracketed bool) error {
	t.src.skipSpace()
	if c := t.src.peek(); bracketed && (c == '.' || c == '}') {
		return nil
	}
	return t.parsePredicates(subject, 1)
}

// parsePredicates parses a predicateObjectList ([7]).
func (t *turtleParser) parsePredicates(subject kg.Term, depth int) error {
	for {
		predicate, err := t.parseVerb()
		if err != nil {
			return err
		}
		if err := t.parseObjects(subject, predicate, depth); err != nil {
			return err
		}
		t.src.skipSpace()
		if t.src.peek() != ';' {
			return nil
		}
		for t.src.peek() == ';' {
			t.src.skip(1)
			t.src.skipSpace()
		}
		if c := t.src.peek(); c == '.' || c == ']' || c == '}' {
			return nil
		}
	}
}

// parseVerb parses a predicate; "a" stands for rdf:type.
func (t *turtleParser) parseVerb() (kg.Term, error) {
	if t.src.peek() == 'a' && !continuesName(t.src.peekAt(1)) {
		t.src.skip(1)
		return kg.IRI(kg.RDFType), nil
	}
	if t.src.peek() == '_' {
		return kg.Term{}, t.errUnexpected("a predicate, which is an IRI")
	}
	return t.parseResource("a predicate")
}

func (t *turtleParser) parseObjects(subject, predicate kg.Term, depth int) error {
	for {
		t.src.skipSpace()
		object, err := t.parseObject(depth)
		if err != nil {
			return err
		}
		if err := t.emitStatement(subject, predicate, object); err != nil {
			return err
		}
		t.src.skipSpace()
		if t.src.peek() != ',' {
			return nil
		}
		t.src.skip(1)
	}
}

func (t *turtleParser) emitStatement(s, p, o kg.Term) error {
	if t.src.isAtEnd() && t.src.readErr() != nil {
		return t.src.readErr() // the last term may be incomplete
	}
	if !t.yield(kg.Quad{Subject: s, Predicate: p, Object: o, Graph: t.graph}, nil) {
		return errStopped
	}
	return nil
}

// parseBrackets parses a blank node in brackets ([14]); filled reports whether it has properties.
func (t *turtleParser) parseBrackets(depth int) (node kg.Term, filled bool, err error) {
	if depth > MaxDepth {
		return kg.Term{}, false, tooLong("brackets and lists are nested more than %d deep", MaxDepth)
	}
	t.src.skip(1)
	node = t.blanks.freshNode()
	t.src.skipSpace()
	if t.src.peek() != ']' {
		filled = true
		if err := t.parsePredicates(node, depth+1); err != nil {
			return kg.Term{}, false, err
		}
	}
	return node, filled, t.expectByte(']', "the ] of a blank node")
}

// parseList parses a collection ([15]) and emits the statements of its cells.
func (t *turtleParser) parseList(depth int) (kg.Term, error) {
	if depth > MaxDepth {
		return kg.Term{}, tooLong("brackets and lists are nested more than %d deep", MaxDepth)
	}
	t.src.skip(1)
	var head, cell kg.Term
	for {
		t.src.skipSpace()
		if t.src.peek() == ')' {
			t.src.skip(1)
			break
		}
		item, err := t.parseObject(depth + 1)
		if err != nil {
			return kg.Term{}, err
		}
		next := t.blanks.freshNode()
		if head.IsZero() {
			head = next
		} else if err := t.emitStatement(cell, rdfRest, next); err != nil {
			return kg.Term{}, err
		}
		cell = next
		if err := t.emitStatement(cell, rdfFirst, item); err != nil {
			return kg.Term{}, err
		}
	}
	if head.IsZero() {
		return rdfNil, nil
	}
	return head, t.emitStatement(cell, rdfRest, rdfNil)
}

var (
	rdfFirst = kg.IRI(kg.RDF + "first")
	rdfRest  = kg.IRI(kg.RDF + "rest")
	rdfNil   = kg.IRI(kg.RDF + "nil")
)
