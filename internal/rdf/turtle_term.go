package rdf

import (
	"unicode/utf8"

	"koine/kg"
)

// parseResource parses an IRI, a prefixed name or a labelled blank node.
func (t *turtleParser) parseResource(what string) (kg.Term, error) {
	switch c := t.src.peek(); {
	case c == '<':
		if t.src.peekAt(1) == '<' {
			return kg.Term{}, invalid("statements about statements (<< >>) are not supported")
		}
		text, err := t.parseReference()
		if err != nil {
			return kg.Term{}, err
		}
		return t.iris.lookUpIRI([]byte(text))
	case c == '_' && t.src.peekAt(1) == ':':
		return t.parseBlank()
	case c == ':' || c >= utf8.RuneSelf || isAlnum(c) && !isDigit(c):
		return t.parsePrefixed(what)
	}
	return kg.Term{}, t.errUnexpected(what)
}

// parseObject parses any term.
func (t *turtleParser) parseObject(depth int) (kg.Term, error) {
	switch c := t.src.peek(); {
	case c == '[':
		node, _, err := t.parseBrackets(depth)
		return node, err
	case c == '(':
		return t.parseList(depth)
	case c == '"' || c == '\'':
		return t.parseLiteral(c)
	case isDigit(c) || c == '+' || c == '-' || c == '.':
		return t.parseNumber()
	case c == 't' && t.consumeWord("true"):
		return kg.Boolean(true), nil
	case c == 'f' && t.consumeWord("false"):
		return kg.Boolean(false), nil
	}
	return t.parseResource("an object")
}

// consumeWord consumes a word, if it is next and does not begin a longer name.
func (t *turtleParser) consumeWord(word string) bool {
	if !t.src.hasPrefix(word) {
		return false
	}
	c := t.src.peekAt(len(word))
	if c == '.' {
		c = t.src.peekAt(len(word) + 1) // usually the statement's dot
	}
	if continuesName(c) && c != '.' {
		return false
	}
	t.src.skip(len(word))
	return true
}

// parseReference parses the text in <> and resolves it against the base.
func (t *turtleParser) parseReference() (string, error) {
	t.src.skip(1)
	t.token = t.token[:0]
	escaped := false
	for {
		c := t.src.peek()
		switch {
		case c == '>':
			t.src.skip(1)
			text := t.token
			if escaped {
				plain, err := unescape(t.plain[:0], text, true)
				if err != nil {
					return "", err
				}
				t.plain, text = plain, plain
			}
			return resolveIRI(t.base, string(text))
		case c <= ' ' && !(c == ' ' && t.options.FixIRIs):
			return "", invalid("an IRI is not terminated: %s", excerpt(t.token))
		case c == '\\':
			escaped = true
		}
		if err := t.consumeByte(); err != nil {
			return "", err
		}
	}
}

// consumeByte appends the next byte to the token.
func (t *turtleParser) consumeByte() error {
	if len(t.token) >= t.tokenBytes {
		return t.tokenTooLong()
	}
	t.token = append(t.token, t.src.peek())
	t.src.skip(1)
	return nil
}

func (t *turtleParser) tokenTooLong() error {
	return tooLong("a term is longer than %d bytes", t.tokenBytes)
}

// parseBlank parses _:label; the label may contain dots but not end with one.
func (t *turtleParser) parseBlank() (kg.Term, error) {
	t.src.skip(2)
	t.token = t.token[:0]
	for {
		c := t.src.peek()
		if !labelByte[c] && !(c == '.' && t.dotInside(func(c byte) bool { return labelByte[c] })) {
			break
		}
		if err := t.consumeByte(); err != nil {
			return kg.Term{}, err
		}
	}
	if !validLabel(t.token) {
		return kg.Term{}, invalid("%s is not a blank node label", excerpt(t.token))
	}
	return t.blanks.namedNode(t.token), nil
}

// dotInside reports whether the next dots are followed by more of the same name.
func (t *turtleParser) dotInside(more func(byte) bool) bool {
	n := 1
	for t.src.peekAt(n) == '.' {
		n++
	}
	return more(t.src.peekAt(n))
}

// prefixName parses a prefix with its colon. It returns the prefix without the colon,
// valid until the next token.
func (t *turtleParser) prefixName() ([]byte, error) {
	t.token = t.token[:0]
	for {
		c := t.src.peek()
		if c == ':' {
			t.src.skip(1)
			break
		}
		if !labelByte[c] && !(c == '.' && t.dotInside(func(c byte) bool { return labelByte[c] })) {
			return nil, t.errUnexpected("a prefix and its colon")
		}
		if err := t.consumeByte(); err != nil {
			return nil, err
		}
	}
	if name := t.token; len(name) > 0 && (!validLabel(name) || name[0] == '_' || isDigit(name[0])) {
		return nil, invalid("%s cannot be a prefix", excerpt(name))
	}
	return t.token, nil
}

// parsePrefixed parses prefix:local (PNAME_NS and PNAME_LN, [140s] and [141s]).
func (t *turtleParser) parsePrefixed(what string) (kg.Term, error) {
	for n := 0; t.src.peekAt(n) != ':'; n++ {
		if c := t.src.peekAt(n); !labelByte[c] && c != '.' {
			return kg.Term{}, t.errUnexpected(what)
		}
	}
	name, err := t.prefixName()
	if err != nil {
		return kg.Term{}, err
	}
	namespace, ok := t.prefixes[string(name)]
	if !ok {
		return kg.Term{}, invalid("the prefix %q is not declared", string(name))
	}
	t.token = append(t.token[:0], namespace...)
	if err := t.parseLocal(); err != nil {
		return kg.Term{}, err
	}
	return t.iris.lookUpIRI(t.token)
}

// parseLocal appends a local name to the token ([168s]): name characters, colons,
// %-sequences unchanged, and escaped punctuation without its backslash.
func (t *turtleParser) parseLocal() error {
	for first := true; ; first = false {
		r, n := t.src.rune()
		switch {
		case r == '\\':
			if c := t.src.peekAt(1); !localEscape(c) {
				return invalid("a backslash in a name must precede punctuation")
			}
			t.src.skip(1)
		case r == '%':
			if _, ok := hexValue([]byte{t.src.peekAt(1), t.src.peekAt(2)}); !ok {
				return invalid("a %% in a name is followed by two hexadecimal digits")
			}
		case n == 0, n == 1 && r == utf8.RuneError, r == '.' && (first || !t.dotInside(localMore)),
			r != '.' && r != ':' && !isNameChar(r), first && r != ':' && !isNameStart(r):
			return nil
		}
		if len(t.token) >= t.tokenBytes {
			return t.tokenTooLong()
		}
		_, n = t.src.rune()
		t.token = append(t.token, t.src.buf[t.src.pos:t.src.pos+n]...)
		t.src.skip(n)
	}
}

func localMore(c byte) bool { return labelByte[c] || c == ':' || c == '%' || c == '\\' }

// localEscape reports whether a backslash may escape the character in a local name
// (PN_LOCAL_ESC, [172s]).
func localEscape(c byte) bool {
	switch c {
	case '_', '~', '.', '-', '!', '$', '&', '\'', '(', ')', '*', '+', ',', ';', '=', '/', '?', '#', '@', '%':
		return true
	}
	return false
}
