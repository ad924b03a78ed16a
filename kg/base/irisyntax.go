package base

import (
	"strings"
	"unicode/utf8"
)

// ValidNew is Valid with the further requirements on incoming terms: IRIs follow RFC 3987,
// and a datatype that needs more than a lexical form has it. Stored terms that do not meet
// them stay readable and removable.
func (t Term) ValidNew() error {
	if t.kind == KindIRI && len(t.value) <= MaxResourceBytes && plainIRI(t.value) {
		return nil
	}
	if err := t.Valid(); err != nil {
		return err
	}
	switch {
	case t.kind == KindIRI:
		return checkIRI(t.value)
	case t.kind == KindLiteral && t.ExplicitDatatype() == RDFDirLangString:
		return Errorf(CodeInvalid, "rdf:dirLangString needs a language tag and a base direction, which koine does not keep")
	case t.kind == KindLiteral && t.ExplicitDatatype() != "" && !plainIRI(t.ExplicitDatatype()):
		return checkIRI(t.ExplicitDatatype())
	}
	return nil
}

// plainIRI reports whether a text is certainly a valid IRI. It is a fast check of single
// bytes that accepts most IRIs.
func plainIRI(s string) bool {
	n := strings.IndexByte(s, ':')
	if n <= 0 || n+1 == len(s) || !ValidScheme(s[:n]) {
		return false
	}
	rest := s[n+1:]
	if strings.HasPrefix(rest, "//") {
		end := 2
		for end < len(rest) && rest[end] != '/' && rest[end] != '?' && rest[end] != '#' {
			if !inPath[rest[end]] || rest[end] == ':' || rest[end] == '@' {
				return false
			}
			end++
		}
		rest = rest[end:]
	}
	fragment := false
	for i := 0; i < len(rest); i++ {
		if c := rest[i]; !inPath[c] {
			if c != '?' && (c != '#' || fragment) {
				return false
			}
			fragment = fragment || c == '#'
		}
	}
	return true
}

// inPath are the ASCII characters that may stand in a path as they are, and the slash.
var inPath = func() (in [256]bool) {
	for c := range 128 {
		in[c] = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	for _, c := range "-._~!$&'()*+,;=:@/" {
		in[c] = true
	}
	return in
}()

// checkIRI reports how an absolute IRI breaks the grammar of RFC 3987, section 2.2.
func checkIRI(s string) error {
	_, rest, _ := strings.Cut(s, ":")
	rest, fragment, _ := strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	path := rest
	if strings.HasPrefix(rest, "//") {
		end := strings.IndexByte(rest[2:], '/')
		if end < 0 {
			end = len(rest) - 2
		}
		path = rest[2+end:]
		if err := checkAuthority(s, rest[2:2+end]); err != nil {
			return err
		}
	}
	for _, part := range [...]struct{ text, also, name string }{{path, "/", "path"}, {query, "/?", "query"}, {fragment, "/?", "fragment"}} {
		if at := forbiddenAt(part.text, ":@"+part.also, part.name == "query"); at >= 0 {
			return forbiddenIn(s, part.text[at:], part.name)
		}
	}
	return nil
}

func checkAuthority(iri, authority string) error {
	host := authority
	if n := strings.LastIndexByte(authority, '@'); n >= 0 {
		host = authority[n+1:]
		if at := forbiddenAt(authority[:n], ":", false); at >= 0 {
			return forbiddenIn(iri, authority[at:], "authority")
		}
	}
	if n := strings.LastIndexByte(host, ':'); n >= 0 && !strings.HasSuffix(host, "]") {
		if strings.Trim(host[n+1:], "0123456789") != "" {
			return Errorf(CodeInvalid, "%q is not an IRI: %q is no port", Clip(iri), Clip(host[n+1:]))
		}
		host = host[:n]
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		if inner := host[1 : len(host)-1]; inner == "" || forbiddenAt(inner, ":", false) >= 0 || strings.ContainsAny(inner, "%") {
			return Errorf(CodeInvalid, "%q is not an IRI: %q is no address", Clip(iri), Clip(host))
		}
		return nil
	}
	if at := forbiddenAt(host, "", false); at >= 0 {
		return forbiddenIn(iri, host[at:], "authority")
	}
	return nil
}

func forbiddenIn(iri, at, part string) error {
	r, _ := utf8.DecodeRuneInString(at)
	e := Errorf(CodeInvalid, "%q is not an IRI: its %s has %q, which must be percent-encoded there (RFC 3987)", Clip(iri), part, r)
	if r == '%' {
		e = Errorf(CodeInvalid, "%q is not an IRI: its %s has a %% without two hexadecimal digits after it (RFC 3987)", Clip(iri), part)
	}
	e.Hint = "percent-encode it, or let koine load do that with --fix-iris"
	return e
}

// forbiddenAt returns the index of the first character that is not allowed in a part of an
// IRI, -1 for none. The part may contain ipchar without ":" and "@", the characters of
// also and, if private is true, iprivate.
func forbiddenAt(s, also string, private bool) int {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '%':
			if !encodedAt(s, i) {
				return i
			}
		case c < utf8.RuneSelf:
			if (c == ':' || c == '@' || c == '/' || !inPath[c]) && strings.IndexByte(also, c) < 0 {
				return i
			}
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if !isUCSChar(r) && !(private && isPrivateChar(r)) {
				return i
			}
			i += n - 1
		}
		i++
	}
	return -1
}

func encodedAt(s string, i int) bool {
	return i+2 < len(s) && isHexDigit(s[i+1]) && isHexDigit(s[i+2])
}

func isHexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// isUCSChar and isPrivateChar are ucschar and iprivate.
func isUCSChar(r rune) bool {
	switch {
	case r >= 0xA0 && r <= 0xD7FF, r >= 0xF900 && r <= 0xFDCF, r >= 0xFDF0 && r <= 0xFFEF:
		return true
	}
	return r >= 0x10000 && r <= 0xEFFFD && r&0xFFFF <= 0xFFFD && !(r >= 0xE0000 && r <= 0xE0FFF)
}

func isPrivateChar(r rune) bool {
	return r >= 0xE000 && r <= 0xF8FF || r >= 0xF0000 && r <= 0xFFFFD || r >= 0x100000 && r <= 0x10FFFD
}

// FixIRI percent-encodes the characters of an IRI that are not allowed (RFC 3987, section
// 3.1). Other defects, such as a missing scheme or a port of letters, stay, and
// Term.ValidNew refuses them. A valid IRI is returned unchanged.
func FixIRI(s string) string {
	if plainIRI(s) {
		return s
	}
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok {
		return s
	}
	out := append(make([]byte, 0, len(s)+16), scheme+":"...)
	part, also := "path", ":@/"
	if strings.HasPrefix(rest, "//") {
		end := strings.IndexAny(rest[2:], "/?#")
		if end < 0 {
			end = len(rest) - 2
		}
		authority := rest[:2+end]
		out, rest = append(out, encodeForbidden(authority, ":@/[]", false)...), rest[2+end:]
	}
	for rest != "" {
		var mark string
		next := ""
		switch part {
		case "path":
			mark = "?#"
		case "query":
			mark = "#"
		}
		if n := strings.IndexAny(rest, mark); n >= 0 {
			rest, next = rest[:n], rest[n:]
		}
		out = append(out, encodeForbidden(rest, also, part == "query")...)
		if next == "" {
			break
		}
		out, rest, also = append(out, next[0]), next[1:], ":@/?"
		if part = "fragment"; next[0] == '?' {
			part = "query"
		}
	}
	return string(out)
}

func encodeForbidden(s, also string, private bool) string {
	var out []byte
	for {
		at := forbiddenAt(s, also, private)
		if at < 0 {
			return string(append(out, s...))
		}
		const hex = "0123456789ABCDEF"
		_, n := utf8.DecodeRuneInString(s[at:])
		out = append(out, s[:at]...)
		for _, c := range []byte(s[at : at+n]) {
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
		s = s[at+n:]
	}
}
