package compact_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"koine/internal/compact"
	"koine/kg"
)

func lab(t testing.TB) *kg.Prefixes {
	t.Helper()
	p, err := kg.NewPrefixes(map[string]string{"lab": "https://koine.example/demo/"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func iri(text string) compact.Ref {
	return compact.Ref{Term: kg.IRI("https://koine.example/demo/" + text)}
}

var (
	label = compact.Ref{Term: kg.IRI(kg.RDFSLabel)}
	class = compact.Ref{Term: kg.IRI(kg.RDFType)}
)

func TestText(t *testing.T) {
	named := func(r compact.Ref, label string) compact.Ref { r.Label = label; return r }
	text := func(term kg.Term) compact.Ref { return compact.Ref{Term: term} }
	day := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	finding := iri("finding-1")
	facts := []compact.Fact{
		{Graph: kg.DefaultGraph, Subject: finding, Predicate: label, Object: text(kg.LangString("Water (in the crystal) costs capacity", "en"))},
		{Graph: kg.DefaultGraph, Subject: finding, Predicate: class, Object: iri("Finding")},
		{Graph: kg.DefaultGraph, Subject: finding, Predicate: iri("supportedBy"), Object: named(iri("run-7"), "Run 7: 100 cycles at 1C")},
		{Graph: kg.DefaultGraph, Subject: finding, Predicate: iri("supportedBy"), Object: iri("run-8")},
		{Graph: kg.DefaultGraph, Subject: finding, Predicate: named(iri("quality"), "how good"), Object: text(kg.String("doubtful")), Certainty: 0.4, HasCertainty: true, Sources: []kg.AgentID{"agent://bruno"}, Time: day},
		{Graph: kg.IRI("urn:other"), Subject: finding, Predicate: iri("cycles"), Object: text(kg.Integer(100)), Validity: kg.TimeSpan{From: day.Add(time.Hour)}},
		{Graph: kg.IRI("urn:other"), Subject: iri("run-7"), Predicate: iri("mass"), Object: text(kg.Double(1.25))},
		{Graph: kg.IRI("urn:other"), Subject: iri("run-7"), Predicate: iri("day"), Object: text(kg.Typed("2026-11-24", kg.XSDDate))},
		{Graph: kg.IRI("urn:other"), Subject: iri("run-7"), Predicate: iri("code"), Object: text(kg.String("17"))},
	}
	const want = `@prefix lab: <https://koine.example/demo/>
lab:finding-1 (Water (in the crystal\) costs capacity)@en
  a lab:Finding
  lab:supportedBy lab:run-7 (Run 7: 100 cycles at 1C), lab:run-8
  lab:quality (how good) "doubtful" [0.4, by bruno, at 2026-11-24]
@graph <urn:other>
lab:finding-1
  lab:cycles 100 [from 2026-11-24T01:00:00Z]
lab:run-7
  lab:mass 1.25
  lab:day 2026-11-24
  lab:code "17"
`
	written := compact.Write(facts, compact.Options{Prefixes: lab(t)})
	if written.Text != want || written.Facts != len(facts) {
		t.Errorf("wrote %d facts:\n%s", written.Facts, written.Text)
	}
}

// Each text that Write writes is read as the facts that were written. Blank nodes in the
// place of objects have other names.
func TestReadReversesWrite(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		facts := randomFacts(random)
		written := compact.Write(facts, compact.Options{Prefixes: lab(t)})
		read, err := compact.Read(written.Text, lab(t))
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, written.Text)
		}
		if len(read) != len(facts) {
			t.Fatalf("seed %d: %d facts are read, %d were written\n%s", seed, len(read), len(facts), written.Text)
		}
		names, named := map[kg.Term]kg.Term{}, map[kg.Term]bool{}
		for i, want := range compact.InOrder(facts) {
			for now, was := range map[*compact.Ref]kg.Term{&read[i].Object: want.Object.Term, &read[i].Subject: want.Subject.Term} {
				if now.Term.Kind() == kg.KindBlank && strings.HasPrefix(now.Term.Name(), "_:t") {
					if names[now.Term].IsZero() && !named[was] {
						names[now.Term], named[was] = was, true
					}
					now.Term = names[now.Term]
				}
			}
			if want.Object.Label = kg.Excerpt(want.Object.Label, compact.MaxLabelBytes); want.Object.Term.IsLiteral() {
				want.Object.Label = ""
			}
			if read[i].Predicate.Label == "" { // before a blank node in its place
				want.Predicate.Label = ""
			}
			if !reflect.DeepEqual(read[i], want) {
				t.Fatalf("seed %d: fact %d is read as\n%+v\nand not as\n%+v\nfrom\n%s", seed, i, read[i], want, written.Text)
			}
		}
	}
}

// awkward are texts with characters that the form uses.
var awkward = []string{"x", "", " ", "a", "true", "17", "1.5", "1e3", "2026-11-24", "2026-11-24T10:00:00Z", "(", ")", `\`, `"`, "[0.4]", ",", ";", ".", "a,b", "#", "@en", "<", ">", "\n", "\r\n", "\t", "lab:x", "é", "日本", "…", "% &", "</script>"}

func randomFacts(random *rand.Rand) (facts []compact.Fact) {
	text := func() string {
		var b strings.Builder
		for range random.IntN(3) {
			b.WriteString(awkward[random.IntN(len(awkward))])
		}
		return b.String()
	}
	resource := func() kg.Term {
		switch random.IntN(4) {
		case 0:
			return kg.IRI(fmt.Sprintf("urn:x:%d", random.IntN(3)))
		case 1:
			return kg.Blank(fmt.Sprintf("b%d", random.IntN(3)))
		case 2:
			return kg.IRI("https://koine.example/demo/" + []string{"a.", "b/c", "d#e", "é", "(x)", "p,q"}[random.IntN(6)])
		}
		return iri(fmt.Sprintf("n%d", random.IntN(3))).Term
	}
	literal := func() kg.Term {
		switch random.IntN(6) {
		case 0:
			return kg.LangString(text(), "de-AT")
		case 1:
			return kg.Typed(text(), "https://koine.example/demo/unit")
		case 2:
			return kg.Double(float64(random.IntN(1000)) / 8)
		case 3:
			return kg.Typed("1.50", kg.XSDDecimal)
		case 4:
			return kg.Boolean(true)
		}
		return kg.String(text())
	}
	f := compact.Fact{Graph: kg.DefaultGraph}
	shared := random.IntN(3) == 0
	for range 1 + random.IntN(8) {
		if random.IntN(3) == 0 {
			f.Graph = []kg.Term{kg.DefaultGraph, kg.IRI("urn:g"), kg.Blank("g")}[random.IntN(3)]
		}
		if f.Subject.Term.IsZero() || random.IntN(2) == 0 {
			f.Subject.Term = resource()
		}
		if f.Predicate.Term.IsZero() || random.IntN(2) == 0 {
			f.Predicate.Term = []kg.Term{kg.IRI(kg.RDFType), kg.IRI(kg.RDFSLabel), iri("p").Term, kg.IRI("urn:q")}[random.IntN(4)]
			f.Predicate.Label = map[kg.Term]string{kg.IRI("urn:q"): `q, (or) "r" [s] \`}[f.Predicate.Term]
		}
		f.Object = compact.Ref{Term: literal()}
		if random.IntN(2) == 0 {
			f.Object = compact.Ref{Term: resource(), Label: strings.TrimSpace(text())}
		}
		if shared && len(facts) > 0 { // the brackets of the first
			facts = append(facts, f)
			continue
		}
		f.Sources, f.Time, f.Validity, f.Certainty, f.HasCertainty = nil, time.Time{}, kg.TimeSpan{}, 0, false
		if random.IntN(3) == 0 {
			f.Sources = []kg.AgentID{"agent://ann", "agent://é", "urn:agent:bob", "agent://a.b"}[random.IntN(4):]
		}
		if random.IntN(3) == 0 {
			f.Certainty, f.HasCertainty = float64(random.IntN(101))/100, true
		}
		if random.IntN(3) == 0 {
			f.Validity.Until = time.Date(2027, 1, random.IntN(28)+1, random.IntN(2), 0, 0, random.IntN(2)*5e6, time.UTC)
		}
		facts = append(facts, f)
	}
	return facts
}

// A budget ends the text between two facts and says how many are left out.
func TestBudget(t *testing.T) {
	facts := randomFacts(rand.New(rand.NewPCG(7, 7)))
	for len(facts) < 40 {
		facts = append(facts, randomFacts(rand.New(rand.NewPCG(uint64(len(facts)), 3)))...)
	}
	more := func(left int) string { return fmt.Sprintf("%d more facts: ask with a larger budget", left) }
	whole := compact.Tokens(compact.Write(facts, compact.Options{Prefixes: lab(t)}).Text)
	last := 0
	for most := 1; most <= whole+10; most++ {
		written := compact.Write(facts, compact.Options{Prefixes: lab(t), MaxTokens: most, More: more})
		if n := compact.Tokens(written.Text); n > most && written.Facts > 1 {
			t.Fatalf("%d tokens of at most %d:\n%s", n, most, written.Text)
		}
		if n := compact.Tokens(written.Text); written.Facts > last && last > 0 && n != most {
			t.Fatalf("%d facts with %d tokens did not fit in %d", written.Facts, n, most-1)
		}
		if written.Facts < last {
			t.Fatalf("%d facts with %d tokens, %d with fewer", written.Facts, most, last)
		}
		last = written.Facts
		if left := len(facts) - written.Facts; strings.HasSuffix(written.Text, "# "+more(left)+"\n") != (left > 0) {
			t.Fatalf("%d facts are left out of\n%s", left, written.Text)
		}
		read, err := compact.Read(written.Text, lab(t))
		if err != nil || len(read) != written.Facts {
			t.Fatalf("%d facts are read, %d were written, %v", len(read), written.Facts, err)
		}
	}
	if last != len(facts) {
		t.Errorf("%d of %d facts with room for all", last, len(facts))
	}
}

// The brackets of a subject and the facts about a blank node stand in one place, and
// namespaces that occur often are declared.
func TestShortForms(t *testing.T) {
	const text = `@prefix cast: <http://films.example/cast/>
@prefix film: <http://films.example/film/>
@prefix lab: <https://koine.example/demo/>
film:casablanca (Casablanca) [0.9, by chen]
  film:starring / cast:actor lab:bogart (Humphrey Bogart), lab:bergman
  film:starring [cast:actor lab:rains; cast:character "Louis"]
lab:bogart [0.5]
  a lab:Person
  a lab:Star
lab:rains
  a lab:Person [0.5]
  a lab:Star
`
	facts, err := compact.Read(text, lab(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(facts) != 12 || facts[7].HasCertainty != true || facts[7].Certainty != 0.9 || len(facts[7].Sources) != 1 || facts[11].HasCertainty {
		t.Fatalf("%d facts, %+v", len(facts), facts)
	}
	got := compact.Write(facts, compact.Options{Prefixes: lab(t)})
	if want := strings.Replace(strings.Replace(text, "lab:Person\n  a lab:Star", "lab:Person, lab:Star", 1), "[0.5]\n  a lab:Star", "[0.5], lab:Star", 1); got.Text != want || got.Facts != len(facts) {
		t.Errorf("got %s\nwant %s", got.Text, want)
	}
	again, err := compact.Read("@prefix ex: <urn:ex:>\nex:a [0.5]\n  ex:p ex:b, ex:c [], ex:d [by ann]\n", lab(t))
	if err != nil || !again[0].HasCertainty || again[1].HasCertainty || again[2].HasCertainty || len(again[2].Sources) != 1 {
		t.Errorf("got %+v and %v", again, err)
	}
	for _, wrong := range []string{"lab:a lab:p [lab:q 1", "lab:a lab:p [lab:q 1, 2]", "lab:a lab:p [", "lab:a lab:p / lab:q", "lab:a lab:p / lab:q [lab:r 1]"} {
		if _, err := compact.Read(wrong, lab(t)); err == nil {
			t.Errorf("%s is read", wrong)
		}
	}
}

// Forms that a model may write, and Write does not.
func TestRead(t *testing.T) {
	read, err := compact.Read(`
# a comment
@prefix ex: <urn:ex:> .
(Ada Lovelace) (wrote) (Note G).
ex:note (Note G)
	a ex:Work;
  ex:year 1843, 1844 [0.2]
  (mentions) "Bernoulli numbers"
https://koine.example/demo/x lab:p true
(Ada Lovelace) lab:wrote (Note G), ex:note (the note)
(Ada Lovelace) <urn:uuid:1> (wrote) (Note G), ex:note
`, lab(t))
	if err != nil {
		t.Fatal(err)
	}
	ref := func(label string) compact.Ref { return compact.Ref{Label: label} }
	note := compact.Ref{Term: kg.IRI("urn:ex:note")}
	year := compact.Ref{Term: kg.IRI("urn:ex:year")}
	wrote := compact.Ref{Term: kg.IRI("urn:uuid:1"), Label: "wrote"}
	want := []compact.Fact{
		{Subject: ref("Ada Lovelace"), Predicate: ref("wrote"), Object: ref("Note G")},
		{Subject: note, Predicate: label, Object: compact.Ref{Term: kg.String("Note G")}},
		{Subject: note, Predicate: class, Object: compact.Ref{Term: kg.IRI("urn:ex:Work")}},
		{Subject: note, Predicate: year, Object: compact.Ref{Term: kg.Integer(1843)}},
		{Subject: note, Predicate: year, Object: compact.Ref{Term: kg.Integer(1844)}, Certainty: 0.2, HasCertainty: true},
		{Subject: note, Predicate: ref("mentions"), Object: compact.Ref{Term: kg.String("Bernoulli numbers")}},
		{Subject: iri("x"), Predicate: iri("p"), Object: compact.Ref{Term: kg.Boolean(true)}},
		{Subject: ref("Ada Lovelace"), Predicate: iri("wrote"), Object: ref("Note G")},
		{Subject: ref("Ada Lovelace"), Predicate: iri("wrote"), Object: compact.Ref{Term: note.Term, Label: "the note"}},
		{Subject: ref("Ada Lovelace"), Predicate: wrote, Object: ref("Note G")},
		{Subject: ref("Ada Lovelace"), Predicate: wrote, Object: note},
	}
	for i := range want {
		want[i].Graph = kg.DefaultGraph
	}
	if !reflect.DeepEqual(read, want) {
		t.Errorf("read\n%+v\nwant\n%+v", read, want)
	}
}

// Each error has its line, and names the expected form.
func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"  lab:p 1":                 "line 1: there is no subject above the indented line; begin one at the start of a line",
		"\nAda wrote Note":          `line 2: "Ada" is neither prefix:name nor an IRI; a label stands in parentheses, a text in quotes`,
		"lab:x lab:p":               "line 1: expected an object behind the predicate",
		"lab:x lab:p 1 2":           `line 1: expected a comma or the end of the line before "2"`,
		`lab:x lab:p "a`:            `line 1: the quote of the text is not closed; a line break is \n`,
		`lab:x lab:p "\q"`:          "line 1: the text has an escape that JSON does not have",
		"lab:x lab:p <urn:x":        "line 1: the < of the IRI is not closed",
		"lab:x (p 1":                "line 1: the parenthesis of the label is not closed",
		"lab:x () 1":                "line 1: the label in parentheses is empty",
		`"x" lab:p 1`:               "line 1: a subject is an IRI or a label in parentheses, and not a literal",
		`lab:x "p" 1`:               `line 1: a predicate is an IRI or a label in parentheses, and not "p"`,
		"lab:x lab:p 1 [0.4":        "line 1: the bracket is not closed",
		"lab:x lab:p 1 [1.4]":       `line 1: brackets hold a certainty from 0 to 1, "by agent", or "at", "from" or "until" with a time, and not "1.4"`,
		"lab:x lab:p 1 [at noon]":   `line 1: "noon" is no date or time; write 2026-11-24 or 2026-11-24T10:00:00Z`,
		"@prefix x <urn:x>":         "line 1: expected @prefix name: <iri>",
		"@prefix x: <no iri>":       "line 1: prefix x: ",
		`@graph "x"`:                "line 1: a graph is named by an IRI",
		"lab:x lab:p ,":             `line 1: expected a name, an <iri>, a "text" or a (label) before ","`,
		`lab:x lab:p "x"^^unit`:     `line 1: "unit" is neither prefix:name nor an IRI`,
		`lab:x lab:p "x"@not_a_tag`: "line 1: ",
	} {
		facts, err := compact.Read(text, lab(t))
		var syntax *compact.SyntaxError
		if !errors.As(err, &syntax) || !strings.HasPrefix(err.Error(), want) || facts != nil {
			t.Errorf("%q: %v, %+v, want %s", text, err, facts, want)
		}
	}
}

func TestMaxFacts(t *testing.T) {
	text := strings.Repeat("lab:x lab:p 1\n", compact.MaxFacts)
	if facts, err := compact.Read(text, lab(t)); err != nil || len(facts) != compact.MaxFacts {
		t.Errorf("%d facts, %v", len(facts), err)
	}
	if _, err := compact.Read(text+"lab:x lab:p 1\n", lab(t)); err == nil || !strings.Contains(err.Error(), "more than 10000 facts") {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("lab:x (X)@en lab:p \"y\"^^xsd:date, 1 [0.4, by ann]")
	f.Fuzz(func(t *testing.T, text string) {
		facts, err := compact.Read(text, lab(t))
		if err != nil {
			return
		}
		for _, fact := range facts {
			if fact.Subject.Term.IsZero() || fact.Predicate.Term.IsZero() || fact.Object.Term.IsZero() {
				return // a label is read, and never written
			}
		}
		if len(facts) == 0 {
			return
		}
		again, err := compact.Read(compact.Write(facts, compact.Options{Prefixes: lab(t)}).Text, lab(t))
		if err != nil || len(again) != len(facts) {
			t.Fatalf("%q is read as %d facts, and what is written of them as %d, %v", text, len(facts), len(again), err)
		}
	})
}
