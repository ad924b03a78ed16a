package rdf

import "koine/kg"

// parseLiteral parses a quoted string with its language tag or datatype ([128s]).
func (t *turtleParser) parseLiteral(quote byte) (kg.Term, error) {
	long := t.src.peekAt(1) == quote && t.src.peekAt(2) == quote
	escaped, err := t.parseQuoted(quote, long)
	if err != nil {
		return kg.Term{}, err
	}
	text := t.token
	if escaped {
		plain, err := unescape(t.plain[:0], text, false)
		if err != nil {
			return kg.Term{}, err
		}
		t.plain, text = plain, plain
	}
	lexical := string(text)
	switch {
	case t.src.peek() == '@':
		lang, err := t.parseLanguage()
		if err != nil {
			return kg.Term{}, err
		}
		return t.options.checkedLiteral(lexical, lang, kg.Term{})
	case t.src.hasPrefix("^^"):
		t.src.skip(2)
		t.src.skipSpace()
		datatype, err := t.parseResource("a datatype")
		if err != nil {
			return kg.Term{}, err
		}
		if datatype.Kind() != kg.KindIRI {
			return kg.Term{}, invalid("a datatype must be an IRI")
		}
		return t.options.checkedLiteral(lexical, "", datatype)
	}
	return t.options.checkedLiteral(lexical, "", kg.Term{})
}

// parseQuoted reads the text between the quotes into the token, with its escapes.
func (t *turtleParser) parseQuoted(quote byte, long bool) (escaped bool, err error) {
	begins := t.src.line
	end := string(quote)
	if long {
		end = end + end + end
	}
	t.src.skip(len(end))
	t.token = t.token[:0]
	for {
		c := t.src.peek()
		switch {
		case c == quote && (!long || t.src.hasPrefix(end)):
			t.src.skip(len(end))
			return escaped, nil
		case t.src.isAtEnd():
			return false, invalid("the literal that begins in line %d is not terminated", begins)
		case !long && (c == '\n' || c == '\r'):
			return false, invalid("a literal with line breaks needs three quotes")
		case c == '\\':
			escaped = true
			if err := t.consumeByte(); err != nil {
				return false, err
			}
			if t.src.isAtEnd() {
				continue
			}
		}
		if err := t.consumeByte(); err != nil {
			return false, err
		}
	}
}

func (t *turtleParser) parseLanguage() (string, error) {
	t.src.skip(1)
	t.token = t.token[:0]
	for c := t.src.peek(); isAlnum(c) || c == '-'; c = t.src.peek() {
		if err := t.consumeByte(); err != nil {
			return "", err
		}
	}
	if len(t.token) == 0 {
		return "", t.errUnexpected("a language tag")
	}
	return string(t.token), nil
}

// parseNumber parses an integer, a decimal or a double ([19] to [21]).
func (t *turtleParser) parseNumber() (kg.Term, error) {
	t.token = t.token[:0]
	if c := t.src.peek(); c == '+' || c == '-' {
		if err := t.consumeByte(); err != nil {
			return kg.Term{}, err
		}
	}
	whole, err := t.consumeDigits()
	if err != nil {
		return kg.Term{}, err
	}
	datatype := kg.XSDInteger
	fraction := 0
	if t.src.peek() == '.' && (isDigit(t.src.peekAt(1)) || whole > 0 && t.exponentAt(1) > 0) {
		datatype = kg.XSDDecimal
		if err := t.consumeByte(); err != nil {
			return kg.Term{}, err
		}
		if fraction, err = t.consumeDigits(); err != nil {
			return kg.Term{}, err
		}
	}
	if whole+fraction == 0 {
		return kg.Term{}, t.errUnexpected("a number")
	}
	if n := t.exponentAt(0); n > 0 {
		datatype = kg.XSDDouble
		for range n {
			if err := t.consumeByte(); err != nil {
				return kg.Term{}, err
			}
		}
		if _, err = t.consumeDigits(); err != nil {
			return kg.Term{}, err
		}
	}
	if c := t.src.peek(); labelByte[c] || c == ':' {
		return kg.Term{}, t.errUnexpected("the end of a number")
	}
	return t.options.checkedLiteral(string(t.token), "", kg.IRI(datatype))
}

func (t *turtleParser) consumeDigits() (n int, err error) {
	for ; isDigit(t.src.peek()); n++ {
		if err := t.consumeByte(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// exponentAt returns the length of an exponent n places ahead up to its first digit, 0 if
// there is none.
func (t *turtleParser) exponentAt(n int) int {
	if t.src.peekAt(n)|0x20 != 'e' {
		return 0
	}
	size := 1
	if c := t.src.peekAt(n + 1); c == '+' || c == '-' {
		size++
	}
	if !isDigit(t.src.peekAt(n + size)) {
		return 0
	}
	return size
}
