package recall_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"koine/internal/compact"
	"koine/internal/recall"
	"koine/internal/search"
	"koine/kg"
)

// private lets agents read the graphs with their name, and everybody all other graphs.
type private struct{}

func (private) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	owner, ok := strings.CutPrefix(graph.Value(), "urn:private:")
	return !ok || string(p.ID) == "agent://"+owner || p.ID == kg.SystemPrincipal().ID
}

type fixture struct {
	t     *testing.T
	store *kg.Store
	by    recall.Recaller
}

func open(t *testing.T) *fixture {
	t.Helper()
	store, err := kg.Open(filepath.Join(t.TempDir(), "data"), kg.Options{Governor: kg.Governor{Access: private{}}})
	if err != nil {
		t.Fatal(err)
	}
	service, err := search.Open(store, search.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	service.Start()
	t.Cleanup(func() {
		if err := service.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	prefixes, err := kg.NewPrefixes(map[string]string{"ex": "https://example.org/"})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t, store, recall.Recaller{Search: service, Prefixes: prefixes, LabelPredicates: []string{kg.RDFSLabel}}}
}

// add adds facts in the form of package compact.
func (f *fixture) add(text string) {
	f.t.Helper()
	facts, err := compact.Read(text, f.by.Prefixes)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.store.Update(f.t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://ann"}}, func(tx *kg.Tx) error {
		for _, x := range facts {
			q := kg.Quad{Subject: x.Subject.Term, Predicate: x.Predicate.Term, Object: x.Object.Term, Graph: x.Graph}
			if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q, Certainty: x.Certainty, HasCertainty: x.HasCertainty}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
}

// recall recalls at the head, after the index knows it.
func (f *fixture) recall(agent kg.AgentID, q recall.Request) recall.Answer {
	f.t.Helper()
	if err := f.by.Search.WaitFor(f.t.Context(), f.store.Head().Revision); err != nil {
		f.t.Fatal(err)
	}
	s, err := f.store.View(f.t.Context(), kg.View{Principal: kg.Principal{ID: agent}})
	if err != nil {
		f.t.Fatal(err)
	}
	defer s.Close()
	a, err := f.by.Recall(f.t.Context(), s, q)
	if err != nil {
		f.t.Fatal(err)
	}
	return a
}

const films = `@prefix ex: <https://example.org/>
ex:film (The Third Man)@en
  a ex:Film
  ex:director ex:reed (Carol Reed)
  ex:year 1949
ex:reed (Carol Reed)
  ex:born 1906 [0.9]
`

func TestRecall(t *testing.T) {
	f := open(t)
	f.add(films)
	a := f.recall("agent://bob", recall.Request{Topic: "third men"})
	const want = `@prefix ex: <https://example.org/>
ex:film (The Third Man)@en
  a ex:Film
  ex:director ex:reed (Carol Reed)
  ex:year 1949
ex:reed (Carol Reed)
  ex:born 1906 [0.9, by ann]
`
	if a.Text != want || a.Facts != 6 || a.Left != 0 {
		t.Errorf("%d facts and %d left:\n%s", a.Facts, a.Left, a.Text)
	}
	// By name, with the statements that point to it.
	a = f.recall("agent://bob", recall.Request{Topic: "ex:reed"})
	const wantReed = `@prefix ex: <https://example.org/>
ex:reed (Carol Reed)
  ex:born 1906 [0.9, by ann]
ex:film
  ex:director ex:reed (Carol Reed)
`
	if a.Text != wantReed {
		t.Errorf("by name:\n%s", a.Text)
	}
}

// A predicate whose name says nothing is shown with its label, in a form that is read back.
func TestPredicateWithoutAName(t *testing.T) {
	f := open(t)
	f.add(films + "ex:film <urn:uuid:01a21b3d-1f59-7ead-97e3-88ad27a67f8b> ex:greene\n<urn:uuid:01a21b3d-1f59-7ead-97e3-88ad27a67f8b> (written by)\n")
	a := f.recall("agent://bob", recall.Request{Topic: "third man"})
	if want := "\n  <urn:uuid:01a21b3d-1f59-7ead-97e3-88ad27a67f8b> (written by) ex:greene\n"; !strings.Contains(a.Text, want) {
		t.Errorf("%s\nwithout the line%s", a.Text, want)
	}
	if _, err := compact.Read(a.Text, f.by.Prefixes); err != nil {
		t.Error(err)
	}
}

// A budget holds, and texts that an agent may not read change no byte.
func TestRecallIsBounded(t *testing.T) {
	f, own := open(t), open(t)
	for i := range 60 {
		text := fmt.Sprintf("<https://example.org/run%d> (Run %d of the cell)\n  ex:cycles %d\n", i, i, i)
		f.add(text)
		own.add(text)
	}
	f.add("@graph <urn:private:ann>\nex:secret (The cell that nobody knows)\nex:run1 ex:note \"the cell of run 1 was exchanged\"\n")
	for _, most := range []int{recall.MinTokens, 200, recall.MaxTokens} {
		q := recall.Request{Topic: "cell run", MaxTokens: most}
		a := f.recall("agent://bob", q)
		if n := compact.Tokens(a.Text); n > most || a.Facts+a.Left != 40 {
			t.Errorf("%d tokens of at most %d, %d facts and %d left", n, most, a.Facts, a.Left)
		}
		if got := own.recall("agent://bob", q); got.Text != a.Text || strings.Contains(a.Text, "nobody") || strings.Contains(a.Text, "exchanged") {
			t.Errorf("with what Bob may not read:\n%s\nand without:\n%s", a.Text, got.Text)
		}
		if again := f.recall("agent://bob", q); again != a {
			t.Errorf("once\n%s\nand once\n%s", a.Text, again.Text)
		}
	}
	s, err := f.store.View(t.Context(), kg.View{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, q := range []recall.Request{{Topic: "cell", MaxTokens: recall.MinTokens - 1}, {Topic: "cell", MaxTokens: recall.MaxTokens + 1}, {Topic: "?"}} {
		if _, err := f.by.Recall(t.Context(), s, q); kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("%+v: %v", q, err)
		}
	}
}
