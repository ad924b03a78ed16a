package kg_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/kgtest"
)

// judging is a verifier that calls look for each judgement.
type judging struct {
	look func(ctx context.Context, j kg.Judgement) error
}

func (v judging) Verify(ctx context.Context, j kg.Judgement) (kg.Verdict, error) {
	return kg.Verdict{}, v.look(ctx, j)
}

func changeOf(j kg.Judgement) string { return j.Changes[0].Quad.Object.Value() }

func stating(subject, object string) kg.Quad {
	return kg.Quad{Subject: kg.IRI(subject), Predicate: kg.IRI("urn:p"), Object: kg.String(object)}
}

// TestNobodyWaitsForAJudgement proves that an update which is judged again, because
// its subject has changed meanwhile, keeps no other update waiting.
func TestNobodyWaitsForAJudgement(t *testing.T) {
	looks := make(chan int)
	looked := make(chan struct{})
	n := 0
	var s *kgtest.Store
	v := judging{func(_ context.Context, j kg.Judgement) error {
		if changeOf(j) == "slow" {
			n++
			looks <- n
			<-looked
		}
		return nil
	}}
	s = kgtest.Disk(t, kg.Options{Governor: kg.Governor{Verifier: v}})
	done := make(chan error, 1)
	go func() { done <- addOne(s.Store, context.Background(), stating("urn:hot", "slow")) }()
	<-looks
	if err := addOne(s.Store, within(t), stating("urn:hot", "quick")); err != nil {
		t.Fatal(err)
	}
	looked <- struct{}{}
	if n := <-looks; n != 2 {
		t.Fatalf("look %d", n)
	}
	// It is being judged for the second time, and will be for as long as it takes.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := addOne(s.Store, ctx, stating("urn:elsewhere", "quick")); err != nil {
		t.Errorf("an update of another subject: %v", err)
	}
	looked <- struct{}{}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestOvertakenAgainAndAgain proves that an update whose subject changes during each
// judgement is judged MaxJudgements times, and then refused with the remedy, and that one
// without further changes before that is committed.
func TestOvertakenAgainAndAgain(t *testing.T) {
	for _, row := range []struct {
		overtaken int
		code      kg.Code
	}{{kg.MaxJudgements - 1, ""}, {kg.MaxJudgements, kg.CodeOverloaded}} {
		var s *kgtest.Store
		looks := 0
		v := judging{func(_ context.Context, j kg.Judgement) error {
			if changeOf(j) != "slow" {
				return nil
			}
			if looks++; looks > row.overtaken {
				return nil
			}
			return addOne(s.Store, context.Background(), stating("urn:hot", fmt.Sprint(looks)))
		}}
		s = kgtest.Disk(t, kg.Options{Governor: kg.Governor{Verifier: v}})
		err := addOne(s.Store, within(t), stating("urn:hot", "slow"))
		if kg.CodeOf(err) != row.code || looks != kg.MaxJudgements {
			t.Errorf("overtaken %d times: got %v after %d looks", row.overtaken, err, looks)
		}
		if e := kg.AsError(err); row.code != "" && (e.RetryAfter == 0 || e.Hint == "") {
			t.Errorf("the refusal does not say what to do: %+v", e)
		}
		if head := s.Head().Revision; head != kg.Revision(min(looks, kg.MaxJudgements)) {
			t.Errorf("overtaken %d times: revision %d", row.overtaken, head)
		}
	}
}

// TestManyWritersOfOneSubject proves that writers of one subject, far more than
// MaxJudgements, do not starve each other: those that are overtaken take turns.
func TestManyWritersOfOneSubject(t *testing.T) {
	slowtest.Long(t)
	v := judging{func(context.Context, kg.Judgement) error {
		time.Sleep(100 * time.Microsecond) // longer than it takes to begin
		return nil
	}}
	s := kgtest.Disk(t, kg.Options{Governor: kg.Governor{Verifier: v}})
	const writers, each = 4 * kg.MaxJudgements, 3
	var failed atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := addOne(s.Store, context.Background(), stating("urn:hot", fmt.Sprint(w, i))); err != nil {
					failed.Add(1)
					t.Log(err)
				}
			}
		})
	}
	wg.Wait()
	if n := failed.Load(); n > 0 || s.Head().Revision != writers*each {
		t.Errorf("%d of %d failed, revision %d", n, writers*each, s.Head().Revision)
	}
}

// TestJudgedAgainUntilTheCallerLeaves proves that the second judgement ends with the
// context of its caller.
func TestJudgedAgainUntilTheCallerLeaves(t *testing.T) {
	var s *kgtest.Store
	ctx, leave := context.WithCancel(t.Context())
	looks := 0
	v := judging{func(ctx context.Context, j kg.Judgement) error {
		if changeOf(j) != "slow" {
			return nil
		}
		if looks++; looks == 1 {
			return addOne(s.Store, context.Background(), stating("urn:hot", "quick"))
		}
		leave()
		<-ctx.Done()
		return ctx.Err()
	}}
	s = kgtest.Disk(t, kg.Options{Governor: kg.Governor{Verifier: v}})
	if err := addOne(s.Store, ctx, stating("urn:hot", "slow")); !errors.Is(err, context.Canceled) || looks != 2 {
		t.Errorf("got %v after %d looks", err, looks)
	}
}

// TestEndJudging proves that a judgement under way ends with EndJudging, and that its
// caller learns that nothing was written; and that closing does not wait for one.
func TestEndJudging(t *testing.T) {
	for _, end := range []func(*kg.Store){(*kg.Store).EndJudging, func(s *kg.Store) {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}} {
		begun := make(chan struct{})
		v := judging{func(ctx context.Context, j kg.Judgement) error {
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		}}
		s, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Verifier: v}})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- addOne(s, context.Background(), stating("urn:s", "slow")) }()
		<-begun
		end(s)
		if err := <-done; kg.CodeOf(err) != kg.CodeClosed {
			t.Errorf("got %v", err)
		}
		if head := s.Head().Revision; head != 0 {
			t.Errorf("revision %d", head)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLoadIsOvertaken proves that a load whose subjects change while it is judged
// continues, and is judged again.
func TestLoadIsOvertaken(t *testing.T) {
	var s *kgtest.Store
	looks := 0
	v := judging{func(_ context.Context, j kg.Judgement) error {
		if changeOf(j) == "quick" {
			return nil
		}
		if looks++; looks == 1 {
			return addOne(s.Store, context.Background(), stating("urn:hot", "quick"))
		}
		return nil
	}}
	s = kgtest.Disk(t, kg.Options{Governor: kg.Governor{Verifier: v}})
	quads := func(yield func(kg.Quad, error) bool) {
		_ = yield(stating("urn:hot", "loaded"), nil) && yield(stating("urn:hot", "too"), nil)
	}
	r, err := s.Load(within(t), kg.Meta{Principal: tester}, quads, kg.LoadOptions{})
	if err != nil || r.Statements != 2 || looks != 2 {
		t.Errorf("got %+v, %v after %d looks", r, err, looks)
	}
}

// TestNumbersAndTimesOvertakeNothing proves that a verdict holds although koine's own part
// of the update has another number, time or neighbour at the commit, and does not if its
// subject differs.
func TestNumbersAndTimesOvertakeNothing(t *testing.T) {
	message, record := kg.IRI("urn:koine:message:1"), kg.IRI("urn:koine:counted")
	graph := kg.IRI(kg.JournalGraphPrefix + "test")
	for _, row := range []struct {
		name  string
		own   []kg.Term
		says  func(run int) kg.Term
		looks int
	}{
		{"a number and a time", []kg.Term{message}, func(int) kg.Term { return kg.String("the same") }, 1},
		{"another content", []kg.Term{message}, func(run int) kg.Term { return kg.Integer(int64(min(run, 4))) }, 2},
		{"another content that the verdict is not about", nil, func(run int) kg.Term { return kg.Integer(int64(run)) }, 1},
	} {
		var s *kgtest.Store
		looks, runs := 0, 0
		publish := func(subject kg.Term) error {
			_, err := s.Update(context.Background(), kg.Meta{}, func(tx *kg.Tx) error {
				runs++
				n, err := tx.CountOwn(graph, kg.Sequence)
				if err != nil {
					return err
				}
				for _, q := range []kg.Quad{
					{Subject: subject, Predicate: kg.Sequence, Object: kg.Integer(int64(n + 1)), Graph: graph},
					{Subject: subject, Predicate: kg.IRI("urn:koine:sent"), Object: tx.TimeTerm(), Graph: graph},
					{Subject: subject, Predicate: kg.IRI("urn:koine:says"), Object: row.says(runs), Graph: graph},
					{Subject: record, Predicate: kg.IRI("urn:koine:count"), Object: kg.Integer(int64(runs)), Graph: graph},
					stating(subject.Value(), "a fact"),
				} {
					if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
						return err
					}
				}
				return nil
			})
			return err
		}
		v := verifierFunc(func(j kg.Judgement) kg.Verdict {
			if j.Changes[0].Quad.Subject != message {
				return kg.Verdict{}
			}
			if looks++; looks == 1 { // it is the first no more
				if err := publish(kg.IRI("urn:koine:message:0")); err != nil {
					t.Error(err)
				}
			}
			return kg.Verdict{Own: row.own}
		})
		var clock atomic.Int64
		s = kgtest.Disk(t, kg.Options{Governor: kg.Governor{Verifier: v}, Clock: func() time.Time { return time.UnixMilli(clock.Add(1000)) }})
		if err := publish(message); err != nil || looks != row.looks {
			t.Errorf("%s: %v after %d looks, want %d", row.name, err, looks, row.looks)
		}
	}
}

type verifierFunc func(kg.Judgement) kg.Verdict

func (fn verifierFunc) Verify(_ context.Context, j kg.Judgement) (kg.Verdict, error) {
	return fn(j), nil
}
