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

// order is what tasks are in order by.
type order uint8

const (
	byChange order = 0
	byStatus order = order(len(states))
)

// of is the property by which tasks in the state are in the order.
func (o order) of(s State) kg.Term {
	i := slices.Index(states[1:], s)
	if i < 0 {
		panic("tasks: no state " + string(s))
	}
	return kg.Ordered(uint8(o) + uint8(i) + 1)
}

// name is the property as records name it.
func (o order) name(s State) string { return o.of(s).Value()[len(kg.OwnVocabulary):] }

// put says in a record of a task where it stands in the order.
func (o order) put(r records.Record, state State, at moment) {
	for _, other := range states[1:] {
		r[o.name(other)] = nil
	}
	r[o.name(state)] = []kg.Term{kg.Integer(-int64(at))}
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
	for _, s := range states[1:] {
		if r[byChange.name(s)] != nil {
			return moment(-integer(r, byChange.name(s))).time()
		}
	}
	return time.Time{}
}
