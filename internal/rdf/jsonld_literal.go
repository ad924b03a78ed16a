package rdf

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"koine/kg"
)

const rdfJSON = kg.RDF + "JSON"

// parseDouble returns a JSON number as a double, as JSON-LD requires. It rejects integers
// that a double cannot represent instead of rounding them.
func parseDouble(v val) (float64, error) {
	text := string(v.raw())
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, invalid("the number %s is out of range", excerpt([]byte(text)))
	}
	if !strings.ContainsAny(text, ".eE") && strconv.FormatFloat(f, 'f', 0, 64) != text && text != "-0" {
		return 0, invalid("JSON-LD rounds the integer %s; write it as a string with a type: {\"@value\": \"%s\", \"@type\": \"%sinteger\"}", clipText(text), clipText(text), kg.XSD)
	}
	return f, nil
}

func clipText(s string) string { return kg.Excerpt(s, 60) }

// numberLiteral returns the lexical form and the datatype of a number (API, section 8.6).
// A double is written with enough digits to be read back, which the "%1.15E" of the
// specification does not guarantee.
func numberLiteral(v val, datatype string) (lexical, typ string, err error) {
	f, err := parseDouble(v)
	if err != nil {
		return "", "", err
	}
	if f != math.Trunc(f) || math.Abs(f) >= 1e21 || datatype == kg.XSDDouble {
		return canonicalDouble(f), cmp.Or(datatype, kg.XSDDouble), nil
	}
	lexical = strconv.FormatFloat(f, 'f', 0, 64)
	if lexical == "-0" {
		lexical = "0"
	}
	return lexical, cmp.Or(datatype, kg.XSDInteger), nil
}

func canonicalDouble(f float64) string {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	sign, digits := "", strings.TrimPrefix(exponent, "+")
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		sign, digits = "", "0"
	}
	return mantissa + "E" + sign + digits
}

// sameJSON reports whether two values are equal.
func sameJSON(a, b val) bool {
	x, err := canonicalJSON(nil, a)
	if err != nil {
		return false
	}
	y, err := canonicalJSON(nil, b)
	return err == nil && string(x) == string(y)
}

// canonicalJSON appends the canonical form of a value (RFC 8785).
func canonicalJSON(out []byte, v val) ([]byte, error) {
	switch v.kind() {
	case '{':
		return canonicalObject(out, v)
	case '[':
		out = append(out, '[')
		first := true
		for item := range v.items() {
			if !first {
				out = append(out, ',')
			}
			first = false
			var err error
			if out, err = canonicalJSON(out, item); err != nil {
				return out, err
			}
		}
		return append(out, ']'), nil
	case '"':
		return canonicalString(out, v.bytes()), nil
	case '0':
		f, err := parseDouble(v)
		if err != nil {
			return out, err
		}
		return canonicalNumber(out, f), nil
	}
	return append(out, v.raw()...), nil
}

func canonicalObject(out []byte, v val) ([]byte, error) {
	type entry struct {
		key   string
		value val
	}
	var entries []entry
	ascii := true
	for key, value := range v.entries() {
		e := entry{key.string(), value}
		for i := range len(e.key) {
			ascii = ascii && e.key[i] < 0x80
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if ascii {
			return cmp.Compare(a.key, b.key)
		}
		return slices.Compare(utf16.Encode([]rune(a.key)), utf16.Encode([]rune(b.key)))
	})
	out = append(out, '{')
	for i, e := range entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(canonicalString(out, []byte(e.key)), ':')
		var err error
		if out, err = canonicalJSON(out, e.value); err != nil {
			return out, err
		}
	}
	return append(out, '}'), nil
}

func canonicalString(out, s []byte) []byte {
	const short = "\b\t\n\f\r"
	const names = "btnfr"
	out = append(out, '"')
	for _, c := range s {
		switch i := strings.IndexByte(short, c); {
		case i >= 0:
			out = append(out, '\\', names[i])
		case c < ' ':
			out = append(out, `\u00`...)
			out = append(out, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

// canonicalNumber appends a number as ECMAScript formats it.
func canonicalNumber(out []byte, f float64) []byte {
	a := math.Abs(f)
	if f == 0 {
		return append(out, '0')
	}
	if a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	out = append(append(append(out, mantissa...), 'e'), exponent[0])
	return append(out, strings.TrimLeft(exponent[1:], "0")...)
}
