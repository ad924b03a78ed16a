package assertions

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"koine/internal/extsort"
	"koine/kg"
)

// DocumentOptions configures a Document.
type DocumentOptions struct {
	// HasGraphs reports whether the document's format supports named graphs. If not,
	// only a description's ka:graph determines the graph of its statement.
	HasGraphs bool
	// Dir is the directory for temporary files; "" means the system's.
	Dir string
	// SortBytes bounds the memory of each of three sorters; 0 means
	// extsort.DefaultBytes.
	SortBytes int
}

// Document joins the statements of a document with the descriptions of their assertions.
// They may come in any order; memory is bounded by spilling to temporary files. A Document
// belongs to one goroutine. Close must be called.
type Document struct {
	ctx        context.Context
	options    DocumentOptions
	nodes      *extsort.Sorter // possible parts of descriptions, by subject
	statements *extsort.Sorter // statements and their assertions, by statement
	unasserted uint64
	buf        []byte
}

// NewDocument returns an empty document.
func NewDocument(ctx context.Context, o DocumentOptions) *Document {
	d := &Document{ctx: ctx, options: o}
	d.nodes, d.statements = d.newSorter(), d.newSorter()
	return d
}

func (d *Document) newSorter() *extsort.Sorter {
	return extsort.New(d.ctx, extsort.Options{Dir: d.options.Dir, Bytes: d.options.SortBytes})
}

// Close releases memory and temporary files.
func (d *Document) Close() error { return errors.Join(d.nodes.Close(), d.statements.Close()) }

// Unasserted returns the number of descriptions of statements that the document does not
// contain. To describe a statement is not to assert it, so Statements omits them. The
// number is final when Statements has ended.
func (d *Document) Unasserted() uint64 { return d.unasserted }

// Add adds a quad of the document.
func (d *Document) Add(q kg.Quad) error {
	if q.Graph.IsZero() {
		q.Graph = kg.DefaultGraph
	}
	if !isDescriptive(&q) {
		return d.addData(&q)
	}
	d.buf = appendTerm(d.buf[:0], q.Subject)
	d.buf = appendTerm(d.buf, q.Graph)
	d.buf = appendTerm(d.buf, q.Predicate)
	d.buf = appendTerm(d.buf, q.Object)
	return d.nodes.Add(d.buf)
}

// A record of statements is subject, predicate and object, followed by one of these tags.
// Records of one statement are thus adjacent, the statement before its assertions.
const (
	inAnyGraph = 0 // statement in a format without graphs; its graph follows
	inGraph    = 1 // the graph follows, then one of:

	isStatement = 0 // the statement
	isClaim     = 1 // an assertion, which follows
)

func (d *Document) addData(q *kg.Quad) error {
	d.buf = appendTriple(d.buf[:0], q)
	if d.options.HasGraphs {
		d.buf = append(appendTerm(append(d.buf, inGraph), q.Graph), isStatement)
	} else {
		d.buf = appendTerm(append(d.buf, inAnyGraph), q.Graph)
	}
	return d.statements.Add(d.buf)
}

func appendTriple(dst []byte, q *kg.Quad) []byte {
	return appendTerm(appendTerm(appendTerm(dst, q.Subject), q.Predicate), q.Object)
}

// AddAll adds all quads of a document.
func (d *Document) AddAll(quads iter.Seq2[kg.Quad, error]) error {
	for q, err := range quads {
		if err == nil {
			err = d.Add(q)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Statements yields the document's statements with their assertions, ordered by subject,
// predicate, object and graph. It must be called once, after the last Add. An error ends
// the sequence.
func (d *Document) Statements() iter.Seq2[Statement, error] {
	return func(yield func(Statement, error) bool) {
		if err := d.classifyNodes(); err != nil {
			yield(Statement{}, err)
			return
		}
		d.joinStatements(yield)
	}
}

// classifyNodes classifies the nodes: descriptions become assertions of their statements, all
// others are data.
func (d *Document) classifyNodes() error {
	described, err := d.describedSubjects()
	if err != nil {
		return err
	}
	defer described.Close()
	next, stop := iter.Pull2(described.Sorted())
	defer stop()
	data, err, more := next()
	for n, nodeErr := range d.eachNode() {
		if err = errors.Join(err, nodeErr); err != nil {
			return err
		}
		key := appendTerm(nil, n.subject)
		for more && err == nil && bytes.Compare(data, key) < 0 {
			data, err, more = next()
		}
		if err == nil {
			err = d.addNode(n, more && bytes.Equal(data, key))
		}
		if err != nil {
			return err
		}
	}
	return err
}

// describedSubjects returns the sorted subjects of described statements that could be parts of a
// description: these subjects are data.
func (d *Document) describedSubjects() (*extsort.Sorter, error) {
	out := d.newSorter()
	for n, err := range d.eachNode() {
		if err == nil && n.isAssertion() {
			if q, _, bad := n.decodeAssertion(); bad == nil && isDescriptive(&q) {
				err = out.Add(appendTerm(nil, q.Subject))
			}
		}
		if err != nil {
			out.Close()
			return nil, err
		}
	}
	return out, nil
}

func (d *Document) addNode(n *node, data bool) error {
	switch {
	case !data && n.statesVersion():
		return n.checkVersion()
	case data || !n.isAssertion():
		for i := range n.quads {
			if err := d.addData(&n.quads[i]); err != nil {
				return err
			}
		}
		return nil
	}
	q, a, err := n.decodeAssertion()
	if err != nil {
		return err
	}
	d.buf = appendTriple(d.buf[:0], &q)
	d.buf = append(appendTerm(append(d.buf, inGraph), q.Graph), isClaim)
	d.buf = appendAssertion(d.buf, &a)
	return d.statements.Add(d.buf)
}

// eachNode yields the possible descriptions, ordered by subject; a node with many statements
// comes in parts.
func (d *Document) eachNode() iter.Seq2[*node, error] {
	return func(yield func(*node, error) bool) {
		n := new(node)
		for row, err := range d.nodes.Sorted() {
			r := record{rest: row}
			var q kg.Quad
			if err == nil {
				q.Subject, q.Graph, q.Predicate, q.Object = r.readTerm(), r.readTerm(), r.readTerm(), r.readTerm()
				err = r.err
			}
			if err != nil {
				yield(nil, err)
				return
			}
			same := len(n.quads) > 0 && q.Subject == n.subject && q.Graph == n.quads[0].Graph
			if same && q == n.quads[len(n.quads)-1] {
				continue
			}
			if full := len(n.quads) == maxNodeStatements; len(n.quads) > 0 && (!same || full) {
				n.more = n.more || same
				if !yield(n, nil) {
					return
				}
				n = &node{more: same}
			}
			n.subject = q.Subject
			n.quads = append(n.quads, q)
		}
		if len(n.quads) > 0 {
			yield(n, nil)
		}
	}
}

// Assertion is an assertion with the justification of its commit.
type Assertion struct {
	kg.Assertion
	Justification string
}

// Equal reports whether two assertions are equal except for the revision, which is specific
// to a store.
func (a *Assertion) Equal(b *Assertion) bool {
	return a.Source == b.Source && a.Time.Equal(b.Time) && a.SameContent(b.Assertion) && a.Justification == b.Justification
}

// Statement is a quad with its assertions. A document may have a statement without
// assertions.
type Statement struct {
	kg.Quad
	Assertions []Assertion
}
