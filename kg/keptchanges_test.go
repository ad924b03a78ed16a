package kg_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"
	"weak"

	"koine/internal/slowtest"
	"koine/kg"
)

// largeTexts are texts that are watched: how many of them are still in memory.
type largeTexts struct {
	list []weak.Pointer[byte]
}

func (l *largeTexts) text() string {
	text := noise(len(l.list), 400<<10)
	l.list = append(l.list, weak.Make(unsafe.StringData(text)))
	return text
}

func (l *largeTexts) live() (n int) {
	for range 3 {
		runtime.GC()
	}
	for _, w := range l.list {
		if w.Value() != nil {
			n++
		}
	}
	return n
}

// TestSmallCommitsKeepNoLargeOnes proves that the memory for the newest commits is bounded
// by Options.RingBytes: a small commit does not keep a large one that came before it.
func TestSmallCommitsKeepNoLargeOnes(t *testing.T) {
	slowtest.Long(t)
	s := openStore(t, t.TempDir(), smallOptions()) // RingBytes of 64 KiB
	var large largeTexts
	subjects := 0
	update := func(changes int, text func() string) {
		_, err := s.Update(context.Background(), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
			for range changes {
				subjects++
				if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s", subjects)), Predicate: kg.IRI("urn:p"), Object: kg.String(text())}}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	short := func() string { return "short" }
	for range 6 {
		update(20, large.text)
		update(1, large.text)
		update(3, short)
	}
	update(200, short)
	update(20, large.text)
	for range 3 {
		update(2, short)
	}
	s.Exclusive(func() {}) // nothing is left in the tree
	if n := large.live(); n > 1 {
		t.Errorf("%d of %d texts of 400 KiB are kept", n, len(large.list))
	}
}

// TestLongIRIsAreNotKept proves that the IRIs that the committer keeps at hand are
// short ones.
func TestLongIRIsAreNotKept(t *testing.T) {
	slowtest.Long(t)
	s := openStore(t, t.TempDir(), smallOptions())
	var large largeTexts
	add := func(subject string, n int) {
		_, err := s.Update(context.Background(), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
			return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(subject), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(n))}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 40 {
		iri := "urn:" + large.text()
		large.list[len(large.list)-1] = weak.Make(unsafe.StringData(iri))
		add(iri, 1)
		add(iri, 2) // by now the store has it
	}
	for i := range 40 {
		add("urn:short", i)
	}
	s.Exclusive(func() {})
	if n := large.live(); n > 1 {
		t.Errorf("%d of %d IRIs of 400 KiB are kept", n, len(large.list))
	}
}

// flipper reports that it has nothing to judge by, and later that it has.
type flipper struct{ idle bool }

func (f *flipper) Idle() bool { return f.idle }
func (f *flipper) Verify(context.Context, kg.Judgement) (kg.Verdict, error) {
	return kg.Verdict{}, nil
}

// TestVerifierAwakes proves that a verifier which has something to judge by of a sudden,
// in the middle of an update, does not bring the commits of a group into disorder.
func TestVerifierAwakes(t *testing.T) {
	f := &flipper{idle: true}
	s := openStore(t, t.TempDir(), kg.Options{Governor: kg.Governor{Verifier: f}, Clock: func() time.Time { f.idle = true; return time.Now() }})
	errs := waitingTogether(t, s, 2, func(i int, tx *kg.Tx) error {
		f.idle = false
		return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s", i)), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(i))}})
	})
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	seen := make(map[kg.Quad]bool)
	for r := kg.Revision(1); r <= s.Head().Revision; r++ {
		c, err := s.Commit(context.Background(), tester, r)
		if err != nil {
			t.Fatal(err)
		}
		if seen[c.Changes[0].Quad] {
			t.Errorf("revision %d says what an earlier one says", r)
		}
		seen[c.Changes[0].Quad] = true
	}
	mustCheck(t, s)
}
