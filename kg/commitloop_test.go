package kg_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"koine/kg"
)

// handedIn is an update of a test, and its result.
type handedIn struct {
	meta    kg.Meta
	fn      func(*kg.Tx) error
	receipt kg.Receipt
	err     error
	early   bool // it was answered before the log had said anything
}

func asks(key string, fn func(*kg.Tx) error) *handedIn {
	return &handedIn{meta: kg.Meta{Principal: tester, IdempotencyKey: key}, fn: fn}
}

func adds(subject string) func(*kg.Tx) error {
	return apply([]kg.Patch{{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(subject), Predicate: kg.IRI("urn:p"), Object: kg.String("x")}}})
}

// sees fails the update unless the subject exists.
func sees(subject string) func(*kg.Tx) error {
	return func(tx *kg.Tx) error {
		for _, err := range tx.Match(kg.Pattern{Subject: kg.IRI(subject)}) {
			return err
		}
		return errors.New("it does not see " + subject)
	}
}

func both(a, b func(*kg.Tx) error) func(*kg.Tx) error {
	return func(tx *kg.Tx) error { return errors.Join(a(tx), b(tx)) }
}

// slowLog is a store whose log holds back the result of an append until it is released.
type slowLog struct {
	*kg.Store
	dir   string
	has   chan struct{} // the log has a group
	say   chan error
	quick atomic.Bool // it says at once that all is well
}

func newSlowLog(t *testing.T, o kg.Options) *slowLog {
	l := &slowLog{dir: t.TempDir(), has: make(chan struct{}), say: make(chan error)}
	over := make(chan struct{})
	l.Store = openStore(t, l.dir, o.WithFaults(kg.Faults{OverlapFrom: 1, AfterAppend: func() error {
		if l.quick.Load() {
			return nil
		}
		select {
		case l.has <- struct{}{}:
		case <-over:
			return nil
		}
		select {
		case err := <-l.say:
			return err
		case <-over:
			return nil
		}
	}}))
	t.Cleanup(func() { close(over) }) // a test that fails does not wait for its log
	return l
}

// ahead brings the store to the point where the log has the group of the first update
// without a result, and the others have been executed. The returned function releases the
// result of the first group, and waits for all answers.
func (l *slowLog) ahead(t *testing.T, list ...*handedIn) (let func(error)) {
	t.Helper()
	var said atomic.Bool
	answers := make(chan struct{}, len(list)+1)
	begin := func(a *handedIn) {
		go func() {
			a.receipt, a.err = l.Update(context.Background(), a.meta, a.fn)
			a.early = !said.Load()
			answers <- struct{}{}
		}()
	}
	busy, release, executed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	one := list[0].fn
	list[0].fn = func(tx *kg.Tx) error { close(busy); <-release; return one(tx) }
	begin(list[0])
	<-busy
	for i, a := range append(list[1:], asks("", func(*kg.Tx) error { close(executed); return nil })) {
		begin(a)
		waitQueued(t, l.Store, i+1)
	}
	close(release)
	<-l.has
	select {
	case <-executed:
	case <-within(t).Done():
		t.Fatal("nothing is executed while the log is at work")
	}
	return func(err error) {
		said.Store(true)
		l.quick.Store(true)
		l.say <- err
		for range len(list) + 1 {
			select {
			case <-answers:
			case <-within(t).Done():
				t.Fatal("an update is not answered")
			}
		}
	}
}

// While the log takes a group the next is executed on top of it. Neither is answered
// or seen before the log has it.
func TestExecutesWhileTheLogSyncs(t *testing.T) {
	l := newSlowLog(t, smallOptions())
	one, two := asks("", adds("urn:one")), asks("", both(sees("urn:one"), adds("urn:two")))
	nothing := asks("", sees("urn:one"))
	let := l.ahead(t, one, two, nothing)
	if got := l.Head().Revision; got != 0 {
		t.Errorf("readers see revision %d, which the log may not have", got)
	}
	if n := shown(t, l.Store); n != 0 {
		t.Errorf("readers see %d statements that the log may not have", n)
	}
	let(nil)
	for i, a := range []*handedIn{one, two, nothing} {
		if a.err != nil || a.early {
			t.Errorf("update %d: %v; before the log had it: %t", i+1, a.err, a.early)
		}
	}
	if one.receipt.Revision != 1 || two.receipt.Revision != 2 || l.Head().Revision != 2 || shown(t, l.Store) != 2 {
		t.Errorf("revisions %d and %d, and the store is at %d", one.receipt.Revision, two.receipt.Revision, l.Head().Revision)
	}
	mustCheck(t, l.Store)
}

func shown(t *testing.T, s *kg.Store) (n int) {
	t.Helper()
	v, err := s.View(within(t), kg.View{Principal: tester})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, err := range v.Match(kg.Pattern{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// If the log fails, updates executed on top of the lost group are refused: they were not
// written, even if their only result was an answer.
func TestLogFailsUnderTheNextGroup(t *testing.T) {
	l := newSlowLog(t, smallOptions())
	one, two := asks("one", adds("urn:one")), asks("two", adds("urn:two"))
	again := asks("one", adds("urn:one"))
	stale := asks("", both(sees("urn:one"), func(*kg.Tx) error { return errors.New("because it saw it") }))
	l.ahead(t, one, two, again, stale)(errors.New("the disk is gone"))
	for i, c := range []struct {
		*handedIn
		want kg.Code
	}{{one, kg.CodeOutcomeUnknown}, {two, kg.CodeReadOnly}, {again, kg.CodeReadOnly}, {stale, kg.CodeReadOnly}} {
		if kg.CodeOf(c.err) != c.want || c.receipt.Revision != 0 {
			t.Errorf("update %d: %+v, %v; want %s", i+1, c.receipt, c.err, c.want)
		}
	}
	if l.Head().Revision != 0 || shown(t, l.Store) != 0 {
		t.Errorf("the store shows revision %d", l.Head().Revision)
	}
	mustClose(t, l.Store)
	s := openStore(t, l.dir, smallOptions())
	mustCheck(t, s)
	for i, a := range []*handedIn{one, two} {
		r, err := s.Update(within(t), a.meta, adds([]string{"urn:one", "urn:two"}[i]))
		if err != nil || r.Replayed != (i == 0) || r.Revision != kg.Revision(i+1) {
			t.Errorf("asking again for update %d: %+v, %v", i+1, r, err)
		}
	}
}

// A key of the group that the log is taking is remembered.
func TestKeyOfTheGroupAhead(t *testing.T) {
	l := newSlowLog(t, smallOptions())
	one, again, other := asks("k", adds("urn:one")), asks("k", adds("urn:one")), asks("k", adds("urn:two"))
	other.meta.ContentHash = [32]byte{1}
	l.ahead(t, one, again, other)(nil)
	if again.err != nil || !again.receipt.Replayed || again.receipt.Revision != 1 || again.receipt.Affected != 1 || again.early {
		t.Errorf("asking again: %+v, %v", again.receipt, again.err)
	}
	if kg.CodeOf(other.err) != kg.CodeIdempotencyConflict {
		t.Errorf("the same key for something else: %v", other.err)
	}
	if l.Head().Revision != 1 {
		t.Errorf("the store is at %d, want 1", l.Head().Revision)
	}
}

// A commit that decides about updates is in force before the next one is executed, also
// with a slow log.
func TestNextGroupWaitsForWhatDecides(t *testing.T) {
	var told atomic.Bool
	o := kg.Options{Governor: kg.Governor{OnSystemChange: func(*kg.Commit) { told.Store(true) }}}
	s := openStore(t, t.TempDir(), o.WithFaults(kg.Faults{OverlapFrom: 1}))
	rule := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:rule"), Predicate: kg.IRI("urn:p"), Object: kg.String("x"), Graph: kg.SystemGraph}}
	var under []bool
	for i, err := range waitingTogether(t, s, 2, func(i int, tx *kg.Tx) error {
		under = append(under, told.Load())
		return tx.ApplyOwn(rule)
	}) {
		if err != nil {
			t.Errorf("update %d: %v", i, err)
		}
	}
	if !slices.Equal(under, []bool{false, true}) {
		t.Errorf("executed under what was decided: %v, want only the second", under)
	}
}

// A step between two groups finds everything applied.
func TestNothingIsAheadBetweenGroups(t *testing.T) {
	for name, run := range map[string]func(*kg.Store, func()){"bulk load": (*kg.Store).Exclusive, "history": (*kg.Store).Between} {
		l := newSlowLog(t, smallOptions())
		one, two := asks("", adds("urn:one")), asks("", adds("urn:two"))
		let := l.ahead(t, one, two)
		at := make(chan kg.Revision, 1)
		go run(l.Store, func() { at <- l.Head().Revision })
		let(nil)
		if got := <-at; got != 2 {
			t.Errorf("%s: at revision %d, and two were on their way", name, got)
		}
	}
}

// Close waits for the group that the log is taking.
func TestCloseLandsTheGroupAhead(t *testing.T) {
	l := newSlowLog(t, smallOptions())
	one, two := asks("", adds("urn:one")), asks("", adds("urn:two"))
	let := l.ahead(t, one, two)
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	let(nil)
	if err := <-closed; err != nil || one.err != nil || two.err != nil {
		t.Errorf("Close: %v; the updates: %v, %v", err, one.err, two.err)
	}
	s := openStore(t, l.dir, smallOptions())
	if s.Head().Revision != 2 {
		t.Errorf("opened at %d, want 2", s.Head().Revision)
	}
	mustCheck(t, s)
}
