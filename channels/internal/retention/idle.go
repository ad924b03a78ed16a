package retention

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/journal"
	"koine/internal/jobs"
	"koine/internal/systemgraph"
	"koine/kg"
)

// A channel with an idle timeout is closed for readers and authors as soon as the
// timeout ends (Channel.closesAt). A commit then records the closing and its due time.
// maxIdleCloses bounds the channels that one commit closes.
const maxIdleCloses = 200

// idleDeadline is the earliest time at which a channel's idle timeout may end.
type idleDeadline struct {
	at      int64 // in milliseconds since the epoch
	channel channel.ID
}

// IdleCloser orders channels by their idle deadlines. Publishing does not update the
// queue: when a deadline passes, the time of the last message is looked up, and the
// channel is closed or rescheduled. The queue is derived from the channels' records, so
// it survives restarts.
type IdleCloser struct {
	table   *access.Table
	journal *journal.Journal
	clock   func() time.Time
	pause   time.Duration // between two checks of the clock

	wake chan struct{}

	mu        sync.Mutex // guards the following
	queue     *btree.BTreeG[idleDeadline]
	deadlines map[channel.ID]int64 // deadlines in the queue, by channel
}

func NewIdleCloser(clock func() time.Time, pause time.Duration) *IdleCloser {
	return &IdleCloser{
		clock: clock, pause: pause, wake: make(chan struct{}, 1), deadlines: map[channel.ID]int64{},
		queue: btree.NewBTreeG(func(a, b idleDeadline) bool {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.channel, b.channel)) < 0
		}),
	}
}

// Schedule sets the deadline of a channel; the zero time removes it. It does not block.
func (l *IdleCloser) Schedule(id channel.ID, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, ok := l.deadlines[id]; ok {
		l.queue.Delete(idleDeadline{before, id})
		delete(l.deadlines, id)
	}
	if at.IsZero() {
		return
	}
	l.deadlines[id] = at.UnixMilli()
	l.queue.Set(idleDeadline{at.UnixMilli(), id})
	jobs.Wake(l.wake)
}

// dueChannels returns up to n channels whose deadline has passed, and the next
// deadline, 0 for none.
func (l *IdleCloser) dueChannels(now int64, n int) (list []channel.ID, next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.Scan(func(at idleDeadline) bool {
		if at.at > now || len(list) == n {
			next = at.at
			return false
		}
		list = append(list, at.channel)
		return true
	})
	return list, next
}

// Start starts closing the idle channels of the table, as a job of the group.
func (l *IdleCloser) Start(g *jobs.Group, table *access.Table, j *journal.Journal) {
	l.table, l.journal = table, j
	g.Start("close idle channels", l.run)
}

// run closes channels whose idle timeout has ended until the queue is closed
// or the store is.
func (l *IdleCloser) run(ctx context.Context) error {
	var before []channel.ID
	for {
		pause := time.Duration(0) // until woken
		list, next := l.dueChannels(l.clock().UnixMilli(), maxIdleCloses)
		switch {
		case len(list) > 0:
			err := l.closeIdle(ctx, list)
			if kg.CodeOf(err) == kg.CodeClosed {
				return nil
			}
			if err == nil && len(list) == maxIdleCloses && !slices.Equal(list, before) {
				before = list
				continue // more may be due than one commit closes
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

// closeIdle closes the channels of the list whose idle timeout has ended, in one
// commit, and reschedules the others.
func (l *IdleCloser) closeIdle(ctx context.Context, list []channel.ID) error {
	later := map[channel.ID]time.Time{} // the zero time removes the deadline
	now := l.clock()
	var due []channel.ID
	look := func(tx *kg.Tx, last func(channel.ID) (time.Time, error)) error {
		clear(later)
		due = due[:0]
		for _, id := range list {
			e := l.table.Get(id)
			if e == nil || e.Deleted || e.ClosesAt(time.Time{}).IsZero() {
				later[id] = time.Time{}
				continue
			}
			sent, err := last(id)
			if err != nil {
				return err
			}
			at := e.ClosesAt(sent)
			if tx != nil {
				now = tx.Time()
			}
			if now.Before(at) {
				later[id] = at
				continue
			}
			due = append(due, id)
		}
		return nil
	}
	// Usually there were messages and all deadlines move: that needs no commit.
	if err := l.viewLastMessages(ctx, look); err != nil {
		return err
	}
	if len(due) > 0 {
		meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "channels/expire", Justification: fmt.Sprintf("the idle timeout of %d channels has ended", len(due))}
		err := systemgraph.Update(ctx, l.journal.Store, meta, func(tx *kg.Tx) error {
			if err := look(tx, func(id channel.ID) (time.Time, error) { return journal.LastTimeTx(tx, id) }); err != nil {
				return err
			}
			for _, id := range due {
				if _, err := channel.ChangeRecord(tx, id, journal.CloseExpired); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for id, at := range later {
		l.Schedule(id, at)
	}
	return nil // closed channels leave the queue when their record changes
}

// viewLastMessages calls look with a lookup of last message times in a snapshot.
func (l *IdleCloser) viewLastMessages(ctx context.Context, look func(*kg.Tx, func(channel.ID) (time.Time, error)) error) error {
	snapshot, err := l.journal.SystemView(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	return look(nil, func(id channel.ID) (time.Time, error) { return journal.LastTime(snapshot, id) })
}
