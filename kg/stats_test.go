package kg_test

import (
	"context"
	"testing"

	"koine/kg"
)

// The counters follow the updates: one commit each for updates with an effect, none for
// those without or refused ones.
func TestStatsOfCommits(t *testing.T) {
	s := openStore(t, t.TempDir(), smallOptions())
	newWorker(1, "w").work(t, s, 5)
	meta, patches := newWorker(1, "w").update()
	if r, err := s.Update(within(t), meta, apply(patches[:1])); err != nil || r.Committed {
		t.Fatalf("an update that is there already: %+v, %v", r, err)
	}
	st := s.Stats()
	if n := st.CommitSeconds.Count(); n != 5 {
		t.Errorf("%d commits were measured, want 5", n)
	}
	if n := st.GroupCommits.Count(); n != 5 || st.GroupCommits.Sum != 5 || st.GroupCommits.Counts[0] != 5 {
		t.Errorf("groups %+v, want 5 of one commit", st.GroupCommits)
	}
	if n := st.AppendSeconds.Count(); n != 5 || st.AppendSeconds.Sum <= 0 || st.AppendSeconds.Sum > st.CommitSeconds.Sum {
		t.Errorf("the log took %g s for %d groups, the commits %g s", st.AppendSeconds.Sum, n, st.CommitSeconds.Sum)
	}
	if st.FreeBytes != 1<<40 || st.ReserveBytes != kg.DefaultReserveBytes || st.QueueBound != kg.DefaultQueueLength || st.Refused != "" {
		t.Errorf("free %d, reserve %d, queue %d, refused %q", st.FreeBytes, st.ReserveBytes, st.QueueBound, st.Refused)
	}
	if _, err := s.Maintenance().Checkpoint(within(t)); err != nil {
		t.Fatal(err)
	}
	if n := s.Stats().CheckpointBytes; n == 0 {
		t.Error("the checkpoint takes nothing")
	}
}

// A watcher that has not read is as far behind as its position, one that nothing
// concerned is at the head.
func TestStatsOfWatchers(t *testing.T) {
	s := openStore(t, t.TempDir(), smallOptions())
	from := s.Head()
	slow, err := s.Watch(within(t), everything(), from)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	newWorker(1, "w").work(t, s, 12)
	st := s.Stats()
	if st.MaxLag != 12 || st.LagRevisions.Count() != 1 || st.LagRevisions.Cumulative()[100] != 1 || st.LagRevisions.Cumulative()[10] != 0 {
		t.Errorf("lag %d, %+v", st.MaxLag, st.LagRevisions)
	}
	ctx, stop := context.WithCancel(within(t))
	defer stop()
	w, err := s.Watch(ctx, everything(), s.Head())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if st := s.Stats(); st.LagRevisions.Count() != 2 || st.LagRevisions.Counts[0] != 1 {
		t.Errorf("two watchers, one at the head: %+v", st.LagRevisions)
	}
	slow.Close()
	if st := s.Stats(); st.LagRevisions.Count() != 1 || st.MaxLag != 0 {
		t.Errorf("one watcher, at the head: %+v", st.LagRevisions)
	}
}

// A store that accepts no updates reports the reason.
func TestStatsOfRefusal(t *testing.T) {
	o := smallOptions()
	o.FreeBytes = func(string) (uint64, error) { return 1, nil }
	s := openStore(t, t.TempDir(), o)
	meta, patches := newWorker(1, "w").update()
	if _, err := s.Update(within(t), meta, apply(patches)); kg.CodeOf(err) != kg.CodeDiskFull {
		t.Fatalf("Update: %v", err)
	}
	if st := s.Stats(); st.Refused != kg.CodeDiskFull || st.FreeBytes != 1 {
		t.Errorf("refused %q with %d bytes free", st.Refused, st.FreeBytes)
	}
}
