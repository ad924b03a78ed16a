package tasks

import (
	"koine/internal/systemgraph"
	"koine/kg"
)

// ChangesPattern is the pattern for a watcher of all tasks: each commit that changes a task
// changes a matching statement.
func ChangesPattern() kg.Pattern { return kg.Pattern{Predicate: systemgraph.Property(propVersion)} }

// ChangedBy returns the task that an event of ChangesPattern is about, "" if none is. The
// removal of a replaced version is about none; gone reports that the task was deleted.
func ChangedBy(e *kg.Event) (id TaskID, gone bool) {
	st := &e.Statement
	if _, _, ok := pairOf(st.Graph); !ok || st.Predicate != systemgraph.Property(propVersion) {
		return "", false
	}
	id = IDOf(st.Subject)
	if e.Op == kg.Remove {
		if advancesVersion(e.Commit, id, st.Graph) {
			return "", false
		}
		return id, true
	}
	return id, false
}

// EventsIn lists the events of a task in a commit, in order. Their positions have no
// epoch.
func EventsIn(c *kg.Commit, t *Task) ([]Event, error) {
	return eventsIn(c, t.ID, graphOf(t.Creator, t.Handler))
}
