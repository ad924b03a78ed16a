package kg_test

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/slowtest"
	"koine/kg"
)

// aging is a store whose clock a test sets and that keeps a period of history.
type aging struct {
	*kg.Store
	clock *atomic.Int64 // hours since the beginning
}

var agingBegin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const agingHistory = 10 * time.Hour

func agingOptions(clock *atomic.Int64) kg.Options {
	o := tinyLog()
	o.History = agingHistory
	o.Clock = func() time.Time { return agingBegin.Add(time.Duration(clock.Load()) * time.Hour) }
	o.Uptime = func() time.Duration { return time.Duration(clock.Load()) * time.Hour }
	return o
}

// workHourly makes n updates, one an hour.
func (a *aging) workHourly(t *testing.T, w *worker, n int) {
	t.Helper()
	for range n {
		a.clock.Add(1)
		w.work(t, a.Store, 1)
	}
}

func newAging(t *testing.T, dir string, commits int) (a *aging, w *worker) {
	t.Helper()
	clock := new(atomic.Int64)
	a = &aging{openStore(t, dir, agingOptions(clock)), clock}
	w = newWorker(31, "w")
	a.workHourly(t, w, commits)
	return a, w
}

// kept fails the test unless the store's answers for the kept revisions equal the record,
// and older ones are gone.
func kept(t *testing.T, s *kg.Store, want *record, oldest kg.Revision) {
	t.Helper()
	for r := kg.Revision(1); r <= want.head; r++ {
		if r >= oldest {
			equalLines(t, fmt.Sprint("revision ", r), want.statements[r], statements(t, s, r))
			continue
		}
		_, err := s.View(within(t), kg.View{Principal: tester, At: r})
		e := kg.AsError(err)
		if e.Code != kg.CodeRevisionGone || e.Oldest == nil || e.Oldest.Revision != oldest || e.Hint == "" {
			t.Errorf("revision %d: %+v, want REVISION_GONE and that %d is the oldest", r, e, oldest)
		}
	}
	mustCheck(t, s)
}

// Content older than the history is not readable any more, its intervals are not in the
// index, and the log begins after it; newer content is unchanged. Also after the store was
// opened again, with its index and without.
func TestRetain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, w := newAging(t, dir, 30)
	want := recordOf(t, a.Store)
	past := pastRows(t, a.Store, 0)
	if r, err := a.Maintenance().Retain(within(t)); err != nil || r.Oldest != 20 || !r.Cut || r.Intervals == 0 {
		t.Fatalf("Retain: %+v, %v; want 20 as the oldest", r, err)
	}
	kept(t, a.Store, want, 20)
	if left := pastRows(t, a.Store, 0); left == past || left != pastRows(t, a.Store, 20) {
		t.Errorf("%d of %d intervals are left, %d of them behind revision 20", left, past, pastRows(t, a.Store, 20))
	}
	st := a.Stats()
	if st.OldestReadable != 20 || st.OldestInLog != 21 || st.History != agingHistory {
		t.Errorf("Stats: oldest %d, in the log %d, history %s", st.OldestReadable, st.OldestInLog, st.History)
	}
	if n := len(filesOf(t, filepath.Join(dir, "checkpoints", "*"))); n != 1 {
		t.Errorf("%d checkpoints, and those from before hold what is gone", n)
	}
	if r, err := a.Maintenance().Retain(within(t)); err != nil || r != (kg.RetainReport{Oldest: 20}) {
		t.Errorf("Retain again: %+v, %v", r, err)
	}
	a.workHourly(t, w, 3)
	want = extended(t, a.Store, want, 20)
	rows := imageOf(t, a.Store, nil).rows
	mustClose(t, a.Store)
	for _, lost := range []bool{false, true} {
		if lost {
			remove(t, dir, "index")
		}
		s := openStore(t, dir, agingOptions(a.clock))
		kept(t, s, want, 20)
		equalLines(t, "the index", rows, imageOf(t, s, nil).rows)
		mustClose(t, s)
	}
	// Without the option nothing more is removed, and removed history stays removed.
	s := openStore(t, dir, tinyLog())
	if r, err := s.Maintenance().Retain(within(t)); err != nil || r != (kg.RetainReport{Oldest: 20}) {
		t.Errorf("Retain without the option: %+v, %v", r, err)
	}
	kept(t, s, want, 20)
}

// extended is the record with the commits since.
func extended(t *testing.T, s *kg.Store, r *record, oldest kg.Revision) *record {
	t.Helper()
	out := &record{head: s.Head().Revision, statements: make(map[kg.Revision][]string), commits: r.commits}
	for rev := kg.Revision(1); rev <= out.head; rev++ {
		if rev >= oldest {
			out.statements[rev] = statements(t, s, rev)
		}
	}
	return out
}

// pastRows counts the intervals of the past that ended after a revision.
func pastRows(t *testing.T, s *kg.Store, after kg.Revision) (n int) {
	t.Helper()
	for _, row := range imageOf(t, s, nil).rows {
		if !strings.HasPrefix(row, "18") {
			continue
		}
		var to uint64
		if _, err := fmt.Sscanf(row[2*37:2*45], "%x", &to); err != nil {
			t.Fatal(err)
		}
		if kg.Revision(to) > after {
			n++
		}
	}
	return n
}

// Nothing happened for longer than the history: the newest revision stays, and
// the last entry of the log with it.
func TestRetainOfAnOldStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, _ := newAging(t, dir, 6)
	want := recordOf(t, a.Store)
	mustClose(t, a.Store) // so that its rows are in tables, under the version that deletes them
	a.Store = openStore(t, dir, agingOptions(a.clock))
	a.clock.Add(1000)
	if r, err := a.Maintenance().Retain(within(t)); err != nil || r.Oldest != 6 || !r.Cut {
		t.Fatalf("Retain: %+v, %v", r, err)
	}
	kept(t, a.Store, want, 6)
	if n := pastRows(t, a.Store, 0); n != 0 {
		t.Errorf("%d intervals of a past that nobody can read", n)
	}
	mustClose(t, a.Store)
	s := openStore(t, dir, agingOptions(a.clock))
	kept(t, s, want, 6)
	if n := pastRows(t, s, 0); n != 0 {
		t.Errorf("%d intervals are there again", n)
	}
	empty := openStore(t, t.TempDir(), agingOptions(a.clock))
	if r, err := empty.Maintenance().Retain(within(t)); err != nil || r != (kg.RetainReport{}) {
		t.Errorf("Retain of an empty store: %+v, %v", r, err)
	}
}

// Readers before the oldest kept revision get an error with the oldest available place:
// positions, watchers, readings of the log, differences, backups.
func TestReadersBehindHistory(t *testing.T) {
	t.Parallel()
	a, w := newAging(t, t.TempDir(), 4)
	token := a.FormatPosition(a.Head())
	watcher, err := a.Watch(within(t), everything(), a.Oldest())
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	atHead, err := a.Watch(within(t), everything(), a.Head())
	if err != nil {
		t.Fatal(err)
	}
	defer atHead.Close()
	a.workHourly(t, w, 26)
	if _, err := a.Maintenance().Retain(within(t)); err != nil {
		t.Fatal(err)
	}
	gone := func(what string, err error, code kg.Code) {
		t.Helper()
		e := kg.AsError(err)
		if e.Code != code || e.Oldest == nil || e.Oldest.Revision < 19 {
			t.Errorf("%s: %+v, want %s and the oldest position", what, e, code)
		}
	}
	for name, w := range map[string]*kg.Watcher{"a watcher from the beginning": watcher, "a watcher that did not read": atHead} {
		for _, err := range w.Events() {
			gone(name, err, kg.CodeResync)
			break
		}
	}
	p, err := a.ParsePosition(token)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Watch(within(t), everything(), p)
	gone("Watch", err, kg.CodePositionGone)
	_, err = a.ReadLog(within(t), everything(), kg.LogRange{After: p, Until: a.Head()})
	gone("ReadLog", err, kg.CodePositionGone)
	_, err = a.Commit(within(t), tester, 5)
	if kg.CodeOf(err) != kg.CodeRevisionGone {
		t.Errorf("Commit: %v", err)
	}
	_, err = a.Maintenance().Backup(within(t), io.Discard, kg.BackupOptions{Since: 5})
	gone("Backup", err, kg.CodeRevisionGone)
	_, err = a.Resolve(within(t), kg.Moment{Time: agingBegin.Add(5 * time.Hour)})
	gone("RevisionAt", err, kg.CodeRevisionGone)
	snap, err := a.View(within(t), kg.View{Principal: tester, AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for from, code := range map[kg.Revision]kg.Code{5: kg.CodeRevisionGone, 19: kg.CodeRevisionGone, 20: "", 29: ""} {
		var got error
		for _, err := range snap.Diff(from, kg.IDPattern{}, nil) {
			got = err
		}
		if kg.CodeOf(got) != code {
			t.Errorf("Diff from %d: %v, want %q", from, got, code)
		}
	}
}

// A reader of an old revision finishes; the round waits for it, and reads that
// come later are refused.
func TestRetainWaitsForReaders(t *testing.T) {
	t.Parallel()
	a, _ := newAging(t, t.TempDir(), 30)
	want := recordOf(t, a.Store)
	old, err := a.View(within(t), kg.View{Principal: tester, AllGraphs: true, At: 3})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := a.Maintenance().Retain(within(t))
		ended <- err
	}()
	for ctx := within(t); a.Stats().OldestReadable != 20; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("history does not begin later")
		}
	}
	if _, err := a.View(within(t), kg.View{Principal: tester, At: 3}); kg.CodeOf(err) != kg.CodeRevisionGone {
		t.Errorf("a new reader: %v", err)
	}
	var lines []string
	for st, err := range old.Match(kg.Pattern{}) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, statementLine(st))
	}
	equalLines(t, "revision 3", want.statements[3], lines)
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	old.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	kept(t, a.Store, want, 20)
	if n := pastRows(t, a.Store, 0); n != pastRows(t, a.Store, 20) {
		t.Errorf("%d intervals", n)
	}
}

// The process is killed after each part of a round. The rest is consistent, and the next
// round completes the work.
func TestRetainKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clock := new(atomic.Int64)
	o := agingOptions(clock)
	images := make(map[string]string)
	o = o.WithFaults(kg.Faults{LogSegmentBytes: 1 << 10, AfterRetain: func(part string) {
		if images[part] == "" {
			images[part] = filepath.Join(t.TempDir(), part)
			copyTree(t, dir, images[part], func(path string) bool { return path == "LOCK" })
		}
	}})
	a := &aging{openStore(t, dir, o), clock}
	w := newWorker(32, "w")
	a.workHourly(t, w, 30)
	want := recordOf(t, a.Store)
	if _, err := a.Maintenance().Retain(within(t)); err != nil {
		t.Fatal(err)
	}
	rows := imageOf(t, a.Store, nil).rows
	for _, part := range []string{"floor", "past", "keys", "cut"} {
		t.Run(part, func(t *testing.T) {
			s := openStore(t, images[part], agingOptions(clock))
			kept(t, s, want, 20)
			if _, err := s.Maintenance().Retain(within(t)); err != nil {
				t.Fatal(err)
			}
			kept(t, s, want, 20)
			equalLines(t, "the index", rows, imageOf(t, s, nil).rows)
			if n := len(filesOf(t, filepath.Join(images[part], "checkpoints", "*"))); n != 1 {
				t.Errorf("%d checkpoints", n)
			}
			mustClose(t, s)
			rebuild := agingOptions(clock)
			rebuild.Rebuild = true
			kept(t, openStore(t, images[part], rebuild), want, 20)
		})
	}
}

// An idempotency key is remembered for seven days, also when history is shorter,
// and not for longer than the history.
func TestRetainedKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, _ := newAging(t, dir, 1)
	ask := func(s *kg.Store) kg.Receipt {
		t.Helper()
		meta := kg.Meta{Principal: tester, IdempotencyKey: "key", ContentHash: [32]byte{1}}
		r, err := s.Update(within(t), meta, apply([]kg.Patch{{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:a"), Predicate: kg.IRI("urn:p"), Object: kg.String("x")}}}))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := ask(a.Store)
	a.clock.Add(7*24 - 1)
	newWorker(33, "x").work(t, a.Store, 1)
	if r, err := a.Maintenance().Retain(within(t)); err != nil || r.Keys != 0 || !r.Cut {
		t.Fatalf("Retain: %+v, %v", r, err)
	}
	if r := ask(a.Store); !r.Replayed || r.Revision != first.Revision || !r.Time.Equal(first.Time) {
		t.Errorf("within seven days: %+v", r)
	}
	a.clock.Add(2)
	again := ask(a.Store)
	if again.Replayed || again.Revision == first.Revision || !again.Committed {
		t.Errorf("after seven days: %+v", again)
	}
	if r := ask(a.Store); !r.Replayed || r.Revision != again.Revision {
		t.Errorf("the new answer: %+v", r)
	}
	mustClose(t, a.Store)
	s := openStore(t, dir, agingOptions(a.clock))
	if r := ask(s); !r.Replayed || r.Revision != again.Revision {
		t.Errorf("the new answer, opened again: %+v", r)
	}
	a.clock.Add(8 * 24)
	newWorker(34, "y").work(t, s, 1)
	if r, err := s.Maintenance().Retain(within(t)); err != nil || r.Keys == 0 {
		t.Errorf("Retain after the key's time: %+v, %v", r, err)
	}
	mustCheck(t, s)
}

// Rounds beside updates and readers take nothing away that may still be read.
func TestRetainBesideUpdates(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	a, w := newAging(t, t.TempDir(), 5)
	ctx, stop := context.WithCancel(within(t))
	ended := make(chan error, 2)
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			if _, err = a.Maintenance().Retain(ctx); ctx.Err() != nil {
				err = nil
			}
		}
		ended <- err
	}()
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			err = history(ctx, a.Store)
			if ctx.Err() != nil {
				err = nil
			}
		}
		ended <- err
	}()
	a.workHourly(t, w, 60)
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if _, err := a.Maintenance().Retain(within(t)); err != nil {
		t.Fatal(err)
	}
	want := recordFrom(t, a.Store, a.Stats().OldestReadable)
	kept(t, a.Store, want, 55)
}

// history reads all versions of everything, in two orders of the index.
func history(ctx context.Context, s *kg.Store) error {
	snap, err := s.View(ctx, kg.View{Principal: tester, AllGraphs: true})
	if err != nil {
		return err
	}
	defer snap.Close()
	p, ok, err := snap.ID(kg.IRI("urn:p1"))
	if err != nil {
		return err
	}
	for _, pattern := range []kg.IDPattern{{}, {Predicate: p}} {
		if !ok && !pattern.Predicate.IsZero() {
			continue
		}
		for _, err := range snap.Versions(pattern, nil) {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func recordFrom(t *testing.T, s *kg.Store, oldest kg.Revision) *record {
	t.Helper()
	return extended(t, s, &record{}, oldest)
}

// The store does it by itself, again and again, and ends it when it is closed.
func TestRetainByItself(t *testing.T) {
	t.Parallel()
	clock := new(atomic.Int64)
	o := agingOptions(clock).WithFaults(kg.Faults{LogSegmentBytes: 1 << 10, RetainEvery: time.Millisecond})
	a := &aging{openStore(t, t.TempDir(), o), clock}
	w := newWorker(35, "w")
	for _, oldest := range []kg.Revision{5, 12} {
		a.workHourly(t, w, int(oldest)+10-int(a.Head().Revision))
		ctx := within(t)
		for a.Stats().OldestReadable != oldest || a.Stats().OldestInLog != oldest+1 {
			if ctx.Err() != nil {
				t.Fatalf("the oldest revision is %d, want %d", a.Stats().OldestReadable, oldest)
			}
			time.Sleep(time.Millisecond)
		}
	}
	mustCheck(t, a.Store)
	mustClose(t, a.Store)
}

// The option has a minimum, and a store that accepts no updates keeps its history.
func TestRetainRefusals(t *testing.T) {
	o := tinyLog()
	for history, ok := range map[time.Duration]bool{0: true, -1: false, kg.MinHistory - 1: false, kg.MinHistory: true} {
		o.History = history
		s, err := kg.Open(t.TempDir(), o)
		if (err == nil) != ok || !ok && kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("History %s: %v", history, err)
		}
		if err == nil {
			mustClose(t, s)
		}
	}
	dir, _ := small(t)
	remove(t, dir, "log")
	o.History = time.Hour
	o.Clock = func() time.Time { return time.Now().Add(100 * time.Hour) }
	s := openStore(t, dir, o)
	if _, err := s.Maintenance().Retain(within(t)); kg.CodeOf(err) != kg.CodeLogDamaged {
		t.Errorf("Retain of a damaged store: %v", err)
	}
}

// A round removes old values in steps of a bounded size, for each of which updates wait, and
// reports the longest.
func TestRetainHoldsUpdatesShortly(t *testing.T) {
	t.Parallel()
	clock, steps := new(atomic.Int64), 0
	a := openStore(t, t.TempDir(), agingOptions(clock).WithFaults(kg.Faults{AfterRetain: func(part string) {
		if part == "step" {
			steps++
		}
	}}))
	const values, subjects = 10, 300
	for i := range values {
		_, err := a.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
			for n := range subjects {
				q := kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:held:", n)), Predicate: kg.IRI("urn:value"), Object: kg.Integer(int64(i)), Graph: kg.DefaultGraph}
				if err := tx.Apply(kg.Patch{Op: kg.Replace, Quad: q}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	clock.Add(2 * int64(agingHistory/time.Hour))
	r, err := a.Maintenance().Retain(within(t))
	if err != nil || r.Intervals < (values-2)*subjects {
		t.Fatalf("Retain: %+v, %v", r, err)
	}
	if want := int(r.Intervals) / kg.PruneStep; steps < want || r.LongestHold <= 0 {
		t.Errorf("%d intervals were removed in %d steps, the longest of %s; want %d steps", r.Intervals, steps, r.LongestHold, want)
	}
}
