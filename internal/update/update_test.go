package update_test

import (
	"testing"

	"koine/internal/names"
	"koine/internal/update"
	"koine/kg"
)

func open(t *testing.T) *kg.Store {
	t.Helper()
	s, err := kg.Open(t.TempDir(), kg.Options{FreeBytes: func(string) (uint64, error) { return 1 << 40, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var (
	me     = kg.Meta{Principal: kg.Principal{ID: "agent://me"}}
	person = kg.IRI("urn:Person")
)

func add(subject string, object kg.Term) update.Mutation {
	return update.Mutation{Patch: kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(subject), Predicate: kg.IRI("urn:p"), Object: object}}}
}

func count(t *testing.T, s *kg.Store, p kg.Pattern) (statements []kg.Statement) {
	t.Helper()
	snapshot, err := s.View(t.Context(), kg.View{})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(p) {
		if err != nil {
			t.Fatal(err)
		}
		statements = append(statements, st)
	}
	return statements
}

func TestNumberOfMutations(t *testing.T) {
	s := open(t)
	many := make([]update.Mutation, update.MaxMutations+1)
	for i := range many {
		many[i] = add("urn:s", kg.Integer(int64(i)))
	}
	for _, row := range []struct {
		mutations []update.Mutation
		want      kg.Code
	}{
		{nil, kg.CodeInvalid},
		{many, kg.CodeLimitExceeded},
		{many[:update.MaxMutations], ""},
	} {
		_, err := update.Apply(t.Context(), s, names.NewJudge(s, names.Strict), update.Request{Meta: me, Mutations: row.mutations})
		if kg.CodeOf(err) != row.want {
			t.Errorf("%d mutations: got %v, want %q", len(row.mutations), err, row.want)
		}
	}
}

// An error names the mutation, whether it is found before or inside the transaction,
// and the update leaves nothing behind.
func TestErrorsNameTheMutation(t *testing.T) {
	s := open(t)
	for _, row := range []struct {
		name string
		bad  update.Mutation
		want string
	}{
		{"a literal subject", update.Mutation{Patch: kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.String("x"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1)}}}, "[1].subject"},
		{"no op", update.Mutation{Patch: kg.Patch{Quad: add("urn:s", kg.Integer(1)).Quad}}, "[1].op"},
		{"an object that is no IRI", add("urn:s", kg.IRI("x y")), "[1].object"},
		{"the type of a literal", update.Mutation{Patch: add("urn:s", kg.Integer(2)).Patch, ObjectType: person}, "[1].object.type"},
	} {
		_, err := update.Apply(t.Context(), s, names.NewJudge(s, names.Strict), update.Request{Meta: me, Mutations: []update.Mutation{add("urn:s", kg.Integer(1)), row.bad}})
		if e := kg.AsError(err); err == nil || e.Code != kg.CodeInvalid || e.Field != row.want {
			t.Errorf("%s: got %v at %q, want INVALID at %s", row.name, err, e.Field, row.want)
		}
	}
	if left := count(t, s, kg.Pattern{}); len(left) != 0 || s.Head().Revision != 0 {
		t.Errorf("refused, but %d statements and revision %d are there", len(left), s.Head().Revision)
	}
}

// An implied type asserts rdf:type once, and does not change an existing assertion of
// its source.
func TestTypesOnTheSide(t *testing.T) {
	s := open(t)
	typing := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI(kg.RDFType), Object: person}
	apply := func(meta kg.Meta, mutations ...update.Mutation) update.Result {
		t.Helper()
		receipt, err := update.Apply(t.Context(), s, names.NewJudge(s, names.Strict), update.Request{Meta: meta, Mutations: mutations})
		if err != nil {
			t.Fatal(err)
		}
		return receipt
	}
	unsure := update.Mutation{Patch: kg.Patch{Op: kg.Add, Quad: typing, Certainty: 0.3, HasCertainty: true}}
	typed := add("urn:s", kg.Integer(1))
	typed.SubjectType = person
	apply(me, unsure)
	if r := apply(me, typed); r.Affected != 1 {
		t.Errorf("%d changes, want 1: the type was said before", r.Affected)
	}
	other := kg.Meta{Principal: kg.Principal{ID: "agent://me"}, Actor: "agent://other"}
	if r := apply(other, typed); r.Affected != 2 {
		t.Errorf("%d changes, want 2: this source had not said it", r.Affected)
	}
	statements := count(t, s, kg.Pattern{Predicate: kg.IRI(kg.RDFType)})
	if len(statements) != 1 || len(statements[0].Assertions) != 2 {
		t.Fatalf("got %+v, want one statement of two sources", statements)
	}
	for _, a := range statements[0].Assertions {
		if a.HasCertainty != (a.Source == "agent://me") || a.HasCertainty && a.Certainty != 0.3 {
			t.Errorf("%s: certainty %v, %v", a.Source, a.Certainty, a.HasCertainty)
		}
	}
	removal := typed
	removal.Op = kg.Remove
	if r := apply(me, removal); r.Affected != 1 || len(count(t, s, kg.Pattern{Predicate: kg.IRI(kg.RDFType)})) != 1 {
		t.Errorf("a remove with a type made %d changes, want 1, and the type stays", r.Affected)
	}
}

func TestIdempotency(t *testing.T) {
	s := open(t)
	keyed := me
	keyed.IdempotencyKey = "k"
	apply := func(meta kg.Meta, mutations ...update.Mutation) (update.Result, error) {
		return update.Apply(t.Context(), s, names.NewJudge(s, names.Strict), update.Request{Meta: meta, Mutations: mutations})
	}
	first, err := apply(keyed, add("urn:s", kg.Integer(1)))
	if err != nil || first.Replayed {
		t.Fatalf("got %+v, %v", first, err)
	}
	if _, err := apply(me, add("urn:s", kg.Integer(2))); err != nil {
		t.Fatal(err)
	}
	spelled := add("urn:s", kg.Integer(1))
	spelled.Source, spelled.Quad.Graph = "me", kg.DefaultGraph
	again, err := apply(keyed, spelled)
	if err != nil || !again.Replayed || again.Revision != first.Revision || again.Affected != first.Affected || again.Position != first.Position {
		t.Errorf("the same: got %+v, %v, want the first answer %+v", again, err, first)
	}
	if _, err := apply(keyed, add("urn:s", kg.Integer(3))); kg.CodeOf(err) != kg.CodeIdempotencyConflict {
		t.Errorf("other content: got %v, want IDEMPOTENCY_CONFLICT", err)
	}
	dry := me
	dry.IdempotencyKey, dry.DryRun = "dry", true
	if r, err := apply(dry, add("urn:s", kg.Integer(4))); err != nil || r.Committed || !r.DryRun || r.Affected != 1 {
		t.Errorf("a dry run: got %+v, %v", r, err)
	}
	wet := dry
	wet.DryRun = false
	if r, err := apply(wet, add("urn:s", kg.Integer(5))); err != nil || r.Replayed || !r.Committed {
		t.Errorf("after the dry run: got %+v, %v; it must not be remembered", r, err)
	}
}
