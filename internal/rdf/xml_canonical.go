package rdf

import (
	"cmp"
	"slices"
)

// readCanonical returns the content of the open element, up to its end tag, in Exclusive
// Canonical XML with comments: the lexical form of an rdf:XMLLiteral.
func (x *xmlReader) readCanonical() (string, error) {
	c := canonicalXML{x: x}
	for depth := len(x.open); ; {
		if err := x.next(); err != nil {
			return "", err
		}
		switch x.kind {
		case xmlText:
			c.writeEscaped(x.text, false)
		case xmlComment:
			c.out = append(append(append(c.out, "<!--"...), x.text...), "-->"...)
		case xmlInstruction:
			c.out = append(append(c.out, "<?"...), x.name.local...)
			if len(x.text) > 0 {
				c.out = append(append(c.out, ' '), x.text...)
			}
			c.out = append(c.out, "?>"...)
		case xmlStart:
			c.writeStart()
		case xmlEnd:
			if len(x.open) < depth {
				return string(c.out), nil
			}
			c.writeEnd()
		}
		if len(c.out) > x.limit {
			return "", tooLong("an XML literal is longer than %d bytes", x.limit)
		}
	}
}

type canonicalXML struct {
	x        *xmlReader
	out      []byte
	rendered []xmlBinding
	open     []canonicalElement
}

type canonicalElement struct {
	name     string
	rendered int // number rendered outside of it
}

// writeStart writes a start tag with the namespaces that its names use and that no
// enclosing element has written.
func (c *canonicalXML) writeStart() {
	name := c.x.name.String()
	c.open = append(c.open, canonicalElement{name, len(c.rendered)})
	c.out = append(append(c.out, '<'), name...)
	used := []xmlBinding{{c.x.name.prefix, c.x.name.space}}
	for _, a := range c.x.attributes {
		if a.prefix != "" {
			used = append(used, xmlBinding{a.prefix, a.space})
		}
	}
	slices.SortFunc(used, func(a, b xmlBinding) int { return cmp.Compare(a.prefix, b.prefix) })
	for _, b := range slices.Compact(used) {
		if b.prefix == "xml" || c.findNamespace(b.prefix) == b.space {
			continue
		}
		c.rendered = append(c.rendered, b)
		if b.prefix == "" {
			c.writeAttribute("xmlns", b.space)
		} else {
			c.writeAttribute("xmlns:"+b.prefix, b.space)
		}
	}
	attributes := slices.Clone(c.x.attributes)
	slices.SortFunc(attributes, func(a, b xmlAttribute) int {
		return cmp.Or(cmp.Compare(a.space, b.space), cmp.Compare(a.local, b.local))
	})
	for _, a := range attributes {
		c.writeAttribute(a.String(), a.value)
	}
	c.out = append(c.out, '>')
}

// findNamespace returns the rendered namespace of a prefix; no declaration and "no
// namespace" are the same.
func (c *canonicalXML) findNamespace(prefix string) string {
	for i := len(c.rendered) - 1; i >= 0; i-- {
		if c.rendered[i].prefix == prefix {
			return c.rendered[i].space
		}
	}
	return ""
}

func (c *canonicalXML) writeEnd() {
	last := c.open[len(c.open)-1]
	c.open, c.rendered = c.open[:len(c.open)-1], c.rendered[:last.rendered]
	c.out = append(append(append(c.out, "</"...), last.name...), '>')
}

func (c *canonicalXML) writeAttribute(name, value string) {
	c.out = append(append(append(c.out, ' '), name...), `="`...)
	c.writeEscaped([]byte(value), true)
	c.out = append(c.out, '"')
}

func (c *canonicalXML) writeEscaped(text []byte, attribute bool) {
	for _, b := range text {
		switch {
		case b == '&':
			c.out = append(c.out, "&amp;"...)
		case b == '<':
			c.out = append(c.out, "&lt;"...)
		case b == '>' && !attribute:
			c.out = append(c.out, "&gt;"...)
		case b == '"' && attribute:
			c.out = append(c.out, "&quot;"...)
		case b == '\r':
			c.out = append(c.out, "&#xD;"...)
		case b == '\t' && attribute:
			c.out = append(c.out, "&#x9;"...)
		case b == '\n' && attribute:
			c.out = append(c.out, "&#xA;"...)
		default:
			c.out = append(c.out, b)
		}
	}
}
