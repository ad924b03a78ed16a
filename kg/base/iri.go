package base

import (
	"strings"
	"unicode/utf8"
)

// ParseIRI validates an absolute IRI (RFC 3987, section 2.2, as far as RDF 1.1 Concepts,
// section 3.2, requires) and returns its term. A text that begins with "_:" is a blank node
// with that label.
func ParseIRI(text string) (Term, error) {
	t := IRI(text)
	if label, ok := strings.CutPrefix(text, "_:"); ok {
		t = Blank(label)
	}
	return t, t.Valid()
}

// IsAbsoluteIRI reports whether text is a valid absolute IRI.
func IsAbsoluteIRI(text string) bool { return validIRI(text) == nil }

func validIRI(s string) error {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || !ValidScheme(scheme) {
		return Errorf(CodeInvalid, "%q is not an absolute IRI: it needs a scheme, like https: or urn:", Clip(s))
	}
	if rest == "" {
		return Errorf(CodeInvalid, "%q is not an absolute IRI: nothing follows the scheme", Clip(s))
	}
	ascii := true
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		if notInIRI[c] {
			return Errorf(CodeInvalid, "%q is not an IRI: it holds the character %q", Clip(s), c)
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	if !ascii && strings.ContainsRune(rest, utf8.RuneError) { // or invalid UTF-8
		return Errorf(CodeInvalid, "%q is not an IRI: it holds the character %q", Clip(s), utf8.RuneError)
	}
	return nil
}

// notInIRI are the ASCII characters that an IRIREF cannot contain (N-Triples grammar,
// [8]).
var notInIRI = func() (not [256]bool) {
	for c := range ' ' + 1 {
		not[c] = true
	}
	for _, c := range "<>\"{}|^`\\\u007f" {
		not[c] = true
	}
	return not
}()

// ValidScheme reports whether s is a valid URI scheme name (RFC 3986, section 3.1).
func ValidScheme(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.')) {
			return false
		}
	}
	return s != ""
}

// validBlankLabel accepts the ASCII part of BLANK_NODE_LABEL (N-Triples
// grammar, [141s]), so that every stored label can be written as it is.
func validBlankLabel(s string) error {
	for i := 0; i < len(s); i++ {
		c := s[i]
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' ||
			i > 0 && c == '-' || i > 0 && i < len(s)-1 && c == '.'
		if !ok {
			return Errorf(CodeInvalid, "%q is not a blank node label", Clip(s))
		}
	}
	if s == "" {
		return Errorf(CodeInvalid, "a blank node needs a label")
	}
	return nil
}

func validLang(s string) error {
	for i, part := range strings.Split(s, "-") {
		if part == "" || len(part) > 8 {
			return Errorf(CodeInvalid, "%q is not a language tag", Clip(s))
		}
		for _, c := range part {
			if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
				return Errorf(CodeInvalid, "%q is not a language tag", Clip(s))
			}
		}
	}
	return nil
}

// Clip shortens text from outside to 120 bytes, for error messages.
func Clip(s string) string { return Excerpt(s, 120) }
