package base

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// LiteralFromJSON returns the literal for a JSON value. Numbers keep their kind and all
// digits: one without fraction and exponent is an xsd:integer, any other an xsd:double, unless
// datatype (an IRI, an "xsd:" name, or "") says otherwise. A datatype must fit the value. lang
// is for strings only.
func LiteralFromJSON(raw []byte, datatype, lang string) (Term, error) {
	raw = bytes.TrimSpace(raw)
	if name, ok := strings.CutPrefix(datatype, "xsd:"); ok {
		datatype = XSD + name
	}
	if datatype != "" {
		if err := validIRI(datatype); err != nil {
			return Term{}, Errorf(CodeInvalid, "the type of a literal is an IRI or an xsd: name, not %q", Clip(datatype)).At("type")
		}
	}
	if len(raw) == 0 {
		return Term{}, Errorf(CodeInvalid, "a value is missing").At("value")
	}
	if lang != "" && (raw[0] != '"' || datatype != "" && datatype != RDFLangString) {
		return Term{}, Errorf(CodeInvalid, "only a string without a type can have a language").At("language")
	}
	t, err := literalFromJSON(raw, datatype, lang)
	if err != nil {
		return Term{}, err
	}
	return t, t.Valid()
}

func literalFromJSON(raw []byte, datatype, lang string) (Term, error) {
	switch c := raw[0]; {
	case c == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return Term{}, Errorf(CodeInvalid, "the value is not a JSON string").At("value")
		}
		if lang != "" {
			return LangString(s, lang), nil
		}
		if datatype == RDFLangString {
			return Term{}, Errorf(CodeInvalid, "rdf:langString needs a language").At("language")
		}
		return checkTerm(Typed(s, datatype))
	case c == 't' || c == 'f':
		b, err := strconv.ParseBool(string(raw))
		if err != nil || datatype != "" && datatype != XSDBoolean && datatype != XSDString {
			return Term{}, checkFits(string(raw), datatype)
		}
		if datatype == XSDString {
			return String(string(raw)), nil
		}
		return Boolean(b), nil
	case c == '-' || c >= '0' && c <= '9':
		return numberFromJSON(string(raw), datatype)
	}
	return Term{}, Errorf(CodeInvalid, "a literal value is a string, a number or a boolean").At("value")
}

func numberFromJSON(text, datatype string) (Term, error) {
	if !json.Valid([]byte(text)) {
		return Term{}, Errorf(CodeInvalid, "%q is not a number", Clip(text)).At("value")
	}
	if datatype != "" {
		return checkTerm(Typed(text, datatype))
	}
	if !strings.ContainsAny(text, ".eE") {
		if text == "-0" {
			text = "0"
		}
		return Typed(text, XSDInteger), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Term{}, Errorf(CodeInvalid, "%s is out of the range of xsd:double; give it a type, like xsd:decimal", Clip(text)).At("value")
	}
	return Double(f), nil
}

// ValueJSON returns the literal's value as JSON: a number for the number datatypes, true
// or false for booleans, and otherwise a string. Numbers that JSON cannot represent and
// invalid forms are strings as well. A number keeps its digits except those that JSON does
// not allow: "+007" is 7.
func (t Term) ValueJSON() []byte {
	switch datatype := t.Datatype(); {
	case numberTypes[datatype]:
		if json.Valid([]byte(t.value)) {
			return []byte(t.value)
		}
		if number := jsonNumber(t.value); t.FitsDatatype() && json.Valid(number) {
			return number
		}
	case datatype == XSDBoolean:
		switch t.value {
		case "true", "1":
			return []byte("true")
		case "false", "0":
			return []byte("false")
		}
	}
	return jsonString(t.value)
}

// numberTypes are the numeric datatypes.
var numberTypes = map[string]bool{
	XSDInteger: true, XSDDecimal: true, XSDDouble: true, XSD + "float": true,
	XSD + "long": true, XSD + "int": true, XSD + "short": true, XSD + "byte": true,
	XSD + "nonNegativeInteger": true, XSD + "positiveInteger": true, XSD + "nonPositiveInteger": true, XSD + "negativeInteger": true,
	XSD + "unsignedLong": true, XSD + "unsignedInt": true, XSD + "unsignedShort": true, XSD + "unsignedByte": true,
}

// jsonNumber converts a number of XML Schema to JSON: without a plus sign and redundant
// zeros, and with a digit on both sides of the point.
func jsonNumber(text string) []byte {
	mantissa, exponent := text, ""
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i:]
	}
	sign := ""
	if rest, negative := strings.CutPrefix(mantissa, "-"); negative {
		sign, mantissa = "-", rest
	} else {
		mantissa = strings.TrimPrefix(mantissa, "+")
	}
	whole, fraction, point := strings.Cut(mantissa, ".")
	whole = cmp.Or(strings.TrimLeft(whole, "0"), "0")
	if point && fraction != "" {
		whole += "." + fraction
	}
	return []byte(sign + whole + exponent)
}

func jsonString(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return []byte(`""`) // a string always encodes
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// lexical forms of the datatypes that are checked (XML Schema Datatypes 1.1,
// section 3.3 and 3.4).
var lexical = map[string]*regexp.Regexp{
	XSDInteger:                 regexp.MustCompile(`^[+-]?[0-9]+$`),
	XSD + "long":               regexp.MustCompile(`^[+-]?[0-9]+$`),
	XSD + "int":                regexp.MustCompile(`^[+-]?[0-9]+$`),
	XSD + "short":              regexp.MustCompile(`^[+-]?[0-9]+$`),
	XSD + "byte":               regexp.MustCompile(`^[+-]?[0-9]+$`),
	XSD + "nonNegativeInteger": regexp.MustCompile(`^(\+?[0-9]+|-0+)$`),
	XSD + "positiveInteger":    regexp.MustCompile(`^\+?0*[1-9][0-9]*$`),
	XSD + "unsignedLong":       regexp.MustCompile(`^\+?[0-9]+$`),
	XSD + "unsignedInt":        regexp.MustCompile(`^\+?[0-9]+$`),
	XSDDecimal:                 regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$`),
	XSDDouble:                  regexp.MustCompile(`^([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN)$`),
	XSD + "float":              regexp.MustCompile(`^([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN)$`),
	XSDBoolean:                 regexp.MustCompile(`^(true|false|1|0)$`),
	XSDDateTime:                regexp.MustCompile(`^-?[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?$`),
	XSDDate:                    regexp.MustCompile(`^-?[0-9]{4,}-[0-9]{2}-[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})?$`),
}

// FitsDatatype reports whether the lexical form is valid for the datatype. Unknown
// datatypes accept all forms.
func (t Term) FitsDatatype() bool {
	form := lexical[t.ExplicitDatatype()]
	return form == nil || form.MatchString(t.value)
}

func checkTerm(t Term) (Term, error) {
	if !t.FitsDatatype() {
		return Term{}, checkFits(t.value, t.ExplicitDatatype())
	}
	return t, nil
}

func checkFits(value, datatype string) error {
	return Errorf(CodeInvalid, "%q is not a value of the type %s", Clip(value), Clip(datatype)).At("type")
}

// Number is the numeric value of a literal of one of the number datatypes.
func (t Term) Number() (float64, bool) {
	switch t.Datatype() {
	case XSDInteger, XSDDecimal, XSDDouble, XSD + "int", XSD + "long", XSD + "short", XSD + "byte", XSD + "float",
		XSD + "nonNegativeInteger", XSD + "positiveInteger", XSD + "unsignedInt", XSD + "unsignedLong":
	default:
		return 0, false
	}
	switch t.value {
	case "INF", "+INF":
		return math.Inf(1), true
	case "-INF":
		return math.Inf(-1), true
	}
	f, err := strconv.ParseFloat(t.value, 64)
	return f, err == nil
}

// DateTimeValue returns the instant of an xsd:dateTime or xsd:date literal. Without a time
// zone the value is UTC.
func (t Term) DateTimeValue() (time.Time, bool) {
	layouts := []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"}
	switch t.Datatype() {
	case XSDDateTime:
	case XSDDate:
		layouts = []string{"2006-01-02", "2006-01-02Z07:00"}
	default:
		return time.Time{}, false
	}
	for _, layout := range layouts {
		if v, err := time.Parse(layout, t.value); err == nil {
			return v, true
		}
	}
	return time.Time{}, false
}

// InlineDatatypes are the datatypes with values in the id itself. A literal of another
// datatype is always in the dictionary.
var InlineDatatypes = []string{XSDBoolean, XSDInteger, XSDDouble, XSDDateTime, XSDDate}
