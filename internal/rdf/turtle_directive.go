package rdf

import "koine/kg"

// consumeKeyword consumes a SPARQL keyword, in any case, if it is next and not the
// beginning of a longer name.
func (t *turtleParser) consumeKeyword(word string) bool {
	for i := range len(word) {
		if t.src.peekAt(i)&^0x20 != word[i] {
			return false
		}
	}
	if c := t.src.peekAt(len(word)); continuesName(c) {
		return false
	}
	t.src.skip(len(word))
	return true
}

// continuesName reports whether a byte after a word makes it part of a longer name.
func continuesName(c byte) bool { return labelByte[c] || c == ':' || c == '.' || c == '%' || c == '\\' }

// atDirective parses @prefix or @base, which end with a dot ([4] and [5]).
func (t *turtleParser) atDirective() error {
	t.src.skip(1)
	var err error
	switch {
	case t.consumeDirective("prefix"):
		err = t.parsePrefix()
	case t.consumeDirective("base"):
		err = t.setBase()
	default:
		return t.errUnexpected("prefix or base")
	}
	if err != nil {
		return err
	}
	return t.expectByte('.', "the dot that ends a directive")
}

func (t *turtleParser) consumeDirective(word string) bool {
	if !t.src.hasPrefix(word) || labelByte[t.src.peekAt(len(word))] {
		return false
	}
	t.src.skip(len(word))
	return true
}

func (t *turtleParser) parsePrefix() error {
	t.src.skipSpace()
	name, err := t.prefixName()
	if err != nil {
		return err
	}
	key := string(name)
	t.src.skipSpace()
	if t.src.peek() != '<' {
		return t.errUnexpected("the IRI of a prefix, in <>")
	}
	text, err := t.parseReference()
	if err != nil {
		return err
	}
	t.prefixes[key] = text // need not be an IRI by itself, like <urn:>
	if t.declared != nil {
		t.declared(key, text)
	}
	return nil
}

func (t *turtleParser) setBase() error {
	t.src.skipSpace()
	if t.src.peek() != '<' {
		return t.errUnexpected("the base IRI, in <>")
	}
	text, err := t.parseReference()
	if err != nil {
		return err
	}
	if _, err := kg.ParseIRI(text); err != nil {
		return err
	}
	t.base = text
	return nil
}

func (t *turtleParser) expectByte(c byte, what string) error {
	t.src.skipSpace()
	if t.src.peek() != c {
		return t.errUnexpected(what)
	}
	t.src.skip(1)
	return nil
}

func (t *turtleParser) errUnexpected(wanted string) error { return t.src.errUnexpected(wanted) }
