package rdf

import (
	"strings"
	"unicode/utf8"
)

// Limits of XML, besides Options.TokenBytes for a text or the attributes of an element.
const (
	// MaxXMLDepth is the largest nesting of elements: nodes and properties alternate.
	MaxXMLDepth = 2 * MaxDepth
	// MaxXMLAttributes is the largest number of attributes of an element, MaxXMLNamespaces of
	// namespaces in scope.
	MaxXMLAttributes = 1 << 10
	MaxXMLNamespaces = 4 << 10
)

const (
	xmlNamespace   = "http://www.w3.org/XML/1998/namespace"
	xmlnsNamespace = "http://www.w3.org/2000/xmlns/"
)

type xmlKind uint8

const (
	xmlEnd xmlKind = iota + 1 // end of an element
	xmlStart
	xmlText
	xmlComment
	xmlInstruction
	xmlEOF
)

// xmlName is a name with its prefix and namespace.
type xmlName struct{ prefix, local, space string }

type xmlAttribute struct {
	xmlName
	value string
}

type xmlBinding struct{ prefix, space string }

// xmlReader is a tokenizer (XML 1.0, Namespaces in XML 1.0). It reads nothing outside of
// the document, so that external entities and DTDs have no effect.
type xmlReader struct {
	src      *source
	limit    int // largest length of a token in bytes
	entities xmlEntities

	// The current token. Attributes and text are valid until the next one.
	kind       xmlKind
	name       xmlName // of an element; local is the target of an instruction
	attributes []xmlAttribute
	text       []byte

	open     []openElement
	bindings []xmlBinding
	closing  bool // the last start tag ends its element
	rooted   bool // the document's element has begun
}

type openElement struct {
	prefix, local string
	bindings      int // number in scope outside of it
}

func newXMLReader(src *source, limit int) *xmlReader {
	return &xmlReader{src: src, limit: limit, bindings: []xmlBinding{{"xml", xmlNamespace}, {"", ""}}}
}

// next reads the next token. Text that is interrupted by a comment comes in pieces.
func (x *xmlReader) next() error {
	if x.closing {
		x.closing = false
		return x.leaveElement()
	}
	x.text = x.text[:0]
	if len(x.open) == 0 {
		if err := x.skipOutside(); err != nil || x.kind == xmlEOF {
			return err
		}
	}
	switch {
	case x.src.peek() != '<' || x.src.hasPrefix("<![CDATA["):
		if len(x.open) == 0 {
			return x.errUnexpected("an element")
		}
		x.kind = xmlText
		return x.readCharacters()
	case x.src.hasPrefix("<!--"):
		return x.readComment()
	case x.src.hasPrefix("<?"):
		return x.readInstruction()
	case x.src.hasPrefix("</"):
		return x.endTag()
	case x.src.hasPrefix("<!"):
		return x.readDoctype()
	case x.rooted && len(x.open) == 0:
		return invalid("a document must have exactly one root element")
	}
	return x.startTag()
}

// skipOutside skips the white space outside of the document's element.
func (x *xmlReader) skipOutside() error {
	x.kind = 0
	x.skipSpace()
	if !x.src.isAtEnd() {
		return nil
	}
	if !x.rooted {
		return invalid("the document has no element")
	}
	x.kind = xmlEOF
	return nil
}

func (x *xmlReader) skipSpace() (any bool) {
	for {
		switch x.src.peek() {
		case ' ', '\t', '\r', '\n':
			x.src.skip(1)
			any = true
		default:
			return any
		}
	}
}

// appendRune appends a character to the token, within the limit.
func (x *xmlReader) appendRune(r rune) error {
	if len(x.text) >= x.limit {
		return tooLong("a text or the attributes of an element are longer than %d bytes", x.limit)
	}
	x.text = utf8.AppendRune(x.text, r)
	return nil
}

// readCharacter returns the next character, with line ends normalised (2.11).
func (x *xmlReader) readCharacter() (rune, error) {
	r, n := x.src.rune()
	if n == 0 {
		return 0, x.cutShort()
	}
	if r == utf8.RuneError && n == 1 {
		return 0, invalid("the document is not valid UTF-8")
	}
	if !isXMLChar(r) {
		return 0, invalid("the character %U is not allowed in XML", r)
	}
	x.src.skip(n)
	if r == '\r' {
		if x.src.peek() == '\n' {
			x.src.skip(1)
		}
		r = '\n'
	}
	return r, nil
}

func (x *xmlReader) cutShort() error {
	if err := x.src.readErr(); err != nil {
		return err
	}
	return invalid("the document is incomplete")
}

// readCharacters reads a run of text, references and CDATA sections.
func (x *xmlReader) readCharacters() error {
	for {
		switch c := x.src.peek(); {
		case x.src.isAtEnd():
			return x.cutShort()
		case c == '<' && !x.src.hasPrefix("<![CDATA["):
			return nil
		case c == '<':
			x.src.skip(len("<![CDATA["))
			if err := x.readUntil("]]>"); err != nil {
				return err
			}
		case c == '&':
			if err := x.readReference(); err != nil {
				return err
			}
		case c == ']' && x.src.hasPrefix("]]>"):
			return invalid("]]> is not allowed in a text")
		default:
			r, err := x.readCharacter()
			if err == nil {
				err = x.appendRune(r)
			}
			if err != nil {
				return err
			}
		}
	}
}

// readUntil appends the text before a mark and skips the mark.
func (x *xmlReader) readUntil(mark string) error {
	for !x.src.hasPrefix(mark) {
		r, err := x.readCharacter()
		if err == nil {
			err = x.appendRune(r)
		}
		if err != nil {
			return err
		}
	}
	x.src.skip(len(mark))
	return nil
}

func (x *xmlReader) readComment() error {
	x.kind = xmlComment
	x.src.skip(len("<!--"))
	if err := x.readUntil("--"); err != nil {
		return err
	}
	return x.expectMark(">")
}

// readInstruction reads a processing instruction. It skips the XML declaration.
func (x *xmlReader) readInstruction() error {
	first := x.src.offset == 0
	x.src.skip(len("<?"))
	target, err := x.ncName()
	if err != nil {
		return err
	}
	x.kind, x.name, x.text = xmlInstruction, xmlName{local: target}, x.text[:0]
	if !x.skipSpace() && !x.src.hasPrefix("?>") {
		return x.errUnexpected("the ?> of an instruction")
	}
	if err := x.readUntil("?>"); err != nil {
		return err
	}
	if !strings.EqualFold(target, "xml") {
		return nil
	}
	if !first || target != "xml" {
		return invalid("an XML declaration must be at the very beginning")
	}
	if encoding := pseudoAttribute(string(x.text), "encoding"); encoding != "" && !strings.EqualFold(encoding, "utf-8") && !strings.EqualFold(encoding, "us-ascii") {
		return invalid("the document is encoded as %s; only UTF-8 is supported", excerpt([]byte(encoding)))
	}
	if version := pseudoAttribute(string(x.text), "version"); version != "1.0" && version != "1.1" {
		return invalid("the version of XML is not supported")
	}
	return x.next()
}

// pseudoAttribute returns the value of a pseudo attribute of an XML declaration.
func pseudoAttribute(declaration, name string) string {
	_, rest, ok := strings.Cut(declaration, name)
	rest = strings.TrimLeft(rest, " \t\n")
	if !ok || !strings.HasPrefix(rest, "=") {
		return ""
	}
	rest = strings.TrimLeft(rest[1:], " \t\n")
	if rest == "" || rest[0] != '"' && rest[0] != '\'' {
		return ""
	}
	value, _, _ := strings.Cut(rest[1:], rest[:1])
	return value
}

func (x *xmlReader) endTag() error {
	x.src.skip(len("</"))
	name, err := x.qName()
	if err != nil {
		return err
	}
	x.skipSpace()
	if err := x.expectMark(">"); err != nil {
		return err
	}
	if n := len(x.open); n == 0 || x.open[n-1].prefix != name.prefix || x.open[n-1].local != name.local {
		return invalid("the end tag </%s> does not match the start tag", name)
	}
	return x.leaveElement()
}

// leaveElement ends the innermost element.
func (x *xmlReader) leaveElement() error {
	last := x.open[len(x.open)-1]
	x.open, x.bindings = x.open[:len(x.open)-1], x.bindings[:last.bindings]
	x.kind = xmlEnd
	return nil
}

// startTag reads an element's tag and brings its namespaces into scope.
func (x *xmlReader) startTag() error {
	x.src.skip(1)
	name, err := x.qName()
	if err != nil {
		return err
	}
	if len(x.open) == MaxXMLDepth {
		return tooLong("elements are nested more than %d deep", MaxXMLDepth)
	}
	x.open = append(x.open, openElement{name.prefix, name.local, len(x.bindings)})
	x.rooted, x.attributes = true, x.attributes[:0]
	for {
		spaced := x.skipSpace()
		switch {
		case x.src.peek() == '>':
			x.src.skip(1)
			return x.beginElement(name)
		case x.src.hasPrefix("/>"):
			x.src.skip(2)
			x.closing = true
			return x.beginElement(name)
		case !spaced:
			return x.errUnexpected("the > of an element")
		}
		if err := x.readAttribute(); err != nil {
			return err
		}
	}
}

func (x *xmlReader) readAttribute() error {
	name, err := x.qName()
	if err != nil {
		return err
	}
	x.skipSpace()
	if err := x.expectMark("="); err != nil {
		return err
	}
	x.skipSpace()
	from := len(x.text)
	if err := x.readQuoted(); err != nil {
		return err
	}
	value := string(x.text[from:])
	if name.prefix == "xmlns" || name.prefix == "" && name.local == "xmlns" {
		return x.bindNamespace(name, value)
	}
	if len(x.attributes) == MaxXMLAttributes {
		return tooLong("an element has more than %d attributes", MaxXMLAttributes)
	}
	x.attributes = append(x.attributes, xmlAttribute{name, value})
	return nil
}

// readQuoted appends an attribute's value, normalised (3.3.3).
func (x *xmlReader) readQuoted() error {
	quote := x.src.peek()
	if quote != '"' && quote != '\'' {
		return x.errUnexpected("the quoted value of an attribute")
	}
	x.src.skip(1)
	for {
		switch c := x.src.peek(); c {
		case quote:
			x.src.skip(1)
			return nil
		case '<':
			return invalid("< is not allowed in the value of an attribute")
		case '&':
			if err := x.readReference(); err != nil {
				return err
			}
		default:
			r, err := x.readCharacter()
			if r == '\n' || r == '\t' {
				r = ' '
			}
			if err == nil {
				err = x.appendRune(r)
			}
			if err != nil {
				return err
			}
		}
	}
}

// bindNamespace brings a namespace into scope.
func (x *xmlReader) bindNamespace(name xmlName, space string) error {
	prefix := name.local
	if name.prefix == "" {
		prefix = ""
	}
	for _, b := range x.bindings[x.open[len(x.open)-1].bindings:] {
		if b.prefix == prefix {
			return invalid("an element declares the prefix %q twice", prefix)
		}
	}
	switch {
	case prefix == "xmlns" || space == xmlnsNamespace || (prefix == "xml") != (space == xmlNamespace):
		return invalid("the prefix %q cannot be declared with this namespace", prefix)
	case prefix != "" && space == "":
		return invalid("the prefix %q has no namespace", prefix)
	case len(x.bindings) == MaxXMLNamespaces:
		return tooLong("more than %d namespaces are in scope", MaxXMLNamespaces)
	}
	x.bindings = append(x.bindings, xmlBinding{prefix, space})
	return nil
}

// beginElement makes the start tag the current token and resolves the namespaces of its names.
func (x *xmlReader) beginElement(name xmlName) (err error) {
	if name.space, err = x.namespaceOf(name.prefix); err != nil {
		return err
	}
	x.kind, x.name = xmlStart, name
	for i := range x.attributes {
		a := &x.attributes[i]
		if a.prefix != "" {
			if a.space, err = x.namespaceOf(a.prefix); err != nil {
				return err
			}
		}
		for _, b := range x.attributes[:i] {
			if a.local == b.local && a.space == b.space {
				return invalid("an element has the attribute %s twice", a.xmlName)
			}
		}
	}
	return nil
}

func (x *xmlReader) namespaceOf(prefix string) (string, error) {
	for i := len(x.bindings) - 1; i >= 0; i-- {
		if x.bindings[i].prefix == prefix {
			return x.bindings[i].space, nil
		}
	}
	return "", invalid("the prefix %q is not declared", prefix)
}

// String returns the qualified name.
func (n xmlName) String() string {
	if n.prefix == "" {
		return n.local
	}
	return n.prefix + ":" + n.local
}

func (x *xmlReader) qName() (n xmlName, err error) {
	if n.local, err = x.ncName(); err != nil || x.src.peek() != ':' {
		return n, err
	}
	x.src.skip(1)
	n.prefix = n.local
	n.local, err = x.ncName()
	return n, err
}

// maxXMLName is the largest length of a name in bytes.
const maxXMLName = 8 << 10

// ncName reads a name without a colon.
func (x *xmlReader) ncName() (string, error) {
	var buf [64]byte
	name := buf[:0]
	for {
		r, n := x.src.rune()
		if n == 0 || r == utf8.RuneError && n == 1 || !isXMLNameChar(r) || len(name) == 0 && !isXMLNameStart(r) {
			break
		}
		if len(name) >= maxXMLName {
			return "", tooLong("a name is longer than %d bytes", maxXMLName)
		}
		name = utf8.AppendRune(name, r)
		x.src.skip(n)
	}
	if len(name) == 0 {
		return "", x.errUnexpected("a name")
	}
	return string(name), nil
}

func (x *xmlReader) expectMark(mark string) error {
	if !x.src.hasPrefix(mark) {
		return x.errUnexpected(mark)
	}
	x.src.skip(len(mark))
	return nil
}

func (x *xmlReader) errUnexpected(wanted string) error {
	if x.src.isAtEnd() {
		return x.cutShort()
	}
	return x.src.errUnexpected(wanted)
}

// isXMLChar reports whether a document may contain the character (XML 1.0, [2]).
func isXMLChar(r rune) bool {
	return r >= ' ' && r <= 0xD7FF || r == '\t' || r == '\n' || r == '\r' || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 && r <= 0x10FFFF
}

// isXMLNameStart and isXMLNameChar implement NameStartChar and NameChar ([4], [4a])
// without the colon.
func isXMLNameStart(r rune) bool { return isNameStart(r) && !(r >= '0' && r <= '9') }

func isXMLNameChar(r rune) bool { return isNameChar(r) || r == '.' }

// isNCName reports whether a text is a name without a colon.
func isNCName(s string) bool {
	for i, r := range s {
		if i == 0 && !isXMLNameStart(r) || !isXMLNameChar(r) {
			return false
		}
	}
	return s != "" && utf8.ValidString(s)
}
