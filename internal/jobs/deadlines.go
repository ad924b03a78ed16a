package jobs

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"
)

// deadline is the time at which something is due for an id.
type deadline[ID ~string] struct {
	at int64 // in milliseconds since the epoch
	id ID
}

// Deadlines orders ids, such as those of channels, by the times at which something is due for
// them. It is derived from records, so it survives restarts. Its methods may be called
// concurrently.
type Deadlines[ID ~string] struct {
	clock func() time.Time
	pause time.Duration // between two checks of the clock
	wake  chan struct{}

	mu    sync.Mutex // guards the following
	queue *btree.BTreeG[deadline[ID]]
	known map[ID]int64 // deadlines in the queue
}

// NewDeadlines returns an empty queue. Run checks the clock at least once in each pause.
func NewDeadlines[ID ~string](clock func() time.Time, pause time.Duration) *Deadlines[ID] {
	return &Deadlines[ID]{
		clock: clock, pause: pause, wake: make(chan struct{}, 1), known: map[ID]int64{},
		queue: btree.NewBTreeG(func(a, b deadline[ID]) bool {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) < 0
		}),
	}
}

// Schedule sets the deadline of an id; the zero time removes it. It does not block.
func (l *Deadlines[ID]) Schedule(id ID, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(id)
	if !at.IsZero() {
		l.add(id, at)
	}
}

// ScheduleBy sets the deadline of an id unless an earlier one stands. It does not block.
func (l *Deadlines[ID]) ScheduleBy(id ID, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, ok := l.known[id]; ok && before <= at.UnixMilli() {
		return
	}
	l.remove(id)
	l.add(id, at)
}

func (l *Deadlines[ID]) remove(id ID) {
	if before, ok := l.known[id]; ok {
		l.queue.Delete(deadline[ID]{before, id})
		delete(l.known, id)
	}
}

func (l *Deadlines[ID]) add(id ID, at time.Time) {
	millis := at.Add(time.Millisecond - 1).UnixMilli() // not before the time
	l.known[id] = millis
	l.queue.Set(deadline[ID]{millis, id})
	Wake(l.wake)
}

// Len returns the number of ids with a deadline.
func (l *Deadlines[ID]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.known)
}

// due returns up to n ids with a deadline that has passed, and the next deadline, 0 for none.
func (l *Deadlines[ID]) due(now int64, n int) (list []ID, next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.Scan(func(d deadline[ID]) bool {
		if d.at > now || len(list) == n {
			next = d.at
			return false
		}
		list = append(list, d.id)
		return true
	})
	return list, next
}

// Run calls do with up to most ids with a deadline that has passed, until ctx is done. do
// reschedules them. After an error it calls do again after a pause.
func (l *Deadlines[ID]) Run(ctx context.Context, most int, do func(context.Context, []ID) error) error {
	var before []ID
	for {
		pause := time.Duration(0) // until woken
		list, next := l.due(l.clock().UnixMilli(), most)
		switch {
		case len(list) > 0:
			err := do(ctx, list)
			if err == nil && len(list) == most && !slices.Equal(list, before) {
				before = list
				continue // more may be due than one commit records
			}
			pause = l.pause
		case next > 0: // at most one pause: the clock may be set, and the machine may sleep
			pause = min(l.pause, max(time.Millisecond, time.UnixMilli(next).Sub(l.clock())))
		}
		wake := l.wake
		if len(list) > 0 {
			wake = nil
		}
		if !Wait(ctx, pause, wake) {
			return nil
		}
	}
}
