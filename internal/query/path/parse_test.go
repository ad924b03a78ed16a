package path_test

import (
	"strings"
	"testing"

	"koine/internal/query/path"
	"koine/kg"
)

func TestParse(t *testing.T) {
	const p, q, typ = "<" + ex + "p>", "<" + ex + "q>", "<" + kg.RDFType + ">"
	for _, row := range []struct{ text, want string }{
		{"ex:p", p},
		{" ex:p\n", p},
		{"<" + ex + "p>", p},
		{"a", typ},
		{"a/a", typ + "/" + typ},
		{"foaf:knows", "<http://xmlns.com/foaf/0.1/knows>"},
		{"ex:film/film/p", "<" + ex + "film/film/p>"},
		{"ex:film/film/p/ex:q", "<" + ex + "film/film/p>/" + q},
		{"^ex:film/p/a|!ex:film/p", "^<" + ex + "film/p>/" + typ + "|!<" + ex + "film/p>"},
		{"ex:film/p+/(ex:q)", "<" + ex + "film/p>+/" + q},
		{"ex:p/<urn:x>/^ex:q", p + "/<urn:x>/^" + q},
		{"ex:p /ex:q", p + "/" + q},
		{"ex:p/ex:q|^ex:p", p + "/" + q + "|^" + p},
		{"ex:p/(ex:q|^ex:p)", p + "/(" + q + "|^" + p + ")"},
		{"(ex:p/ex:q)/ex:p", p + "/" + q + "/" + p},
		{"ex:p|(ex:q|ex:p)", p + "|" + q + "|" + p},
		{"((ex:p))", p},
		{"^ex:p*", "^" + p + "*"},
		{"(^ex:p)*", "(^" + p + ")*"},
		{"^(^ex:p)", p},
		{"^(ex:p/ex:q)", "^(" + p + "/" + q + ")"},
		{"(ex:p*)*", "(" + p + "*)*"},
		{"ex:p+", p + "+"},
		{"ex:p ?", p + "?"},
		{"ex:p{2}", p + "{2}"},
		{"ex:p{2,5}", p + "{2,5}"},
		{"ex:p{ 2 , 5 }", p + "{2,5}"},
		{"ex:p{2,}", p + "{2,}"},
		{"ex:p{,5}", p + "{0,5}"},
		{"ex:p{0,}", p + "*"},
		{"ex:p{1,}", p + "+"},
		{"ex:p{0,1}", p + "?"},
		{"ex:p{,1}", p + "?"},
		{"ex:p{1}", p},
		{"ex:p{1,1}", p},
		{"ex:p{0}", p + "{0}"},
		{"!ex:p", "!" + p},
		{"!(ex:p)", "!" + p},
		{"!a", "!" + typ},
		{"!(ex:q|ex:p|ex:q)", "!(" + p + "|" + q + ")"},
		{"!(ex:q | ^a)", "!" + q + "|^!" + typ},
		{"!^ex:p", "^!" + p},
		{"!()", "!()"},
		{"!(ex:p|^ex:q)/a", "(!" + p + "|^!" + q + ")/" + typ},
		{"!ex:p*", "!" + p + "*"},
		{"urn:x:y/urn:z:w", "<urn:x:y>/<urn:z:w>"},
		{"urn:x:y*", "<urn:x:y>*"},
		{"https://example.org/a/b", "<https://example.org/a/b>"},
		{"https://example.org:80/a#b", "<https://example.org:80/a#b>"},
		{"https://example.org/a / ex:p", "<https://example.org/a>/" + p},
		{"(https://example.org/a|ex:p)+", "(<https://example.org/a>|" + p + ")+"},
		{"<x:y(z)*+?!>", "<x:y(z)*+?!>"},
		{"ex:é", "<" + ex + "é>"},
	} {
		got, err := path.Parse(row.text, prefixes(t))
		if err != nil {
			t.Errorf("%s: %v", row.text, err)
		} else if got.String() != row.want {
			t.Errorf("%s: got %s, want %s", row.text, got, row.want)
		}
	}
}

// TestParseTwoIRIs proves that two bare IRIs joined by a slash are an error with both
// spellings in brackets.
func TestParseTwoIRIs(t *testing.T) {
	for text, hint := range map[string]string{
		"http://x/p/http://x/q":   "Write <http://x/p>/<http://x/q> for two steps, <http://x/p/http://x/q> for one predicate.",
		"https://x.org/p/urn:x:q": "Write <https://x.org/p>/<urn:x:q> for two steps, <https://x.org/p/urn:x:q> for one predicate.",
	} {
		_, err := path.Parse(text, nil)
		if kg.CodeOf(err) != kg.CodeInvalid || kg.AsError(err).Hint != hint || !path.TwoIRIs(text) {
			t.Errorf("%s: got %v, %q", text, err, kg.AsError(err).Hint)
		}
	}
	for _, text := range []string{"http://x/p", "http://x/p:q", "http://x:80/p", "urn:x:p/urn:x:q", "ex:p/ex:q"} {
		if path.TwoIRIs(text) {
			t.Errorf("%s is two IRIs", text)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"", "offset 0: expected a predicate, ^, ! or (, but the path ends"},
		{"  ", "offset 2: expected a predicate, ^, ! or (, but the path ends"},
		{"ex:p/", "offset 5: expected a predicate, ^, ! or (, but the path ends"},
		{"ex:p//ex:q", "offset 5: expected a predicate, ^, ! or (, but there is '/'"},
		{"ex:p|*", "offset 5: expected a predicate, ^, ! or (, but there is '*'"},
		{"ex:p ex:q", "offset 5: expected the end, an operator or a repetition, but there is 'e'"},
		{"ex:p)", "offset 4: expected the end, an operator or a repetition, but there is ')'"},
		{"(ex:p", "offset 5: expected ) or an operator, but the path ends"},
		{"()", "offset 1: expected a predicate, ^, ! or (, but there is ')'"},
		{"^^ex:p", "offset 1: expected a predicate, ! or ( behind ^, but there is '^'"},
		{"ex:p**", "offset 5: expected an operator (a part has one repetition; use parentheses to repeat it again), but there is '*'"},
		{"ex:p{2}?", "offset 7: expected an operator (a part has one repetition; use parentheses to repeat it again), but there is '?'"},
		{"ex:p{}", "offset 5: expected a number or a comma, but there is '}'"},
		{"ex:p{,}", "offset 6: expected a number, but there is '}'"},
		{"ex:p{2", "offset 6: expected }, but the path ends"},
		{"ex:p{2,x}", "offset 7: expected }, but there is 'x'"},
		{"ex:p{3,2}", "offset 4: expected {m,n} with m not above n"},
		{"!(ex:p/ex:q)", "offset 6: expected | or ), but there is '/'"},
		{"!(ex:p|", "offset 7: expected a predicate or ^ and a predicate, but the path ends"},
		{"!!ex:p", "offset 1: expected a predicate or ^ and a predicate, but there is '!'"},
		{"<" + ex + "p", "offset 22: expected >, but the path ends"},
		{"<relative>", "offset 0: \"relative\" is not an absolute IRI"},
		{"ex:p/<_:b>", "offset 5: \"_:b\" is not an absolute IRI"},
		{"urn:x:p/knows", "offset 8: expected prefix:name or an IRI in angle brackets, but \"knows\" has no colon"},
		{"_:b", "offset 0: the prefix \"_\" is not registered"},
		{"ex:p/foo:bar", "offset 5: the prefix \"foo\" is not registered"},
		{"https://example.org/p*", "offset 0: expected angle brackets: the end of the IRI \"https://example.org/p*\" is ambiguous"},
		{"https://example.org/p/ex:q", "offset 0: expected angle brackets: the end of the IRI \"https://example.org/p/ex:q\" is ambiguous"},
		{"é", "offset 0: expected prefix:name or an IRI in angle brackets, but \"é\" has no colon"},
		{"ex:p\xff", "a path must be valid UTF-8"},
	} {
		_, err := path.Parse(row.text, prefixes(t))
		if kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("%s: got %v, want one of %s", row.text, err, kg.CodeInvalid)
		} else if got := strings.TrimPrefix(err.Error(), "path, "); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.text, got, row.want)
		}
	}
}

// TestUnknownPrefixes proves that the error of an unknown prefix suggests a similar one.
func TestUnknownPrefixes(t *testing.T) {
	for _, row := range []struct{ text, hint string }{
		{"shema:knows", "Did you mean schema? Put an IRI with a scheme of that name in angle brackets."},
		{"quux:knows", "Registered prefixes: dcterms, ex, foaf, koine, owl, prov, rdf, rdfs, schema, sh, skos, xsd. Put an IRI with a scheme of that name in angle brackets."},
	} {
		_, err := path.Parse(row.text, prefixes(t))
		if got := kg.AsError(err).Hint; got != row.hint {
			t.Errorf("%s: got the hint %q, want %q", row.text, got, row.hint)
		}
	}
}

// TestBoundsOfTheText proves that each limit of a path's text accepts its maximum and
// nothing beyond.
func TestBoundsOfTheText(t *testing.T) {
	parens := func(n int) string { return strings.Repeat("(", n) + "ex:p" + strings.Repeat(")", n) }
	steps := func(n int) string { return strings.Repeat("ex:p/", n-1) + "ex:p" }
	for _, row := range []struct{ what, at, past string }{
		{"bytes", "<urn:" + strings.Repeat("x", path.MaxBytes-6) + ">", "<urn:" + strings.Repeat("x", path.MaxBytes-5) + ">"},
		{"nesting", parens(path.MaxNesting), parens(path.MaxNesting + 1)},
		{"repetition", "ex:p{100}", "ex:p{101}"},
		{"repetition of many", "ex:p{0,100}", "ex:p{0,101}"},
		{"a number that is none", "ex:p{00000000000000000000000000100}", "ex:p{99999999999999999999999999999}"},
		{"steps", steps(path.MaxSteps), steps(path.MaxSteps + 1)},
		{"steps of an alternative", strings.ReplaceAll(steps(path.MaxSteps), "/", "|"), strings.ReplaceAll(steps(path.MaxSteps+1), "/", "|")},
		{"steps of a repetition", "(" + steps(85) + "){1,3}", "(" + steps(86) + "){1,3}"},
		{"steps without an end", "(" + steps(85) + "){3,}", "(" + steps(86) + "){3,}"},
		{"repetitions of nothing", "((ex:p{0}){100}){2}", "((ex:p{0}){100}){3}"},
	} {
		p, err := path.Parse(row.at, prefixes(t))
		if err != nil {
			t.Errorf("%s: %v", row.what, err)
		} else if _, err := path.Parse(p.String(), prefixes(t)); err != nil && len(p.String()) <= path.MaxBytes {
			t.Errorf("%s, as it is written: %v", row.what, err)
		}
		if _, err := path.Parse(row.past, prefixes(t)); kg.CodeOf(err) != kg.CodeLimitExceeded {
			t.Errorf("%s, one more: got %v, want %s", row.what, err, kg.CodeLimitExceeded)
		}
	}
}

func TestSingle(t *testing.T) {
	for _, row := range []struct {
		text         string
		inverse, one bool
	}{
		{"ex:p", false, true}, {"^ex:p", true, true}, {"(ex:p)", false, true}, {"^(^ex:p)", false, true}, {"^(^(^ex:p))", true, true},
		{"ex:p{1}", false, true}, {"ex:p/ex:p", false, false}, {"ex:p?", false, false}, {"!ex:p", false, false}, {"^!ex:p", false, false},
		{"ex:p|ex:p", false, false},
	} {
		predicate, inverse, ok := mustParse(t, row.text).Single()
		if ok != row.one || ok && (inverse != row.inverse || predicate != iri("p")) {
			t.Errorf("%s: got %v, %v, %v", row.text, predicate, inverse, ok)
		}
	}
}

func TestNullable(t *testing.T) {
	for text, want := range map[string]bool{
		"ex:p": false, "ex:p*": true, "ex:p?": true, "ex:p+": false, "ex:p{0}": true, "ex:p{0,3}": true, "ex:p{2}": false,
		"ex:p*/ex:q": false, "ex:p*/ex:q?": true, "ex:p|ex:q*": true, "(ex:p*)+": true, "(ex:p?){3}": true, "!ex:p": false,
	} {
		if got := mustParse(t, text).Nullable(); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// FuzzParse proves that String and Parse are inverse for any valid path, and that no input panics.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"ex:p", "a/^a*|!(a|^ex:p)", "(ex:p/ex:q){2,5}", "!()", "^(^a)", "https://example.org/a / urn:x:y+", "((a{0}){100}){2,}", "<urn:x>{,3}?", "\xff",
	} {
		f.Add(text)
	}
	known := prefixes(f)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := path.Parse(text, known)
		if err != nil {
			if code := kg.CodeOf(err); code != kg.CodeInvalid && code != kg.CodeLimitExceeded {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		// Full predicates may exceed the limit of the text.
		if again, err := path.Parse(p.String(), known); err != nil && len(p.String()) <= path.MaxBytes {
			t.Errorf("%q is written %s: %v", text, p, err)
		} else if err == nil && (again.String() != p.String() || again.Nullable() != p.Nullable()) {
			t.Errorf("%q is written %s, and that %s", text, p, again)
		}
	})
}
