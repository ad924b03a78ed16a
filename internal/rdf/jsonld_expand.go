package rdf

import (
	"maps"
	"slices"
	"strings"

	"koine/kg"
)

// position is the context of a value.
type position struct {
	key     string   // active property: a term, "@graph", or "" if there is none
	def     *termDef // its definition
	graph   ref      // graph of the statements
	fromMap bool     // the value is in an id, type or index map
	top     bool     // the value is the document
	outer   bool     // the value is the document or one of its items
	extra   extra
}

// isFloating reports whether values and lists belong to nothing here.
func (at position) isFloating() bool { return at.key == "" || at.key == "@graph" }

// innerPosition returns the position of a value that replaces this one.
func (at position) innerPosition() position {
	at.top, at.outer, at.fromMap = false, false, false
	return at
}

// extra has the statements that a map adds to its values.
type extra struct {
	wrap    wrapping
	id, typ *ref
	index   *indexEntry
}

// wrapping reports whether a value becomes a graph of its own.
type wrapping uint8

const (
	wrapNone wrapping = iota
	wrapAlways
	wrapUnlessGraph
)

// indexEntry is the statement of a property-valued index.
type indexEntry struct{ predicate, value ref }

type item struct {
	ref
	kind itemKind
}

type itemKind uint8

const (
	itemNode itemKind = iota
	itemValue
	itemList
)

// sink receives expanded values.
type sink func(item) error

func discardItem(item) error { return nil }

type expandedKey struct {
	iri       string // "" if it maps to null
	keyword   bool
	def       *termDef
	predicate ref
}

// Limits of a context's cache of expanded keys.
const (
	maxCachedKeys     = 1 << 12
	maxCachedKeyBytes = 256
	// maxCachedMeaningBytes bounds the caches of all contexts of a document.
	maxCachedMeaningBytes = 8 << 20
	// meaningBytes is the approximate size of an entry besides its texts.
	meaningBytes = 256
)

func (p *jsonldReader) expandKey(c *activeContext, key []byte) (*expandedKey, error) {
	if m, ok := c.keys[string(key)]; ok {
		return m, nil
	}
	text := string(key)
	iri, ok, err := p.expandIRI(c, text, expandVocab, nil)
	if err != nil {
		return nil, err
	}
	m := &expandedKey{def: c.termDefOf(text)}
	switch {
	case !ok:
	case isKeyword(iri):
		m.iri, m.keyword = iri, true
	case strings.IndexByte(iri, ':') >= 0:
		m.iri = iri
		if m.predicate = p.resourceRef(iri); strings.HasPrefix(iri, "_:") {
			m.predicate.err = invalid("the predicate %s is a blank node", excerpt([]byte(iri)))
		}
	}
	if m.def == nil {
		m.def = noDef
	}
	if len(key) <= maxCachedKeyBytes && len(c.keys) < maxCachedKeys {
		p.cacheKey(c, text, m)
	}
	return m, nil
}

// cacheKey caches an expanded key. If the caches are full, it clears them.
func (p *jsonldReader) cacheKey(c *activeContext, key string, m *expandedKey) {
	size := meaningBytes + len(key) + len(m.iri)
	if size > maxCachedMeaningBytes/2 {
		return
	}
	if p.cachedKeyBytes += size; p.cachedKeyBytes > maxCachedMeaningBytes {
		for _, other := range p.keyed {
			other.keys = nil
		}
		p.keyed, p.cachedKeyBytes = p.keyed[:0], size
	}
	if c.keys == nil {
		c.keys = map[string]*expandedKey{}
		p.keyed = append(p.keyed, c)
	}
	c.keys[key] = m
}

// noDef is the definition of a key that is not a term.
var noDef = &termDef{}

// expandValue is the expansion algorithm (section 5.1.2). It emits the statements of the
// nodes in a value and passes the value to the sink. kept is false for a value that
// expands to null.
func (p *jsonldReader) expandValue(c *activeContext, at position, v val, to sink) (kept bool, err error) {
	if err := p.countStep(); err != nil {
		return false, err
	}
	p.current = v
	switch v.kind() {
	case 'n':
		return false, nil
	case '[':
		for i := range v.items() {
			if i.isArray() && at.def != nil && at.def.container.has(containerList) {
				err = p.expandList(c, at, i, to)
			} else {
				_, err = p.expandValue(c, at.innerPosition(), i, to)
			}
			if err != nil {
				return true, err
			}
		}
		return true, nil
	case '{':
		return p.expandObject(c, at, v, to)
	}
	if at.isFloating() {
		p.reportDropped("a value without a node is dropped")
		return false, nil
	}
	if at.def != nil && at.def.scoped {
		if c, err = p.applyContext(c, at.def.context, contextCall{base: at.def.base, override: true}); err != nil {
			return false, err
		}
		at.def = c.termDefOf(at.key)
	}
	it, err := p.expandScalar(c, at.def, v)
	if err != nil || it.isNothing() {
		return false, err
	}
	return true, p.deliverItem(at, it, to)
}

// deliverItem passes a value other than an object with entries to the sink, after the
// statements that a map adds.
func (p *jsonldReader) deliverItem(at position, it item, to sink) error {
	x := at.extra
	if x.wrap != wrapNone {
		p.reportDropped("a value in a graph without a node is dropped")
		it = item{ref: p.freshRef()}
		if x.id != nil {
			it.ref = *x.id
		}
	}
	if x.index != nil {
		if it.kind != itemNode {
			return invalid("invalid value object: the map has a property-valued index, and this value is not a node")
		}
		if err := p.emitStatement(it.ref, x.index.predicate, x.index.value, at.graph); err != nil {
			return err
		}
	}
	if x.typ != nil && it.kind == itemNode {
		if err := p.emitStatement(it.ref, refType, *x.typ, at.graph); err != nil {
			return err
		}
	}
	return to(it)
}

var refType, refFirst, refRest, refNil = ref{term: kg.IRI(kg.RDFType)}, ref{term: rdfFirst}, ref{term: rdfRest}, ref{term: rdfNil}

// expandScalar is the value expansion algorithm (section 5.3.2).
func (p *jsonldReader) expandScalar(c *activeContext, def *termDef, v val) (item, error) {
	if def == nil {
		def = noDef
	}
	typ := def.typ
	if typ == "@id" || typ == "@vocab" {
		if v.isString() {
			how := expandRelative
			if typ == "@vocab" {
				how |= expandVocab
			}
			r, err := p.expandReference(c, v, how)
			return item{r, itemNode}, err
		}
		typ = ""
	}
	if typ == "@none" {
		typ = ""
	}
	lang, dir := "", ""
	if v.isString() && typ == "" {
		if lang, dir = c.lang, c.dir; def.hasLang {
			lang = def.lang
		}
		if def.hasDir {
			dir = def.dir
		}
	}
	return p.literalItem(v, typ, lang, dir), nil
}

// expandReference returns the node with the given name, nothing if the text has the form
// of a keyword.
func (p *jsonldReader) expandReference(c *activeContext, v val, how expansion) (ref, error) {
	iri, ok, err := p.expandIRI(c, v.string(), how, nil)
	if err != nil {
		return ref{}, err
	}
	if !ok {
		p.reportDropped("%s has the form of a keyword and is dropped", excerpt(v.bytes()))
		return ref{}, nil
	}
	if isKeyword(iri) {
		return ref{err: invalid("the keyword %s does not name a node", iri)}, nil
	}
	return p.resourceRef(iri), nil
}

// literalItem returns the literal of a value object (API, section 8.6).
func (p *jsonldReader) literalItem(v val, typ, lang, dir string) item {
	lexical := ""
	switch {
	case typ == "@json":
		out, err := canonicalJSON(nil, v)
		if err != nil {
			return item{ref{err: err}, itemValue}
		}
		lexical, typ = string(out), rdfJSON
	case v.isString():
		lexical = v.string()
	case v.isBool():
		if lexical = string(v.raw()); typ == "" {
			typ = kg.XSDBoolean
		}
	default:
		var err error
		if lexical, typ, err = numberLiteral(v, typ); err != nil {
			return item{ref{err: err}, itemValue}
		}
	}
	if dir != "" {
		switch p.o.JSONLD.Direction {
		case "i18n-datatype":
			typ, lang = "https://www.w3.org/ns/i18n#"+strings.ToLower(lang)+"_"+dir, ""
		case "compound-literal":
			return item{p.compoundRef(lexical, lang, dir), itemNode}
		default:
			p.reportDropped("the direction of a string is dropped: RDF 1.1 has none")
		}
	}
	datatype := kg.Term{}
	if typ != "" && typ != kg.XSDString {
		var err error
		if datatype, err = p.o.checkedIRI(typ); err != nil {
			return item{ref{err: err}, itemValue}
		}
	}
	t, err := p.o.checkedLiteral(lexical, lang, datatype)
	return item{ref{t, err}, itemValue}
}

// compoundRef returns the node of a literal with a direction; see compoundStatements.
func (p *jsonldReader) compoundRef(lexical, lang, dir string) ref {
	r := p.freshRef()
	p.compounds = append(p.compounds, compound{r, lexical, lang, dir})
	return r
}

// compound is a literal with a direction that is written as a node.
type compound struct {
	node               ref
	lexical, lang, dir string
}

// compoundStatements emits the statements of compound literals.
func (p *jsonldReader) compoundStatements(graph ref) error {
	for _, c := range p.compounds {
		parts := [][2]string{{"value", c.lexical}, {"direction", c.dir}}
		if c.lang != "" {
			parts = append(parts, [2]string{"language", strings.ToLower(c.lang)})
		}
		for _, part := range parts {
			if err := p.emitStatement(c.node, ref{term: kg.IRI(kg.RDF + part[0])}, ref{term: kg.String(part[1])}, graph); err != nil {
				return err
			}
		}
	}
	p.compounds = p.compounds[:0]
	return nil
}

// expandList emits the cells of a list and passes its head to the sink.
func (p *jsonldReader) expandList(c *activeContext, at position, v val, to sink) error {
	l := &listWriter{p: p, graph: at.graph}
	in := at.innerPosition()
	in.extra = extra{}
	for i := range v.items() {
		var err error
		if i.isArray() && at.def != nil && at.def.container.has(containerList) {
			err = p.expandList(c, in, i, l.addCell)
		} else {
			_, err = p.expandValue(c, in, i, l.addCell)
		}
		if err != nil {
			return err
		}
	}
	head, err := l.close()
	if err != nil {
		return err
	}
	return p.deliverItem(at, item{head, itemList}, to)
}

// listWriter emits a list, cell by cell.
type listWriter struct {
	p          *jsonldReader
	graph      ref
	head, last ref
	begun      bool
}

func (l *listWriter) addCell(it item) error {
	if err := l.p.compoundStatements(l.graph); err != nil {
		return err
	}
	cell := l.p.freshRef()
	if !l.begun {
		l.head, l.begun = cell, true
	} else if err := l.p.emitStatement(l.last, refRest, cell, l.graph); err != nil {
		return err
	}
	l.last = cell
	return l.p.emitStatement(cell, refFirst, it.ref, l.graph)
}

func (l *listWriter) close() (head ref, err error) {
	if !l.begun {
		return refNil, nil
	}
	return l.head, l.p.emitStatement(l.last, refRest, refNil, l.graph)
}

// expandObject expands an object: a node, a value, a list or a set.
func (p *jsonldReader) expandObject(c *activeContext, at position, v val, to sink) (kept bool, err error) {
	o, err := p.enterObject(c, at, v, false)
	if err != nil {
		return false, err
	}
	p.current = v
	if o.c != c { // the active property may expand differently there
		at.def = o.c.termDefOf(at.key)
	}
	switch {
	case o.has("@value"):
		return p.valueObject(o, at, to)
	case o.has("@list") && at.isFloating():
		p.reportDropped("a list without a node is dropped")
		return false, nil
	case o.has("@list"), o.has("@set"):
		if o.properties > 0 || len(o.types) > 0 || !o.hasOnly("@list", "@index") && !o.hasOnly("@set", "@index") {
			return false, invalid("invalid set or list object: with @set or @list, only @index is allowed")
		}
		if list, ok := o.keywords["@list"]; ok {
			return true, p.expandList(o.c, at, list, to)
		}
		return p.expandValue(o.c, at.innerPosition(), o.keywords["@set"], to)
	case o.properties == 0 && len(o.types) == 0 && len(o.keywords) > 0 && o.hasOnly("@language"):
		return false, nil
	}
	return p.emitNode(o, at, to)
}

// object is an object with its contexts applied and its keywords found.
type object struct {
	c           *activeContext // for its entries
	typeContext *activeContext // for the values of @type
	keywords    map[string]val // except @type and @included
	types       []val          // values of the @type entries
	included    []val
	parts       []part // the object, and objects nested by @nest
	properties  int    // number of entries that are properties
}

type part struct {
	c *activeContext
	v val
}

func (o *object) has(keyword string) bool {
	_, ok := o.keywords[keyword]
	return ok
}

// hasOnly reports whether the object has the first keyword, and no others than these.
func (o *object) hasOnly(keywords ...string) bool {
	if !o.has(keywords[0]) || len(o.included) > 0 {
		return false
	}
	for k := range o.keywords {
		if !slices.Contains(keywords, k) {
			return false
		}
	}
	return true
}

// enterObject applies the contexts of an object and finds its keywords. More entries of a
// partial object follow.
func (p *jsonldReader) enterObject(c *activeContext, at position, v val, partial bool) (*object, error) {
	def := at.def
	c, err := p.leaveTypeScope(c, at.fromMap, v, partial)
	if err != nil {
		return nil, err
	}
	if def != nil && def.scoped {
		if c, err = p.applyContext(c, def.context, contextCall{base: def.base, override: true}); err != nil {
			return nil, err
		}
	}
	if local, ok := v.lookUpEntry("@context"); ok {
		p.current = local
		if at.outer && p.o.Prefix != nil {
			reportPrefixes(local, p.o.Prefix)
		}
		if c, err = p.applyContext(c, local, contextCall{base: p.o.Base}); err != nil {
			return nil, err
		}
	}
	p.current = v
	o := &object{typeContext: c}
	if c, err = p.typeScope(c, v); err != nil {
		return nil, err
	}
	o.c = c
	return o, p.collectKeywords(o, c, v)
}

// leaveTypeScope returns to the context before a type-scoped one, which does not apply to
// nested nodes (step 7).
func (p *jsonldReader) leaveTypeScope(c *activeContext, fromMap bool, v val, partial bool) (*activeContext, error) {
	if c.previous == nil || fromMap {
		return c, nil
	}
	stay := false
	for key, value := range v.entries() {
		m, err := p.expandKey(c, key.bytes())
		if err != nil {
			return c, err
		}
		alone := key.i == v.i+1 && value.next() == v.next() && !partial
		stay = stay || m.iri == "@value" || m.iri == "@id" && alone
	}
	if stay {
		return c, nil
	}
	return c.previous, nil
}

// typeScope applies the scoped contexts of an object's types (step 11).
func (p *jsonldReader) typeScope(c *activeContext, v val) (*activeContext, error) {
	if !c.scoped {
		return c, nil
	}
	values := map[string]val{}
	for key, value := range v.entries() {
		m, err := p.expandKey(c, key.bytes())
		if err != nil {
			return c, err
		}
		if m.iri == "@type" {
			values[key.string()] = value
		}
	}
	scoped := c
	for _, key := range slices.Sorted(maps.Keys(values)) {
		var terms []string
		for t := range values[key].items() {
			if t.isString() {
				terms = append(terms, t.string())
			}
		}
		slices.Sort(terms)
		for _, term := range terms {
			if d := c.termDefOf(term); d != nil && d.scoped {
				var err error
				if scoped, err = p.applyContext(scoped, d.context, contextCall{base: d.base, dontSpread: true}); err != nil {
					return scoped, err
				}
			}
		}
	}
	return scoped, nil
}

// collectKeywords finds the keywords of an object and of the objects nested in it.
func (p *jsonldReader) collectKeywords(o *object, c *activeContext, v val) error {
	o.parts = append(o.parts, part{c, v})
	for key, value := range v.entries() {
		if err := p.countStep(); err != nil {
			return err
		}
		m, err := p.expandKey(c, key.bytes())
		if err != nil {
			return err
		}
		switch {
		case key.equals("@context"):
		case m.keyword:
			p.current = value
			if err := p.addKeyword(o, c, m, value); err != nil {
				return err
			}
		case m.iri != "" && !value.isNull():
			o.properties++
		}
	}
	return nil
}

// addKeyword processes an entry that expands to a keyword.
func (p *jsonldReader) addKeyword(o *object, c *activeContext, m *expandedKey, v val) error {
	switch m.iri {
	case "@type":
		o.types = append(o.types, v)
		for t := range v.items() {
			if !t.isString() {
				return invalid("invalid type value: @type must be an IRI or an array of IRIs")
			}
		}
		return nil
	case "@included":
		o.included = append(o.included, v)
		return nil
	case "@nest":
		return p.collectNested(o, c, m, v)
	}
	if o.has(m.iri) {
		return invalid("colliding keywords: an object has %s twice", m.iri)
	}
	switch m.iri {
	case "@id":
		if !v.isString() {
			return invalid("invalid @id value: it must be an IRI")
		}
	case "@language":
		if !v.isString() {
			return invalid("invalid language-tagged string: @language must be a language tag")
		}
	case "@direction":
		if err := checkDirection(v, false); err != nil {
			return err
		}
	case "@index":
		if !v.isString() {
			return invalid("invalid @index value: it must be a string")
		}
	case "@reverse":
		if !v.isObject() {
			return invalid("invalid @reverse value: it must be an object")
		}
	case "@value", "@graph", "@list", "@set":
	default:
		p.reportDropped("%s has no meaning here and is dropped", m.iri)
		return nil
	}
	if o.keywords == nil {
		o.keywords = make(map[string]val, 4)
	}
	o.keywords[m.iri] = v
	return nil
}

// collectNested collects the content of a @nest entry (step 14).
func (p *jsonldReader) collectNested(o *object, c *activeContext, m *expandedKey, v val) (err error) {
	if m.def.scoped {
		if c, err = p.applyContext(c, m.def.context, contextCall{base: m.def.base, override: true}); err != nil {
			return err
		}
	}
	for n := range v.items() {
		bad := !n.isObject()
		if !bad {
			for key := range n.entries() {
				m, err := p.expandKey(c, key.bytes())
				bad = bad || err != nil || m.iri == "@value"
			}
		}
		if bad {
			return invalid("invalid @nest value: it must be an object other than a value object")
		}
		if err := p.collectKeywords(o, c, n); err != nil {
			return err
		}
	}
	return nil
}

// valueObject checks a value object and passes its literal to the sink (step 15).
func (p *jsonldReader) valueObject(o *object, at position, to sink) (kept bool, err error) {
	v := o.keywords["@value"]
	if o.properties > 0 || !o.hasOnly("@value", "@language", "@direction", "@index") {
		return false, invalid("invalid value object: with @value, only @type, @language, @direction and @index are allowed")
	}
	typ := ""
	for i, t := range o.types {
		if t.isArray() || i > 0 {
			if t.next() != t.i+2 || i > 0 {
				return false, invalid("invalid typed value: a value must have one type")
			}
			t = val{t.t, t.i + 1}
		}
		var ok bool
		if typ, ok, err = p.expandIRI(o.typeContext, t.string(), expandVocab|expandRelative, nil); err != nil {
			return false, err
		}
		if !ok || typ != "@json" && (isKeyword(typ) || strings.HasPrefix(typ, "_:")) {
			return false, invalid("invalid typed value: %s is not an IRI", excerpt(t.bytes()))
		}
	}
	lang, tagged := o.keywords["@language"]
	dir, directed := o.keywords["@direction"]
	switch {
	case typ != "" && (tagged || directed):
		return false, invalid("invalid value object: with @type, @language and @direction are not allowed")
	case typ == "@json":
	case v.isNull():
		return false, nil
	case v.isArray() && v.next() == v.i+1:
		return false, nil
	case !v.isScalar():
		return false, invalid("invalid value object value: @value must be a string, a number, true, false or null")
	case tagged && !v.isString():
		return false, invalid("invalid language-tagged value: it must be a string")
	case typ != "" && schemeOf(typ) == "":
		return false, invalid("invalid typed value: %s is not an IRI", excerpt([]byte(typ)))
	}
	if at.isFloating() {
		p.reportDropped("a value without a node is dropped")
		return false, nil
	}
	l, d := "", ""
	if tagged {
		l = lang.string()
	}
	if directed {
		d = dir.string()
	}
	return true, p.deliverItem(at, p.literalItem(v, typ, l, d), to)
}
