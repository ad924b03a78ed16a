package rdf

import (
	"context"
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"

	"koine/kg"
)

// readJSONLD reads a JSON-LD 1.1 document with the expansion and deserialization
// algorithms of the API specification, from JSON to quads without an intermediate tree.
func readJSONLD(ctx context.Context, r io.Reader, o Options) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		if o.JSONLD.MaxBytes == 0 {
			o.JSONLD.MaxBytes = DefaultJSONLDMaxBytes
		}
		s := newJSONScanner(ctx, r, int(o.JSONLD.MaxBytes))
		s.hold = func() error { return o.JSONLD.Holders.acquire(ctx) }
		s.release = o.JSONLD.Holders.release
		defer func() {
			if s.held {
				s.release()
			}
		}()
		p := &jsonldReader{ctx: ctx, o: o, s: s, yield: yield, blanks: &blankNodes{tag: o.Tag}, contexts: map[contextKey]*activeContext{}}
		if err := p.parseDocument(); err != nil && !errors.Is(err, errStopped) {
			yield(kg.Quad{}, p.readError(err))
		}
	}
}

// jsonldReader is the state of reading one document.
type jsonldReader struct {
	ctx      context.Context
	o        Options
	s        *jsonScanner
	yield    func(kg.Quad, error) bool
	blanks   *blankNodes
	contexts map[contextKey]*activeContext

	cachedContextBytes int
	cachedKeyBytes     int
	keyed              []*activeContext // those with cached keys
	joinedBytes        uint64           // see chargeIRI
	steps              uint64           // a measure of work
	quads              uint64
	rejected           uint64
	firstDropped       *SyntaxError // a key that maps to null
	current            val          // current value, for errors
	path               []string     // path to the value on the tape
	pointersUsed       int          // number of errors with a JSON pointer
	compounds          []compound
}

// maxPointers bounds the number of errors with a JSON pointer, because finding it takes time.
const maxPointers = 100

func (p *jsonldReader) parseDocument() error {
	c := p.initialContext()
	if iri := p.o.JSONLD.Context; iri != "" {
		var err error
		if c, err = p.otherContext(c, iri, contextCall{base: p.o.Base}); err != nil {
			return err
		}
	}
	at := position{graph: ref{term: p.o.Graph}, top: true, outer: true}
	switch p.s.peek() {
	case '{', '[':
	default:
		if p.s.hasMore() {
			return invalid("a JSON-LD document must be an object or an array")
		}
		return p.s.errUnexpected("an object or an array")
	}
	if _, err := p.streamValue(c, at, discardItem); err != nil {
		return err
	}
	p.current, p.s.mark = val{}, -1
	if err := p.s.checkEnd(); err != nil {
		return err
	}
	if p.quads == 0 && p.rejected == 0 && p.firstDropped != nil {
		err := invalid("the document has no RDF; a context may be missing: %s", messageOf(p.firstDropped.Err))
		return &SyntaxError{Document: p.o.Name, Line: p.firstDropped.Line, Err: err}
	}
	return nil
}

// countStep counts a step of work. It returns the context's error once the context is done.
func (p *jsonldReader) countStep() error {
	if p.steps++; p.steps%256 == 0 {
		return p.ctx.Err()
	}
	return nil
}

// ref is a term of a statement, or the error of an invalid one.
type ref struct {
	term kg.Term
	err  error
}

func (r ref) isNothing() bool { return r.err == nil && r.term.IsZero() }

// resourceRef returns the term of an expanded IRI.
func (p *jsonldReader) resourceRef(iri string) ref {
	if label, ok := strings.CutPrefix(iri, "_:"); ok {
		return ref{term: p.blanks.namedNode([]byte(label))}
	}
	if schemeOf(iri) == "" {
		if p.o.Base == "" {
			return ref{err: invalid("the IRI %s is relative and the document has no base", excerpt([]byte(iri)))}
		}
		return ref{err: invalid("the IRI %s is relative", excerpt([]byte(iri)))}
	}
	t, err := p.o.checkedIRI(iri)
	return ref{t, err}
}

func (p *jsonldReader) freshRef() ref { return ref{term: p.blanks.freshNode()} }

// emitStatement yields a statement, or rejects it if one of its terms is invalid.
func (p *jsonldReader) emitStatement(subject, predicate, object, graph ref) error {
	for _, r := range [...]ref{subject, predicate, object, graph} {
		if r.err != nil {
			return p.rejectStatement(r.err)
		}
	}
	p.quads++
	if !p.yield(kg.Quad{Subject: subject.term, Predicate: predicate.term, Object: object.term, Graph: graph.term}, nil) {
		return errStopped
	}
	return p.countStep()
}

// rejectStatement ends the reading, or skips a statement with Options.ContinueOnError.
func (p *jsonldReader) rejectStatement(err error) error {
	if !p.o.ContinueOnError {
		return err
	}
	p.rejected++
	if p.o.Rejected != nil {
		p.o.Rejected(p.withLocation(err))
	}
	return nil
}

// reportDropped reports an entry that the specification drops.
func (p *jsonldReader) reportDropped(format string, args ...any) {
	if p.o.JSONLD.Dropped != nil {
		p.o.JSONLD.Dropped(p.withLocation(invalid(format, args...)))
	}
}

// reportDroppedKey reports a key that maps to null, unless its context says so.
func (p *jsonldReader) reportDroppedKey(m *expandedKey, key []byte) {
	if m.def != noDef || string(key) == "@context" {
		return
	}
	const format = "the key %s means no IRI and is left out"
	if p.firstDropped == nil {
		p.firstDropped = p.withLocation(invalid(format, excerpt(key)))
	}
	p.reportDropped(format, excerpt(key))
}

func (p *jsonldReader) readError(err error) error {
	if errors.Is(err, errWindow) {
		err = p.tooLong()
	}
	var done *SyntaxError
	var known *kg.Error
	if errors.As(err, &done) || !errors.As(err, &known) || known.Code == kg.CodeOverloaded {
		return err
	}
	return p.withLocation(err)
}

// tooLong returns the error for a value that must be held in memory and exceeds the limit.
func (p *jsonldReader) tooLong() error {
	e := tooLong("a JSON-LD document may have any size if it is in streaming order (in each object @context first, then @type and @id, then the rest); otherwise the limit is %d bytes", p.o.JSONLD.MaxBytes)
	e.Limit = "jsonld-max-bytes"
	e.Hint = "Put the entries into that order, raise --jsonld-max-bytes, or send N-Quads."
	return e
}

// withLocation adds the location to an error: the line, and a JSON pointer (RFC 6901).
func (p *jsonldReader) withLocation(err error) *SyntaxError {
	pos := p.s.pos
	pointer := p.path
	taped := p.current.t == &p.s.tape && p.s.mark >= 0
	if taped {
		pos = p.s.mark + p.current.pos()
	}
	line := p.s.countLines(pos)
	if p.pointersUsed++; p.pointersUsed > maxPointers {
		return &SyntaxError{Document: p.o.Name, Line: line, Err: err}
	}
	text := "/" + strings.Join(pointer, "/")
	if taped {
		text = strings.TrimSuffix(text, "/") + pointerTo(val{p.current.t, 0}, p.current.i)
	}
	var e *kg.Error
	if errors.As(err, &e) && text != "/" && text != "" {
		c := *e
		c.Message = "at " + clippedMiddle(text) + ": " + c.Message
		err = &c
	}
	return &SyntaxError{Document: p.o.Name, Line: line, Err: err}
}

// clippedMiddle shortens a pointer for a message.
func clippedMiddle(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most/2]+"…"+s[len(s)-most/2:], "")
}

// pointerTo returns the JSON pointer from a value to the token with the given number.
func pointerTo(v val, target uint32) string {
	var out strings.Builder
	for v.i != target && !v.isScalar() {
		var inside val
		step := ""
		if v.isObject() {
			for key, value := range v.entries() {
				if target < value.next() {
					inside, step = value, pointerStep(key.string())
					break
				}
			}
		} else {
			n := 0
			for item := range v.items() {
				if target < item.next() {
					inside, step = item, strconv.Itoa(n)
					break
				}
				n++
			}
		}
		if inside.t == nil {
			break
		}
		out.WriteString("/" + step)
		if target < inside.i { // the key itself
			break
		}
		v = inside
	}
	return out.String()
}

// endsNamespace reports whether an IRI ends like a namespace: with a gen-delim (RFC 3986).
func endsNamespace(iri string) bool { return strings.ContainsAny(iri[max(0, len(iri)-1):], ":/?#[]@") }

func pointerStep(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// reportPrefixes calls report for the terms of a context that can be prefixes (JSON-LD 1.1,
// section 4.1.5): terms with an IRI that ends like a namespace, or with @prefix.
func reportPrefixes(context val, report func(name, namespace string)) {
	for c := range context.items() {
		if !c.isObject() {
			continue
		}
		for key, means := range c.entries() {
			term := key.string()
			if means.isString() {
				if text := means.string(); !strings.HasPrefix(term, "@") && endsNamespace(text) {
					report(term, text)
				}
			} else if means.isObject() {
				id, _ := means.lookUpEntry("@id")
				yes, _ := means.lookUpEntry("@prefix")
				if yes.t != nil && yes.kind() == 't' && id.t != nil && id.isString() {
					report(term, id.string())
				}
			}
		}
	}
}
