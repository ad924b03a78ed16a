package rdf

import (
	"errors"
	"strconv"
)

// maxStreamedKeys bounds the keys of a streamed object.
const maxStreamedKeys = 1 << 20

// streamValue expands a value while it is received. An object is held in memory first,
// unless it is too long and in streaming order.
func (p *jsonldReader) streamValue(c *activeContext, at position, to sink) (kept bool, err error) {
	p.current = val{}
	switch p.s.peek() {
	case '{':
		return p.streamObject(c, at, to)
	case '[':
		return true, p.streamArray(c, at, to)
	}
	v, err := p.holdValue()
	if err != nil {
		return false, err
	}
	return p.expandValue(c, at, v, to)
}

// holdValue reads a value to the tape, which replaces the previous one.
func (p *jsonldReader) holdValue() (val, error) {
	p.current = val{}
	return p.s.readValue()
}

func (p *jsonldReader) pushPath(step string) error {
	p.path = append(p.path, step)
	if p.s.depth = len(p.path); p.s.depth > MaxDepth {
		return tooLong("the JSON is nested more than %d deep", MaxDepth)
	}
	return nil
}

func (p *jsonldReader) popPath() {
	p.path = p.path[:len(p.path)-1]
	p.s.depth = len(p.path)
}

func (p *jsonldReader) streamArray(c *activeContext, at position, to sink) error {
	p.s.pos++
	at.top = false
	for n := 0; ; n++ {
		p.current, p.s.mark = val{}, -1
		more, err := p.s.readSeparator(']', n == 0)
		if err != nil || !more {
			return err
		}
		if err := p.pushPath(strconv.Itoa(n)); err != nil {
			return err
		}
		if _, err := p.streamValue(c, at, to); err != nil {
			return err
		}
		p.popPath()
		if err := p.countStep(); err != nil {
			return err
		}
	}
}

// streamObject expands an object held in memory, or continues with one in streaming order.
func (p *jsonldReader) streamObject(c *activeContext, at position, to sink) (kept bool, err error) {
	keys := &keySet{seed: p.s.seed}
	order := &streamingOrder{p: p, c: c, at: at}
	v, key, stopped, err := p.s.readObject(keys, order.isCertain)
	if errors.Is(err, errWindow) {
		p.s.rewind()
		keys = &keySet{seed: p.s.seed}
		v, key, stopped, err = p.s.readObject(keys, order.isPlausible)
	}
	if err != nil {
		return false, err
	}
	if !stopped {
		return p.expandObject(c, at, v, to)
	}
	return true, p.streamNode(c, at, v, key, keys, to)
}

// streamingOrder reports whether an object can be expanded before its end.
type streamingOrder struct {
	p     *jsonldReader
	c     *activeContext
	at    position
	inner *activeContext // with the object's own context
	never bool
	id    bool // @id was seen
}

// isCertain reports whether no entry after this key can change the meaning of those
// before it: the object begins with @context, has an @id, and no types with scoped
// contexts.
func (s *streamingOrder) isCertain(head val, key string) (bool, error) {
	if s.never || s.c.scoped || s.c.previous != nil || s.at.def != nil && s.at.def.scoped {
		return false, nil
	}
	if s.inner == nil {
		if head.next() == head.i+1 {
			s.never = key != "@context"
			return false, nil
		}
		local := val{head.t, head.i + 2}
		inner, err := s.p.applyContext(s.c, local, contextCall{base: s.p.o.Base})
		if err != nil {
			return false, nil // expanding the object reports the error with its location
		}
		s.inner, s.never = inner, inner.scoped
	}
	m, err := s.p.expandKey(s.inner, []byte(key))
	if err != nil || s.never {
		return false, err
	}
	switch m.iri {
	case "@id":
		s.id = true
		return false, nil
	case "@type", "@index":
		return false, nil
	case "@value", "@list", "@set", "@nest":
		s.never = true
	}
	return s.id && !s.never, nil
}

// isPlausible reports whether this key is the first after @context, @type and @id.
func (s *streamingOrder) isPlausible(head val, key string) (bool, error) {
	first := head.next() == head.i+1
	if first && key == "@context" {
		return false, nil
	}
	if s.inner == nil {
		s.inner = s.c
		if d := s.at.def; d != nil && d.scoped {
			inner, err := s.p.applyContext(s.inner, d.context, contextCall{base: d.base, override: true})
			if err != nil {
				return false, err
			}
			s.inner = inner
		}
		if local, ok := head.lookUpEntry("@context"); ok {
			inner, err := s.p.applyContext(s.inner, local, contextCall{base: s.p.o.Base})
			if err != nil {
				return false, err
			}
			s.inner = inner
		}
	}
	m, err := s.p.expandKey(s.inner, []byte(key))
	if err != nil {
		return false, err
	}
	return m.iri != "@id" && m.iri != "@type" && m.iri != "@index", nil
}

// nodeStream is a node object that is expanded while it is received.
type nodeStream struct {
	p       *jsonldReader
	o       *object
	at      position
	subject ref
	kept    bool            // an entry other than @graph was kept
	named   bool            // the object has an @id
	seen    map[string]bool // keywords except @type and @included
	unnamed bool            // an @graph was read as the default graph
}

func (p *jsonldReader) streamNode(c *activeContext, at position, head val, key string, keys *keySet, to sink) error {
	o, err := p.enterObject(c, at, head, true)
	if err != nil {
		return err
	}
	n := &nodeStream{p: p, o: o, at: at, named: o.has("@id")}
	m, err := p.expandKey(o.c, []byte(key))
	if err != nil {
		return err
	}
	if m.iri == "@value" || m.iri == "@list" || m.iri == "@set" {
		return p.tooLong() // before it is expanded as a node
	}
	if n.subject, err = p.subjectOf(o, extra{}); err != nil {
		return err
	}
	if n.subject.isNothing() {
		n.subject = p.freshRef()
	}
	if err := to(item{ref: n.subject}); err != nil {
		return err
	}
	if n.kept, err = p.emitBody(o, n.subject, at.graph); err != nil {
		return err
	}
	n.kept = n.kept || n.named || o.has("@index")
	if content, ok := o.keywords["@graph"]; ok { // of an object with an @id
		if _, err := p.expandValue(o.c, position{key: "@graph", graph: n.subject}, content, discardItem); err != nil {
			return err
		}
	}
	n.seen = map[string]bool{}
	for keyword := range o.keywords {
		n.seen[keyword] = true
	}
	o.parts, o.types, o.keywords = nil, nil, nil // their tape is about to be overwritten
	for {
		if err := p.pushPath(pointerStep(key)); err != nil {
			return err
		}
		if err := n.expandEntry(key); err != nil {
			return err
		}
		p.popPath()
		p.current = val{}
		p.s.mark = -1
		more, err := p.s.readSeparator('}', false)
		if err != nil || !more {
			return err
		}
		if keys.len() >= maxStreamedKeys {
			return tooLong("a streamed object can have at most %d keys", maxStreamedKeys)
		}
		if key, err = p.s.nextKey(keys); err != nil {
			return err
		}
	}
}

// expandEntry expands the entry of a key that was just read.
func (n *nodeStream) expandEntry(key string) error {
	p := n.p
	m, err := p.expandKey(n.o.c, []byte(key))
	if err != nil {
		return err
	}
	if n.unnamed && m.iri != "" {
		return p.tooLong()
	}
	if n.seen[m.iri] {
		return invalid("colliding keywords: an object has %s twice", m.iri)
	}
	if m.keyword && m.iri != "@type" && m.iri != "@included" && m.iri != "@nest" {
		n.seen[m.iri] = true
	}
	switch {
	case key == "@context":
		return p.tooLong()
	case m.iri == "@graph":
		return n.expandGraph()
	case m.keyword:
		return n.expandKeyword(m)
	case m.iri == "":
		p.reportDroppedKey(m, []byte(key))
		p.current = val{}
		_, err := p.holdValue()
		return err
	}
	kept, err := n.expandProperty(key, m)
	n.kept = n.kept || kept
	return err
}

func (n *nodeStream) expandProperty(key string, m *expandedKey) (kept bool, err error) {
	p := n.p
	if d := m.def; d.typ != "@json" && d.container&^containerSet == 0 {
		return p.streamValue(n.o.c, position{key: key, def: d, graph: n.at.graph}, p.propertySink(m, n.subject, n.at.graph, false))
	}
	v, err := p.holdValue()
	if err != nil {
		return false, err
	}
	return p.emitProperty(n.o.c, key, m, v, n.subject, n.at.graph, false)
}

func (n *nodeStream) expandGraph() error {
	in := position{key: "@graph", graph: n.subject}
	if n.at.top && !n.kept {
		in.graph, n.unnamed = n.at.graph, true
	}
	_, err := n.p.streamValue(n.o.c, in, discardItem)
	return err
}

// expandKeyword expands a keyword entry that follows other entries.
func (n *nodeStream) expandKeyword(m *expandedKey) error {
	p := n.p
	switch m.iri {
	case "@id":
		return p.tooLong()
	case "@value", "@list", "@set":
		if n.named {
			return invalid("invalid value, set or list object: @id is not allowed")
		}
		return p.tooLong()
	}
	v, err := p.holdValue()
	if err != nil {
		return err
	}
	p.current = v
	o := &object{c: n.o.c, typeContext: n.o.typeContext}
	if err := p.addKeyword(o, n.o.c, m, v); err != nil {
		return err
	}
	if m.iri == "@type" && n.o.typeContext.scoped {
		for t := range v.items() {
			if d := n.o.typeContext.termDefOf(t.string()); d != nil && d.scoped {
				return p.tooLong()
			}
		}
	}
	if m.iri == "@nest" && (len(o.keywords) > 0 || len(o.types) > 0) {
		return p.tooLong()
	}
	kept, err := p.emitBody(o, n.subject, n.at.graph)
	n.kept = n.kept || kept || m.iri == "@index"
	return err
}
