package valuespace

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"

	"koine/kg"
)

const (
	xsdFloat         = kg.XSD + "float"
	xsdTime          = kg.XSD + "time"
	xsdDateTimeStamp = kg.XSD + "dateTimeStamp"
)

// bounds are the inclusive bounds of a datatype derived from xsd:integer; "" is none.
type bounds struct{ least, most string }

// integerTypes has xsd:integer and the datatypes derived from it.
var integerTypes = map[string]bounds{
	kg.XSDInteger: {}, kg.XSD + "nonPositiveInteger": {most: "0"}, kg.XSD + "negativeInteger": {most: "-1"},
	kg.XSD + "nonNegativeInteger": {least: "0"}, kg.XSD + "positiveInteger": {least: "1"},
	kg.XSD + "long": {"-9223372036854775808", "9223372036854775807"}, kg.XSD + "int": {"-2147483648", "2147483647"},
	kg.XSD + "short": {"-32768", "32767"}, kg.XSD + "byte": {"-128", "127"},
	kg.XSD + "unsignedLong": {"0", "18446744073709551615"}, kg.XSD + "unsignedInt": {"0", "4294967295"},
	kg.XSD + "unsignedShort": {"0", "65535"}, kg.XSD + "unsignedByte": {"0", "255"},
}

func (b bounds) contains(integer string) bool {
	return (b.least == "" || compareDecimals(integer, b.least) >= 0) && (b.most == "" || compareDecimals(integer, b.most) <= 0)
}

func isNumeric(datatype string) bool {
	_, integer := integerTypes[datatype]
	return integer || datatype == kg.XSDDecimal || datatype == kg.XSDDouble || datatype == xsdFloat
}

// parseNumber parses a literal of a numeric datatype. exact reports that the value is
// the decimal as written, not the nearest float or double.
func parseNumber(text, datatype string) (f float64, exact, ok bool) {
	within, integer := integerTypes[datatype]
	switch {
	case integer:
		exact, ok = true, isDecimal(text, false) && within.contains(text)
	case datatype == kg.XSDDecimal:
		exact, ok = true, isDecimal(text, true)
	case datatype == kg.XSDDouble, datatype == xsdFloat:
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

// compareNumbers compares as SPARQL does: two exact numbers digit by digit, others as
// doubles.
func compareNumbers(v, w Value) int {
	if c := cmp.Compare(v.Number, w.Number); c != 0 || !v.Exact || !w.Exact {
		return c
	}
	return compareDecimals(v.Text, w.Text)
}

// orderNumbers is a total order: NaN first; among equal doubles, exact numbers last.
func orderNumbers(v, w Value) int {
	return cmp.Or(cmp.Compare(v.Number, w.Number), compareBooleans(v.Exact, w.Exact), compareNumbers(v, w))
}

// compareDecimals compares two decimals of any length.
func compareDecimals(a, b string) int {
	if a == b {
		return 0
	}
	x, y := canonicalDecimal(a), canonicalDecimal(b)
	if x.negative != y.negative {
		return compareBooleans(y.negative, x.negative)
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

// maxFractionDigits is the largest number of digits for exact sums. Longer numbers are
// summed as float64.
const maxFractionDigits = 400

// Fraction returns the number as a fraction, for sums.
func (v Value) Fraction() *big.Rat {
	if v.Exact && len(v.Text) <= maxFractionDigits {
		if r, ok := new(big.Rat).SetString(v.Text); ok {
			return r
		}
	}
	if math.IsInf(v.Number, 0) || math.IsNaN(v.Number) {
		return new(big.Rat)
	}
	return new(big.Rat).SetFloat64(v.Number)
}
