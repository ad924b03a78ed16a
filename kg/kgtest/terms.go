package kgtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/kg"
)

// sampleTerms returns terms of every kind, with values around every boundary at which a
// store may switch between encodings.
func sampleTerms() []kg.Term {
	terms := []kg.Term{
		kg.IRI("urn:a"), kg.IRI("https://example.org/ä/世界?q=1#x"), kg.IRI("urn:" + strings.Repeat("long/", 400)),
		kg.Blank("b"), kg.Blank("b-1.2_x"), kg.Blank(strings.Repeat("b", 300)),
		kg.String(""), kg.String("\x00"), kg.String("a\x00"), kg.String("a\x00b"), kg.String("\x00\x00\x00\x00\x00\x00\x00\x00"),
		kg.String(" "), kg.String("ä"), kg.String("世界"), kg.String("🦊🦊"), kg.String("a\nb\t\"c\"\\"),
		kg.String("urn:a"), kg.String("_:b"), kg.String("true"), kg.String("1"), kg.String("\u007f"), kg.String("\U0010ffff"),
		kg.LangString("x", "en"), kg.LangString("x", "en-GB"), kg.LangString("x", "de"), kg.LangString("", "en"),
		kg.Typed("", "urn:type"), kg.Typed("x", "urn:type"), kg.Typed("x", "urn:type2"), kg.Typed("1", kg.XSD+"int"),
		kg.Typed("<b>", kg.RDF+"HTML"),
	}
	for n := 1; n <= 20; n++ { // some boundary lies among the short strings
		terms = append(terms, kg.String(strings.Repeat("s", n)), kg.Typed(strings.Repeat("9", n), kg.XSDInteger))
	}
	for shift := 0; shift < 64; shift += 7 {
		n := int64(1) << shift
		terms = append(terms, kg.Integer(n), kg.Integer(-n), kg.Integer(n-1), kg.Integer(-n+1))
	}
	typed := map[string][]string{
		kg.XSDInteger: {
			"0", "00", "-0", "+0", "+1", "01", "-01", "9223372036854775807", "-9223372036854775808",
			"9223372036854775808", "-9223372036854775809", "36028797018963967", "36028797018963968", "-36028797018963969",
			"340282366920938463463374607431768211456", "no number",
		},
		kg.XSDBoolean: {"true", "false", "1", "0", "TRUE", "", "maybe"},
		kg.XSDDecimal: {"1", "1.0", "01.50", "-0.1", ".5", "5."},
		kg.XSDDouble:  {"0", "-0", "0.0", "1", "1.0", "1e0", "1E0", "1e300", "4.9e-324", "1e400", "INF", "+INF", "-INF", "NaN", "0.1", "1e21", "1e+21", "Inf", "0x1p-2", "1_000"},
		kg.XSDDate: {
			"2031-05-04", "2031-05-04Z", "2031-05-04+02:00", "0001-01-01", "0000-01-01", "-0044-03-15", "9999-12-31",
			"12031-05-04", "2031-02-30", "2031-5-4", "",
		},
		kg.XSDDateTime: {
			"2031-05-04T12:00:00Z", "2031-05-04T12:00:00", "2031-05-04T12:00:00+00:00", "2031-05-04T12:00:00-00:00",
			"2031-05-04T12:00:00+02:00", "2031-05-04T12:00:00.5Z", "2031-05-04T12:00:00.50Z", "2031-05-04T12:00:00.500Z",
			"2031-05-04T12:00:00.000Z", "2031-05-04T12:00:00.123456789Z", "2031-05-04T12:00:00.123456789012Z",
			"2031-05-04T24:00:00Z", "2031-12-31T23:59:60Z", "1969-12-31T23:59:59.999Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z",
			"12031-05-04T12:00:00Z", "-0044-03-15T12:00:00Z", "2031-02-30T12:00:00Z", "2031-05-04T1:00:00Z", "2031-05-04T12:00:00,5Z",
		},
		kg.XSD + "gYear": {"2031", "-0044"},
		kg.XSD + "long":  {"1", "01"},
	}
	for datatype, forms := range typed {
		for _, form := range forms {
			terms = append(terms, kg.Typed(form, datatype))
		}
	}
	large := strings.Repeat("a large text that many terms begin with; ", 5000)
	for i := range 5 { // equal in the first 200 KiB
		terms = append(terms, kg.String(large+fmt.Sprint(i)), kg.LangString(large+fmt.Sprint(i), "en"), kg.IRI("urn:"+strings.ReplaceAll(large, " ", "_")+fmt.Sprint(i)))
	}
	slices.SortFunc(terms, kg.Term.Compare)
	return slices.Compact(terms)
}

// testTerms proves that each term is read back unchanged, is distinct from all others,
// and can be looked up.
func testTerms(t *testing.T, f Factory) {
	store := f(t, kg.Options{})
	terms, p := sampleTerms(), kg.IRI("urn:p")
	_, err := store.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
		for i, term := range terms {
			q := kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s:", i)), Predicate: p, Object: term}
			if err := tx.Apply(add(q, "")); err != nil {
				return fmt.Errorf("%.100s: %w", term, err)
			}
			if term.IsResource() {
				if err := tx.Apply(add(kg.Quad{Subject: term, Predicate: kg.IRI("urn:p:back"), Object: kg.Integer(int64(i))}, "")); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("Update: %v", err)
	}
	t.Run("as written", func(t *testing.T) { checkRoundTrip(t, store, terms) })
	store.MustClose()
	store.Reopen()
	t.Run("after opening again", func(t *testing.T) { checkRoundTrip(t, store, terms) })
	t.Run("in the log", func(t *testing.T) {
		c, err := store.Commit(within(t), tester, 1)
		if err != nil {
			t.Fatal(err)
		}
		logged := map[kg.Term]bool{}
		for _, change := range c.Changes {
			logged[change.Quad.Object] = true
		}
		for _, term := range terms {
			if !logged[term] {
				t.Errorf("%.100s is not in the commit", term)
			}
		}
	})
}

func checkRoundTrip(t *testing.T, store *Store, terms []kg.Term) {
	snap := open(t, store, kg.View{Principal: tester})
	defer snap.Close()
	for i, term := range terms {
		subject := kg.IRI(fmt.Sprint("urn:s:", i))
		bySubject, err := collect(snap.Match(kg.Pattern{Subject: subject}))
		if err != nil || len(bySubject) != 1 || bySubject[0].Object != term {
			t.Errorf("%.100s came back as %.200s, %v", term, statementLines(bySubject), err)
		}
		byObject, err := collect(snap.Match(kg.Pattern{Predicate: kg.IRI("urn:p"), Object: term}))
		if err != nil || len(byObject) != 1 || byObject[0].Subject != subject || byObject[0].Object != term {
			t.Errorf("%.100s finds %.200s, %v, want the one statement with it", term, statementLines(byObject), err)
		}
		id, ok, err := snap.ID(term)
		if err != nil || !ok {
			t.Errorf("ID(%.100s): %v, %v", term, ok, err)
			continue
		}
		if back, err := snap.Term(id); err != nil || back != term {
			t.Errorf("the id of %.100s leads to %.100s, %v", term, back, err)
		}
		if !term.IsResource() {
			continue
		}
		asSubject, err := collect(snap.Match(kg.Pattern{Subject: term}))
		if err != nil || len(asSubject) != 1 || asSubject[0].Object != kg.Integer(int64(i)) {
			t.Errorf("%.100s as a subject finds %.200s, %v", term, statementLines(asSubject), err)
		}
	}
}
