package shapes_test

import (
	"context"
	"testing"

	"koine/internal/shapes"
	"koine/internal/slowtest"
	"koine/kg"
)

// keptShapes returns the statements of the shapes graph.
func keptShapes(t testing.TB, store *kg.Store) (out []kg.Quad) {
	t.Helper()
	snapshot, err := store.View(slowtest.Context(t), kg.View{Principal: admin, AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(kg.Pattern{Graph: kg.ShapesGraph}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, st.Quad)
	}
	return out
}

func TestPutReplacesByName(t *testing.T) {
	store, _ := judgedStore(t, kg.Options{})
	put(t, store, personShape)
	before := store.Head().Revision
	put(t, store, personShape)
	if store.Head().Revision != before {
		t.Error("the same shapes again made a commit")
	}
	put(t, store, `ex:Other a sh:NodeShape ; sh:targetClass ex:X ; sh:property [ sh:path ( ex:p ex:q ) ; sh:minCount 1 ] .`)
	put(t, store, `ex:PersonShape a sh:NodeShape ; sh:targetClass ex:Person ; sh:property [ sh:path ex:nick ; sh:minCount 1 ] .`)
	refuses(t, store, `ex:bob a ex:Person ; ex:name "Bob" .`, "nick")
	refuses(t, store, `ex:bob a ex:X .`, "has 0 of at least 1")
	if _, err := shapes.Remove(slowtest.Context(t), store, kg.Meta{Principal: admin}, []kg.Term{ex("Other")}); err != nil {
		t.Fatal(err)
	}
	accepts(t, store, `ex:bob a ex:X .`)
	// Nothing remains of the parts of removed shapes.
	if left := keptShapes(t, store); len(left) != 5 {
		t.Errorf("%v are kept", left)
	}
	if _, err := shapes.Remove(slowtest.Context(t), store, kg.Meta{Principal: admin}, []kg.Term{ex("PersonShape")}); err != nil {
		t.Fatal(err)
	}
	if left := keptShapes(t, store); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

func TestWhoMayChangeShapesAndHow(t *testing.T) {
	store, _ := judgedStore(t, kg.Options{})
	quads, err := shapes.Parse(prefixes + personShape)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shapes.Put(slowtest.Context(t), store, by("ann"), quads); kg.CodeOf(err) != kg.CodePermissionDenied {
		t.Errorf("got %v", err)
	}
	// The reason is not revealed to others.
	if _, err := shapes.Put(slowtest.Context(t), store, by("ann"), nil); kg.CodeOf(err) != kg.CodePermissionDenied {
		t.Errorf("got %v", err)
	}
	if _, err := shapes.Remove(slowtest.Context(t), store, by("ann"), []kg.Term{ex("S")}); kg.CodeOf(err) != kg.CodePermissionDenied {
		t.Errorf("got %v", err)
	}
	// A patch cannot change them either, whoever sends it.
	if _, err := write(t, store, kg.Meta{Principal: admin}, quads, nil); kg.CodeOf(err) != kg.CodeReserved {
		t.Errorf("got %v", err)
	}
	for name, text := range map[string]string{
		"nothing":           ``,
		"only without name": `[] a sh:NodeShape ; sh:targetClass ex:C ; sh:class ex:D .`,
		"one without name":  personShape + `[] a sh:NodeShape ; sh:targetClass ex:C ; sh:class ex:D .`,
		"no shape":          `ex:S a sh:NodeShape ; sh:targetClass ex:C ; sh:minCount 1 .`,
	} {
		quads, err := shapes.Parse(prefixes + text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shapes.Put(slowtest.Context(t), store, kg.Meta{Principal: admin}, quads); kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if left := keptShapes(t, store); len(left) > 0 {
		t.Errorf("%v are kept", left)
	}
	// Parts that another shape needs stay: the whole must compile.
	put(t, store, `ex:A a sh:NodeShape ; sh:targetClass ex:C ; sh:property ex:B . ex:B a sh:PropertyShape ; sh:path ex:p ; sh:minCount 1 .`)
	if _, err := shapes.Remove(slowtest.Context(t), store, kg.Meta{Principal: admin}, []kg.Term{ex("B")}); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("got %v", err)
	}
}

// panicking is a verifier that panics.
type panicking struct{}

func (panicking) Verify(context.Context, kg.Judgement) (kg.Verdict, error) { panic("a fault") }

// A panic fails the update that caused it, and nothing else.
func TestAPanicIsTheUpdatesError(t *testing.T) {
	set := &shapes.Set{}
	store, err := kg.Open(t.TempDir(), kg.Options{Governor: kg.Governor{Verifier: kg.Verifiers(set, panicking{}), OnSystemChange: set.Follow}, ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	for range 2 {
		if _, err := write(t, store, by("ann"), parse(t, `ex:a ex:p 1 .`, kg.DefaultGraph), nil); kg.CodeOf(err) != kg.CodeInternal {
			t.Errorf("got %v", err)
		}
	}
	if n := store.Head().Revision; n != 0 {
		t.Errorf("%d commits", n)
	}
}
