package assertions_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/internal/assertions"
	"koine/internal/rdf"
	"koine/internal/slowtest"
	"koine/kg"
)

// parse returns the statements of a Turtle or TriG text, each asserted by an agent.
func parse(t testing.TB, text string) (out []assertions.Statement) {
	t.Helper()
	for q, err := range rdf.Read(strings.NewReader(prologue+text), rdf.TriG, rdf.Options{Tag: "t"}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, assertions.Statement{Quad: q, Assertions: []assertions.Assertion{by("agent://ann", 1)}})
	}
	return out
}

func by(source kg.AgentID, certainty float64) assertions.Assertion {
	return assertions.Assertion{Assertion: kg.Assertion{Source: source, Certainty: certainty, HasCertainty: true, Time: time.UnixMilli(1)}}
}

func sequence(list []assertions.Statement) iter.Seq2[assertions.Statement, error] {
	return func(yield func(assertions.Statement, error) bool) {
		for _, st := range list {
			if !yield(st, nil) {
				return
			}
		}
	}
}

// compare returns the differences, one line each, and the notes.
func compare(t testing.TB, a, b []assertions.Statement, o assertions.CompareOptions) (lines, notes []string) {
	t.Helper()
	o.Dir = t.TempDir()
	c, err := assertions.Compare(slowtest.Context(t), sequence(a), sequence(b), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for d, err := range c.Differences() {
		if err != nil {
			t.Fatal(err)
		}
		sign := map[[2]bool]string{{true, false}: "-", {false, true}: "+", {true, true}: "~"}[[2]bool{d.Was, d.Is}]
		lines = append(lines, fmt.Sprintf("%s %s %s %s %d/%d", sign, d.Subject, d.Predicate, d.Object, len(d.Before), len(d.After)))
	}
	return lines, c.Notes()
}

// relabelled returns the same statements with other labels and in another order.
func relabelled(list []assertions.Statement, random *rand.Rand) []assertions.Statement {
	names := map[kg.Term]kg.Term{}
	out := slices.Clone(list)
	random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	for i := range out {
		for _, term := range []*kg.Term{&out[i].Subject, &out[i].Object, &out[i].Graph} {
			if term.Kind() != kg.KindBlank {
				continue
			}
			if _, ok := names[*term]; !ok {
				names[*term] = kg.Blank(fmt.Sprint("r", random.Uint64()))
			}
			*term = names[*term]
		}
	}
	return out
}

func TestCompare(t *testing.T) {
	for _, row := range []struct {
		name, before, after string
		want                []string
	}{
		{"nothing", "", "", nil},
		{"the same", ":s :p 1 , 2 . :g { :s :p 1 }", ":g { :s :p 1 } :s :p 2 , 1 .", nil},
		{"added and removed", ":s :p 1 , 2 .", ":s :p 2 , 3 .", []string{
			`- <urn:x:s> <urn:x:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> 1/0`, `+ <urn:x:s> <urn:x:p> "3"^^<http://www.w3.org/2001/XMLSchema#integer> 0/1`}},
		{"other labels", "_:a :p 1 ; :q _:b . _:b :p 2 .", "_:x :p 2 . _:y :q _:x ; :p 1 .", nil},
		{"twins", ":s :p [ :q 1 ] , [ :q 1 ] , [ :q 1 ] .", "_:c :q 1 . _:b :q 1 . _:a :q 1 . :s :p _:a , _:b , _:c .", nil},
		{"one twin less", ":s :p [ :q 1 ] , [ :q 1 ] .", ":s :p _:t0 . _:t0 :q 1 .", []string{
			`- _:t--2 <urn:x:q> "1"^^<http://www.w3.org/2001/XMLSchema#integer> 1/0`, `- <urn:x:s> <urn:x:p> _:t--2 1/0`}},
		{"a list", ":s :p ( 1 1 1 1 2 ) .", "_:e :unused 0 . :s :p ( 1 1 1 1 2 ) .", []string{`+ _:t-e <urn:x:unused> "0"^^<http://www.w3.org/2001/XMLSchema#integer> 0/1`}},
		{"a changed property", ":s :address [ :street 1 ; :town 2 ; :geo [ :lat 3 ] ] .", ":s :address _:z . _:z :street 1 ; :town 4 ; :geo _:w . _:w :lat 3 .", []string{
			`- _:t--1 <urn:x:town> "2"^^<http://www.w3.org/2001/XMLSchema#integer> 1/0`, `+ _:t--1 <urn:x:town> "4"^^<http://www.w3.org/2001/XMLSchema#integer> 0/1`}},
		{"a ring of six", "_:a :p _:b . _:b :p _:c . _:c :p _:d . _:d :p _:e . _:e :p _:f . _:f :p _:a .", "_:f :p _:b . _:b :p _:d . _:d :p _:c . _:c :p _:a . _:a :p _:e . _:e :p _:f .", nil},
		{"itself", "_:a :p _:a .", "_:b :p _:b .", nil},
		{"itself and another", "_:a :p _:a . _:b :p _:c .", "_:b :p _:a . _:c :p _:c .", nil},
		{"a graph with a label that is taken", "_:a :p 1 . _:b :p 2 .", "_:b :p 3 . _:c :p 1 .", []string{
			`- _:t-b <urn:x:p> "2"^^<http://www.w3.org/2001/XMLSchema#integer> 1/0`, `+ _:t-b <urn:x:p> "3"^^<http://www.w3.org/2001/XMLSchema#integer> 0/1`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, notes := compare(t, parse(t, row.before), parse(t, row.after), assertions.CompareOptions{})
			slices.Sort(got)
			want := slices.Clone(row.want)
			slices.Sort(want)
			if !slices.Equal(got, want) || len(notes) > 0 {
				t.Errorf("got %q\n%s\nwant\n%s", notes, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestCompareRings proves that different graphs are never equal: every node of these
// looks like every other, and refinement alone cannot distinguish them.
func TestCompareRings(t *testing.T) {
	one := parse(t, "_:a :p _:b . _:b :p _:c . _:c :p _:d . _:d :p _:e . _:e :p _:f . _:f :p _:a .")
	two := parse(t, "_:a :p _:b . _:b :p _:c . _:c :p _:a . _:d :p _:e . _:e :p _:f . _:f :p _:d .")
	if got, notes := compare(t, one, two, assertions.CompareOptions{}); len(got) == 0 || len(notes) == 0 {
		t.Errorf("a ring of six and two of three: got %q %q", got, notes)
	}
}

// TestCompareGenerated proves that random statements are equal under other labels, and
// that one change among them is found.
func TestCompareGenerated(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 2))
		term := func() kg.Term {
			if random.IntN(4) == 0 {
				return kg.IRI(fmt.Sprint("urn:n", random.IntN(3)))
			}
			return kg.Blank(fmt.Sprint("b", random.IntN(12)))
		}
		seen := map[kg.Quad]bool{}
		var list []assertions.Statement
		for range 5 + random.IntN(30) {
			q := kg.Quad{Subject: term(), Predicate: kg.IRI(fmt.Sprint("urn:p", random.IntN(2))), Object: term(), Graph: kg.DefaultGraph}
			if random.IntN(5) == 0 {
				q.Graph = term()
			}
			if !seen[q] {
				seen[q] = true
				list = append(list, assertions.Statement{Quad: q, Assertions: []assertions.Assertion{by("agent://a", float64(random.IntN(2)))}})
			}
		}
		other := relabelled(list, random)
		if got, notes := compare(t, list, other, assertions.CompareOptions{}); len(got) > 0 {
			t.Errorf("seed %d: the same under other labels: %q %q", seed, got, notes)
		}
		if got, _ := compare(t, list, other[1:], assertions.CompareOptions{}); len(got) == 0 {
			t.Errorf("seed %d: a statement less is not found", seed)
		}
		changed := slices.Clone(other)
		changed[0].Assertions = []assertions.Assertion{by("agent://b", 1)}
		if got, _ := compare(t, list, changed, assertions.CompareOptions{}); len(got) == 0 {
			t.Errorf("seed %d: another source is not found", seed)
		}
		if got, notes := compare(t, list, changed, assertions.CompareOptions{WithoutAssertions: true}); len(got) > 0 {
			t.Errorf("seed %d: without assertions it is the same: %q %q", seed, got, notes)
		}
	}
}

// TestCompareAssertions proves that each part of an assertion is compared, except the
// revision and the order of sources.
func TestCompareAssertions(t *testing.T) {
	st := parse(t, ":s :p 1 .")[0]
	ann, bob := by("agent://ann", 0.5), by("agent://bob", 1)
	one := []assertions.Statement{{Quad: st.Quad, Assertions: []assertions.Assertion{ann, bob}}}
	for name, row := range map[string]struct {
		change func(*assertions.Assertion)
		want   int
	}{
		"nothing":       {func(*assertions.Assertion) {}, 0},
		"revision":      {func(a *assertions.Assertion) { a.Revision = 9 }, 0},
		"certainty":     {func(a *assertions.Assertion) { a.Certainty = 0.25 }, 1},
		"fact":          {func(a *assertions.Assertion) { a.HasCertainty, a.Certainty = false, 0 }, 1},
		"time":          {func(a *assertions.Assertion) { a.Time = a.Time.Add(time.Millisecond) }, 1},
		"valid from":    {func(a *assertions.Assertion) { a.Validity.From = time.UnixMilli(5).UTC() }, 1},
		"valid to":      {func(a *assertions.Assertion) { a.Validity.Until = time.UnixMilli(5).UTC() }, 1},
		"provenance":    {func(a *assertions.Assertion) { a.Provenance = []byte("{}") }, 1},
		"embedding":     {func(a *assertions.Assertion) { a.Embedding = &kg.Embedding{Model: "m", Vector: []float32{1}} }, 1},
		"justification": {func(a *assertions.Assertion) { a.Justification = "why" }, 1},
		"source":        {func(a *assertions.Assertion) { a.Source = "agent://eve" }, 1},
	} {
		changed := ann
		row.change(&changed)
		other := []assertions.Statement{{Quad: st.Quad, Assertions: []assertions.Assertion{bob, changed}}}
		got, _ := compare(t, one, other, assertions.CompareOptions{})
		if len(got) != row.want || row.want == 1 && !strings.HasSuffix(got[0], " 1/1") {
			t.Errorf("%s: got %q", name, got)
		}
		if got, _ := compare(t, one, other, assertions.CompareOptions{WithoutAssertions: true}); len(got) > 0 {
			t.Errorf("%s without assertions: got %q", name, got)
		}
	}
}

// TestCompareBounds proves that beyond MaxBlank and MaxBlankWork nodes are compared by
// label, with a note.
func TestCompareBounds(t *testing.T) {
	const n = 50
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "_:b%d :next _:b%d .\n", i, i+1)
	}
	list := parse(t, text.String())
	other := relabelled(list, rand.New(rand.NewPCG(1, 1)))
	for _, row := range []struct {
		name  string
		o     assertions.CompareOptions
		other []assertions.Statement
		same  bool
		notes int
	}{
		{"as many as are held", assertions.CompareOptions{MaxBlank: n}, other, true, 0},
		{"one more", assertions.CompareOptions{MaxBlank: n - 1}, other, false, 1},
		{"one more, same labels", assertions.CompareOptions{MaxBlank: n - 1}, list, true, 1},
		{"little work", assertions.CompareOptions{MaxBlankWork: n}, other, false, 1},
		{"little work, same labels", assertions.CompareOptions{MaxBlankWork: n}, list, true, 0},
		{"labels asked for", assertions.CompareOptions{Labels: true}, other, false, 0},
		{"labels asked for, same labels", assertions.CompareOptions{Labels: true}, list, true, 0},
	} {
		got, notes := compare(t, list, row.other, row.o)
		if (len(got) == 0) != row.same || len(notes) != row.notes {
			t.Errorf("%s: got %d differences, %q", row.name, len(got), notes)
		}
	}
}

// TestCompareMany proves that the work is linear in the number of nodes: twins around a
// hub, and a long list of equal values.
func TestCompareMany(t *testing.T) {
	const n = 5_000
	hub := kg.Blank("hub")
	p, q := kg.IRI("urn:p"), kg.IRI("urn:q")
	var list []assertions.Statement
	say := func(s, p, o kg.Term) {
		list = append(list, assertions.Statement{Quad: kg.Quad{Subject: s, Predicate: p, Object: o, Graph: kg.DefaultGraph}})
	}
	for i := range n {
		say(hub, p, kg.Blank(fmt.Sprint("twin", i)))
		say(kg.Blank(fmt.Sprint("cell", i)), q, kg.Blank(fmt.Sprint("cell", i+1)))
	}
	other := relabelled(list, rand.New(rand.NewPCG(1, 2)))
	if got, notes := compare(t, list, other, assertions.CompareOptions{}); len(got) > 0 {
		t.Errorf("got %d differences, %q", len(got), notes)
	}
}
