package rdf

import (
	"errors"
	"strconv"
)

// maxStreamedKeys bounds the keys of a streamed object.
const maxStreamedKeys = 1 << 20

// stream expands a value while it is received. An object is held in memory first, unless it is too long
// and in streaming order.
func (p *jsonldReader) stream(c *activeContext, at position, to sink) (kept bool, err error) {
	p.here = val{}
	switch p.s.peek() {
	case '{':
		return p.streamObject(c, at, to)
	case '[':
		return true, p.streamArray(c, at, to)
	}
	v, err := p.hold()
	if err != nil {
		return false, err
	}
	return p.expand(c, at, v, to)
}

// hold reads a value to the tape, which replaces the previous one.
func (p *jsonldReader) hold() (val, error) {
	p.here = val{}
	return p.s.value()
}

func (p *jsonldReader) deeper(step string) error {
	p.path = append(p.path, step)
	if p.s.depth = len(p.path); p.s.depth > MaxDepth {
		return tooLong("the JSON is nested more than %d deep", MaxDepth)
	}
	return nil
}

func (p *jsonldReader) back() {
	p.path = p.path[:len(p.path)-1]
	p.s.depth = len(p.path)
}

func (p *jsonldReader) streamArray(c *activeContext, at position, to sink) error {
	p.s.pos++
	at.top = false
	for n := 0; ; n++ {
		p.here, p.s.mark = val{}, -1
		more, err := p.s.separator(']', n == 0)
		if err != nil || !more {
			return err
		}
		if err := p.deeper(strconv.Itoa(n)); err != nil {
			return err
		}
		if _, err := p.stream(c, at, to); err != nil {
			return err
		}
		p.back()
		if err := p.tick(); err != nil {
			return err
		}
	}
}

// streamObject expands an object held in memory, or continues with one in streaming order.
func (p *jsonldReader) streamObject(c *activeContext, at position, to sink) (kept bool, err error) {
	keys := &keySet{seed: p.s.seed}
	order := &streamingOrder{p: p, c: c, at: at}
	v, key, stopped, err := p.s.object(keys, order.certain)
	if errors.Is(err, errWindow) {
		p.s.rewind()
		keys = &keySet{seed: p.s.seed}
		v, key, stopped, err = p.s.object(keys, order.plausible)
	}
	if err != nil {
		return false, err
	}
	if !stopped {
		return p.object(c, at, v, to)
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

// certain reports whether no entry behind this key can change the meaning of those before it: the object
// begins with @context, has an @id, and no types with scoped contexts.
func (s *streamingOrder) certain(head val, key string) (bool, error) {
	if s.never || s.c.scoped || s.c.previous != nil || s.at.def != nil && s.at.def.scoped {
		return false, nil
	}
	if s.inner == nil {
		if head.next() == head.i+1 {
			s.never = key != "@context"
			return false, nil
		}
		local := val{head.t, head.i + 2}
		inner, err := s.p.apply(s.c, local, contextCall{base: s.p.o.Base})
		if err != nil {
			return false, nil // expanding the object reports the error with its location
		}
		s.inner, s.never = inner, inner.scoped
	}
	m, err := s.p.meaning(s.inner, []byte(key))
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

// plausible reports whether this key is the first behind @context, @type and @id.
func (s *streamingOrder) plausible(head val, key string) (bool, error) {
	first := head.next() == head.i+1
	if first && key == "@context" {
		return false, nil
	}
	if s.inner == nil {
		s.inner = s.c
		if d := s.at.def; d != nil && d.scoped {
			inner, err := s.p.apply(s.inner, d.context, contextCall{base: d.base, override: true})
			if err != nil {
				return false, err
			}
			s.inner = inner
		}
		if local, ok := head.entry("@context"); ok {
			inner, err := s.p.apply(s.inner, local, contextCall{base: s.p.o.Base})
			if err != nil {
				return false, err
			}
			s.inner = inner
		}
	}
	m, err := s.p.meaning(s.inner, []byte(key))
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
	o, err := p.enter(c, at, head, true)
	if err != nil {
		return err
	}
	n := &nodeStream{p: p, o: o, at: at, named: o.has("@id")}
	m, err := p.meaning(o.c, []byte(key))
	if err != nil {
		return err
	}
	if m.iri == "@value" || m.iri == "@list" || m.iri == "@set" {
		return p.tooLong() // before it is expanded as a node
	}
	if n.subject, err = p.subject(o, extra{}); err != nil {
		return err
	}
	if n.subject.isNothing() {
		n.subject = p.fresh()
	}
	if err := to(item{ref: n.subject}); err != nil {
		return err
	}
	if n.kept, err = p.body(o, n.subject, at.graph); err != nil {
		return err
	}
	n.kept = n.kept || n.named || o.has("@index")
	if content, ok := o.keywords["@graph"]; ok { // of an object with an @id
		if _, err := p.expand(o.c, position{key: "@graph", graph: n.subject}, content, nothing); err != nil {
			return err
		}
	}
	n.seen = map[string]bool{}
	for keyword := range o.keywords {
		n.seen[keyword] = true
	}
	o.parts, o.types, o.keywords = nil, nil, nil // their tape is about to be overwritten
	for {
		if err := p.deeper(pointerStep(key)); err != nil {
			return err
		}
		if err := n.entry(key); err != nil {
			return err
		}
		p.back()
		p.here = val{}
		p.s.mark = -1
		more, err := p.s.separator('}', false)
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

// entry expands the entry of a key that was just read.
func (n *nodeStream) entry(key string) error {
	p := n.p
	m, err := p.meaning(n.o.c, []byte(key))
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
		return n.graph()
	case m.keyword:
		return n.keyword(m)
	case m.iri == "":
		p.dropKey(m, []byte(key))
		p.here = val{}
		_, err := p.hold()
		return err
	}
	kept, err := n.property(key, m)
	n.kept = n.kept || kept
	return err
}

func (n *nodeStream) property(key string, m *meaning) (kept bool, err error) {
	p := n.p
	if d := m.def; d.typ != "@json" && d.container&^containerSet == 0 {
		return p.stream(n.o.c, position{key: key, def: d, graph: n.at.graph}, p.link(m, n.subject, n.at.graph, false))
	}
	v, err := p.hold()
	if err != nil {
		return false, err
	}
	return p.property(n.o.c, key, m, v, n.subject, n.at.graph, false)
}

func (n *nodeStream) graph() error {
	in := position{key: "@graph", graph: n.subject}
	if n.at.top && !n.kept {
		in.graph, n.unnamed = n.at.graph, true
	}
	_, err := n.p.stream(n.o.c, in, nothing)
	return err
}

// keyword expands a keyword entry that follows other entries.
func (n *nodeStream) keyword(m *meaning) error {
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
	v, err := p.hold()
	if err != nil {
		return err
	}
	p.here = v
	o := &object{c: n.o.c, typeContext: n.o.typeContext}
	if err := p.keyword(o, n.o.c, m, v); err != nil {
		return err
	}
	if m.iri == "@type" && n.o.typeContext.scoped {
		err := v.each(func(t val) error {
			if d := n.o.typeContext.term(t.string()); d != nil && d.scoped {
				return p.tooLong()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if m.iri == "@nest" && (len(o.keywords) > 0 || len(o.types) > 0) {
		return p.tooLong()
	}
	kept, err := p.body(o, n.subject, n.at.graph)
	n.kept = n.kept || kept || m.iri == "@index"
	return err
}
