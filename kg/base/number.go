package base

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

const (
	xsdFloat         = XSD + "float"
	xsdTime          = XSD + "time"
	xsdDateTimeStamp = XSD + "dateTimeStamp"
)

// bounds are the inclusive bounds of a datatype derived from xsd:integer; "" is none.
type bounds struct{ least, most string }

// integerTypes has xsd:integer and the datatypes derived from it.
var integerTypes = map[string]bounds{
	XSDInteger: {}, XSD + "nonPositiveInteger": {most: "0"}, XSD + "negativeInteger": {most: "-1"},
	XSD + "nonNegativeInteger": {least: "0"}, XSD + "positiveInteger": {least: "1"},
	XSD + "long": {"-9223372036854775808", "9223372036854775807"}, XSD + "int": {"-2147483648", "2147483647"},
	XSD + "short": {"-32768", "32767"}, XSD + "byte": {"-128", "127"},
	XSD + "unsignedLong": {"0", "18446744073709551615"}, XSD + "unsignedInt": {"0", "4294967295"},
	XSD + "unsignedShort": {"0", "65535"}, XSD + "unsignedByte": {"0", "255"},
}

func (b bounds) contains(integer string) bool {
	return (b.least == "" || CompareDecimals(integer, b.least) >= 0) && (b.most == "" || CompareDecimals(integer, b.most) <= 0)
}

// IsNumeric reports whether a datatype is one of numbers.
func IsNumeric(datatype string) bool {
	_, integer := integerTypes[datatype]
	return integer || datatype == XSDDecimal || datatype == XSDDouble || datatype == xsdFloat
}

// ParseNumber parses a literal of a numeric datatype. exact reports that the value is
// the decimal as written, not the nearest float or double.
func ParseNumber(text, datatype string) (f float64, exact, ok bool) {
	within, integer := integerTypes[datatype]
	switch {
	case integer:
		exact, ok = true, isDecimal(text, false) && within.contains(text)
	case datatype == XSDDecimal:
		exact, ok = true, isDecimal(text, true)
	case datatype == XSDDouble, datatype == xsdFloat:
		switch text {
		case "INF", "+INF":
			return math.Inf(1), false, true
		case "-INF":
			return math.Inf(-1), false, true
		case "NaN":
			return math.NaN(), false, true
		}
		mantissa, exponent, has := text, "", false
		if i := strings.IndexAny(text, "eE"); i >= 0 {
			mantissa, exponent, has = text[:i], text[i+1:], true
		}
		ok = isDecimal(mantissa, true) && (!has || isDecimal(exponent, false))
	}
	if !ok {
		return 0, false, false
	}
	bits := 64
	if datatype == xsdFloat {
		bits = 32
	}
	f, err := strconv.ParseFloat(text, bits)
	return f, exact, err == nil || math.IsInf(f, 0) // overflow yields infinity
}

// isDecimal reports whether the text is an optional sign and digits, with a decimal
// point if allowed.
func isDecimal(text string, point bool) bool {
	if text != "" && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	digits := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '.' && point:
			point = false
		default:
			return false
		}
	}
	return digits > 0
}

// CompareDecimals compares two decimals of any length.
func CompareDecimals(a, b string) int {
	if a == b {
		return 0
	}
	x, y := canonicalDecimal(a), canonicalDecimal(b)
	if x.negative != y.negative {
		return signOf(x.negative)
	}
	c := cmp.Or(cmp.Compare(len(x.whole), len(y.whole)), strings.Compare(x.whole, y.whole), strings.Compare(x.fraction, y.fraction))
	if x.negative {
		return -c
	}
	return c
}

// decimal is a decimal without redundant zeros; zero is not negative.
type decimal struct {
	negative        bool
	whole, fraction string
}

func canonicalDecimal(text string) (d decimal) {
	d.negative = strings.HasPrefix(text, "-")
	d.whole, d.fraction, _ = strings.Cut(strings.TrimLeft(text, "+-"), ".")
	d.whole = strings.TrimLeft(d.whole, "0")
	d.fraction = strings.TrimRight(d.fraction, "0")
	d.negative = d.negative && d.whole+d.fraction != ""
	return d
}

// DecimalKey returns a key that is equal for equal decimals only.
func DecimalKey(text string) string {
	d := canonicalDecimal(text)
	sign := ""
	if d.negative {
		sign = "-"
	}
	return sign + d.whole + "." + d.fraction
}

// signOf returns -1 for a negative number and 1 for another.
func signOf(negative bool) int {
	if negative {
		return -1
	}
	return 1
}
