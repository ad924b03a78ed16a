package kg_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
	"koine/kg/kgtest"
)

// embeddingsIn lists the embeddings of a view, one line each.
func embeddingsIn(t *testing.T, s *kg.Store, v kg.View, p kg.Pattern) (lines []string) {
	t.Helper()
	snap, err := s.View(within(t), v)
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	ids, known, err := snap.PatternIDs(p)
	if err != nil || !known {
		t.Fatalf("the pattern %+v: known %t, %v", p, known, err)
	}
	for e, err := range kg.Embeddings(snap, ids, nil) {
		if err != nil {
			t.Fatal(err)
		}
		q, err := snap.Quad(kg.Row{IDQuad: e.IDQuad})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprint(q.Object.Value(), " ", e.Assertion.Source, " ", e.Assertion.Embedding))
	}
	slices.Sort(lines)
	return lines
}

func embedded(q kg.Quad, source kg.AgentID, model string, vector ...float32) kg.Patch {
	return kg.Patch{Op: kg.Add, Quad: q, Source: source, Embedding: &kg.Embedding{Model: model, Vector: vector}}
}

// TestEmbeddings gives embeddings with patches and reads them: of each source its own, at the
// present and at older revisions, from watchers, and after a restart. An assertion that is
// given again without one has none.
func TestEmbeddings(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, tinyLog())
	update := func(patches ...kg.Patch) {
		t.Helper()
		if _, err := s.Update(within(t), kg.Meta{Principal: tester}, apply(patches)); err != nil {
			t.Fatal(err)
		}
	}
	vector := []float32{1, 2}
	update(embedded(integer(1), "agent://a", "m", vector...), embedded(integer(1), "agent://b", "m", 3, 4), kg.Patch{Op: kg.Add, Quad: integer(2)})
	clear(vector)
	update(embedded(integer(1), "agent://a", "n", 5), embedded(integer(2), "agent://b", "m", 6))
	update(kg.Patch{Op: kg.Add, Quad: integer(1), Source: "agent://b"}, kg.Patch{Op: kg.Remove, Quad: integer(2)})

	want := [][]string{
		nil,
		{"1 agent://a m[1 2]", "1 agent://b m[3 4]"},
		{"1 agent://a n[5]", "1 agent://b m[3 4]", "2 agent://b m[6]"},
		{"1 agent://a n[5]"},
	}
	check := func(when string) {
		t.Helper()
		for r := 1; r < len(want); r++ {
			if got := embeddingsIn(t, s, kg.View{Principal: tester, At: kg.Revision(r)}, kg.Pattern{}); !slices.Equal(got, want[r]) {
				t.Errorf("%s, at %d: got %q, want %q", when, r, got, want[r])
			}
		}
		if got := embeddingsIn(t, s, kg.View{Principal: tester, At: 2}, kg.Pattern(integer(2))); !slices.Equal(got, want[2][2:]) {
			t.Errorf("%s, of one statement: got %q, want %q", when, got, want[2][2:])
		}
		events, err := kgtest.Watched(within(t), &kgtest.Store{Store: s}, kg.Filter{View: kg.View{Principal: tester}}, s.Oldest(), 7)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, e := range events {
			a := e.Statement.Assertions[0]
			if a.Embedding != nil {
				told = append(told, fmt.Sprint(e.Op, " ", a.Source, " ", a.Embedding))
			}
		}
		if diff := cmp.Diff([]string{"add agent://a m[1 2]", "add agent://b m[3 4]", "replace agent://a n[5]", "add agent://b m[6]"}, told); diff != "" {
			t.Errorf("%s, watchers are told (-want +got):\n%s", when, diff)
		}
		if report, err := s.Maintenance().Check(within(t), kg.CheckOptions{}); err != nil || !report.Clean() {
			t.Errorf("%s: Check: %+v, %v", when, report, err)
		}
	}
	check("at once")
	for _, rebuild := range []bool{false, true} {
		mustClose(t, s)
		o := tinyLog()
		o.Rebuild = rebuild
		s = openStore(t, dir, o)
		check(fmt.Sprintf("after a restart with rebuild %t", rebuild))
	}
}

// TestEmbeddingsOfACommit proves that embeddings count toward the size of a commit: as many as
// fit are stored, and one more is refused by the name of the limit.
func TestEmbeddingsOfACommit(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	vector := slices.Repeat([]float32{0.1}, kg.MaxEmbeddingNumbers)
	give := func(n, from int) error {
		_, err := s.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
			for i := range n {
				if err := tx.Apply(embedded(integer(from+i), "agent://a", "m", vector...)); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	}
	const fit = kg.MaxCommitBytes / (4*kg.MaxEmbeddingNumbers + 64)
	if err := give(fit, 0); err != nil {
		t.Fatalf("%d embeddings: %v", fit, err)
	}
	const past = kg.MaxCommitBytes/(4*kg.MaxEmbeddingNumbers) + 1
	err := give(past, fit)
	if e := kg.AsError(err); err == nil || e.Code != kg.CodeLimitExceeded || e.Limit != kg.LimitCommitBytes {
		t.Errorf("%d embeddings: %v, want LIMIT_EXCEEDED by %s", past, err, kg.LimitCommitBytes)
	}
	if head := s.Head().Revision; head != 1 {
		t.Errorf("the head is %d, want 1", head)
	}
	if n := len(embeddingsIn(t, s.Store, kg.View{Principal: tester}, kg.Pattern{})); n != fit {
		t.Errorf("%d embeddings are stored, want %d", n, fit)
	}
}

// TestEmbeddingsOfOthers proves that a view, and a watcher, has the embeddings of the assertions
// that it shows and no others.
func TestEmbeddingsOfOthers(t *testing.T) {
	hidden := kg.IRI("urn:hidden")
	distrust := kgtest.NewDistrust(nil)
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Access: unreadable{hidden}, Distrust: distrust}})
	secret := integer(9)
	secret.Graph = hidden
	if _, err := s.Update(within(t), kg.Meta{}, func(tx *kg.Tx) error {
		for _, p := range []kg.Patch{embedded(integer(1), "agent://a", "m", 1), embedded(integer(1), "agent://b", "m", 2), embedded(secret, "agent://a", "m", 3)} {
			if err := tx.ApplyOwn(p); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	check := func(what string, want ...string) {
		t.Helper()
		if got := embeddingsIn(t, s.Store, kg.View{Principal: tester}, kg.Pattern{}); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
		events, err := kgtest.Watched(within(t), s, kg.Filter{View: kg.View{Principal: tester}}, s.Oldest(), len(want))
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range events {
			if got := fmt.Sprint("1 ", e.Statement.Assertions[0].Source, " ", e.Statement.Assertions[0].Embedding); got != want[i] {
				t.Errorf("%s: a watcher is told %q, want %q", what, got, want[i])
			}
		}
	}
	check("without the hidden graph", "1 agent://a m[1]", "1 agent://b m[2]")
	distrust.Set(kg.Doubts{"agent://a": {}}, 1)
	check("under quarantine", "1 agent://b m[2]")
}
