package tasks

import (
	"slices"
	"time"

	"koine/internal/records"
	"koine/kg"
)

// Tasks are found in the order of a list, those that changed last first: a task has a
// statement of a property (kg.Ordered) of its state, with minus the moment of its last
// change, and one with that of its status. So each journal holds runs of its tasks for
// each state, of which any page is read with one seek, and which the index counts.

// states are those that there are; the place of a state is the number of its property.
var states = [...]State{1: Submitted, Working, InputRequired, AuthRequired, Completed, Failed, Canceled, Rejected}

// order is what tasks are in order by: the property of each state, as records name it.
type order [len(states)]string

var byChange, byStatus = orderFrom(0), orderFrom(len(states))

func orderFrom(number int) (o order) {
	for i := range o {
		o[i] = kg.Ordered(uint8(number + i)).Value()[len(kg.OwnVocabulary):]
	}
	return o
}

// of is the property of tasks in the state.
func (o *order) of(s State) string {
	i := slices.Index(states[:], s)
	if i <= 0 {
		panic("tasks: no state " + string(s))
	}
	return o[i]
}

// put says in what is to be written over a record of a task where it stands.
func (o *order) put(r, was records.Record, s State, at moment) {
	for _, name := range o {
		if was[name] != nil {
			r[name] = nil
		}
	}
	r[o.of(s)] = []kg.Term{kg.Integer(-int64(at))}
}

// moment is when a task changed, and before which others of the same millisecond: the
// milliseconds since 1970, and the last bits of the revision.
type moment int64

const revisionBits = 20

func momentOf(t time.Time, r kg.Revision) moment {
	return moment(t.UnixMilli()<<revisionBits | int64(r)&(1<<revisionBits-1))
}

// since is the first moment that is not before a time.
func since(t time.Time) moment {
	if t.IsZero() {
		return 0
	}
	return momentOf(t.Add(time.Millisecond-1).Truncate(time.Millisecond), 0)
}

func (m moment) time() time.Time { return time.UnixMilli(int64(m) >> revisionBits).UTC() }

// changedAt is when the task of a record changed last.
func changedAt(r records.Record) time.Time {
	for _, name := range byChange {
		if r[name] != nil {
			return moment(-integer(r, name)).time()
		}
	}
	return time.Time{}
}
