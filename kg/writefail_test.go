package kg_test

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/internal/wal/waltest"
)

// refused fails the test unless the store takes no updates for this reason, and
// is read as before.
func refused(t testing.TB, s *kg.Store, code kg.Code, want *record) {
	t.Helper()
	if got := kg.CodeOf(s.Ready()); got != code {
		t.Errorf("Ready: got %q (%v), want %q", got, s.Ready(), code)
	}
	meta, patches := newWorker(0, "refused").update()
	if _, err := s.Update(within(t), meta, apply(patches)); kg.CodeOf(err) != code {
		t.Errorf("Update: got %v, want %s", err, code)
	}
	want.agrees(t, s)
}

// A sync of the log fails, or the volume fills up under it, and then the power fails, at
// every place in the unsynced part. The update is there as a whole or not at all, and
// repeating it with its key makes one commit of it.
func TestFailedAppendThenPowerCut(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(*waltest.Files){
		"sync fails":       func(f *waltest.Files) { f.FailSync(1) },
		"volume fills up":  func(f *waltest.Files) { f.SetFull(true) },
		"on the first one": func(f *waltest.Files) { f.FailSync(1) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFaulty(t)
			w := newWorker(3, "w")
			if name != "on the first one" {
				w.work(t, f.Store, 7)
			}
			before := recordOf(t, f.Store)
			breakIt(f.files)
			meta, patches := w.update()
			meta.IdempotencyKey = "the one"
			if _, err := f.Update(within(t), meta, apply(patches)); kg.CodeOf(err) != kg.CodeOutcomeUnknown {
				t.Fatalf("Update: %v, want OUTCOME_UNKNOWN", err)
			}
			refused(t, f.Store, kg.CodeReadOnly, before)
			again := func(t *testing.T, dir string) {
				s := openStore(t, dir, smallLog(kg.Faults{}))
				if got := s.Head().Revision; got != before.head && got != before.head+1 {
					t.Fatalf("opened at revision %d, and %d were acknowledged", got, before.head)
				}
				mustCheck(t, s)
				there := s.Head().Revision > before.head
				for i := range 2 {
					r, err := s.Update(within(t), meta, apply(patches))
					if err != nil || r.Revision != before.head+1 || r.Replayed != (there || i == 1) {
						t.Fatalf("asking again: %+v, %v; the commit was there: %t", r, err, there)
					}
				}
				recordOf(t, s).restored(t, s)
				mustClose(t, s)
				s = openStore(t, dir, smallLog(kg.Faults{}))
				mustCheck(t, s)
			}
			unsynced := f.files.Unsynced()
			for _, keep := range []int{0, 1, 8, 70, unsynced / 2, unsynced - 1, unsynced} {
				if keep <= unsynced {
					t.Run(fmt.Sprintf("%d of %d bytes", keep, unsynced), func(t *testing.T) { again(t, f.powerCut(keep)) })
				}
			}
			mustClose(t, f.Store)
			t.Run("no power cut", func(t *testing.T) { again(t, f.dir) })
		})
	}
}

// The process ends between log and index: an entry in the log is a commit, for one update
// and for a group of them.
func TestKillBetweenAppendAndApply(t *testing.T) {
	for _, updates := range []int{1, 5} {
		t.Run(fmt.Sprint(updates), func(t *testing.T) {
			var dead atomic.Bool
			dir := t.TempDir()
			errDead := errors.New("killed")
			s := openStore(t, dir, smallLog(kg.Faults{AfterAppend: func() error {
				if dead.Load() {
					return errDead
				}
				return nil
			}}))
			w := newWorker(5, "w")
			w.work(t, s, 10)
			before := recordOf(t, s)
			dead.Store(true)
			metas, patches := make([]kg.Meta, updates), make([][]kg.Patch, updates)
			for i := range updates {
				metas[i], patches[i] = w.update()
				metas[i].IdempotencyKey = metas[i].TaskID
			}
			_, err := s.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
				return errors.Join(apply(patches[0])(tx), errors.New("given up")) // leaves nothing behind
			})
			if err == nil {
				t.Fatal("an update that gives up is a success")
			}
			var wg sync.WaitGroup
			codes := make([]kg.Code, updates)
			for i := range updates {
				wg.Go(func() {
					_, err := s.Update(within(t), metas[i], apply(patches[i]))
					codes[i] = kg.CodeOf(err)
				})
			}
			wg.Wait()
			refused(t, s, kg.CodeReadOnly, before)
			mustClose(t, s)
			s = openStore(t, dir, smallLog(kg.Faults{}))
			mustCheck(t, s)
			appended := int(s.Head().Revision - before.head)
			unknown := 0
			for _, code := range codes {
				switch code {
				case kg.CodeOutcomeUnknown:
					unknown++
				case kg.CodeReadOnly: // came after the accident
				default:
					t.Errorf("an update has the code %q", code)
				}
			}
			if appended != unknown || appended == 0 {
				t.Errorf("%d commits are there, %d updates have an unknown outcome", appended, unknown)
			}
			for i := range updates {
				r, err := s.Update(within(t), metas[i], apply(patches[i]))
				if err != nil || r.Replayed != (codes[i] == kg.CodeOutcomeUnknown) {
					t.Errorf("asking again: %+v, %v; the first answer was %s", r, err, codes[i])
				}
			}
			if got, want := s.Head().Revision, before.head+kg.Revision(updates); got != want {
				t.Errorf("the store is at %d, want %d", got, want)
			}
			mustCheck(t, s)
		})
	}
}

// Below the reserve of free space updates are refused and reads continue; with enough space
// updates do again.
func TestVolumeBelowReserve(t *testing.T) {
	var free atomic.Uint64
	free.Store(1 << 40)
	o := smallOptions()
	o.FreeBytes = func(string) (uint64, error) { return free.Load(), nil }
	o.ReserveBytes = 1 << 20
	s := openStore(t, t.TempDir(), o)
	w := newWorker(6, "w")
	w.work(t, s, 5)
	want := recordOf(t, s)
	free.Store(o.ReserveBytes - 1)
	refusedOnce := func() {
		t.Helper()
		meta, patches := newWorker(0, "refused").update()
		if _, err := s.Update(within(t), meta, apply(patches)); kg.CodeOf(err) != kg.CodeDiskFull {
			t.Errorf("Update: %v, want DISK_FULL", err)
		}
	}
	refusedOnce()
	refused(t, s, kg.CodeDiskFull, want)
	free.Store(o.ReserveBytes)
	w.work(t, s, 1)
	if err := s.Ready(); err != nil {
		t.Errorf("Ready with room again: %v", err)
	}
	mustCheck(t, s)
}

// A volume that fills up in the middle of a bulk load leaves a prefix of it, and the store
// takes updates again when there is room.
func TestVolumeFillsUpInBulkLoad(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	t.Parallel()
	var left atomic.Int64
	left.Store(1 << 40)
	o := smallOptions()
	o.FreeBytes = func(string) (uint64, error) {
		if left.Add(-1) < 0 {
			return 0, nil
		}
		return 1 << 40, nil
	}
	dir := t.TempDir()
	s := openStore(t, dir, o)
	left.Store(2)
	report, err := s.Load(within(t), kg.Meta{Principal: tester}, manyQuads(300_000), kg.LoadOptions{})
	if kg.CodeOf(err) != kg.CodeDiskFull {
		t.Fatalf("Load: %+v, %v; want DISK_FULL", report, err)
	}
	want := uint64(s.Head().Revision) * 10_000
	if n := s.Stats().Statements; n != want || n == 0 || n >= 300_000 || report.Statements != n {
		t.Errorf("%d statements in %d revisions, reported %+v", n, s.Head().Revision, report)
	}
	left.Store(1 << 40)
	newWorker(1, "w").work(t, s, 3)
	mustCheck(t, s)
	mustClose(t, s)
	s = openStore(t, dir, o)
	mustCheck(t, s)
	if n := s.Stats().Statements; n < want {
		t.Errorf("%d statements after reopening, want %d and more", n, want)
	}
}

// manyQuads yields n different quads.
func manyQuads(n int) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		for i := range n {
			q := kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:loaded:", i/5)), Predicate: kg.IRI(fmt.Sprint("urn:p", i%5)), Object: kg.Integer(int64(i))}
			if !yield(q, nil) {
				return
			}
		}
	}
}

// TestVolumeBreaksUnderUpdates breaks the volume under the log at every single write, sync
// and creation of a file in turn, in each way that volumes break, and cuts the power
// afterwards. An update is acknowledged and stored, or its outcome is unknown and the store
// accepts no more; and no error contains the path of the files.
func TestVolumeBreaksUnderUpdates(t *testing.T) {
	for name, how := range map[string]waltest.Failure{"once": waltest.Once, "dead": waltest.Dead, "lying": waltest.Lying} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 1
			for breakUnderUpdates(t, n, how) {
				n++
			}
			if n < 20 {
				t.Errorf("the updates need %d operations only", n)
			}
		})
	}
}

// breakUnderUpdates breaks it at the n-th operation; false when there are not so many.
func breakUnderUpdates(t *testing.T, n int, how waltest.Failure) bool {
	f := newFaulty(t)
	start := f.files.Operations()
	f.files.FailOperation(n, how)
	w := newWorker(uint64(n), "w")
	var acknowledged kg.Revision
	var failed error
	for range 8 {
		meta, patches := w.update()
		r, err := f.Update(within(t), meta, apply(patches))
		switch code := kg.CodeOf(err); {
		case err == nil && failed != nil:
			t.Fatalf("operation %d: an update was acknowledged after %v", n, failed)
		case err == nil:
			acknowledged = r.Revision
		case failed == nil && code != kg.CodeOutcomeUnknown, failed != nil && code != kg.CodeReadOnly:
			t.Fatalf("operation %d: an update fails with %s after %v", n, code, failed)
		default:
			failed = err
		}
		for _, err := range []error{err, f.Ready()} {
			if err != nil && strings.Contains(err.Error(), filepath.Dir(f.dir)) {
				t.Fatalf("operation %d: the error tells a path: %v", n, err)
			}
		}
	}
	reached := f.files.Operations()-start >= n
	_ = f.Close() // it may fail too
	s := openStore(t, f.powerCut(0), smallLog(kg.Faults{}))
	if got := s.Head().Revision; got < acknowledged {
		t.Fatalf("operation %d: the store is at revision %d, and %d was acknowledged", n, got, acknowledged)
	}
	mustCheck(t, s)
	mustClose(t, s)
	return reached
}
