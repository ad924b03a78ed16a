// Package retention removes content at the end of its time: Expirer removes the content of expired
// messages, IdleCloser closes channels after their idle timeout, and EvictOldest removes
// the content of messages beyond the number that a channel keeps. Readers see the effect
// when it is due; the commits made here record it, with the due time, so that every replay
// yields the same state. The queue is derived from the store.
package retention

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"koine/channels/channel"
	"koine/channels/internal/journal"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/internal/jobs"
	"koine/internal/systemgraph"
	"koine/kg"
)

// A message expires for readers as soon as its time has come (Message.redactFor). A
// commit then records the expiry and its due time in the store, so that every replay
// yields the same state. Limits of these commits:
const (
	ExpiryPause      = time.Second // between two checks of the clock
	MaxExpiryChanges = 4000        // per commit
	MaxExpiryBytes   = 4 << 20     // of removed content per commit
)

// queuedExpiry is a message that expires at a known time.
type queuedExpiry struct {
	at      int64 // in milliseconds since the epoch
	message message.ID
	channel channel.ID
}

func (d queuedExpiry) less(other queuedExpiry) bool {
	return cmp.Or(cmp.Compare(d.at, other.at), cmp.Compare(d.message, other.message)) < 0
}

// Expirer records the expiry of messages. It follows the log, so it sees every
// message regardless of its publisher. All of its state is derived from the store, so
// it resumes after a restart.
type Expirer struct {
	jobs    *jobs.Group
	journal *journal.Journal
	clock   func() time.Time
	pause   time.Duration // between two checks of the clock
	most    int           // queued messages
	wake    chan struct{}

	mu    sync.Mutex // guards the following
	queue *btree.BTreeG[queuedExpiry]
	// If truncated, the queue lacks the messages that expire at horizon or later.
	truncated bool
	horizon   int64
}

// NewExpirer returns an expirer with at most most queued messages.
func NewExpirer(j *journal.Journal, clock func() time.Time, pause time.Duration, most int) *Expirer {
	return &Expirer{journal: j, clock: clock, pause: pause, most: most, jobs: jobs.NewGroup(nil), wake: make(chan struct{}, 1)}
}

// Start loads the queue and starts the jobs. Call Close to stop.
func (x *Expirer) Start() error {
	watcher, err := x.loadQueue(x.jobs.Context())
	if err != nil {
		return err
	}
	x.jobs.Start("queue expiries", func(ctx context.Context) error { return x.followLog(ctx, watcher) })
	x.jobs.Start("expire messages", x.run)
	return nil
}

// Close stops the jobs and waits for them.
func (x *Expirer) Close() { x.jobs.Stop() }

// Queued returns the number of queued messages.
func (x *Expirer) Queued() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.queue.Len()
}

// loadQueue fills the queue from the store and starts a watcher at the same position.
func (x *Expirer) loadQueue(ctx context.Context) (*kg.Watcher, error) {
	x.mu.Lock()
	x.queue, x.truncated = btree.NewBTreeG(queuedExpiry.less), false
	x.mu.Unlock()
	snapshot, err := x.journal.SystemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	pattern := kg.Pattern{Predicate: vocab.Expires}
	for st, err := range snapshot.Match(pattern) {
		if err != nil {
			return nil, err
		}
		x.addStatement(st)
	}
	view := kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true}
	return x.journal.Store.Watch(ctx, kg.Filter{Patterns: []kg.Pattern{pattern}, Ops: []kg.Op{kg.Add}, View: view}, snapshot.Position())
}

// addStatement queues the message of an expiry statement.
func (x *Expirer) addStatement(st kg.Statement) {
	at, ok := st.Object.DateTimeValue()
	id, part := channel.OfGraph(st.Graph)
	if !ok || part != channel.JournalPart && part != channel.PartitionPart {
		return
	}
	d := queuedExpiry{at.UnixMilli(), message.IDIn(st.Subject), id}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.enqueue(d)
	jobs.Wake(x.wake)
}

// enqueue adds an expiry to the queue, and drops the latest one if the queue is full.
// The caller holds x.mu.
func (x *Expirer) enqueue(d queuedExpiry) {
	if x.truncated && d.at >= x.horizon {
		return
	}
	x.queue.Set(d)
	if x.queue.Len() > x.most {
		last, _ := x.queue.PopMax()
		x.truncated, x.horizon = true, last.at
	}
}

// followLog queues newly published messages until the store is closed.
func (x *Expirer) followLog(ctx context.Context, watcher *kg.Watcher) error {
	for {
		var err error
		for e, failed := range watcher.Events() {
			if err = failed; err == nil {
				x.addStatement(e.Statement)
			}
		}
		watcher.Close()
		for err != nil {
			if ctx.Err() != nil || kg.CodeOf(err) == kg.CodeClosed || !x.waitPause(ctx) {
				return nil
			}
			watcher, err = x.loadQueue(ctx)
		}
	}
}

// run records due expiries until the store is closed.
func (x *Expirer) run(ctx context.Context) error {
	for {
		next, reload := x.nextDue()
		if reload {
			if err := x.refillQueue(ctx); kg.CodeOf(err) == kg.CodeClosed || err != nil && !x.waitPause(ctx) {
				return nil
			}
			continue
		}
		if next == nil {
			if !jobs.Wait(ctx, 0, x.wake) {
				return nil
			}
			continue
		}
		if now := x.clock(); now.UnixMilli() < next.at {
			// At most one pause: the clock may be set, and the machine may sleep.
			if !jobs.Wait(ctx, min(x.pause, time.UnixMilli(next.at).Sub(now)), x.wake) {
				return nil
			}
			continue
		}
		written, err := x.commitExpired(ctx)
		if kg.CodeOf(err) == kg.CodeClosed {
			return nil
		}
		if err == nil && written > 0 && x.hasOverdue() {
			continue // more is due than fits into one commit
		}
		if !x.waitPause(ctx) {
			return nil
		}
	}
}

// nextDue returns the message that expires next, or nil. reload reports that the queue
// must be refilled from the store.
func (x *Expirer) nextDue() (next *queuedExpiry, reload bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if d, ok := x.queue.Min(); ok {
		return &d, false
	}
	return nil, x.truncated
}

// refillQueue reads the messages that did not fit into the queue before.
func (x *Expirer) refillQueue(ctx context.Context) error {
	x.mu.Lock()
	x.truncated = false
	x.mu.Unlock()
	snapshot, err := x.journal.SystemView(ctx)
	if err == nil {
		defer snapshot.Close()
		for st, failed := range snapshot.Match(kg.Pattern{Predicate: vocab.Expires}) {
			if err = failed; err != nil {
				break
			}
			x.addStatement(st)
		}
	}
	if err != nil {
		x.mu.Lock()
		x.truncated, x.horizon = true, 0 // the queue may lack any message
		x.mu.Unlock()
	}
	return err
}

// waitPause waits for one pause. It reports false when ctx is done.
func (x *Expirer) waitPause(ctx context.Context) bool {
	return jobs.Wait(ctx, x.pause, nil)
}

// hasOverdue reports whether a message is already due.
func (x *Expirer) hasOverdue() bool {
	next, reload := x.nextDue()
	return reload || next != nil && next.at <= x.clock().UnixMilli()
}

// commitExpired records as many due expiries as one commit may hold. It returns the
// number of messages.
func (x *Expirer) commitExpired(ctx context.Context) (written int, err error) {
	now := x.clock().UnixMilli()
	var list []queuedExpiry
	x.mu.Lock()
	x.queue.Scan(func(d queuedExpiry) bool {
		if d.at <= now && len(list) < MaxExpiryChanges {
			list = append(list, d)
			return true
		}
		return false
	})
	x.mu.Unlock()
	if len(list) == 0 {
		return 0, nil
	}
	looked := 0
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "channels/expire",
		Justification: fmt.Sprintf("expired the messages that were due by %s", time.UnixMilli(list[len(list)-1].at).UTC().Format(time.RFC3339Nano))}
	err = systemgraph.Update(ctx, x.journal.Store, meta, func(tx *kg.Tx) error {
		looked = 0
		changes, size := 0, 0
		for _, d := range list {
			if tx.Time().UnixMilli() < d.at {
				return nil
			}
			m, err := message.Read(tx.MatchOwn, d.channel, d.message)
			if err != nil {
				return err
			}
			if m != nil {
				changes += 8 + len(m.Tags)
				size += m.Size()
				if looked > 0 && (changes > MaxExpiryChanges || size > MaxExpiryBytes) {
					return nil
				}
				if err := m.ExpireIfDue(tx); err != nil {
					return err
				}
			}
			looked++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, d := range list[:looked] {
		x.queue.Delete(d)
	}
	return looked, nil
}
