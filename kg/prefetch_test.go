package kg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

// foreseen is the patch as a caller hands it to Tx.Apply after a prefetch.
func foreseen(t *testing.T, f *kg.TermPrefetch, p kg.Patch) kg.Patch {
	t.Helper()
	if err := f.Prefetch(&p); err != nil {
		t.Fatal(err)
	}
	return p
}

// stands counts the statements that match the pattern.
func stands(t *testing.T, s *kgtest.Store, p kg.Pattern) (n int) {
	t.Helper()
	snap, err := s.View(within(t), kg.View{Principal: tester, AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for _, err := range snap.Match(p) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// TestForeseenTermComesMeanwhile has patches foreseen while their terms are new, which
// then come with other updates: each term has one number all the same.
func TestForeseenTermComesMeanwhile(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		for _, size := range []int{10, 100, 2000} { // a key of its own, by hash, and too long for the cache
			t.Run(fmt.Sprint(flushed, size), func(t *testing.T) {
				s := kgtest.Disk(t, kg.Options{})
				text := kg.String(strings.Repeat("x", size))
				patch := func(i int) kg.Patch {
					return foreseen(t, s.NewTermPrefetch("agent://a", 1), kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI(fmt.Sprint("urn:p", i)), Object: text}})
				}
				early, late := patch(1), patch(2)
				for _, p := range []kg.Patch{early, patch(3), late} {
					if _, err := s.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error { return tx.Apply(p) }); err != nil {
						t.Fatal(err)
					}
					if flushed {
						s.Exclusive(func() {})
					}
				}
				if got := stands(t, s, kg.Pattern{Object: text}); got != 3 {
					t.Errorf("%d statements have the text, want 3", got)
				}
			})
		}
	}
}

// TestNewSubjectComesMeanwhile has a subject noted as new in two updates, of which the second
// comes after the first: it has one number all the same, in memory or on the disk.
func TestNewSubjectComesMeanwhile(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		s := kgtest.Disk(t, kg.Options{})
		subject := kg.IRI("urn:koine:message:new")
		patch := func(i int) kg.Patch {
			f := s.NewTermPrefetch("agent://a", 1)
			f.NoteNewSubject(subject)
			return foreseen(t, f, kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: subject, Predicate: kg.IRI(fmt.Sprint("urn:p", i)), Object: kg.Integer(1)}})
		}
		for _, p := range []kg.Patch{patch(1), patch(2)} {
			if _, err := s.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error { return tx.Apply(p) }); err != nil {
				t.Fatal(err)
			}
			if flushed {
				s.Exclusive(func() {})
			}
		}
		if got := stands(t, s, kg.Pattern{Subject: subject}); got != 2 {
			t.Errorf("flushed %v: %d statements have the subject, want 2", flushed, got)
		}
	}
}

// A subject that is noted as new is not looked up before the update.
func TestNewSubjectIsNotLookedUp(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	read := func(note bool) uint64 {
		before := s.Stats().KeysRead
		f := s.NewTermPrefetch("agent://a", 1)
		subject := kg.IRI(fmt.Sprint("urn:new:", note))
		if note {
			f.NoteNewSubject(subject)
		}
		foreseen(t, f, kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: subject, Predicate: kg.IRI("urn:p"), Object: kg.Integer(1)}})
		return s.Stats().KeysRead - before
	}
	if known, new := read(false), read(true); known != 1 || new != 0 {
		t.Errorf("%d keys are read, and %d of a new subject", known, new)
	}
}

// TestForeseenTogether has many callers foresee the same new terms and commit at once.
func TestForeseenTogether(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	ctx := within(t)
	const callers, rounds = 64, 20
	for round := range rounds {
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				first := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s", round)), Predicate: kg.IRI(fmt.Sprint("urn:p", i)), Object: kg.String(fmt.Sprint(round, " ", strings.Repeat("text ", 20)))}}
				together := s.NewTermPrefetch("agent://a", 2)
				err := together.Prefetch(&first)
				second := first
				second.Quad.Predicate = kg.IRI("urn:q")
				if err == nil {
					err = together.Prefetch(&second)
				}
				if err == nil {
					_, err = s.Update(ctx, kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
						if err := tx.Apply(first); err != nil {
							return err
						}
						return tx.Apply(second)
					})
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	if got, want := stands(t, s, kg.Pattern{}), rounds*(callers+1); got != want {
		t.Errorf("%d statements, want %d", got, want)
	}
}

// TestForeseenAndChanged changes a patch after the prefetch: its new content counts.
func TestForeseenAndChanged(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	q := func(subject, object string) kg.Quad {
		return kg.Quad{Subject: kg.IRI(subject), Predicate: kg.IRI("urn:p"), Object: kg.IRI(object), Graph: kg.DefaultGraph}
	}
	commit := func(p kg.Patch) {
		if _, err := s.Update(context.Background(), kg.Meta{Principal: tester}, func(tx *kg.Tx) error { return tx.Apply(p) }); err != nil {
			t.Fatal(err)
		}
	}
	commit(kg.Patch{Op: kg.Add, Quad: q("urn:a", "urn:b")})
	together := s.NewTermPrefetch("agent://a", 1) // which are more
	known := foreseen(t, together, kg.Patch{Op: kg.Add, Quad: q("urn:a", "urn:b")})
	unknown := foreseen(t, together, kg.Patch{Op: kg.Add, Quad: q("urn:x", "urn:y")})
	known.Quad, unknown.Quad = q("urn:c", "urn:d"), q("urn:a", "urn:e")
	commit(known)
	commit(unknown)
	other, err := unknown.With(kg.IRI("urn:other"), kg.String("o"))
	if err != nil {
		t.Fatal(err)
	}
	commit(other)
	for _, want := range []kg.Quad{q("urn:a", "urn:b"), q("urn:c", "urn:d"), q("urn:a", "urn:e"), other.Quad} {
		if got := stands(t, s, kg.Pattern(want)); got != 1 {
			t.Errorf("%v stands %d times", want, got)
		}
	}
	if got := stands(t, s, kg.Pattern{}); got != 4 {
		t.Errorf("%d statements, want 4", got)
	}
}

// TestTermPrefetchRefuses the patches that Apply would refuse, and With those that are not
// in order.
func TestTermPrefetchRefuses(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	bad := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.String("no subject"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1)}}
	if err := s.NewTermPrefetch("agent://a", 1).Prefetch(&bad); kg.AsError(err).Field != "subject" {
		t.Errorf("a literal as subject: %v", err)
	}
	good := foreseen(t, s.NewTermPrefetch("agent://a", 1), kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1)}})
	for field, with := range map[string][2]kg.Term{
		"predicate": {kg.String("p"), kg.Integer(1)},
		"object":    {kg.IRI("urn:p"), {}},
	} {
		if _, err := good.With(with[0], with[1]); kg.CodeOf(err) != kg.CodeInvalid || kg.AsError(err).Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestNewSubjectIsReadAgain asserts statements of a subject that is new in its commit, and
// again, by another source, and removes one: of few statements and of many.
func TestNewSubjectIsReadAgain(t *testing.T) {
	for _, n := range []int{3, 31, 32, 33, 80} {
		s := kgtest.Disk(t, kg.Options{})
		q := func(i int) kg.Quad {
			return kg.Quad{Subject: kg.IRI("urn:new"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(i)), Graph: kg.DefaultGraph}
		}
		receipt, err := s.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
			var patches []kg.Patch
			for i := range n {
				patches = append(patches, kg.Patch{Op: kg.Add, Quad: q(i)})
			}
			patches = append(patches,
				kg.Patch{Op: kg.Add, Quad: q(1)}, // no change
				kg.Patch{Op: kg.Add, Quad: q(n - 1), Source: "agent://b"},
				kg.Patch{Op: kg.Remove, Quad: q(0)},
			)
			for _, p := range patches {
				if err := tx.Apply(p); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || receipt.Affected != n+2 {
			t.Errorf("%d statements: %d changes, %v, want %d", n, receipt.Affected, err, n+2)
		}
		if got := stands(t, s, kg.Pattern{Subject: kg.IRI("urn:new")}); got != n-1 {
			t.Errorf("%d statements stand, want %d", got, n-1)
		}
	}
}

// TestTermPrefetchOfClosed foresees patches while a store closes, and after, with terms that
// are in tables of the index and in no cache.
func TestTermPrefetchOfClosed(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, kg.Options{})
	patch := func(i int) kg.Patch {
		return kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s", i)), Predicate: kg.IRI("urn:p"), Object: kg.IRI(fmt.Sprint("urn:o", i))}}
	}
	_, err := s.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
		for i := -1; i < 8000; i += 2 {
			if err := tx.Apply(patch(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, kg.Options{})
	var wg sync.WaitGroup
	foresee := func(i int) {
		p := patch(i)
		if err := s.NewTermPrefetch("agent://a", 1).Prefetch(&p); err != nil {
			t.Error(err)
		}
	}
	for i := range 4 {
		wg.Go(func() {
			for j := range 2000 {
				foresee(i*2000 + j)
			}
		})
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	foresee(-1)
}

// TestForeseenOnDisk prefetches, in a store that was opened again, terms that it has
// already.
func TestForeseenOnDisk(t *testing.T) {
	dir := t.TempDir()
	patch := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.IRI("urn:o")}}
	for want := range 2 {
		s := openStore(t, dir, kg.Options{})
		p := patch
		if err := s.NewTermPrefetch("agent://tester", 1).Prefetch(&p); err != nil {
			t.Fatal(err)
		}
		r, err := s.Update(within(t), kg.Meta{Principal: tester}, apply([]kg.Patch{p}))
		if err != nil || r.Affected != 1-want {
			t.Errorf("opened %d times before: %d changes, %v", want, r.Affected, err)
		}
		mustCheck(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForeseenBeforeLoad prefetches terms that a bulk load then adds, with and without a
// reader that keeps the load from writing the index in one piece.
func TestForeseenBeforeLoad(t *testing.T) {
	for _, read := range []bool{false, true} {
		s := openStore(t, t.TempDir(), kg.Options{})
		p := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:loaded:1"), Predicate: kg.IRI("urn:p0"), Object: kg.Integer(5)}}
		if err := s.NewTermPrefetch("agent://tester", 1).Prefetch(&p); err != nil {
			t.Fatal(err)
		}
		if read {
			snap, err := s.View(within(t), kg.View{Principal: tester})
			if err != nil {
				t.Fatal(err)
			}
			defer snap.Close()
		}
		if r, err := s.Load(within(t), kg.Meta{Principal: tester}, manyQuads(5000), kg.LoadOptions{}); err != nil || !r.Bulk {
			t.Fatal(r, err)
		}
		r, err := s.Update(within(t), kg.Meta{Principal: tester}, apply([]kg.Patch{p}))
		if err != nil || r.Affected != 0 {
			t.Errorf("with a reader %v: %d changes, %v", read, r.Affected, err)
		}
		mustCheck(t, s)
	}
}
