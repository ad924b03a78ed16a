package rdf

import (
	"bytes"
	"strings"

	"koine/kg"
)

// expansion is a set of the bases against which an IRI is resolved.
type expansion uint8

const (
	expandVocab    expansion = 1 << iota // terms and the vocabulary
	expandRelative                       // the base IRI
)

// expandIRI is the algorithm of section 5.2.2. ok is false if the text maps to null. If
// local is given, its terms are defined first.
func (p *jsonldReader) expandIRI(c *activeContext, text string, how expansion, local *localContext) (iri string, ok bool, err error) {
	if isKeyword(text) {
		return text, true, nil
	}
	if likeKeyword(text) {
		return "", false, nil
	}
	if err := p.defineFirst(c, local, text); err != nil {
		return "", false, err
	}
	if t := c.termDefOf(text); t != nil && (how&expandVocab != 0 || isKeyword(t.iri)) {
		return t.iri, t.iri != "", nil
	}
	if colon := strings.IndexByte(text, ':'); colon > 0 {
		prefix, suffix := text[:colon], text[colon+1:]
		if prefix == "_" || strings.HasPrefix(suffix, "//") {
			return text, true, nil
		}
		if err := p.defineFirst(c, local, prefix); err != nil {
			return "", false, err
		}
		if t := c.termDefOf(prefix); t != nil && t.iri != "" && t.prefix {
			if err := p.chargeIRI(t.iri, suffix); err != nil {
				return "", false, err
			}
			return t.iri + suffix, true, nil
		}
		if schemeOf(text) != "" {
			return text, true, nil
		}
	}
	if how&expandVocab != 0 && c.hasVocab {
		if err := p.chargeIRI(c.vocab, text); err != nil {
			return "", false, err
		}
		return c.vocab + text, true, nil
	}
	if how&expandRelative != 0 && c.base != "" {
		if err := p.chargeIRI(c.base, text); err != nil {
			return "", false, err
		}
		if resolved, err := resolveIRI(c.base, text); err == nil {
			return resolved, true, nil
		}
	}
	return text, true, nil
}

// Limits of the IRIs that a document builds from a vocabulary, a prefix or a base and a
// suffix. A few bytes of a document can build an IRI of a mebibyte each: without a limit
// on their sum the time would be quadratic in the document's length.
const (
	maxJoinedBytes = 256 << 20
	// maxJoinedPerByte is the number of further bytes for each byte of the document.
	maxJoinedPerByte = 32
)

// chargeIRI counts an IRI before it is built from two texts. It fails beyond the limit
// for the document's length.
func (p *jsonldReader) chargeIRI(front, rest string) error {
	p.joinedBytes += uint64(len(front) + len(rest))
	if limit := maxJoinedBytes + maxJoinedPerByte*p.s.steps; p.joinedBytes > limit {
		e := tooLong("the IRIs that the document builds from @vocab, prefixes and @base exceed %d bytes: %d and %d per byte read", limit, maxJoinedBytes, maxJoinedPerByte)
		e.Hint = "Use a shorter @vocab, prefix or @base, or send N-Quads."
		return e
	}
	return nil
}

// defineFirst defines a term of the local context, if there is one, that is not yet defined.
func (p *jsonldReader) defineFirst(c *activeContext, local *localContext, name string) error {
	if local != nil {
		if _, has := local.entries[name]; has && !local.defined[name] {
			return p.defineTerm(c, local, name)
		}
	}
	return nil
}

// isIRI reports whether an expanded text is an IRI or a blank node.
func isIRI(s string) bool { return schemeOf(s) != "" || strings.HasPrefix(s, "_:") }

// defineTerm is the algorithm of section 4.2.2.
func (p *jsonldReader) defineTerm(c *activeContext, local *localContext, name string) error {
	if done, begun := local.defined[name]; done {
		return nil
	} else if begun {
		return invalid("cyclic IRI mapping: the term %s refers to itself", excerpt([]byte(name)))
	}
	if name == "" {
		return invalid("invalid term definition: a term must have at least one character")
	}
	if local.depth++; local.depth > maxTermDepth {
		return tooLong("more than %d terms are defined by each other", maxTermDepth)
	}
	defer func() { local.depth-- }()
	if err := p.countStep(); err != nil {
		return err
	}
	local.defined[name] = false
	value := local.entries[name]
	switch {
	case name == "@type":
		if err := typeTerm(value); err != nil {
			return err
		}
	case isKeyword(name):
		return invalid("keyword redefinition: %s is a keyword", name)
	case likeKeyword(name):
		return nil
	}
	previous, _ := c.terms.Delete(name)
	if previous != nil && previous.protected {
		c.protected--
	}
	d := &termBuilder{p: p, c: c, local: local, name: name, termDef: &termDef{protected: local.protected, base: local.call.base}}
	ignored, err := d.buildTerm(value)
	if err != nil {
		return termError(name, err)
	}
	if ignored {
		return nil
	}
	if !local.call.override && previous != nil && previous.protected {
		if !d.sameAs(previous) {
			return invalid("protected term redefinition: the term %s is protected", excerpt([]byte(name)))
		}
		d.termDef = previous
	}
	if d.protected {
		c.protected++
	}
	c.scoped = c.scoped || d.scoped
	c.terms.Set(name, d.termDef)
	local.defined[name] = true
	return nil
}

func termError(name string, err error) error {
	m := messageOf(err)
	if strings.Contains(m, "the term ") {
		return err
	}
	return kg.Errorf(kg.CodeOf(err), "%s (in the definition of the term %s)", m, excerpt([]byte(name)))
}

// typeTerm checks a context's definition of @type.
func typeTerm(value val) error {
	ok := value.isObject() && value.next() > value.i+1
	if ok {
		for key, v := range value.entries() {
			switch {
			case key.equals("@container"):
				ok = ok && (v.isString() && v.equals("@set") || v.isArray() && v.next() == v.i+2 && val{v.t, v.i + 1}.isString() && val{v.t, v.i + 1}.equals("@set"))
			case !key.equals("@protected"):
				ok = false
			}
		}
	}
	if !ok {
		return invalid("keyword redefinition: a context can only set @container: @set and @protected for @type")
	}
	return nil
}

type termBuilder struct {
	p     *jsonldReader
	c     *activeContext
	local *localContext
	name  string
	*termDef
}

// buildTerm reads a definition. It ignores a definition with a reserved keyword.
func (d *termBuilder) buildTerm(value val) (ignored bool, err error) {
	entries := map[string]val{}
	switch {
	case value.isNull():
		return false, nil
	case value.isString():
		return d.setID(value, true)
	case !value.isObject():
		return false, invalid("invalid term definition: it must be an IRI, an object or null")
	}
	for key, v := range value.entries() {
		entries[key.string()] = v
	}
	for key := range entries {
		switch key {
		case "@id", "@reverse", "@container", "@context", "@direction", "@index", "@language", "@nest", "@prefix", "@protected", "@type":
		default:
			return false, invalid("invalid term definition: %s is not a keyword for it", excerpt([]byte(key)))
		}
	}
	if v, ok := entries["@protected"]; ok {
		if !v.isBool() {
			return false, invalid("invalid @protected value: it must be true or false")
		}
		d.protected = v.kind() == 't'
	}
	if err := d.typeMapping(entries); err != nil {
		return false, err
	}
	if v, ok := entries["@reverse"]; ok {
		return d.reverseProperty(v, entries)
	}
	if id, ok := entries["@id"]; ok && !(id.isString() && id.equals(d.name)) {
		if ignored, err = d.setID(id, false); ignored || err != nil {
			return ignored, err
		}
	} else if err := d.ownIRI(); err != nil {
		return false, err
	}
	for _, step := range []func(map[string]val) error{d.containerMapping, d.indexMapping, d.scopedContext, d.languageMapping, d.nestMapping, d.prefixFlag} {
		if err := step(entries); err != nil {
			return false, err
		}
	}
	return false, nil
}

// expandTermIRI expands an IRI of the definition by the terms of its context.
func (d *termBuilder) expandTermIRI(text string) (string, bool, error) {
	iri, ok, err := d.p.expandIRI(d.c, text, expandVocab, d.local)
	if err == nil && iri != text {
		err = d.c.countExpanded(iri)
	}
	return iri, ok, err
}

func (d *termBuilder) typeMapping(entries map[string]val) error {
	v, ok := entries["@type"]
	if !ok {
		return nil
	}
	if !v.isString() {
		return invalid("invalid type mapping: @type must be an IRI or a keyword")
	}
	typ, ok, err := d.expandTermIRI(v.string())
	if err != nil {
		return err
	}
	switch {
	case typ == "@id" || typ == "@vocab" || typ == "@json" || typ == "@none":
	case !ok || isKeyword(typ) || schemeOf(typ) == "":
		return invalid("invalid type mapping: %s is not an IRI", excerpt(v.bytes()))
	}
	d.typ = typ
	return nil
}

func (d *termBuilder) reverseProperty(v val, entries map[string]val) (ignored bool, err error) {
	_, id := entries["@id"]
	_, nest := entries["@nest"]
	if id || nest {
		return false, invalid("invalid reverse property: @reverse excludes @id and @nest")
	}
	if !v.isString() {
		return false, invalid("invalid IRI mapping: @reverse must be an IRI")
	}
	if likeKeyword(v.string()) {
		return true, nil
	}
	iri, ok, err := d.expandTermIRI(v.string())
	if err != nil {
		return false, err
	}
	if !ok || !isIRI(iri) {
		return false, invalid("invalid IRI mapping: %s is not an IRI", excerpt(v.bytes()))
	}
	d.iri, d.reverse = iri, true
	if c, ok := entries["@container"]; ok && !c.isNull() {
		if !c.isString() || !c.equals("@set") && !c.equals("@index") {
			return false, invalid("invalid reverse property: its @container must be @set, @index or null")
		}
		d.container = containers[c.string()]
	}
	return false, nil
}

// setID sets the IRI that a definition gives.
func (d *termBuilder) setID(v val, simple bool) (ignored bool, err error) {
	if v.isNull() {
		return false, nil
	}
	if !v.isString() {
		return false, invalid("invalid IRI mapping: @id must be an IRI or null")
	}
	text := v.string()
	if text == d.name {
		return false, d.ownIRI()
	}
	if !isKeyword(text) && likeKeyword(text) {
		return true, nil
	}
	iri, ok, err := d.expandTermIRI(text)
	if err != nil {
		return false, err
	}
	if iri == "@context" {
		return false, invalid("invalid keyword alias: @context cannot have one")
	}
	if !ok || !isKeyword(iri) && !isIRI(iri) {
		return false, invalid("invalid IRI mapping: %s is not an IRI", excerpt([]byte(text)))
	}
	d.iri = iri
	colon := len(d.name) > 1 && strings.IndexByte(d.name[1:len(d.name)-1], ':') >= 0
	slash := strings.IndexByte(d.name, '/') >= 0
	if colon || slash {
		d.local.defined[d.name] = true
		if own, _, err := d.expandTermIRI(d.name); err != nil || own != iri {
			return false, invalid("invalid IRI mapping: the term is an IRI and must not map to another one")
		}
	}
	if !strings.ContainsAny(d.name, ":/") && simple {
		d.prefix = strings.HasPrefix(iri, "_:") || endsNamespace(iri)
	}
	return false, nil
}

// ownIRI sets the IRI of a term without one, derived from the term itself.
func (d *termBuilder) ownIRI() error {
	if colon := strings.IndexByte(d.name, ':'); colon > 0 {
		prefix := d.name[:colon]
		if _, ok := d.local.entries[prefix]; ok {
			if err := d.p.defineTerm(d.c, d.local, prefix); err != nil {
				return err
			}
		}
		if t := d.c.termDefOf(prefix); t != nil {
			d.iri = t.iri + d.name[colon+1:]
			return d.c.countExpanded(d.iri)
		}
		d.iri = d.name
		return nil
	}
	switch {
	case strings.IndexByte(d.name, '/') >= 0:
		iri, _, err := d.p.expandIRI(d.c, d.name, expandVocab, nil)
		if err != nil || schemeOf(iri) == "" {
			return invalid("invalid IRI mapping: the term is not an IRI")
		}
		d.iri = iri
		return d.c.countExpanded(iri)
	case d.name == "@type":
		d.iri = "@type"
	case d.c.hasVocab:
		d.iri = d.c.vocab + d.name
		return d.c.countExpanded(d.iri)
	default:
		return invalid("invalid IRI mapping: the term has no IRI, and there is no @vocab")
	}
	return nil
}

func (d *termBuilder) containerMapping(entries map[string]val) error {
	v, ok := entries["@container"]
	if !ok {
		return nil
	}
	bad := invalid("invalid container mapping: %s", excerpt(v.raw()))
	for item := range v.items() {
		c := container(0)
		if item.isString() {
			c = containers[item.string()]
		}
		if c == 0 || d.container.has(c) {
			return bad
		}
		d.container |= c
	}
	switch c := d.container &^ containerSet; {
	case c == 0 && d.container != 0:
	case c == containerList && d.container == c:
	case c == containerGraph, c == containerGraph|containerID, c == containerGraph|containerIndex:
	case c == containerIndex, c == containerID, c == containerType, c == containerLanguage:
	default:
		return bad
	}
	if d.container.has(containerType) {
		if d.typ == "" {
			d.typ = "@id"
		}
		if d.typ != "@id" && d.typ != "@vocab" {
			return invalid("invalid type mapping: with @container: @type, it must be @id or @vocab")
		}
	}
	return nil
}

func (d *termBuilder) indexMapping(entries map[string]val) error {
	v, ok := entries["@index"]
	if !ok {
		return nil
	}
	if !d.container.has(containerIndex) || !v.isString() {
		return invalid("invalid term definition: @index must be an IRI and needs @container: @index")
	}
	iri, ok, err := d.expandTermIRI(v.string())
	if err != nil {
		return err
	}
	if !ok || schemeOf(iri) == "" {
		return invalid("invalid term definition: @index is %s, which is not an IRI", excerpt(v.bytes()))
	}
	d.index = v.string()
	return nil
}

func (d *termBuilder) scopedContext(entries map[string]val) error {
	v, ok := entries["@context"]
	if !ok {
		return nil
	}
	call := d.local.call
	call.override, call.skipIncluded, call.dontSpread = true, true, false
	if _, err := d.p.processContext(d.c, v, call); err != nil {
		return invalid("invalid scoped context: %s", messageOf(err))
	}
	d.context, d.termDef.scoped = v, true
	return nil
}

func (d *termBuilder) languageMapping(entries map[string]val) error {
	if _, ok := entries["@type"]; ok {
		return nil
	}
	if v, ok := entries["@language"]; ok {
		if !v.isNull() && !v.isString() {
			return invalid("invalid language mapping: @language must be a language tag or null")
		}
		d.lang, d.hasLang = textOrEmpty(v), true
	}
	if v, ok := entries["@direction"]; ok {
		if err := checkDirection(v, true); err != nil {
			return err
		}
		d.dir, d.hasDir = textOrEmpty(v), true
	}
	return nil
}

func (d *termBuilder) nestMapping(entries map[string]val) error {
	v, ok := entries["@nest"]
	if !ok {
		return nil
	}
	if !v.isString() || isKeyword(v.string()) && !v.equals("@nest") {
		return invalid("invalid @nest value: it must be @nest or a term for @nest")
	}
	d.nest = v.string()
	return nil
}

func (d *termBuilder) prefixFlag(entries map[string]val) error {
	v, ok := entries["@prefix"]
	if !ok {
		return nil
	}
	if strings.ContainsAny(d.name, ":/") {
		return invalid("invalid term definition: a term with a colon or a slash cannot be a prefix")
	}
	if !v.isBool() {
		return invalid("invalid @prefix value: it must be true or false")
	}
	d.prefix = v.kind() == 't'
	if d.prefix && isKeyword(d.iri) {
		return invalid("invalid term definition: a keyword cannot be a prefix")
	}
	return nil
}

// sameAs reports whether two definitions are equal, except for protection.
func (d *termDef) sameAs(e *termDef) bool {
	if d.scoped != e.scoped || d.scoped && !bytes.Equal(d.context.raw(), e.context.raw()) && !sameJSON(d.context, e.context) {
		return false
	}
	a, b := *d, *e
	for _, x := range []*termDef{&a, &b} {
		x.context, x.protected, x.base = val{}, false, ""
	}
	return a == b
}
