package kg

import (
	"testing"
	"time"
)

// The next group is executed during an append if enough updates wait, and the log is not
// the bottleneck. With a slow log, the committer yields before a group.
func TestTempo(t *testing.T) {
	for _, c := range []struct {
		name    string
		update  time.Duration // to execute one
		group   time.Duration // to append one
		waiting int
		want    bool
	}{
		{"many wait and the log is quick", 10 * time.Microsecond, 100 * time.Microsecond, 64, true},
		{"few wait", 10 * time.Microsecond, 100 * time.Microsecond, defaultOverlapFrom - 1, false},
		{"as many as it takes", 10 * time.Microsecond, 100 * time.Microsecond, defaultOverlapFrom, true},
		{"the log takes more than half as long", 10 * time.Microsecond, 200 * time.Microsecond, defaultOverlapFrom, false},
		{"the log is slow", 10 * time.Microsecond, 5 * time.Millisecond, 64, false},
		{"the log is slow, and very many wait", 10 * time.Microsecond, 5 * time.Millisecond, 1024, true},
	} {
		var tempo pacing // of a store that was opened just now
		for range 100 {
			tempo.noteExecuted(4, 4*c.update)
			tempo.noteAppended(c.group)
			tempo.noteAppended(0)
		}
		if got := tempo.shouldOverlap(c.waiting, defaultOverlapFrom); got != c.want {
			t.Errorf("%s: %t, after %+v", c.name, got, tempo)
		}
	}
	for group, want := range map[time.Duration]bool{defaultGatherFrom - time.Microsecond: false, defaultGatherFrom + time.Microsecond: true} {
		var tempo pacing
		for range 200 {
			tempo.noteAppended(group)
		}
		if got := tempo.shouldGather(defaultGatherFrom); got != want {
			t.Errorf("with appends of %v it lets others run: %t", group, got)
		}
	}
}
