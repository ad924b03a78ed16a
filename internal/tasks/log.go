package tasks

import (
	"koine/internal/records"
	"koine/kg"
)

// Changes is what a watcher of all tasks asks for: each commit that changes a task
// changes what fits it.
func Changes() kg.Pattern { return kg.Pattern{Predicate: records.Property(propVersion)} }

// ChangedBy is the task that an event of Changes is about, "" if none is. An event of
// a version that another takes the place of is about none; gone tells that the task
// was deleted.
func ChangedBy(e *kg.Event) (id TaskID, gone bool) {
	st := &e.Statement
	if _, _, ok := pairOf(st.Graph); !ok || st.Predicate != records.Property(propVersion) {
		return "", false
	}
	id = idOf(st.Subject)
	if e.Op == kg.Remove {
		if movesOn(e.Commit, id, st.Graph) {
			return "", false
		}
		return id, true
	}
	return id, false
}

// EventsIn lists what happened in a commit to a task, in order. The position of each
// is without its epoch.
func EventsIn(c *kg.Commit, t *Task) ([]Event, error) {
	return eventsIn(c, t.ID, graphOf(t.Creator, t.Handler))
}

// IDOf is the task that an entity of the graph is, "" for another entity.
func IDOf(t kg.Term) TaskID { return idOf(t) }
