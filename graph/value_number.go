package graph

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

// integerTypes are the datatypes derived from xsd:integer, and itself.
var integerTypes = map[string]bool{
	kg.XSDInteger: true, kg.XSD + "long": true, kg.XSD + "int": true, kg.XSD + "short": true, kg.XSD + "byte": true,
	kg.XSD + "nonNegativeInteger": true, kg.XSD + "positiveInteger": true,
	kg.XSD + "nonPositiveInteger": true, kg.XSD + "negativeInteger": true,
	kg.XSD + "unsignedLong": true, kg.XSD + "unsignedInt": true, kg.XSD + "unsignedShort": true, kg.XSD + "unsignedByte": true,
}

// parseNumber reads a literal of one of the number datatypes. exact tells that its
// value is the one that is written, and not the nearest float or double.
func parseNumber(text, datatype string) (f float64, exact, ok bool) {
	switch {
	case integerTypes[datatype]:
		exact, ok = true, isDecimal(text, false)
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
	return f, exact, err == nil || math.IsInf(f, 0) // too great is infinite
}

// isDecimal tells whether the text is digits with a sign before them, and a point
// among them if that is allowed.
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

// compareNumbers compares as SPARQL does: what is exact with the other digit by
// digit, and everything with a float or double as doubles.
func compareNumbers(v, w value) int {
	if c := cmp.Compare(v.number, w.number); c != 0 || !v.exact || !w.exact {
		return c
	}
	return compareDecimals(v.text, w.text)
}

// orderNumbers is a total order: NaN first, and of equal doubles what is exact last.
func orderNumbers(v, w value) int {
	return cmp.Or(cmp.Compare(v.number, w.number), compareBooleans(v.exact, w.exact), compareNumbers(v, w))
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

// decimal is a decimal without the zeros that mean nothing; zero is not negative.
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

// key is the same for equal decimals only.
func (d decimal) key() string {
	sign := ""
	if d.negative {
		sign = "-"
	}
	return sign + d.whole + "." + d.fraction
}

// maxFractionDigits bounds what is summed up digit by digit; numbers that are longer
// are summed up as float64.
const maxFractionDigits = 400

// fraction is the number as a fraction, for sums.
func (v value) fraction() *big.Rat {
	if v.exact && len(v.text) <= maxFractionDigits {
		if r, ok := new(big.Rat).SetString(v.text); ok {
			return r
		}
	}
	if math.IsInf(v.number, 0) || math.IsNaN(v.number) {
		return new(big.Rat)
	}
	return new(big.Rat).SetFloat64(v.number)
}
