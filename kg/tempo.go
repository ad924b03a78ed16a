package kg

import "time"

// defaultOverlapFrom is from how many waiting updates on it pays to execute them
// while the log is at work: the groups become smaller, and each costs a hand-over
// and a sync of its own.
const defaultOverlapFrom = 32

// defaultGatherFrom is from how long an append takes on that the committer lets others
// run before it takes a group: with a sync that long, the few updates that come
// meanwhile save more than they cost. With a quick one they save nothing.
const defaultGatherFrom = 100 * time.Microsecond

// tempo is how long the committer's work took lately. It belongs to the committer.
type tempo struct {
	update time.Duration // to execute one update
	group  time.Duration // to append one group, with its sync
}

// executed takes note of updates that were executed.
func (t *tempo) executed(updates int, took time.Duration) {
	follow(&t.update, took/time.Duration(max(updates, 1)))
}

// appended takes note of a group that the log has; 0 of one that had nothing for it.
func (t *tempo) appended(took time.Duration) {
	if took > 0 {
		follow(&t.group, took)
	}
}

// follow moves an average an eighth of the way to what was seen last.
func follow(average *time.Duration, seen time.Duration) { *average += (seen - *average) / 8 }

// overlaps tells whether so many updates as come next are executed while the log takes
// a group. They are where there are many, and the log takes half as long or less:
// where it takes longer, what it leaves time for is better in one group with one sync,
// since who is answered late asks late for more.
func (t *tempo) overlaps(next, from int) bool {
	return next >= from && time.Duration(next)*t.update >= 2*t.group
}

// gathers tells whether others are let run before a group is taken.
func (t *tempo) gathers(from time.Duration) bool { return t.group >= from }
