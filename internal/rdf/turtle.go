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
		err := t.document()
		if broken := t.src.broken(); broken != nil && !errors.Is(err, errStopped) {
			err = broken
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(kg.Quad{}, o.failure(t.src.line, err))
		}
	}
}

// turtleParser is a recursive-descent parser for the Turtle and TriG grammars. Each method begins at its first
// character and ends behind its last.
type turtleParser struct {
	src      *source
	graphs   bool    // TriG
	outer    kg.Term // graph of statements outside of graph blocks
	graph    kg.Term // current graph
	base     string
	declared func(name, namespace string) // called for each prefix; may be nil
	prefixes map[string]string
	options  *Options
	iris     *interned
	blanks   blankNodes
	token    []byte // current term
	plain    []byte // current term without escapes
	// tokenBytes is the largest length of token.
	tokenBytes int
	yield      func(kg.Quad, error) bool
}

func (t *turtleParser) document() error {
	for {
		t.src.space()
		if t.src.ended() {
			return nil
		}
		if err := t.statement(); err != nil {
			return err
		}
	}
}

// statement parses a directive, a graph block or triples.
func (t *turtleParser) statement() error {
	switch {
	case t.src.peek() == '@':
		return t.atDirective()
	case t.keyword("PREFIX"):
		return t.prefix()
	case t.keyword("BASE"):
		return t.setBase()
	case t.graphs && t.keyword("GRAPH"):
		return t.namedBlock()
	case t.graphs && t.src.peek() == '{':
		return t.block(t.outer)
	}
	compound := t.src.peek() == '('
	subject, bracketed, err := t.subject()
	if err != nil {
		return err
	}
	t.src.space()
	if t.graphs && t.src.peek() == '{' && !bracketed && !compound {
		return t.block(subject)
	}
	if err := t.rest(subject, bracketed); err != nil {
		return err
	}
	return t.expect('.', "the dot that ends a statement")
}

func (t *turtleParser) namedBlock() error {
	t.src.space()
	name, err := t.graphName()
	if err != nil {
		return err
	}
	t.src.space()
	if t.src.peek() != '{' {
		return t.unexpected("the { of a graph")
	}
	return t.block(name)
}

// graphName parses an IRI or a blank node ([7g]) without properties.
func (t *turtleParser) graphName() (kg.Term, error) {
	if t.src.peek() != '[' {
		return t.resource("the name of a graph")
	}
	name, filled, err := t.brackets(1)
	if err == nil && filled {
		err = invalid("the brackets that name a graph are empty")
	}
	return name, err
}

// block parses the triples of one graph in braces (TriG grammar, [5g]).
func (t *turtleParser) block(graph kg.Term) error {
	t.src.skip(1)
	t.graph = graph
	defer func() { t.graph = t.outer }()
	for {
		t.src.space()
		if t.src.peek() == '}' {
			t.src.skip(1)
			return nil
		}
		subject, bracketed, err := t.subject()
		if err != nil {
			return err
		}
		if err := t.rest(subject, bracketed); err != nil {
			return err
		}
		t.src.space()
		if t.src.peek() == '}' {
			continue // the last dot is optional
		}
		if err := t.expect('.', "the dot that ends a statement or the } of a graph"); err != nil {
			return err
		}
	}
}

// subject also reports whether the subject is a bracketed node with properties, which can be a statement by itself
// and cannot name a graph.
func (t *turtleParser) subject() (s kg.Term, bracketed bool, err error) {
	switch t.src.peek() {
	case '[':
		return t.brackets(1)
	case '(':
		s, err = t.list(1)
		return s, false, err
	}
	s, err = t.resource("a subject")
	return s, false, err
}

// rest parses the properties of a subject. They are optional behind a bracketed node with properties.
func (t *turtleParser) rest(subject kg.Term, bracketed bool) error {
	t.src.space()
	if c := t.src.peek(); bracketed && (c == '.' || c == '}') {
		return nil
	}
	return t.predicates(subject, 1)
}

// predicates parses a predicateObjectList ([7]).
func (t *turtleParser) predicates(subject kg.Term, depth int) error {
	for {
		predicate, err := t.verb()
		if err != nil {
			return err
		}
		if err := t.objects(subject, predicate, depth); err != nil {
			return err
		}
		t.src.space()
		if t.src.peek() != ';' {
			return nil
		}
		for t.src.peek() == ';' {
			t.src.skip(1)
			t.src.space()
		}
		if c := t.src.peek(); c == '.' || c == ']' || c == '}' {
			return nil
		}
	}
}

// verb parses a predicate; "a" stands for rdf:type.
func (t *turtleParser) verb() (kg.Term, error) {
	if t.src.peek() == 'a' && !continuesName(t.src.peekAt(1)) {
		t.src.skip(1)
		return kg.IRI(kg.RDFType), nil
	}
	if t.src.peek() == '_' {
		return kg.Term{}, t.unexpected("a predicate, which is an IRI")
	}
	return t.resource("a predicate")
}

func (t *turtleParser) objects(subject, predicate kg.Term, depth int) error {
	for {
		t.src.space()
		object, err := t.object(depth)
		if err != nil {
			return err
		}
		if err := t.emit(subject, predicate, object); err != nil {
			return err
		}
		t.src.space()
		if t.src.peek() != ',' {
			return nil
		}
		t.src.skip(1)
	}
}

func (t *turtleParser) emit(s, p, o kg.Term) error {
	if t.src.ended() && t.src.broken() != nil {
		return t.src.broken() // the last term may be incomplete
	}
	if !t.yield(kg.Quad{Subject: s, Predicate: p, Object: o, Graph: t.graph}, nil) {
		return errStopped
	}
	return nil
}

// brackets parses a blank node in brackets ([14]); filled reports whether it has properties.
func (t *turtleParser) brackets(depth int) (node kg.Term, filled bool, err error) {
	if depth > MaxDepth {
		return kg.Term{}, false, tooLong("brackets and lists are nested more than %d deep", MaxDepth)
	}
	t.src.skip(1)
	node = t.blanks.fresh()
	t.src.space()
	if t.src.peek() != ']' {
		filled = true
		if err := t.predicates(node, depth+1); err != nil {
			return kg.Term{}, false, err
		}
	}
	return node, filled, t.expect(']', "the ] of a blank node")
}

// list parses a collection ([15]) and emits the statements of its cells.
func (t *turtleParser) list(depth int) (kg.Term, error) {
	if depth > MaxDepth {
		return kg.Term{}, tooLong("brackets and lists are nested more than %d deep", MaxDepth)
	}
	t.src.skip(1)
	var head, cell kg.Term
	for {
		t.src.space()
		if t.src.peek() == ')' {
			t.src.skip(1)
			break
		}
		item, err := t.object(depth + 1)
		if err != nil {
			return kg.Term{}, err
		}
		next := t.blanks.fresh()
		if head.IsZero() {
			head = next
		} else if err := t.emit(cell, rdfRest, next); err != nil {
			return kg.Term{}, err
		}
		cell = next
		if err := t.emit(cell, rdfFirst, item); err != nil {
			return kg.Term{}, err
		}
	}
	if head.IsZero() {
		return rdfNil, nil
	}
	return head, t.emit(cell, rdfRest, rdfNil)
}

var (
	rdfFirst = kg.IRI(kg.RDF + "first")
	rdfRest  = kg.IRI(kg.RDF + "rest")
	rdfNil   = kg.IRI(kg.RDF + "nil")
)
