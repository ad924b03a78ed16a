package rdf

import (
	"unicode/utf8"

	"koine/kg"
)

// unescape resolves the escapes of a string literal (ECHAR and UCHAR, Turtle grammar, [159s] and
// [26]), or of an IRI, where only UCHAR is allowed. The result does not alias dst's former content.
func unescape(dst, text []byte, inIRI bool) ([]byte, error) {
	for i := 0; i < len(text); {
		c := text[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		if i+1 == len(text) {
			return nil, invalid("an escape is incomplete")
		}
		width := 0
		switch e := text[i+1]; e {
		case 'u':
			width = 4
		case 'U':
			width = 8
		default:
			plain := simpleEscape(e)
			if plain == 0 || inIRI {
				return nil, invalid("%s is not an escape", excerpt(text[i:i+2]))
			}
			dst = append(dst, plain)
			i += 2
			continue
		}
		if i+2+width > len(text) {
			return nil, invalid("an escape is incomplete")
		}
		r, ok := hexValue(text[i+2 : i+2+width])
		if !ok {
			return nil, invalid("%s is not a character", excerpt(text[i:i+2+width]))
		}
		dst = utf8.AppendRune(dst, r)
		i += 2 + width
	}
	return dst, nil
}

func simpleEscape(e byte) byte {
	switch e {
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 'f':
		return '\f'
	case '"', '\'', '\\':
		return e
	}
	return 0
}

// newLiteral returns a checked literal with a language tag, a datatype, or neither. limit
// is the largest length of the lexical form in bytes.
func newLiteral(lexical string, lang string, datatype kg.Term, limit int) (kg.Term, error) {
	if !utf8.ValidString(lexical) {
		return kg.Term{}, invalid("a literal is not valid UTF-8")
	}
	if err := kg.String(lexical).LiteralWithin(limit); err != nil {
		return kg.Term{}, err
	}
	var t kg.Term
	switch {
	case lang != "":
		t = kg.LangString(lexical, lang)
	case datatype.IsZero():
		return kg.String(lexical), nil
	case datatype.Value() == kg.RDFLangString:
		return kg.Term{}, invalid("rdf:langString needs a language tag")
	default:
		t = kg.Typed(lexical, datatype.Value())
	}
	return t, t.ValidNew()
}
