package tasks

import (
	"math"
	"slices"
	"time"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Lists of tasks are index scans. Each task has two statements with a kg.Ordered
// property of its state: minus the moment of its last change, and minus that of its
// last status. So each journal has a run of tasks for each state; a page is one seek,
// and the index has the count.

// states lists the states; the index of a state is the number of its property.
var states = [...]State{1: Submitted, Working, InputRequired, AuthRequired, Completed, Failed, Canceled, Rejected}

// order is the property of each state, as a key of a record.
type order [len(states)]string

var byChange, byStatus = orderFrom(0), orderFrom(len(states))

func orderFrom(number int) (o order) {
	for i := range o {
		o[i] = kg.Ordered(uint8(number + i)).Value()[len(kg.OwnVocabulary):]
	}
	return o
}

func (o *order) propertyOf(s State) string {
	i := slices.Index(states[:], s)
	if i <= 0 {
		panic("tasks: no state " + string(s))
	}
	return o[i]
}

// setOrder sets the position of a task in the properties to be written over a record.
func (o *order) setOrder(r, was systemgraph.Record, s State, at moment) {
	for _, name := range o {
		if was[name] != nil {
			r[name] = nil
		}
	}
	r[o.propertyOf(s)] = []kg.Term{kg.Integer(-int64(at))}
}

// moment orders changes: milliseconds since 1970, then the low bits of the revision to
// order changes within a millisecond.
type moment int64

const revisionBits = 20

func momentOf(t time.Time, r kg.Revision) moment {
	return moment(t.UnixMilli()<<revisionBits | int64(r)&(1<<revisionBits-1))
}

// firstMoment returns the first moment that is not before a time, within the range of moments:
// 1970 to 2248.
func firstMoment(t time.Time) moment {
	millis := t.Add(time.Millisecond - 1).Truncate(time.Millisecond).UnixMilli()
	return moment(min(max(millis, 0), math.MaxInt64>>revisionBits) << revisionBits)
}

func (m moment) toTime() time.Time { return time.UnixMilli(int64(m) >> revisionBits).UTC() }

func changedAt(r systemgraph.Record) time.Time {
	for _, name := range byChange {
		if r[name] != nil {
			return moment(-r.Integer(name)).toTime()
		}
	}
	return time.Time{}
}
