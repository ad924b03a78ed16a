package rdf

import (
	"strconv"

	"koine/kg"
)

var (
	rdfStatement = kg.IRI(kg.RDF + "Statement")
	rdfSubject   = kg.IRI(kg.RDF + "subject")
	rdfPredicate = kg.IRI(kg.RDF + "predicate")
	rdfObject    = kg.IRI(kg.RDF + "object")
)

// parseProperties parses the propertyElts of a node ([7.2.13]). rdf:li counts from 1.
func (p *rdfxmlParser) parseProperties(subject kg.Term, node *xmlElement) error {
	for members := 0; ; {
		more, err := p.toChild("an element about a property")
		if err != nil || !more {
			return err
		}
		e, err := p.parseElement(node)
		if err != nil {
			return err
		}
		if e.isRDF("li") {
			members++
			e.name.local = "_" + strconv.Itoa(members)
		}
		if err := p.parseProperty(subject, e); err != nil {
			return err
		}
	}
}

// parseProperty parses a propertyElt ([7.2.14]).
func (p *rdfxmlParser) parseProperty(subject kg.Term, e *xmlElement) error {
	if e.name.space == kg.RDF && (isCoreTerm(e.name.local) || isOldTerm(e.name.local) || e.name.local == "Description") {
		return invalid("rdf:%s cannot be a property", e.name.local)
	}
	predicate, err := p.iris.lookUpIRI([]byte(e.name.space + e.name.local))
	if err != nil {
		return err
	}
	a := &e.rdf
	about := countSet(a.resource) + countSet(a.nodeID)
	switch {
	case a.about != nil:
		return invalid("rdf:about is only allowed on nodes")
	case a.parseType != nil:
		if about+countSet(a.datatype)+len(e.properties) > 0 {
			return invalid("with rdf:parseType, only rdf:ID is allowed")
		}
		return p.parseTyped(subject, predicate, e)
	case a.datatype != nil && about+len(e.properties) > 0:
		return invalid("with rdf:datatype, only rdf:ID is allowed")
	case about > 1:
		return invalid("a property must have only one of rdf:resource and rdf:nodeID")
	case about+len(e.properties) > 0:
		return p.parseEmpty(subject, predicate, e)
	}
	return p.parseContent(subject, predicate, e)
}

// parseTyped parses a property with rdf:parseType ([7.2.17] to [7.2.20]).
func (p *rdfxmlParser) parseTyped(subject, predicate kg.Term, e *xmlElement) error {
	switch *e.rdf.parseType {
	case "Resource":
		node := p.blanks.freshNode()
		if err := p.emitProperty(subject, predicate, node, e); err != nil {
			return err
		}
		return p.parseProperties(node, e)
	case "Collection":
		return p.parseCollection(subject, predicate, e)
	}
	text, err := p.xml.readCanonical()
	if err != nil {
		return err
	}
	object, err := p.options.checkedLiteral(text, "", kg.IRI(kg.RDF+"XMLLiteral"))
	if err != nil {
		return err
	}
	return p.emitProperty(subject, predicate, object, e)
}

// parseCollection emits the cells of a list while it reads the nodes.
func (p *rdfxmlParser) parseCollection(subject, predicate kg.Term, e *xmlElement) error {
	cell := rdfNil
	for {
		more, err := p.toChild("an element about a node")
		if err != nil {
			return err
		}
		if !more {
			break
		}
		child, err := p.parseElement(e)
		if err != nil {
			return err
		}
		next := p.blanks.freshNode()
		if cell == rdfNil {
			err = p.emitProperty(subject, predicate, next, e)
		} else {
			err = p.emitStatement(cell, rdfRest, next)
		}
		if err != nil {
			return err
		}
		cell = next
		item, err := p.parseNode(child)
		if err != nil {
			return err
		}
		if err := p.emitStatement(cell, rdfFirst, item); err != nil {
			return err
		}
	}
	if cell == rdfNil {
		return p.emitProperty(subject, predicate, rdfNil, e)
	}
	return p.emitStatement(cell, rdfRest, rdfNil)
}

// parseEmpty parses a property without content. Its attributes identify the node and give
// its properties ([7.2.21]).
func (p *rdfxmlParser) parseEmpty(subject, predicate kg.Term, e *xmlElement) (err error) {
	var object kg.Term
	switch {
	case e.rdf.resource != nil:
		object, err = p.resolveRef(e, *e.rdf.resource)
	case e.rdf.nodeID != nil:
		object, err = p.labelledNode(*e.rdf.nodeID)
	default:
		object = p.blanks.freshNode()
	}
	if err == nil {
		err = p.emitAttributes(object, e)
	}
	if err == nil {
		err = p.emitProperty(subject, predicate, object, e)
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

// parseContent parses a property with a text or one node as content ([7.2.15], [7.2.16]).
func (p *rdfxmlParser) parseContent(subject, predicate kg.Term, e *xmlElement) error {
	var text []byte
	for {
		if err := p.xml.next(); err != nil {
			return err
		}
		switch p.xml.kind {
		case xmlText:
			if len(text)+len(p.xml.text) > p.xml.limit {
				return tooLong("a text is longer than %d bytes", p.xml.limit)
			}
			text = append(text, p.xml.text...)
		case xmlEnd:
			object, err := p.textLiteral(string(text), e)
			if err != nil {
				return err
			}
			return p.emitProperty(subject, predicate, object, e)
		case xmlStart:
			if !isXMLSpace(text) || e.rdf.datatype != nil {
				return invalid("a property must have a text or exactly one node")
			}
			return p.oneNode(subject, predicate, e)
		}
	}
}

// textLiteral returns a literal with the property's datatype or language.
func (p *rdfxmlParser) textLiteral(text string, e *xmlElement) (kg.Term, error) {
	if e.rdf.datatype == nil {
		return p.options.checkedLiteral(text, e.lang, kg.Term{})
	}
	datatype, err := p.resolveRef(e, *e.rdf.datatype)
	if err != nil {
		return kg.Term{}, err
	}
	return p.options.checkedLiteral(text, "", datatype)
}

func (p *rdfxmlParser) oneNode(subject, predicate kg.Term, e *xmlElement) error {
	child, err := p.parseElement(e)
	if err != nil {
		return err
	}
	object, err := p.parseNode(child)
	if err != nil {
		return err
	}
	if err := p.emitProperty(subject, predicate, object, e); err != nil {
		return err
	}
	more, err := p.toChild("the end of a property")
	if err == nil && more {
		err = invalid("a property must have a text or exactly one node")
	}
	return err
}

// emitProperty emits a property's statement, and reifies it if it has an rdf:ID (7.3).
func (p *rdfxmlParser) emitProperty(s, predicate, o kg.Term, e *xmlElement) error {
	if err := p.emitStatement(s, predicate, o); err != nil || e.rdf.id == nil {
		return err
	}
	statement, err := p.identifiedNode(e)
	if err != nil {
		return err
	}
	for _, part := range [...]struct{ predicate, object kg.Term }{
		{rdfType, rdfStatement}, {rdfSubject, s}, {rdfPredicate, predicate}, {rdfObject, o},
	} {
		if err := p.emitStatement(statement, part.predicate, part.object); err != nil {
			return err
		}
	}
	return nil
}
