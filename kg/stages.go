package kg

import "time"

// Stages is when an update that was acknowledged went through what: it was queued,
// its group was taken, executed (judged again where that was needed), appended to
// the log with its sync, and applied to the index.
type Stages struct {
	Queued, Taken, Executed, Appended, Applied time.Time
	// Group is the revision of the last commit in the group, which names it, and
	// Commits how many there are.
	Group   Revision
	Commits int
}

func (g *group) stages(queued time.Time) Stages {
	return Stages{queued, g.began, g.executed, g.appended, g.applied, g.revision, len(g.commits)}
}
