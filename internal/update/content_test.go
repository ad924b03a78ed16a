package update

import (
	"encoding/hex"
	"testing"
	"time"

	"koine/kg"
)

func likes(object kg.Term) kg.Quad {
	return kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:likes"), Object: object}
}

func day(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }

func hashOf(t *testing.T, mutations ...Mutation) string {
	t.Helper()
	steps, err := normalise(mutations, "agent://me")
	if err != nil {
		t.Fatal(err)
	}
	sum := contentHash(steps)
	return hex.EncodeToString(sum[:])
}

// A receipt remembered under a hash must be found after an upgrade.
func TestTheContentHashDoesNotChange(t *testing.T) {
	got := hashOf(t, Mutation{
		Patch: kg.Patch{Op: kg.Add, Quad: likes(kg.Integer(1)), Certainty: 0.5, HasCertainty: true,
			Provenance: []byte(`{"sourceAgentId":"me","n":12345678901234567890}`)},
		SubjectType: kg.IRI("urn:Person"),
	})
	if want := "49cb1a0a92aa923304ac68e927352d9743ea4f7c36a8947089eee760ec39004d"; got != want {
		t.Errorf("got %s, want %s: raise contentVersion only together with a change of the form", got, want)
	}
}

func TestEqualRequestsHaveEqualHashes(t *testing.T) {
	plain := Mutation{Patch: kg.Patch{Op: kg.Add, Quad: likes(kg.String("x"))}}
	inDefault := plain
	inDefault.Quad.Graph = kg.DefaultGraph
	named := plain
	named.Source = "agent://me"
	bare := plain
	bare.Source = "me"
	for _, same := range []Mutation{inDefault, named, bare} {
		if got, want := hashOf(t, same), hashOf(t, plain); got != want {
			t.Errorf("%+v: got %s, want that of the request that leaves it unsaid, %s", same, got, want)
		}
	}
	valid, elsewhere := plain, plain
	valid.Validity.From = day(1)
	elsewhere.Validity.From = day(1).Add(999 * time.Microsecond).In(time.FixedZone("east", 3600))
	if hashOf(t, valid) != hashOf(t, elsewhere) {
		t.Error("the same millisecond in another zone changes the hash")
	}
	removal, bounded := plain, valid
	removal.Op, bounded.Op = kg.Remove, kg.Remove
	if hashOf(t, removal) != hashOf(t, bounded) {
		t.Error("a removal says when it is valid")
	}
	spaced, tight := plain, plain
	spaced.Provenance = []byte("{ \"b\": 1,\n \"a\": [1.0] }")
	tight.Provenance = []byte(`{"a":[1.0],"b":1}`)
	if hashOf(t, spaced) != hashOf(t, tight) {
		t.Error("space and the order of members in the provenance change the hash")
	}
}

func TestDifferentRequestsHaveDifferentHashes(t *testing.T) {
	base := Mutation{Patch: kg.Patch{Op: kg.Add, Quad: likes(kg.String("1"))}}
	seen := map[string]string{hashOf(t, base): "the base"}
	for name, change := range map[string]func(*Mutation){
		"an integer, not a string": func(m *Mutation) { m.Quad.Object = kg.Integer(1) },
		"a resource":               func(m *Mutation) { m.Quad.Object = kg.IRI("urn:1") },
		"a language":               func(m *Mutation) { m.Quad.Object = kg.LangString("1", "en") },
		"a graph":                  func(m *Mutation) { m.Quad.Graph = kg.IRI("urn:g") },
		"another op":               func(m *Mutation) { m.Op = kg.Replace },
		"another source":           func(m *Mutation) { m.Source = "agent://you" },
		"a certainty of 0":         func(m *Mutation) { m.HasCertainty = true },
		"a certainty of 1":         func(m *Mutation) { m.HasCertainty, m.Certainty = true, 1 },
		"a provenance":             func(m *Mutation) { m.Provenance = []byte(`{"n":12345678901234567890}`) },
		"a provenance one greater": func(m *Mutation) { m.Provenance = []byte(`{"n":12345678901234567891}`) },
		"a beginning":              func(m *Mutation) { m.Validity.From = day(1) },
		"a beginning a day later":  func(m *Mutation) { m.Validity.From = day(2) },
		"an end":                   func(m *Mutation) { m.Validity.Until = day(1) },
		"both ends":                func(m *Mutation) { m.Validity = kg.TimeSpan{From: day(1), Until: day(2)} },
		"a type of the subject":    func(m *Mutation) { m.SubjectType = kg.IRI("urn:T") },
	} {
		m := base
		change(&m)
		h := hashOf(t, m)
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have the same hash", name, other)
		}
		seen[h] = name
	}
	if hashOf(t, base, base) == hashOf(t, base) {
		t.Error("saying it twice has the hash of saying it once")
	}
}

func TestTypesBecomePatchesOfTheirOwn(t *testing.T) {
	person, city := kg.IRI("urn:Person"), kg.IRI("urn:City")
	add := Mutation{Patch: kg.Patch{Op: kg.Add, Quad: likes(kg.IRI("urn:rome")), Certainty: 0.4, HasCertainty: true}, SubjectType: person, ObjectType: city}
	remove := add
	remove.Op = kg.Remove
	steps, err := normalise([]Mutation{add, add, remove, add}, "agent://me")
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		op       kg.Op
		s, p, o  string
		certain  bool
		mutation int
	}
	want := []row{
		{kg.Add, "urn:s", "urn:likes", "urn:rome", true, 0},
		{kg.Add, "urn:s", kg.RDFType, "urn:Person", false, 0},
		{kg.Add, "urn:rome", kg.RDFType, "urn:City", false, 0},
		{kg.Add, "urn:s", "urn:likes", "urn:rome", true, 1}, // its types were stated just before
		{kg.Remove, "urn:s", "urn:likes", "urn:rome", false, 2},
		{kg.Add, "urn:s", "urn:likes", "urn:rome", true, 3},
		{kg.Add, "urn:s", kg.RDFType, "urn:Person", false, 3}, // might have been removed since
		{kg.Add, "urn:rome", kg.RDFType, "urn:City", false, 3},
	}
	if len(steps) != len(want) {
		t.Fatalf("got %d steps, want %d: %+v", len(steps), len(want), steps)
	}
	for i, s := range steps {
		got := row{s.Op, s.Quad.Subject.Value(), s.Quad.Predicate.Value(), s.Quad.Object.Value(), s.HasCertainty, s.mutation}
		if got != want[i] {
			t.Errorf("step %d: got %+v, want %+v", i, got, want[i])
		}
	}
}

func TestALiteralHasNoType(t *testing.T) {
	_, err := normalise([]Mutation{{Patch: kg.Patch{Op: kg.Add, Quad: likes(kg.String("x"))}, ObjectType: kg.IRI("urn:T")}}, "agent://me")
	if e := kg.AsError(err); e.Code != kg.CodeInvalid || e.Field != "[0].object.type" {
		t.Errorf("got %v at %q, want INVALID at [0].object.type", e.Code, e.Field)
	}
}
