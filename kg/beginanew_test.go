package kg

import (
	"fmt"
	"slices"
	"testing"

	"koine/internal/slowtest"
	"koine/kg/internal/index"
)

func always() bool { return true }

// TestGraphThatBeganAnewIsInItsPlace shows that the order of the graphs that hold a
// statement does not reveal that a name was used before: a graph that began anew has the
// place of a name that was never used, in every order and page, also after later changes
// and after the index was rebuilt.
func TestGraphThatBeganAnewIsInItsPlace(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	const whole = MaxPatches + 1
	run := func(again bool) (out []string) {
		dir := t.TempDir()
		s := openStore(t, dir, Options{})
		m := Meta{Principal: SystemPrincipal(), Actor: "agent://writer"}
		g := IRI("urn:g:again")
		used := IRI("urn:g:before")
		if again {
			used = g
		}
		say := func(graph Term, objects ...int) {
			t.Helper()
			if _, err := s.Update(t.Context(), m, func(tx *Tx) error {
				for _, n := range objects {
					if err := tx.Apply(Patch{Op: Add, Quad: Quad{Subject: IRI("urn:s"), Predicate: IRI("urn:p"), Object: Integer(int64(n)), Graph: graph}}); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		must := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		say(IRI("urn:g:first"), 1, 2)
		say(used, 1, 2, 3)
		start := s.Head().Revision
		must(s.DropGraph(t.Context(), m, used, DropOptions{}))
		say(IRI("urn:g:meanwhile"), 1, 2)
		must(s.DropGraph(t.Context(), m, used, DropOptions{Still: always, Anew: true}))
		say(g, 1, 2)
		say(IRI("urn:g:later"), 1, 2)
		tell := func() {
			for _, at := range []Revision{0, s.Head().Revision} {
				v, err := s.View(t.Context(), View{AllGraphs: true, At: at})
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range []Pattern{{}, {Subject: IRI("urn:s")}, {Predicate: IRI("urn:p")}, {Object: Integer(1)}, {Subject: IRI("urn:s"), Object: Integer(2)}, {Graph: g}, {Graph: index.PlaceholderTerm(start)}} {
					ids, known, err := v.PatternIDs(p)
					if err != nil || !known {
						out = append(out, fmt.Sprint(known, err))
						continue
					}
					var after *IDQuad
					for more := true; more; { // each on a page of its own
						more = false
						for row, err := range v.MatchIDs(ids, after) {
							must(nil, err)
							q, err := v.Quad(row)
							must(nil, err)
							out = append(out, fmt.Sprint(q))
							after, more = &row.IDQuad, true
							break
						}
					}
					for version, err := range v.Versions(ids, nil) {
						must(nil, err)
						q, err := v.Quad(Row{IDQuad: version.IDQuad})
						must(nil, err)
						out = append(out, fmt.Sprint("version ", q, version.From > start, version.To))
					}
					for d, err := range v.Diff(start, ids, nil) {
						must(nil, err)
						q, err := v.Quad(Row{IDQuad: d.IDQuad})
						must(nil, err)
						out = append(out, fmt.Sprint("difference ", q, d.Before.From, d.After.From > start))
					}
				}
				v.Close()
			}
		}
		tell()
		must(nil, s.purgeGenerations(t.Context()))
		mustBeClean(t, s)
		must(s.Maintenance().Checkpoint(t.Context()))
		for _, o := range []Options{{}, {Rebuild: true}} {
			must(nil, s.Close())
			s = openStore(t, dir, o)
			tell()
			mustBeClean(t, s)
		}
		// It is written to by loads, replaced, and dropped again, as any other.
		must(s.Load(t.Context(), m, func(yield func(Quad, error) bool) {
			yield(Quad{Subject: IRI("urn:s"), Predicate: IRI("urn:p"), Object: Integer(7), Graph: g}, nil)
		}, LoadOptions{}))
		tell()
		must(s.ReplaceGraph(t.Context(), m, g, func(yield func(Quad, error) bool) {
			for i := range whole {
				if q := wholeQuad(i); !yield(Quad{Subject: q.Subject, Predicate: IRI("urn:q"), Object: q.Object, Graph: g}, nil) {
					return
				}
			}
		}, ReplaceOptions{}))
		must(s.DropGraph(t.Context(), m, g, DropOptions{}))
		must(s.DropGraph(t.Context(), m, g, DropOptions{Still: always, Anew: true}))
		say(g, 2)
		must(nil, s.purgeGenerations(t.Context()))
		must(nil, s.Close())
		s = openStore(t, dir, Options{Rebuild: true})
		tell()
		mustBeClean(t, s)
		return out
	}
	never, again := run(false), run(true)
	if !slices.Equal(never, again) {
		for i := range min(len(never), len(again)) {
			if never[i] != again[i] {
				t.Fatalf("line %d is %s, of a name that was never used %s", i, again[i], never[i])
			}
		}
		t.Fatalf("there are %d lines, of a name that was never used %d", len(again), len(never))
	}
	want := []string{"urn:g:first", "urn:g:meanwhile", "urn:g:again", "urn:g:later"}
	for i, line := range again[:len(want)] {
		if got := fmt.Sprint(Quad{Subject: IRI("urn:s"), Predicate: IRI("urn:p"), Object: Integer(1), Graph: IRI(want[i])}); line != got {
			t.Errorf("line %d is %s, want %s", i, line, got)
		}
	}
}

// TestGraphInUseDoesNotBeginAnew shows that a name which another caller has begun to use
// meanwhile keeps its content.
func TestGraphInUseDoesNotBeginAnew(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://writer"}
	replaceWith(t, s, m, wholeQuads(0, 3))
	head := s.Head()
	d, err := s.DropGraph(t.Context(), m, wholeGraph, DropOptions{Still: func() bool { return false }, Anew: true})
	if err != nil || d.Removed != 0 || s.Head() != head {
		t.Errorf("got %+v, %v at %v, before at %v", d, err, s.Head(), head)
	}
	if got := holdsAt(t, s, 0); len(got) != 3 {
		t.Errorf("the graph has %d statements", len(got))
	}
	if d, err := s.DropGraph(t.Context(), m, wholeGraph, DropOptions{Still: always, Anew: true}); err != nil || d.Removed != 3 {
		t.Errorf("got %+v, %v", d, err)
	}
	if got := holdsAt(t, s, 0); len(got) != 0 {
		t.Errorf("the graph has %d statements", len(got))
	}
}
