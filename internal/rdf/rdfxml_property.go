package rdf

import "koine/kg"

var (
	rdfStatement = kg.IRI(kg.RDF + "Statement")
	rdfSubject   = kg.IRI(kg.RDF + "subject")
	rdfPredicate = kg.IRI(kg.RDF + "predicate")
	rdfObject    = kg.IRI(kg.RDF + "object")
)

// properties parses the propertyElts of a node ([7.2.13]). rdf:li counts from 1.
func (p *rdfxmlParser) properties(subject kg.Term, node *xmlElement) error {
	for members := 0; ; {
		more, err := p.toChild("an element about a property")
		if err != nil || !more {
			return err
		}
		e, err := p.element(node)
		if err != nil {
			return err
		}
		if e.isRDF("li") {
			members++
			e.name.local = "_" + decimal(members)
		}
		if err := p.property(subject, e); err != nil {
			return err
		}
	}
}

// property parses a propertyElt ([7.2.14]).
func (p *rdfxmlParser) property(subject kg.Term, e *xmlElement) error {
	if e.name.space == kg.RDF && (isCoreTerm(e.name.local) || isOldTerm(e.name.local) || e.name.local == "Description") {
		return invalid("rdf:%s cannot be a property", e.name.local)
	}
	predicate, err := p.iris.iri([]byte(e.name.space + e.name.local))
	if err != nil {
		return err
	}
	a := &e.rdf
	about := said(a.resource) + said(a.nodeID)
	switch {
	case a.about != nil:
		return invalid("rdf:about is only allowed on nodes")
	case a.parseType != nil:
		if about+said(a.datatype)+len(e.properties) > 0 {
			return invalid("with rdf:parseType, only rdf:ID is allowed")
		}
		return p.parsed(subject, predicate, e)
	case a.datatype != nil && about+len(e.properties) > 0:
		return invalid("with rdf:datatype, only rdf:ID is allowed")
	case about > 1:
		return invalid("a property must have only one of rdf:resource and rdf:nodeID")
	case about+len(e.properties) > 0:
		return p.empty(subject, predicate, e)
	}
	return p.content(subject, predicate, e)
}

// parsed parses a property with rdf:parseType ([7.2.17] to [7.2.20]).
func (p *rdfxmlParser) parsed(subject, predicate kg.Term, e *xmlElement) error {
	switch *e.rdf.parseType {
	case "Resource":
		node := p.blanks.fresh()
		if err := p.state(subject, predicate, node, e); err != nil {
			return err
		}
		return p.properties(node, e)
	case "Collection":
		return p.collection(subject, predicate, e)
	}
	text, err := p.xml.canonical()
	if err != nil {
		return err
	}
	object, err := p.options.literal(text, "", kg.IRI(kg.RDF+"XMLLiteral"))
	if err != nil {
		return err
	}
	return p.state(subject, predicate, object, e)
}

// collection emits the cells of a list while it reads the nodes.
func (p *rdfxmlParser) collection(subject, predicate kg.Term, e *xmlElement) error {
	cell := rdfNil
	for {
		more, err := p.toChild("an element about a node")
		if err != nil {
			return err
		}
		if !more {
			break
		}
		child, err := p.element(e)
		if err != nil {
			return err
		}
		next := p.blanks.fresh()
		if cell == rdfNil {
			err = p.state(subject, predicate, next, e)
		} else {
			err = p.emit(cell, rdfRest, next)
		}
		if err != nil {
			return err
		}
		cell = next
		item, err := p.node(child)
		if err != nil {
			return err
		}
		if err := p.emit(cell, rdfFirst, item); err != nil {
			return err
		}
	}
	if cell == rdfNil {
		return p.state(subject, predicate, rdfNil, e)
	}
	return p.emit(cell, rdfRest, rdfNil)
}

// empty parses a property without content. Its attributes identify the node and give its properties
// ([7.2.21]).
func (p *rdfxmlParser) empty(subject, predicate kg.Term, e *xmlElement) (err error) {
	var object kg.Term
	switch {
	case e.rdf.resource != nil:
		object, err = p.resolve(e, *e.rdf.resource)
	case e.rdf.nodeID != nil:
		object, err = p.labelled(*e.rdf.nodeID)
	default:
		object = p.blanks.fresh()
	}
	if err == nil {
		err = p.attributes(object, e)
	}
	if err == nil {
		err = p.state(subject, predicate, object, e)
	}
	if err != nil {
		return err
	}
	for {
		if err := p.xml.next(); err != nil || p.xml.kind == xmlEnd {
			return err
		}
		if p.xml.kind == xmlStart || p.xml.kind == xmlText {
			return invalid("a property with attributes must not have content")
		}
	}
}

// content parses a property with a text or one node as content ([7.2.15], [7.2.16]).
func (p *rdfxmlParser) content(subject, predicate kg.Term, e *xmlElement) error {
	var text []byte
	for {
		if err := p.xml.next(); err != nil {
			return err
		}
		switch p.xml.kind {
		case xmlText:
			if len(text)+len(p.xml.text) > p.xml.most {
				return tooLong("a text is longer than %d bytes", p.xml.most)
			}
			text = append(text, p.xml.text...)
		case xmlEnd:
			object, err := p.text(string(text), e)
			if err != nil {
				return err
			}
			return p.state(subject, predicate, object, e)
		case xmlStart:
			if !isXMLSpace(text) || e.rdf.datatype != nil {
				return invalid("a property must have a text or exactly one node")
			}
			return p.oneNode(subject, predicate, e)
		}
	}
}

// text returns a literal with the property's datatype or language.
func (p *rdfxmlParser) text(text string, e *xmlElement) (kg.Term, error) {
	if e.rdf.datatype == nil {
		return p.options.literal(text, e.lang, kg.Term{})
	}
	datatype, err := p.resolve(e, *e.rdf.datatype)
	if err != nil {
		return kg.Term{}, err
	}
	return p.options.literal(text, "", datatype)
}

func (p *rdfxmlParser) oneNode(subject, predicate kg.Term, e *xmlElement) error {
	child, err := p.element(e)
	if err != nil {
		return err
	}
	object, err := p.node(child)
	if err != nil {
		return err
	}
	if err := p.state(subject, predicate, object, e); err != nil {
		return err
	}
	more, err := p.toChild("the end of a property")
	if err == nil && more {
		err = invalid("a property must have a text or exactly one node")
	}
	return err
}

// state emits a property's statement, and reifies it if it has an rdf:ID (7.3).
func (p *rdfxmlParser) state(s, predicate, o kg.Term, e *xmlElement) error {
	if err := p.emit(s, predicate, o); err != nil || e.rdf.id == nil {
		return err
	}
	statement, err := p.identified(e)
	if err != nil {
		return err
	}
	for _, part := range [...]struct{ predicate, object kg.Term }{
		{rdfType, rdfStatement}, {rdfSubject, s}, {rdfPredicate, predicate}, {rdfObject, o},
	} {
		if err := p.emit(statement, part.predicate, part.object); err != nil {
			return err
		}
	}
	return nil
}
