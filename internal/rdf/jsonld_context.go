package rdf

import (
	"crypto/sha256"
	"errors"
	"strings"

	"github.com/tidwall/btree"

	"koine/kg"
)

// activeContext is a processed JSON-LD context (JSON-LD 1.1 API, section 4.1). It is immutable.
// Contexts derived from it share its terms.
type activeContext struct {
	base     string // "" if there is none
	vocab    string
	hasVocab bool
	lang     string
	dir      string
	previous *activeContext
	terms    *btree.Map[string, *termDef]
	// protected counts protected terms; scoped reports that there may be terms with a
	// context of their own.
	protected int
	scoped    bool
	// expanded counts the bytes of the IRIs that were concatenated for this context and its
	// parents.
	expanded int
	keys     map[string]*expandedKey // see jsonldReader.expandKey
}

type termDef struct {
	iri       string // "" if the term maps to null
	prefix    bool
	protected bool
	reverse   bool
	container container
	typ       string
	index     string
	nest      string
	lang      string
	hasLang   bool
	dir       string
	hasDir    bool
	context   val // set if hasContext
	scoped    bool
	base      string // base of relative context IRIs in context
}

// container is a set of container keywords.
type container uint8

const (
	containerList container = 1 << iota
	containerSet
	containerIndex
	containerLanguage
	containerID
	containerType
	containerGraph
)

var containers = map[string]container{
	"@list": containerList, "@set": containerSet, "@index": containerIndex, "@language": containerLanguage,
	"@id": containerID, "@type": containerType, "@graph": containerGraph,
}

func (c container) has(x container) bool { return c&x != 0 }

// Limits of contexts.
const (
	// maxContextDepth bounds the nesting of contexts that refer to each other.
	maxContextDepth = 32
	// maxTermDepth bounds the chain of terms that are defined by each other.
	maxTermDepth = 256
	// maxCachedContexts and maxCachedContextBytes bound the cache of processed contexts.
	maxCachedContexts     = 1 << 10
	maxCachedContextBytes = 2 << 20
	// maxExpandedBytes bounds the IRIs that active contexts concatenate of a vocabulary, a
	// prefix or a base and a suffix: a few bytes of a context can make a long IRI each.
	maxExpandedBytes = 32 << 20
)

// countExpanded counts an IRI that was concatenated for the context.
func (c *activeContext) countExpanded(iri string) error {
	if c.expanded += len(iri); c.expanded > maxExpandedBytes {
		return tooLong("the IRIs that a context builds exceed %d bytes", maxExpandedBytes)
	}
	return nil
}

func (c *activeContext) copy() *activeContext {
	d := *c
	d.terms = c.terms.Copy()
	d.keys = nil
	return &d
}

func (c *activeContext) termDefOf(name string) *termDef {
	t, _ := c.terms.Get(name)
	return t
}

// contextKey is the text of a context and the context to which it is applied.
type contextKey struct {
	active    *activeContext
	text      [sha256.Size]byte
	base      string
	override  bool
	propagate bool
}

// contextCall has the parameters of context processing.
type contextCall struct {
	base         string   // of the document with the context
	remote       []string // contexts that led here
	override     bool     // protected terms may be redefined
	dontSpread   bool     // the context applies to one node object only
	skipIncluded bool     // ignore contexts that led here
	depth        int
}

// applyContext applies a local context to an active one. Results are cached.
func (p *jsonldReader) applyContext(active *activeContext, local val, call contextCall) (*activeContext, error) {
	key := contextKey{active, sha256.Sum256(local.raw()), call.base, call.override, call.dontSpread}
	if known := p.contexts[key]; known != nil {
		return known, nil
	}
	p.steps += uint64(local.next() - local.i)
	result, err := p.processContext(active, local.clone(), call)
	if err != nil {
		return nil, err
	}
	p.cachedContextBytes += local.end() - local.pos() + result.expanded - active.expanded
	if len(p.contexts) >= maxCachedContexts || p.cachedContextBytes > maxCachedContextBytes {
		p.contexts, p.cachedContextBytes = map[contextKey]*activeContext{}, 0
	}
	p.contexts[key] = result
	return result, nil
}

func (p *jsonldReader) initialContext() *activeContext {
	return &activeContext{base: p.o.Base, terms: &btree.Map[string, *termDef]{}}
}

// processContext is the algorithm of section 4.1.2. The result keeps a reference to the
// local context.
func (p *jsonldReader) processContext(active *activeContext, local val, call contextCall) (*activeContext, error) {
	if call.depth++; call.depth > maxContextDepth {
		return nil, tooLong("context overflow: contexts refer to each other more than %d deep", maxContextDepth)
	}
	result := active.copy()
	if local.isObject() {
		if spread, ok := local.lookUpEntry("@propagate"); ok {
			call.dontSpread = spread.kind() == 'f'
		}
	}
	if call.dontSpread && result.previous == nil {
		result.previous = active
	}
	for context := range local.items() {
		err := p.countStep()
		switch {
		case err != nil:
		case context.isNull():
			result, err = p.emptyContext(result, call)
		case context.isString():
			result, err = p.otherContext(result, context.string(), call)
		case context.isObject():
			err = p.contextObject(result, context, call)
		default:
			err = invalid("invalid local context: a context must be an object, an IRI or null")
		}
		if err != nil {
			return nil, err
		}
	}
	return result, nil
}

func (p *jsonldReader) emptyContext(result *activeContext, call contextCall) (*activeContext, error) {
	if !call.override && result.protected > 0 {
		return nil, invalid("invalid context nullification: the context has protected terms")
	}
	empty := p.initialContext()
	empty.expanded = result.expanded // its parents are still in memory
	if call.dontSpread {
		empty.previous = result
	}
	return empty, nil
}

// otherContext applies a context that is referenced by its IRI.
func (p *jsonldReader) otherContext(result *activeContext, ref string, call contextCall) (*activeContext, error) {
	iri, context, err := p.suppliedContext(ref, call)
	if err != nil {
		return nil, err
	}
	for _, led := range call.remote {
		if led == iri {
			if call.skipIncluded {
				return result, nil
			}
			return nil, invalid("context overflow: the context %s includes itself", excerpt([]byte(iri)))
		}
	}
	call.base, call.remote = iri, append(call.remote[:len(call.remote):len(call.remote)], iri)
	call.dontSpread = false
	result, err = p.processContext(result, context, call)
	if err != nil {
		return nil, kg.Errorf(kg.CodeOf(err), "in the context %s: %s", excerpt([]byte(iri)), messageOf(err))
	}
	return result, nil
}

// suppliedContext returns the context for a reference from another context.
func (p *jsonldReader) suppliedContext(ref string, call contextCall) (iri string, context val, err error) {
	if iri, err = resolveIRI(call.base, ref); err != nil {
		return "", val{}, invalid("the context %s is relative, and the document has no base", excerpt([]byte(ref)))
	}
	document, err := p.o.JSONLD.Contexts.lookUpDocument(iri)
	if err != nil {
		return "", val{}, err
	}
	context, ok := document.lookUpEntry("@context")
	if !document.isObject() || !ok {
		return "", val{}, invalid("invalid remote context: the document for %s has no @context", excerpt([]byte(iri)))
	}
	return iri, context, nil
}

// contextObject applies an object to a context.
func (p *jsonldReader) contextObject(result *activeContext, context val, call contextCall) error {
	local := &localContext{entries: map[string]val{}}
	for key, value := range context.entries() {
		name := key.string()
		local.entries[name] = value
		local.order = append(local.order, name)
	}
	if err := p.importContext(local, call); err != nil {
		return err
	}
	if v, ok := local.entries["@version"]; ok && string(v.raw()) != "1.1" {
		return invalid("invalid @version value: it must be 1.1")
	}
	if v, ok := local.entries["@propagate"]; ok && !v.isBool() {
		return invalid("invalid @propagate value: it must be true or false")
	}
	if err := p.contextDefaults(result, local, call); err != nil {
		return err
	}
	if v, ok := local.entries["@protected"]; ok {
		if !v.isBool() {
			return invalid("invalid @protected value: it must be true or false")
		}
		local.protected = v.kind() == 't'
	}
	local.call, local.defined = call, map[string]bool{}
	for _, name := range local.order {
		switch name {
		case "@base", "@direction", "@import", "@language", "@propagate", "@protected", "@version", "@vocab":
			continue
		}
		if err := p.defineTerm(result, local, name); err != nil {
			return err
		}
	}
	return nil
}

// localContext is a local context during the definition of its terms.
type localContext struct {
	entries   map[string]val
	order     []string
	defined   map[string]bool // false while a term is being defined
	depth     int
	protected bool
	call      contextCall
}

// importContext adds the entries of the context that @import names, unless the context
// has them itself.
func (p *jsonldReader) importContext(local *localContext, call contextCall) error {
	ref, ok := local.entries["@import"]
	if !ok {
		return nil
	}
	if !ref.isString() {
		return invalid("invalid @import value: it must be the IRI of a context")
	}
	iri, imported, err := p.suppliedContext(ref.string(), call)
	if err != nil {
		return err
	}
	if !imported.isObject() {
		return invalid("invalid remote context: %s is imported and is not an object", excerpt([]byte(iri)))
	}
	for key, value := range imported.entries() {
		name := key.string()
		if name == "@import" {
			return invalid("invalid context entry: %s is imported and must not have @import", excerpt([]byte(iri)))
		}
		if _, ok := local.entries[name]; !ok {
			local.entries[name] = value
			local.order = append(local.order, name)
		}
	}
	return nil
}

// contextDefaults sets base, vocabulary, language and direction.
func (p *jsonldReader) contextDefaults(result *activeContext, local *localContext, call contextCall) error {
	if v, ok := local.entries["@base"]; ok && len(call.remote) == 0 {
		switch {
		case v.isNull():
			result.base = ""
		case !v.isString():
			return invalid("invalid base IRI: @base must be an IRI or null")
		default:
			base, err := resolveIRI(result.base, v.string())
			if err != nil {
				return invalid("invalid base IRI: %s is relative, and there is no base to resolve it", excerpt(v.bytes()))
			}
			if err := result.countExpanded(base); err != nil {
				return err
			}
			result.base = base
		}
	}
	if v, ok := local.entries["@vocab"]; ok {
		if v.isNull() {
			result.vocab, result.hasVocab = "", false
		} else if !v.isString() {
			return invalid("invalid vocab mapping: @vocab must be an IRI or null")
		} else {
			iri, ok, err := p.expandIRI(result, v.string(), expandVocab|expandRelative, nil)
			if err != nil {
				return err
			}
			if !ok || isKeyword(iri) {
				return invalid("invalid vocab mapping: %s", excerpt(v.bytes()))
			}
			if err := result.countExpanded(iri); err != nil {
				return err
			}
			result.vocab, result.hasVocab = iri, true
		}
	}
	if v, ok := local.entries["@language"]; ok {
		if !v.isNull() && !v.isString() {
			return invalid("invalid default language: @language must be a language tag or null")
		}
		result.lang = textOrEmpty(v)
	}
	if v, ok := local.entries["@direction"]; ok {
		if err := checkDirection(v, true); err != nil {
			return err
		}
		result.dir = textOrEmpty(v)
	}
	return nil
}

// textOrEmpty returns a string, or "" for null.
func textOrEmpty(v val) string {
	if v.isNull() {
		return ""
	}
	return v.string()
}

func checkDirection(v val, orNull bool) error {
	if orNull && v.isNull() || v.isString() && (v.equals("ltr") || v.equals("rtl")) {
		return nil
	}
	return invalid("invalid base direction: it must be \"ltr\" or \"rtl\"")
}

func messageOf(err error) string {
	var e *kg.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// isKeyword reports whether a text is a keyword of JSON-LD 1.1.
func isKeyword(s string) bool {
	if !strings.HasPrefix(s, "@") {
		return false
	}
	switch s {
	case "@base", "@container", "@context", "@default", "@direction", "@graph", "@id", "@import", "@included", "@index", "@json",
		"@language", "@list", "@nest", "@none", "@prefix", "@propagate", "@protected", "@reverse", "@set", "@type", "@value", "@version", "@vocab":
		return true
	}
	return false
}

// likeKeyword reports whether a text has the reserved form of a keyword.
func likeKeyword(s string) bool {
	if len(s) < 2 || s[0] != '@' {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}
