package rdf

// node emits the statements of a node object and passes the node to the sink.
func (p *jsonldReader) node(o *object, at position, to sink) (kept bool, err error) {
	x := at.extra
	if x.wrap == wrapAlways || x.wrap == wrapUnlessGraph && !o.isGraph() {
		return true, p.wrapped(o, at, to)
	}
	subject, err := p.subject(o, x)
	if err != nil || subject.isNothing() && o.isReference() {
		return false, err
	}
	if subject.isNothing() {
		subject = p.fresh()
	}
	if err := to(item{ref: subject}); err != nil {
		return false, err
	}
	if err := p.fromMap(subject, at); err != nil {
		return false, err
	}
	others, err := p.body(o, subject, at.graph)
	if err != nil {
		return false, err
	}
	if content, ok := o.keywords["@graph"]; ok {
		in := position{key: "@graph", graph: subject}
		if at.top && !others && o.only("@graph") {
			in.graph = at.graph
		}
		if _, err := p.expand(o.c, in, content, nothing); err != nil {
			return false, err
		}
	}
	return true, nil
}

// isGraph reports whether a node object is a graph object.
func (o *object) isGraph() bool {
	return o.properties == 0 && len(o.types) == 0 && o.only("@graph", "@id", "@index")
}

// isReference reports whether a node object has only an @id.
func (o *object) isReference() bool {
	return o.properties == 0 && len(o.types) == 0 && o.only("@id")
}

// wrapped makes a node the content of a graph of its own.
func (p *jsonldReader) wrapped(o *object, at position, to sink) error {
	name := p.fresh()
	if at.extra.id != nil {
		name = *at.extra.id
	}
	if err := to(item{ref: name}); err != nil {
		return err
	}
	if err := p.fromMap(name, at); err != nil {
		return err
	}
	in := at.inner()
	in.graph, in.extra = name, extra{}
	_, err := p.node(o, in, nothing)
	return err
}

// fromMap emits the statements that a map adds to a node.
func (p *jsonldReader) fromMap(subject ref, at position) error {
	if x := at.extra.index; x != nil {
		if err := p.emit(subject, x.predicate, x.value, at.graph); err != nil {
			return err
		}
	}
	if at.extra.typ != nil {
		return p.emit(subject, refType, *at.extra.typ, at.graph)
	}
	return nil
}

// subject returns the node of an object.
func (p *jsonldReader) subject(o *object, x extra) (ref, error) {
	if id, ok := o.keywords["@id"]; ok {
		return p.reference(o.c, id, expandRelative)
	}
	if x.id != nil {
		return *x.id, nil
	}
	return p.fresh(), nil
}

// body emits the statements of all entries except @graph, and reports whether any entry was kept.
func (p *jsonldReader) body(o *object, subject, graph ref) (kept bool, err error) {
	for _, t := range o.types {
		kept = true
		if err := p.types(o, t, subject, graph); err != nil {
			return kept, err
		}
	}
	for _, part := range o.parts {
		part.v.entries(func(key, value val) bool {
			var any bool
			any, err = p.entry(part.c, key, value, subject, graph, false)
			kept = kept || any
			return err == nil
		})
		if err != nil {
			return kept, err
		}
	}
	if reverse, ok := o.keywords["@reverse"]; ok {
		any, err := p.reverse(o.c, reverse, subject, graph)
		if kept = kept || any; err != nil {
			return kept, err
		}
	}
	for _, included := range o.included {
		kept = true
		if err := p.included(o.c, included, graph); err != nil {
			return kept, err
		}
	}
	return kept, nil
}

func (p *jsonldReader) types(o *object, v val, subject, graph ref) error {
	return v.each(func(t val) error {
		p.here = t
		typ, err := p.reference(o.typeContext, t, expandVocab|expandRelative)
		if err != nil || typ.isNothing() {
			return err
		}
		return p.emit(subject, refType, typ, graph)
	})
}

// included emits the nodes of an @included entry.
func (p *jsonldReader) included(c *activeContext, v val, graph ref) error {
	return v.each(func(n val) error {
		p.here = n
		bad := invalid("invalid @included value: it must consist of node objects")
		if !n.isObject() {
			return bad
		}
		kept, err := p.expand(c, position{key: "@included", graph: graph}, n, func(it item) error {
			if it.kind != itemNode {
				return bad
			}
			return nil
		})
		if err == nil && !kept {
			err = bad
		}
		return err
	})
}

// reverse emits the statements of an @reverse entry.
func (p *jsonldReader) reverse(c *activeContext, v val, subject, graph ref) (kept bool, err error) {
	if c, err = p.leaveTypeScope(c, false, v, false); err != nil {
		return false, err
	}
	if local, ok := v.entry("@context"); ok {
		if c, err = p.apply(c, local, contextCall{base: p.o.Base}); err != nil {
			return false, err
		}
	}
	v.entries(func(key, value val) bool {
		var m *meaning
		if m, err = p.meaning(c, key.bytes()); err != nil {
			return false
		}
		if m.keyword && !key.equals("@context") {
			p.here = key
			err = invalid("invalid reverse property map: %s is not a property", m.iri)
			return false
		}
		var any bool
		any, err = p.entry(c, key, value, subject, graph, true)
		kept = kept || any
		return err == nil
	})
	return kept, err
}

// entry emits the statements of an entry that is a property.
func (p *jsonldReader) entry(c *activeContext, key, value val, subject, graph ref, reverse bool) (kept bool, err error) {
	m, err := p.meaning(c, key.bytes())
	if err != nil || m.keyword {
		return false, err
	}
	p.here = key
	if m.iri == "" {
		p.dropKey(m, key.bytes())
		return false, nil
	}
	return p.property(c, key.string(), m, value, subject, graph, reverse)
}

// link returns the sink that makes statements of a property's values.
func (p *jsonldReader) link(m *meaning, subject, graph ref, reverse bool) sink {
	backwards := reverse != m.def.reverse
	nodes := reverse || m.def.reverse
	return func(it item) (err error) {
		if nodes && it.kind != itemNode {
			return invalid("invalid reverse property value: it must be a node")
		}
		if backwards {
			err = p.emit(it.ref, m.predicate, subject, graph)
		} else {
			err = p.emit(subject, m.predicate, it.ref, graph)
		}
		if err == nil && len(p.compounds) > 0 {
			err = p.compoundStatements(graph)
		}
		return err
	}
}

// property emits the statements of a property (step 13.5 and following).
func (p *jsonldReader) property(c *activeContext, key string, m *meaning, v val, subject, graph ref, reverse bool) (kept bool, err error) {
	to := p.link(m, subject, graph, reverse)
	at := position{key: key, def: m.def, graph: graph}
	p.here = v
	switch d := m.def; {
	case d.typ == "@json":
		return true, p.deliver(at, p.literal(v, "@json", "", ""), to)
	case d.container.has(containerLanguage) && v.isObject():
		return true, p.languageMap(c, d, v, to)
	case d.container.has(containerIndex|containerType|containerID) && v.isObject():
		return true, p.indexMap(c, at, v, to)
	case d.container.has(containerList):
		return p.listProperty(c, at, v, to)
	case d.container.has(containerGraph) && !d.container.has(containerID|containerIndex):
		at.extra.wrap = wrapAlways
	}
	return p.expand(c, at, v, to)
}

// listProperty makes a list of a value that is not a list.
func (p *jsonldReader) listProperty(c *activeContext, at position, v val, to sink) (kept bool, err error) {
	if v.isArray() {
		return true, p.list(c, at, v, to)
	}
	l := &listWriter{p: p, graph: at.graph}
	isList := false
	kept, err = p.expand(c, at, v, func(it item) error {
		if it.kind == itemList {
			isList = true
			return to(it)
		}
		return l.add(it)
	})
	if err != nil || !kept || isList {
		return kept, err
	}
	head, err := l.close()
	if err != nil {
		return true, err
	}
	return true, to(item{head, itemList})
}

// languageMap emits the values of a language map (step 13.7).
func (p *jsonldReader) languageMap(c *activeContext, d *termDef, v val, to sink) (err error) {
	dir := c.dir
	if d.hasDir {
		dir = d.dir
	}
	v.entries(func(key, values val) bool {
		lang := key.string()
		var iri string
		if iri, _, err = p.expandIRI(c, lang, expandVocab, nil); err != nil {
			return false
		}
		if iri == "@none" {
			lang = ""
		}
		err = values.each(func(text val) error {
			p.here = text
			if text.isNull() {
				return nil
			}
			if !text.isString() {
				return invalid("invalid language map value: it must be a string")
			}
			return to(p.literal(text, "", lang, dir))
		})
		return err == nil
	})
	return err
}

// indexMap emits the values of an index, id or type map (step 13.8).
func (p *jsonldReader) indexMap(c *activeContext, at position, v val, to sink) (err error) {
	d := at.def
	around := c
	if d.container.has(containerType) && c.previous != nil {
		around = c.previous
	}
	v.entries(func(key, values val) bool {
		index := key.string()
		in := around
		if t := around.term(index); d.container.has(containerType) && t != nil && t.scoped {
			if in, err = p.apply(around, t.context, contextCall{base: t.base, dontSpread: true}); err != nil {
				return false
			}
		}
		each := position{key: at.key, def: in.term(at.key), graph: at.graph, fromMap: true}
		if each.def == nil {
			each.def = noDef
		}
		if each.extra, err = p.indexed(c, d, key); err != nil {
			return false
		}
		err = values.each(func(item val) error {
			_, err := p.expand(in, each, item, to)
			return err
		})
		return err == nil
	})
	return err
}

// indexed returns the statements that a map adds to the values of one of its keys.
func (p *jsonldReader) indexed(c *activeContext, d *termDef, key val) (x extra, err error) {
	if d.container.has(containerGraph) {
		x.wrap = wrapUnlessGraph
	}
	iri, _, err := p.expandIRI(c, key.string(), expandVocab, nil)
	if err != nil || iri == "@none" {
		return x, err
	}
	switch {
	case d.container.has(containerIndex) && d.index != "" && d.index != "@index":
		m, err := p.meaning(c, []byte(d.index))
		if err != nil {
			return x, err
		}
		value, err := p.scalar(c, c.term(d.index), key)
		if err != nil || value.isNothing() {
			return x, err
		}
		x.index = &indexEntry{m.predicate, value.ref}
	case d.container.has(containerID):
		id, err := p.reference(c, key, expandRelative)
		if err != nil || id.isNothing() {
			return x, err
		}
		x.id = &id
	case d.container.has(containerType):
		typ, err := p.reference(c, key, expandVocab)
		if err != nil || typ.isNothing() {
			return x, err
		}
		x.typ = &typ
	}
	return x, nil
}
