package rdf

import (
	"unicode/utf8"
)

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// labelByte has the bytes of a blank node label, except the dot.
var labelByte = byteClass(func(c byte) bool {
	return isAlnum(c) || c == '_' || c == '-' || c >= 0x80
})

func byteClass(in func(byte) bool) (class [256]bool) {
	for c := range class {
		class[c] = in(byte(c))
	}
	return class
}

// isNameStart reports whether r may begin a blank node label or a local name: PN_CHARS_U (Turtle
// grammar, [164s]) or a digit.
func isNameStart(r rune) bool {
	if r < 0x80 {
		return isAlnum(byte(r)) || r == '_'
	}
	switch {
	case r >= 0xC0 && r <= 0x2FF:
		return r != 0xD7 && r != 0xF7
	case r >= 0x370 && r <= 0x1FFF:
		return r != 0x37E
	case r >= 0x200C && r <= 0x200D, r >= 0x2070 && r <= 0x218F, r >= 0x2C00 && r <= 0x2FEF,
		r >= 0x3001 && r <= 0xD7FF, r >= 0xF900 && r <= 0xFDCF, r >= 0xFDF0 && r <= 0xFFFD,
		r >= 0x10000 && r <= 0xEFFFF:
		return true
	}
	return false
}

// isNameChar reports whether r may follow in such a name: PN_CHARS ([166s]).
func isNameChar(r rune) bool {
	return isNameStart(r) || r == '-' || r == 0xB7 || r >= 0x300 && r <= 0x36F || r >= 0x203F && r <= 0x2040
}

// validLabel reports whether a blank node label is valid (N-Triples grammar, [141s]): it neither
// begins nor ends with a dot.
func validLabel(label []byte) bool {
	if len(label) == 0 || label[len(label)-1] == '.' {
		return false
	}
	for i := 0; i < len(label); {
		r, n := utf8.DecodeRune(label[i:])
		if r == utf8.RuneError && n <= 1 || i == 0 && !isNameStart(r) || r != '.' && !isNameChar(r) {
			return false
		}
		i += n
	}
	return true
}

// hexValue returns the code point of hexadecimal digits. It rejects surrogates and values beyond
// Unicode.
func hexValue(digits []byte) (rune, bool) {
	var r rune
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
		if r > utf8.MaxRune {
			return 0, false
		}
	}
	return r, utf8.ValidRune(r)
}
