package rdf

// emitNode emits the statements of a node object and passes the node to the sink.
func (p *jsonldReader) emitNode(o *object, at position, to sink) (kept bool, err error) {
	x := at.extra
	if x.wrap == wrapAlways || x.wrap == wrapUnlessGraph && !o.isGraph() {
		return true, p.emitWrapped(o, at, to)
	}
	subject, err := p.subjectOf(o, x)
	if err != nil || subject.isNothing() && o.isReference() {
		return false, err
	}
	if subject.isNothing() {
		subject = p.freshRef()
	}
	if err := to(item{ref: subject}); err != nil {
		return false, err
	}
	if err := p.emitMapExtras(subject, at); err != nil {
		return false, err
	}
	others, err := p.emitBody(o, subject, at.graph)
	if err != nil {
		return false, err
	}
	if content, ok := o.keywords["@graph"]; ok {
		in := position{key: "@graph", graph: subject}
		if at.top && !others && o.hasOnly("@graph") {
			in.graph = at.graph
		}
		if _, err := p.expandValue(o.c, in, content, discardItem); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (o *object) isGraph() bool {
	return o.properties == 0 && len(o.types) == 0 && o.hasOnly("@graph", "@id", "@index")
}

// isReference reports whether a node object has only an @id.
func (o *object) isReference() bool {
	return o.properties == 0 && len(o.types) == 0 && o.hasOnly("@id")
}

// emitWrapped makes a node the content of a graph of its own.
func (p *jsonldReader) emitWrapped(o *object, at position, to sink) error {
	name := p.freshRef()
	if at.extra.id != nil {
		name = *at.extra.id
	}
	if err := to(item{ref: name}); err != nil {
		return err
	}
	if err := p.emitMapExtras(name, at); err != nil {
		return err
	}
	in := at.innerPosition()
	in.graph, in.extra = name, extra{}
	_, err := p.emitNode(o, in, discardItem)
	return err
}

// emitMapExtras emits the statements that a map adds to a node.
func (p *jsonldReader) emitMapExtras(subject ref, at position) error {
	if x := at.extra.index; x != nil {
		if err := p.emitStatement(subject, x.predicate, x.value, at.graph); err != nil {
			return err
		}
	}
	if at.extra.typ != nil {
		return p.emitStatement(subject, refType, *at.extra.typ, at.graph)
	}
	return nil
}

// subjectOf returns the node of an object.
func (p *jsonldReader) subjectOf(o *object, x extra) (ref, error) {
	if id, ok := o.keywords["@id"]; ok {
		return p.expandReference(o.c, id, expandRelative)
	}
	if x.id != nil {
		return *x.id, nil
	}
	return p.freshRef(), nil
}

// emitBody emits the statements of all entries except @graph, and reports whether any
// entry was kept.
func (p *jsonldReader) emitBody(o *object, subject, graph ref) (kept bool, err error) {
	for _, t := range o.types {
		kept = true
		if err := p.emitTypes(o, t, subject, graph); err != nil {
			return kept, err
		}
	}
	for _, part := range o.parts {
		for key, value := range part.v.entries() {
			any, err := p.emitEntry(part.c, key, value, subject, graph, false)
			if kept = kept || any; err != nil {
				return kept, err
			}
		}
	}
	if reverse, ok := o.keywords["@reverse"]; ok {
		any, err := p.emitReverse(o.c, reverse, subject, graph)
		if kept = kept || any; err != nil {
			return kept, err
		}
	}
	for _, included := range o.included {
		kept = true
		if err := p.emitIncluded(o.c, included, graph); err != nil {
			return kept, err
		}
	}
	return kept, nil
}

func (p *jsonldReader) emitTypes(o *object, v val, subject, graph ref) error {
	for t := range v.items() {
		p.current = t
		typ, err := p.expandReference(o.typeContext, t, expandVocab|expandRelative)
		if err == nil && !typ.isNothing() {
			err = p.emitStatement(subject, refType, typ, graph)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// emitIncluded emits the nodes of an @included entry.
func (p *jsonldReader) emitIncluded(c *activeContext, v val, graph ref) error {
	bad := invalid("invalid @included value: it must consist of node objects")
	for n := range v.items() {
		p.current = n
		if !n.isObject() {
			return bad
		}
		kept, err := p.expandValue(c, position{key: "@included", graph: graph}, n, func(it item) error {
			if it.kind != itemNode {
				return bad
			}
			return nil
		})
		if err == nil && !kept {
			err = bad
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// emitReverse emits the statements of an @reverse entry.
func (p *jsonldReader) emitReverse(c *activeContext, v val, subject, graph ref) (kept bool, err error) {
	if c, err = p.leaveTypeScope(c, false, v, false); err != nil {
		return false, err
	}
	if local, ok := v.lookUpEntry("@context"); ok {
		if c, err = p.applyContext(c, local, contextCall{base: p.o.Base}); err != nil {
			return false, err
		}
	}
	for key, value := range v.entries() {
		m, err := p.expandKey(c, key.bytes())
		if err != nil {
			return kept, err
		}
		if m.keyword && !key.equals("@context") {
			p.current = key
			return kept, invalid("invalid reverse property map: %s is not a property", m.iri)
		}
		any, err := p.emitEntry(c, key, value, subject, graph, true)
		if kept = kept || any; err != nil {
			return kept, err
		}
	}
	return kept, nil
}

// emitEntry emits the statements of an entry that is a property.
func (p *jsonldReader) emitEntry(c *activeContext, key, value val, subject, graph ref, reverse bool) (kept bool, err error) {
	m, err := p.expandKey(c, key.bytes())
	if err != nil || m.keyword {
		return false, err
	}
	p.current = key
	if m.iri == "" {
		p.reportDroppedKey(m, key.bytes())
		return false, nil
	}
	return p.emitProperty(c, key.string(), m, value, subject, graph, reverse)
}

// propertySink returns the sink that makes statements of a property's values.
func (p *jsonldReader) propertySink(m *expandedKey, subject, graph ref, reverse bool) sink {
	backwards := reverse != m.def.reverse
	nodes := reverse || m.def.reverse
	return func(it item) (err error) {
		if nodes && it.kind != itemNode {
			return invalid("invalid reverse property value: it must be a node")
		}
		if backwards {
			err = p.emitStatement(it.ref, m.predicate, subject, graph)
		} else {
			err = p.emitStatement(subject, m.predicate, it.ref, graph)
		}
		if err == nil && len(p.compounds) > 0 {
			err = p.compoundStatements(graph)
		}
		return err
	}
}

// emitProperty emits the statements of a property (step 13.5 and following).
func (p *jsonldReader) emitProperty(c *activeContext, key string, m *expandedKey, v val, subject, graph ref, reverse bool) (kept bool, err error) {
	to := p.propertySink(m, subject, graph, reverse)
	at := position{key: key, def: m.def, graph: graph}
	p.current = v
	switch d := m.def; {
	case d.typ == "@json":
		return true, p.deliverItem(at, p.literalItem(v, "@json", "", ""), to)
	case d.container.has(containerLanguage) && v.isObject():
		return true, p.languageMap(c, d, v, to)
	case d.container.has(containerIndex|containerType|containerID) && v.isObject():
		return true, p.indexMap(c, at, v, to)
	case d.container.has(containerList):
		return p.listProperty(c, at, v, to)
	case d.container.has(containerGraph) && !d.container.has(containerID|containerIndex):
		at.extra.wrap = wrapAlways
	}
	return p.expandValue(c, at, v, to)
}

// listProperty makes a list of a value that is not a list.
func (p *jsonldReader) listProperty(c *activeContext, at position, v val, to sink) (kept bool, err error) {
	if v.isArray() {
		return true, p.expandList(c, at, v, to)
	}
	l := &listWriter{p: p, graph: at.graph}
	isList := false
	kept, err = p.expandValue(c, at, v, func(it item) error {
		if it.kind == itemList {
			isList = true
			return to(it)
		}
		return l.addCell(it)
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
func (p *jsonldReader) languageMap(c *activeContext, d *termDef, v val, to sink) error {
	dir := c.dir
	if d.hasDir {
		dir = d.dir
	}
	for key, values := range v.entries() {
		lang := key.string()
		iri, _, err := p.expandIRI(c, lang, expandVocab, nil)
		if err != nil {
			return err
		}
		if iri == "@none" {
			lang = ""
		}
		for text := range values.items() {
			p.current = text
			if text.isNull() {
				continue
			}
			if !text.isString() {
				return invalid("invalid language map value: it must be a string")
			}
			if err := to(p.literalItem(text, "", lang, dir)); err != nil {
				return err
			}
		}
	}
	return nil
}

// indexMap emits the values of an index, id or type map (step 13.8).
func (p *jsonldReader) indexMap(c *activeContext, at position, v val, to sink) (err error) {
	d := at.def
	around := c
	if d.container.has(containerType) && c.previous != nil {
		around = c.previous
	}
	for key, values := range v.entries() {
		index := key.string()
		in := around
		if t := around.termDefOf(index); d.container.has(containerType) && t != nil && t.scoped {
			if in, err = p.applyContext(around, t.context, contextCall{base: t.base, dontSpread: true}); err != nil {
				return err
			}
		}
		each := position{key: at.key, def: in.termDefOf(at.key), graph: at.graph, fromMap: true}
		if each.def == nil {
			each.def = noDef
		}
		if each.extra, err = p.mapExtras(c, d, key); err != nil {
			return err
		}
		for item := range values.items() {
			if _, err := p.expandValue(in, each, item, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// mapExtras returns the statements that a map adds to the values of one of its keys.
func (p *jsonldReader) mapExtras(c *activeContext, d *termDef, key val) (x extra, err error) {
	if d.container.has(containerGraph) {
		x.wrap = wrapUnlessGraph
	}
	iri, _, err := p.expandIRI(c, key.string(), expandVocab, nil)
	if err != nil || iri == "@none" {
		return x, err
	}
	switch {
	case d.container.has(containerIndex) && d.index != "" && d.index != "@index":
		m, err := p.expandKey(c, []byte(d.index))
		if err != nil {
			return x, err
		}
		value, err := p.expandScalar(c, c.termDefOf(d.index), key)
		if err != nil || value.isNothing() {
			return x, err
		}
		x.index = &indexEntry{m.predicate, value.ref}
	case d.container.has(containerID):
		id, err := p.expandReference(c, key, expandRelative)
		if err != nil || id.isNothing() {
			return x, err
		}
		x.id = &id
	case d.container.has(containerType):
		typ, err := p.expandReference(c, key, expandVocab)
		if err != nil || typ.isNothing() {
			return x, err
		}
		x.typ = &typ
	}
	return x, nil
}
