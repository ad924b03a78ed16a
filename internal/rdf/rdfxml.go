package rdf

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io"
	"iter"
	"strings"

	"koine/kg"
)

// readRDFXML reads RDF/XML (RDF 1.1 XML Syntax).
func readRDFXML(r io.Reader, o Options) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		src := newSource(r)
		p := &rdfxmlParser{
			xml:      newXMLReader(src, o.TokenBytes()),
			options:  &o,
			iris:     newInterned(&o),
			blanks:   blankNodes{tag: o.Tag},
			seed:     maphash.MakeSeed(),
			ids:      map[uint64]struct{}{},
			yield:    yield,
			declared: o.Prefix,
		}
		err := p.parseDocument()
		if broken := src.readErr(); broken != nil && !errors.Is(err, errStopped) {
			err = broken
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(kg.Quad{}, o.errorAt(src.line, err))
		}
	}
}

// rdfxmlParser is a recursive-descent parser for the grammar of section 7.2. Each method
// begins after its element's start tag and ends after its end tag.
type rdfxmlParser struct {
	xml      *xmlReader
	options  *Options
	iris     *iriCache
	blanks   blankNodes
	seed     maphash.Seed
	ids      map[uint64]struct{} // hashes of the values of rdf:ID
	yield    func(kg.Quad, error) bool
	declared func(name, namespace string)
}

// maxIDs bounds the rdf:IDs that are remembered to detect duplicates (constraint-id), so
// that a document of any size is read in bounded memory.
const maxIDs = 1 << 20

// xmlElement is an element and the attributes that its content inherits.
type xmlElement struct {
	name       xmlName
	base, lang string
	rdf        rdfAttributes
	properties []xmlAttribute
}

// rdfAttributes are the syntax attributes; nil if absent.
type rdfAttributes struct {
	id, about, nodeID, resource, datatype, parseType *string
}

func (p *rdfxmlParser) parseDocument() error {
	if err := p.toElement(); err != nil {
		return err
	}
	if p.declared != nil {
		for _, b := range p.xml.bindings[2:] { // after xml and the default
			if b.prefix != "" {
				p.declared(b.prefix, b.space)
			}
		}
	}
	root, err := p.parseElement(&xmlElement{base: p.options.Base})
	if err != nil {
		return err
	}
	if !root.isRDF("RDF") {
		if _, err := p.parseNode(root); err != nil {
			return err
		}
	} else if err := p.parseNodes(root); err != nil {
		return err
	}
	for p.xml.kind != xmlEOF {
		if err := p.xml.next(); err != nil {
			return err
		}
	}
	return nil
}

// parseNodes parses the content of rdf:RDF ([7.2.10]).
func (p *rdfxmlParser) parseNodes(root *xmlElement) error {
	if root.rdf != (rdfAttributes{}) || len(root.properties) > 0 {
		return invalid("rdf:RDF must not have attributes except xml: and xmlns:")
	}
	for {
		more, err := p.toChild("an element about a node")
		if err != nil || !more {
			return err
		}
		e, err := p.parseElement(root)
		if err != nil {
			return err
		}
		if _, err := p.parseNode(e); err != nil {
			return err
		}
	}
}

// toElement moves to the document's element.
func (p *rdfxmlParser) toElement() error {
	for {
		if err := p.xml.next(); err != nil || p.xml.kind == xmlStart {
			return err
		}
	}
}

// toChild moves to the next child element and reports whether there is one. Text other
// than white space is an error.
func (p *rdfxmlParser) toChild(wanted string) (bool, error) {
	for {
		if err := p.xml.next(); err != nil {
			return false, err
		}
		switch p.xml.kind {
		case xmlStart:
			return true, nil
		case xmlEnd:
			return false, nil
		case xmlText:
			if !isXMLSpace(p.xml.text) {
				return false, invalid("found the text %s, expected %s", excerpt(bytes.TrimSpace(p.xml.text)), wanted)
			}
		}
	}
}

func isXMLSpace(text []byte) bool { return len(bytes.Trim(text, " \t\r\n")) == 0 }

// parseElement classifies the attributes of the start tag (6.1.2, 6.1.4).
func (p *rdfxmlParser) parseElement(parent *xmlElement) (*xmlElement, error) {
	e := &xmlElement{name: p.xml.name, base: parent.base, lang: parent.lang}
	if e.name.space == "" {
		return nil, invalid("the element %s has no namespace", e.name)
	}
	for _, a := range p.xml.attributes {
		if a.space != xmlNamespace {
			continue
		}
		switch a.local {
		case "lang":
			e.lang = a.value
		case "base":
			base, err := resolveIRI(e.base, a.value)
			if err != nil {
				return nil, err
			}
			e.base, _, _ = strings.Cut(base, "#")
		}
	}
	for _, a := range p.xml.attributes {
		if len(a.prefix) >= 3 && strings.EqualFold(a.prefix[:3], "xml") || a.prefix == "" && len(a.local) >= 3 && strings.EqualFold(a.local[:3], "xml") {
			continue
		}
		if err := e.addAttribute(a); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// addAttribute adds an attribute as a syntax attribute or as a property.
func (e *xmlElement) addAttribute(a xmlAttribute) error {
	if a.prefix == "" {
		switch a.local {
		case "ID", "about", "resource", "parseType", "type":
			a.space = kg.RDF
		default:
			return invalid("the attribute %s has no namespace", a.xmlName)
		}
	}
	if a.space != kg.RDF {
		e.properties = append(e.properties, a)
		return nil
	}
	part := map[string]**string{
		"ID": &e.rdf.id, "about": &e.rdf.about, "nodeID": &e.rdf.nodeID, "resource": &e.rdf.resource,
		"datatype": &e.rdf.datatype, "parseType": &e.rdf.parseType,
	}[a.local]
	switch {
	case part != nil && *part != nil:
		return invalid("an element has the attribute %s twice", a.xmlName)
	case part != nil:
		value := a.value
		*part = &value
	case isOldTerm(a.local) || a.local == "RDF" || a.local == "Description" || a.local == "li":
		return invalid("rdf:%s cannot be an attribute", a.local)
	default:
		e.properties = append(e.properties, a)
	}
	return nil
}

func (e *xmlElement) isRDF(local string) bool {
	return e.name.space == kg.RDF && e.name.local == local
}

// isCoreTerm and isOldTerm implement coreSyntaxTerms and oldTerms of section 7.2.2.
func isCoreTerm(local string) bool {
	switch local {
	case "RDF", "ID", "about", "parseType", "resource", "nodeID", "datatype":
		return true
	}
	return false
}

func isOldTerm(local string) bool {
	return local == "aboutEach" || local == "aboutEachPrefix" || local == "bagID"
}

// parseNode parses a nodeElement ([7.2.11]) and returns its node.
func (p *rdfxmlParser) parseNode(e *xmlElement) (kg.Term, error) {
	if e.name.space == kg.RDF && (isCoreTerm(e.name.local) || isOldTerm(e.name.local) || e.name.local == "li") {
		return kg.Term{}, invalid("rdf:%s cannot be an element about a node", e.name.local)
	}
	if e.rdf.resource != nil || e.rdf.datatype != nil || e.rdf.parseType != nil {
		return kg.Term{}, invalid("rdf:resource, rdf:datatype and rdf:parseType are only allowed on properties")
	}
	subject, err := p.subjectOf(e)
	if err != nil {
		return subject, err
	}
	if !e.isRDF("Description") {
		class, err := p.iris.lookUpIRI([]byte(e.name.space + e.name.local))
		if err != nil {
			return subject, err
		}
		if err := p.emitStatement(subject, rdfType, class); err != nil {
			return subject, err
		}
	}
	if err := p.emitAttributes(subject, e); err != nil {
		return subject, err
	}
	return subject, p.parseProperties(subject, e)
}

func (p *rdfxmlParser) subjectOf(e *xmlElement) (kg.Term, error) {
	a := &e.rdf
	if countSet(a.id)+countSet(a.about)+countSet(a.nodeID) > 1 {
		return kg.Term{}, invalid("a node must have only one of rdf:ID, rdf:about and rdf:nodeID")
	}
	switch {
	case a.id != nil:
		return p.identifiedNode(e)
	case a.about != nil:
		return p.resolveRef(e, *a.about)
	case a.nodeID != nil:
		return p.labelledNode(*a.nodeID)
	}
	return p.blanks.freshNode(), nil
}

func countSet(attribute *string) int {
	if attribute == nil {
		return 0
	}
	return 1
}

// identifiedNode returns the node of an rdf:ID, which must be unique in the document.
func (p *rdfxmlParser) identifiedNode(e *xmlElement) (kg.Term, error) {
	if !isNCName(*e.rdf.id) {
		return kg.Term{}, invalid("%s cannot be an rdf:ID", excerpt([]byte(*e.rdf.id)))
	}
	t, err := p.resolveRef(e, "#"+*e.rdf.id)
	if err != nil {
		return t, err
	}
	hash := maphash.String(p.seed, t.Value())
	if _, used := p.ids[hash]; used {
		return t, invalid("the rdf:ID %s is used twice", excerpt([]byte(*e.rdf.id)))
	}
	if len(p.ids) < maxIDs {
		p.ids[hash] = struct{}{}
	}
	return t, nil
}

func (p *rdfxmlParser) labelledNode(label string) (kg.Term, error) {
	if !isNCName(label) {
		return kg.Term{}, invalid("%s cannot be an rdf:nodeID", excerpt([]byte(label)))
	}
	return p.blanks.namedNode([]byte(label)), nil
}

func (p *rdfxmlParser) resolveRef(e *xmlElement, ref string) (kg.Term, error) {
	iri, err := resolveIRI(e.base, ref)
	if err != nil {
		return kg.Term{}, err
	}
	return p.iris.lookUpIRI([]byte(iri))
}

// emitAttributes emits the property attributes ([7.2.25]).
func (p *rdfxmlParser) emitAttributes(subject kg.Term, e *xmlElement) error {
	for _, a := range e.properties {
		predicate, err := p.iris.lookUpIRI([]byte(a.space + a.local))
		if err != nil {
			return err
		}
		var object kg.Term
		if predicate == rdfType {
			object, err = p.resolveRef(e, a.value)
		} else {
			object, err = p.options.checkedLiteral(a.value, e.lang, kg.Term{})
		}
		if err == nil {
			err = p.emitStatement(subject, predicate, object)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *rdfxmlParser) emitStatement(s, predicate, o kg.Term) error {
	if !p.yield(kg.Quad{Subject: s, Predicate: predicate, Object: o, Graph: p.options.Graph}, nil) {
		return errStopped
	}
	return nil
}

var rdfType = kg.IRI(kg.RDFType)
