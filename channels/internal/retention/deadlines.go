package retention

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"koine/internal/jobs"
	"koine/kg"
)

// deadline is the time at which something is due for a channel or a scope.
type deadline[ID ~string] struct {
	at int64 // in milliseconds since the epoch
	id ID
}

// deadlines orders channels or scopes by their deadlines. It is derived from their records,
// so it survives restarts.
type deadlines[ID ~string] struct {
	clock func() time.Time
	pause time.Duration // between two checks of the clock
	wake  chan struct{}

	mu    sync.Mutex // guards the following
	queue *btree.BTreeG[deadline[ID]]
	known map[ID]int64 // deadlines in the queue
}

func newDeadlines[ID ~string](clock func() time.Time, pause time.Duration) *deadlines[ID] {
	return &deadlines[ID]{
		clock: clock, pause: pause, wake: make(chan struct{}, 1), known: map[ID]int64{},
		queue: btree.NewBTreeG(func(a, b deadline[ID]) bool {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) < 0
		}),
	}
}

// Schedule sets a deadline; the zero time removes it. It does not block.
func (l *deadlines[ID]) Schedule(id ID, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, ok := l.known[id]; ok {
		l.queue.Delete(deadline[ID]{before, id})
		delete(l.known, id)
	}
	if at.IsZero() {
		return
	}
	l.known[id] = at.UnixMilli()
	l.queue.Set(deadline[ID]{at.UnixMilli(), id})
	jobs.Wake(l.wake)
}

// due returns up to n ids with a deadline that has passed, and the next deadline, 0 for none.
func (l *deadlines[ID]) due(now int64, n int) (list []ID, next int64) {
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

// run calls do with up to most ids with a deadline that has passed, until ctx is done or the store
// is closed. do reschedules them.
func (l *deadlines[ID]) run(ctx context.Context, most int, do func(context.Context, []ID) error) error {
	var before []ID
	for {
		pause := time.Duration(0) // until woken
		list, next := l.due(l.clock().UnixMilli(), most)
		switch {
		case len(list) > 0:
			err := do(ctx, list)
			if kg.CodeOf(err) == kg.CodeClosed {
				return nil
			}
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
		if !jobs.Wait(ctx, pause, wake) {
			return nil
		}
	}
}
