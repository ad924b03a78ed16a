package kg_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/internal/wal"
	"koine/kg/internal/wal/waltest"
)

// The head of the log is cut, the index is lost, and checkpoints are damaged. The rest
// decides: the newest checkpoint, an older one from which the log still continues, or a
// plain refusal.
func TestCheckpoints(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir, tinyLog())
	w := newWorker(10, "w")
	var cuts []kg.Revision
	for range 2 {
		w.work(t, s, 6)
		if r, err := s.Maintenance().Checkpoint(within(t)); err != nil || r != s.Head().Revision {
			t.Fatalf("Checkpoint: %d, %v", r, err)
		}
		cuts = append(cuts, s.Head().Revision)
	}
	w.work(t, s, 4)
	whole := filepath.Join(t.TempDir(), "whole")
	want := recordOf(t, s)
	mustClose(t, s)
	copyTree(t, dir, whole, nil)
	checkpoint := func(i int) string { return fmt.Sprintf("checkpoints/%020d.checkpoint", cuts[i]) }
	for _, c := range []struct {
		name string
		cut  kg.Revision // the log begins here
		bad  []int       // checkpoints that are damaged
		ok   bool
	}{
		{"all there", 1, nil, true},
		{"newest bad, log whole", 1, []int{1}, true},
		{"all bad, log whole", 1, []int{0, 1}, true},
		{"log cut", cuts[0] + 1, nil, true},
		{"log cut, older bad", cuts[0] + 1, []int{0}, true},
		{"log cut where the older one ends, newest bad", cuts[0] + 1, []int{1}, true},
		{"log cut where the newest ends", cuts[1] + 1, []int{0}, true},
		{"log cut behind the older one, newest bad", cuts[0] + 2, []int{1}, false},
		{"log cut, all bad", cuts[0] + 1, []int{0, 1}, false},
	} {
		for _, how := range []string{"bit", "half", "empty", "gone"} {
			if how != "bit" && c.bad == nil {
				continue
			}
			t.Run(c.name+" "+how, func(t *testing.T) {
				spoiled := filepath.Join(t.TempDir(), "spoiled")
				copyTree(t, whole, spoiled, nil)
				cutLog(t, spoiled, c.cut)
				for _, i := range c.bad {
					damage(t, filepath.Join(spoiled, checkpoint(i)), how)
				}
				afterCheckpointDamage(t, spoiled, want, c.ok)
			})
		}
	}
}

// cutLog cuts the log alone: CutLog would make a checkpoint.
func cutLog(t *testing.T, dir string, before kg.Revision) {
	t.Helper()
	l, err := wal.Open(filepath.Join(dir, "log"), wal.Options{SegmentBytes: 1 << 10})
	if err == nil {
		err = l.TruncateFront(uint64(before))
	}
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func damage(t *testing.T, path, how string) {
	t.Helper()
	st, err := os.Stat(path)
	if err == nil {
		switch how {
		case "bit":
			err = waltest.Flip(path, st.Size()/2, 4)
		case "half":
			err = os.Truncate(path, st.Size()/2)
		case "empty":
			err = os.Truncate(path, 0)
		case "gone":
			err = os.Remove(path)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// afterCheckpointDamage opens the directory with a rebuild, which must not throw
// away an index that it cannot make again, and without the index.
func afterCheckpointDamage(t *testing.T, dir string, want *record, ok bool) {
	rebuild := tinyLog()
	rebuild.Rebuild = true
	s, err := kg.Open(dir, rebuild)
	if !ok {
		if kg.CodeOf(err) != kg.CodeLogDamaged {
			t.Fatalf("a rebuild that is not possible: %v, want LOG_DAMAGED", err)
		}
		if s, err = kg.Open(dir, tinyLog()); err != nil {
			t.Fatalf("Open after a rebuild that was not possible: %v", err)
		}
	}
	if err != nil {
		t.Fatalf("Open with a rebuild: %v", err)
	}
	if s.Head().Revision != want.head {
		t.Errorf("at revision %d, want %d", s.Head().Revision, want.head)
	}
	mustCheck(t, s)
	want.agrees(t, s)
	mustClose(t, s)
	remove(t, dir, "index")
	if s, err = kg.Open(dir, tinyLog()); !ok {
		if kg.CodeOf(err) != kg.CodeLogDamaged {
			t.Fatalf("Open without an index: %v, want LOG_DAMAGED", err)
		}
		return
	}
	if err != nil {
		t.Fatalf("Open without an index: %v", err)
	}
	defer s.Close()
	want.restored(t, s)
}

// Checkpoints may be made concurrently, beside updates, and each is complete.
func TestCheckpointsAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, tinyLog())
	w := newWorker(11, "w")
	w.work(t, s, 10)
	ctx, stop := context.WithCancel(within(t))
	ended := make(chan error, 3)
	for range cap(ended) {
		go func() {
			var err error
			for ctx.Err() == nil && err == nil {
				if _, err = s.Maintenance().Checkpoint(ctx); ctx.Err() != nil {
					err = nil
				}
			}
			ended <- err
		}()
	}
	for range 20 {
		w.work(t, s, 1)
	}
	stop()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Errorf("Checkpoint: %v", err)
		}
	}
	if err := s.Maintenance().CutLog(within(t), s.Head().Revision); err != nil {
		t.Fatal(err)
	}
	want := recordOf(t, s)
	mustClose(t, s)
	for _, name := range filesOf(t, filepath.Join(dir, "checkpoints", "*")) {
		if !strings.HasSuffix(name, ".checkpoint") {
			t.Errorf("%s is left over", name)
		}
	}
	remove(t, dir, "index")
	want.restored(t, openStore(t, dir, tinyLog()))
}
