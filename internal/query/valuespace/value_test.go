package valuespace_test

import (
	"testing"

	"koine/internal/query/valuespace"
	"koine/kg"
)

func typed(text, datatype string) kg.Term { return kg.Typed(text, kg.XSD+datatype) }

// TestCompare compares values as SPARQL 1.1, section 17.3, defines; "!" means different
// without an order, "?" unknown.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		a    kg.Term
		want string
		b    kg.Term
	}{
		{typed("1", "integer"), "=", typed("1.0", "decimal")},
		{typed("1", "byte"), "=", typed("1e0", "double")},
		{typed("9007199254740993", "integer"), ">", typed("9007199254740992", "integer")},
		{typed("9007199254740993", "integer"), "=", typed("9007199254740992", "double")}, // as doubles
		{typed("-2", "integer"), "<", typed("-1.5", "decimal")},
		{typed("-INF", "float"), "<", typed("0", "integer")},
		{typed("NaN", "double"), "!", typed("NaN", "double")},
		{typed("300", "byte"), "?", typed("300", "integer")}, // ill-formed for its datatype
		{typed("128", "byte"), "?", typed("127", "byte")},
		{typed("-128", "byte"), "<", typed("127", "byte")},
		{typed("0", "positiveInteger"), "?", typed("1", "positiveInteger")},
		{typed("18446744073709551615", "unsignedLong"), ">", typed("18446744073709551614", "unsignedLong")},
		{typed("18446744073709551616", "unsignedLong"), "?", typed("1", "unsignedLong")},
		{typed("1", "boolean"), "=", typed("true", "boolean")},
		{typed("false", "boolean"), "<", typed("1", "boolean")},
		{typed("TRUE", "boolean"), "?", typed("true", "boolean")},
		{typed("2024-01-01T24:00:00Z", "dateTime"), "=", typed("2024-01-02T00:00:00Z", "dateTime")},
		{typed("2024-01-01T00:00:00+01:00", "dateTime"), "<", typed("2024-01-01T00:00:00Z", "dateTime")},
		{typed("2024-01-01T00:00:00", "dateTime"), "?", typed("2024-01-01T00:00:00Z", "dateTime")},
		{typed("2024-01-01T00:00:00", "dateTime"), "?", typed("2025-01-01T00:00:00Z", "dateTime")}, // although years apart
		{typed("2024-01-01", "date"), "!", typed("2024-01-01T00:00:00", "dateTime")},
		{typed("2024-01-01T00:00:00Z", "dateTimeStamp"), "=", typed("2024-01-01T00:00:00Z", "dateTime")},
		{typed("23:00:00", "time"), ">", typed("22:59:59.9999999999", "time")},
		{kg.String("a"), "<", kg.String("b")},
		{kg.LangString("a", "en"), "!", kg.LangString("a", "de")},
		{kg.LangString("a", "en"), "=", kg.LangString("a", "EN")},
		{kg.LangString("a", "en"), "!", kg.String("a")},
		{kg.String("1"), "!", typed("1", "integer")},
		{kg.Typed("a", "urn:d"), "=", kg.Typed("a", "urn:d")}, // identical terms
		{kg.Typed("a", "urn:d"), "?", kg.Typed("b", "urn:d")},
		{kg.IRI("urn:a"), "!", kg.String("urn:a")},
	} {
		got := sign(c.a, c.b)
		back := map[string]string{"<": ">", ">": "<"}[got]
		if back == "" {
			back = got
		}
		if got != c.want || sign(c.b, c.a) != back {
			t.Errorf("%v %s %v: got %s, backwards %s", c.a, c.want, c.b, got, sign(c.b, c.a))
		}
	}
}

func sign(a, b kg.Term) string {
	c, ordered, known := valuespace.CompareTerms(a, b)
	switch {
	case !known:
		return "?"
	case c == 0:
		return "="
	case !ordered:
		return "!"
	case c < 0:
		return "<"
	}
	return ">"
}

func TestWellFormed(t *testing.T) {
	for _, c := range []struct {
		text, datatype string
		want           bool
	}{
		{"127", "byte", true}, {"128", "byte", false}, {"-129", "byte", false}, {"+007", "unsignedByte", true},
		{"-0", "nonNegativeInteger", true}, {"-1", "nonNegativeInteger", false}, {"0", "negativeInteger", false},
		{"1.5", "integer", false}, {"1.", "decimal", true}, {".", "decimal", false}, {"1e5", "decimal", false}, {"1E-5", "float", true}, {"inf", "double", false},
		{"true", "boolean", true}, {"yes", "boolean", false},
		{"2024-02-29", "date", true}, {"2023-02-29", "date", false}, {"2024-01-01T24:00:01", "dateTime", false}, {"2024-01-01T24:00:00", "dateTime", true},
		{"2024-01-01T00:00:00", "dateTimeStamp", false}, {"25:00:00", "time", false}, {"12345678901-01-01", "date", true},
		{"anything", "string", true}, {"anything", "unheardOf", true},
	} {
		if got := valuespace.WellFormed(typed(c.text, c.datatype)); got != c.want {
			t.Errorf("%q of %s: got %t", c.text, c.datatype, got)
		}
	}
}

// Kinds sort as the guide says: numbers, times, booleans and texts, other literals, blank nodes, IRIs.
func TestOrderOfKinds(t *testing.T) {
	list := []kg.Term{kg.String("text"), kg.Typed("zzz", "urn:datatype"), kg.Blank("a"), kg.IRI("urn:a")}
	for i := range list[1:] {
		if a, b := valuespace.Of(list[i]), valuespace.Of(list[i+1]); a.Order(b) >= 0 || b.Order(a) <= 0 {
			t.Errorf("%v does not sort before %v", list[i], list[i+1])
		}
	}
}
