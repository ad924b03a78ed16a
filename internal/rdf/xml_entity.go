package rdf

import "unicode/utf8"

// Limits of declared entities. Their expansion is bounded as well, so that a short
// document cannot expand to a long one.
const (
	MaxXMLEntities      = 4 << 10  // declared
	MaxXMLEntityBytes   = 1 << 20  // of all entities, after expansion
	MaxXMLExpandedBytes = 64 << 20 // of all references of a document
)

type xmlEntities struct {
	texts    map[string]string
	bytes    int // of texts
	expanded int
}

// readReference appends the replacement text of a character or entity reference (XML 1.0, 4.1).
func (x *xmlReader) readReference() error {
	x.src.skip(1)
	if x.src.peek() == '#' {
		x.src.skip(1)
		r, err := x.codePoint()
		if err != nil {
			return err
		}
		return x.appendRune(r)
	}
	name, err := x.ncName()
	if err != nil {
		return err
	}
	if err := x.expectMark(";"); err != nil {
		return err
	}
	if c := predefinedEntity(name); c != 0 {
		return x.appendRune(c)
	}
	text, ok := x.entities.texts[name]
	if !ok {
		return invalid("the entity &%s; is not declared in the document", name)
	}
	if x.entities.expanded += len(text); x.entities.expanded > MaxXMLExpandedBytes {
		return tooLong("the entities of the document expand to more than %d bytes", MaxXMLExpandedBytes)
	}
	if len(x.text)+len(text) > x.limit {
		return tooLong("a text or the attributes of an element are longer than %d bytes", x.limit)
	}
	x.text = append(x.text, text...)
	return nil
}

// codePoint parses the rest of a character reference.
func (x *xmlReader) codePoint() (rune, error) {
	base, hex := rune(10), x.src.peek() == 'x'
	if hex {
		base = 16
		x.src.skip(1)
	}
	var r rune
	for n := 0; ; n++ {
		c := x.src.peek()
		digit, ok := hexValue([]byte{c})
		if !ok || !hex && !isDigit(c) {
			if n == 0 {
				return 0, x.errUnexpected("the digits of a character")
			}
			break
		}
		if r = r*base + digit; r > utf8.MaxRune {
			return 0, invalid("a reference does not name a character")
		}
		x.src.skip(1)
	}
	if !isXMLChar(r) {
		return 0, invalid("a reference names %U, which XML does not allow", r)
	}
	return r, x.expectMark(";")
}

func predefinedEntity(name string) rune {
	switch name {
	case "lt":
		return '<'
	case "gt":
		return '>'
	case "amp":
		return '&'
	case "quot":
		return '"'
	case "apos":
		return '\''
	}
	return 0
}

// readDoctype parses a document type declaration. Only internal entities with a text are
// supported: external entities and an external DTD are never read.
func (x *xmlReader) readDoctype() error {
	if x.rooted || !x.src.hasPrefix("<!DOCTYPE") {
		return x.errUnexpected("an element or a text")
	}
	if x.entities.texts != nil {
		return invalid("the document has two DOCTYPE declarations")
	}
	x.entities.texts = map[string]string{}
	x.src.skip(len("<!DOCTYPE"))
	if err := x.skipDeclaration('['); err != nil {
		return err
	}
	if x.src.peek() == '[' {
		x.src.skip(1)
		if err := x.internalSubset(); err != nil {
			return err
		}
		x.skipSpace()
	}
	if err := x.expectMark(">"); err != nil {
		return err
	}
	return x.next()
}

func (x *xmlReader) internalSubset() error {
	for {
		x.skipSpace()
		x.text = x.text[:0]
		switch {
		case x.src.peek() == ']':
			x.src.skip(1)
			return nil
		case x.src.peek() == '%':
			return invalid("parameter entities are not supported")
		case x.src.hasPrefix("<!--"):
			if err := x.readComment(); err != nil {
				return err
			}
			continue
		case x.src.hasPrefix("<?"):
			x.src.skip(2)
			if err := x.readUntil("?>"); err != nil {
				return err
			}
			continue
		case x.src.hasPrefix("<!ENTITY"):
			if err := x.readEntity(); err != nil {
				return err
			}
		case x.src.hasPrefix("<!"):
			x.src.skip(2)
			if err := x.skipDeclaration('>'); err != nil {
				return err
			}
		default:
			return x.errUnexpected("a declaration")
		}
		if err := x.expectMark(">"); err != nil {
			return err
		}
	}
}

// skipDeclaration skips a declaration up to its end, or up to another mark.
func (x *xmlReader) skipDeclaration(mark byte) error {
	for {
		c := x.src.peek()
		if c == mark || c == '>' {
			return nil
		}
		if _, err := x.readCharacter(); err != nil {
			return err
		}
		if c != '"' && c != '\'' {
			continue
		}
		x.text = x.text[:0]
		if err := x.readUntil(string(c)); err != nil {
			return err
		}
	}
}

// readEntity parses the declaration of an entity ([70]). The first declaration of a name applies.
func (x *xmlReader) readEntity() error {
	x.src.skip(len("<!ENTITY"))
	x.skipSpace()
	if x.src.peek() == '%' {
		return x.skipDeclaration('>') // no effect without a reference
	}
	name, err := x.ncName()
	if err != nil {
		return err
	}
	x.skipSpace()
	if c := x.src.peek(); c != '"' && c != '\'' {
		return x.skipDeclaration('>') // external: a reference to it is an error
	}
	text, err := x.entityText()
	if err != nil {
		return err
	}
	if _, known := x.entities.texts[name]; !known {
		if len(x.entities.texts) == MaxXMLEntities {
			return tooLong("the document declares more than %d entities", MaxXMLEntities)
		}
		x.entities.texts[name] = text
		x.entities.bytes += len(text)
	}
	x.skipSpace()
	return nil
}

// entityText parses the text of an entity and expands the entities in it.
func (x *xmlReader) entityText() (string, error) {
	limit := x.limit
	defer func() { x.limit = limit }()
	x.limit = MaxXMLEntityBytes - x.entities.bytes
	x.text = x.text[:0]
	quote := x.src.peek()
	x.src.skip(1)
	for x.src.peek() != quote {
		markup := x.src.peek() == '<'
		if x.src.peek() == '&' && x.src.peekAt(1) != '#' {
			if err := x.readReference(); err != nil {
				return "", err
			}
			continue
		}
		var r rune
		var err error
		if x.src.peek() == '&' {
			x.src.skip(2)
			r, err = x.codePoint()
			markup = r == '<' || r == '&' // parsed when the entity is used
		} else {
			r, err = x.readCharacter()
		}
		if err == nil && markup {
			err = invalid("entities with escaped elements or references are not supported")
		}
		if err == nil {
			err = x.appendRune(r)
		}
		if err != nil {
			return "", err
		}
	}
	x.src.skip(1)
	return string(x.text), nil
}
