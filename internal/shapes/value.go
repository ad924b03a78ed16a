package shapes

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"koine/kg"
)

// compare orders two literals as SPARQL's < does; ok is false where it has no
// answer.
func compare(a, b kg.Term) (c int, ok bool) {
	if !a.IsLiteral() || !b.IsLiteral() {
		return 0, false
	}
	if x, isNumber := numberOf(a); isNumber {
		y, isNumber := numberOf(b)
		return x.compare(y), isNumber && !x.isNaN() && !y.isNaN()
	}
	if a.Datatype() != b.Datatype() {
		return 0, false
	}
	switch a.Datatype() {
	case kg.XSDString:
		return strings.Compare(a.Value(), b.Value()), true
	case kg.XSDBoolean:
		x, okX := boolean(a)
		y, okY := boolean(b)
		return cmp.Compare(x, y), okX && okY
	case kg.XSDDateTime, kg.XSDDate:
		return compareMoments(a, b)
	}
	return 0, false
}

// number is exact where it can be.
type number struct {
	float float64
	exact *big.Rat
}

// maxExactDigits bounds what is compared digit by digit.
const maxExactDigits = 400

func numberOf(t kg.Term) (number, bool) {
	if !isNumeric(t.Datatype()) || !wellFormed(t) {
		return number{}, false
	}
	var n number
	switch t.Value() {
	case "INF", "+INF":
		return number{float: math.Inf(1)}, true
	case "-INF":
		return number{float: math.Inf(-1)}, true
	case "NaN":
		return number{float: math.NaN()}, true
	}
	text := t.Value()
	if len(text) <= maxExactDigits && !strings.ContainsAny(text, "eE") {
		n.exact, _ = new(big.Rat).SetString(text)
	}
	if n.exact != nil {
		n.float, _ = n.exact.Float64()
		return n, true
	}
	n.float, _ = strconv.ParseFloat(text, 64) // beyond its range: an infinity
	return n, true
}

func (n number) isNaN() bool { return math.IsNaN(n.float) }

func (n number) compare(o number) int {
	if n.exact != nil && o.exact != nil {
		return n.exact.Cmp(o.exact)
	}
	return cmp.Compare(n.float, o.float)
}

func boolean(t kg.Term) (int, bool) {
	switch t.Value() {
	case "true", "1":
		return 1, true
	case "false", "0":
		return 0, true
	}
	return 0, false
}

// widestZone is how far a moment without a time zone may be from where it seems
// to be (XML Schema Datatypes 1.1, section 3.3.7).
const widestZone = 14 * time.Hour

func compareMoments(a, b kg.Term) (int, bool) {
	x, okX := moment(a)
	y, okY := moment(b)
	if !okX || !okY {
		return 0, false
	}
	if hasZone(a) != hasZone(b) && x.Sub(y).Abs() <= widestZone {
		return 0, false
	}
	return x.Compare(y), true
}

// moment is that of an xsd:dateTime or xsd:date. 24:00:00 is the midnight of the next
// day (XML Schema Datatypes 1.1, section 3.3.7).
func moment(t kg.Term) (time.Time, bool) {
	day, rest, endOfDay := strings.Cut(t.Value(), "T24:00:00")
	if !endOfDay {
		return t.DateTimeValue()
	}
	at, ok := kg.Typed(day+"T00:00:00"+rest, t.Datatype()).DateTimeValue()
	return at.AddDate(0, 0, 1), ok && at.Nanosecond() == 0
}

func hasZone(t kg.Term) bool {
	text := t.Value()
	if strings.HasSuffix(text, "Z") {
		return true
	}
	return len(text) > 6 && text[len(text)-3] == ':' && strings.ContainsRune("+-", rune(text[len(text)-6]))
}

// wholes are the bounds of the datatypes derived from xsd:integer; nil for none.
var wholes = map[string][2]*big.Int{
	"integer": {}, "nonPositiveInteger": {nil, big.NewInt(0)}, "negativeInteger": {nil, big.NewInt(-1)},
	"nonNegativeInteger": {big.NewInt(0), nil}, "positiveInteger": {big.NewInt(1), nil},
	"long": signed(64), "int": signed(32), "short": signed(16), "byte": signed(8),
	"unsignedLong": unsigned(64), "unsignedInt": unsigned(32), "unsignedShort": unsigned(16), "unsignedByte": unsigned(8),
}

func unsigned(bits uint) [2]*big.Int {
	top := new(big.Int).Lsh(big.NewInt(1), bits)
	return [2]*big.Int{big.NewInt(0), top.Sub(top, big.NewInt(1))}
}

func signed(bits uint) [2]*big.Int {
	top := new(big.Int).Lsh(big.NewInt(1), bits-1)
	return [2]*big.Int{new(big.Int).Neg(top), new(big.Int).Sub(top, big.NewInt(1))}
}

func isNumeric(datatype string) bool {
	name, ok := strings.CutPrefix(datatype, kg.XSD)
	if _, whole := wholes[name]; whole {
		return ok
	}
	return ok && (name == "decimal" || name == "double" || name == "float")
}

// wellFormed tells whether a literal's text is one of its datatype. A datatype
// that is not known is taken at its word.
func wellFormed(t kg.Term) bool {
	name, ok := strings.CutPrefix(t.Datatype(), kg.XSD)
	if !ok {
		return true
	}
	if bounds, whole := wholes[name]; whole {
		if !kg.Typed(t.Value(), kg.XSDInteger).FitsDatatype() {
			return false
		}
		if len(t.Value()) > maxExactDigits {
			return bounds == [2]*big.Int{}
		}
		n, ok := new(big.Int).SetString(t.Value(), 10)
		return ok && (bounds[0] == nil || n.Cmp(bounds[0]) >= 0) && (bounds[1] == nil || n.Cmp(bounds[1]) <= 0)
	}
	if !t.FitsDatatype() {
		return false
	}
	if (name == "dateTime" || name == "date") && !strings.HasPrefix(t.Value(), "-") && len(t.Value()) > 4 && t.Value()[4] == '-' {
		_, ok := moment(t)
		return ok
	}
	return true
}
