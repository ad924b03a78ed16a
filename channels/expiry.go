package channels

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"koine/channels/channel"
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
	expiryPause      = time.Second // between two checks of the clock
	maxExpiryChanges = 4000        // per commit
	maxExpiryBytes   = 4 << 20     // of removed content per commit
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

// messageExpirer records the expiry of messages. It follows the log, so it sees every
// message regardless of its publisher. All of its state is derived from the store, so
// it resumes after a restart.
type messageExpirer struct {
	service *Service
	jobs    *jobs.Group
	wake    chan struct{}

	mu    sync.Mutex // guards the following
	queue *btree.BTreeG[queuedExpiry]
	// If truncated, the queue lacks the messages that expire at horizon or later.
	truncated bool
	horizon   int64
}

// startExpiry loads the queue and starts the jobs.
func (s *Service) startExpiry() error {
	x := &messageExpirer{service: s, jobs: jobs.NewGroup(nil), wake: make(chan struct{}, 1)}
	watcher, err := x.loadQueue(x.jobs.Context())
	if err != nil {
		return err
	}
	s.expiry = x
	x.jobs.Start("queue expiries", func(ctx context.Context) error { return x.followLog(ctx, watcher) })
	x.jobs.Start("expire messages", x.run)
	return nil
}

// loadQueue fills the queue from the store and starts a watcher at the same position.
func (x *messageExpirer) loadQueue(ctx context.Context) (*kg.Watcher, error) {
	x.mu.Lock()
	x.queue, x.truncated = btree.NewBTreeG(queuedExpiry.less), false
	x.mu.Unlock()
	snapshot, err := x.service.systemView(ctx)
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
	return x.service.store.Watch(ctx, kg.Filter{Patterns: []kg.Pattern{pattern}, Ops: []kg.Op{kg.Add}, View: view}, snapshot.Position())
}

// addStatement queues the message of an expiry statement.
func (x *messageExpirer) addStatement(st kg.Statement) {
	at, ok := st.Object.DateTimeValue()
	id, part := channel.OfGraph(st.Graph)
	if !ok || part != channel.JournalPart && part != channel.PartitionPart {
		return
	}
	d := queuedExpiry{at.UnixMilli(), message.IDIn(st.Subject), id}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.enqueue(d)
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// enqueue adds an expiry to the queue, and drops the latest one if the queue is full.
// The caller holds x.mu.
func (x *messageExpirer) enqueue(d queuedExpiry) {
	if x.truncated && d.at >= x.horizon {
		return
	}
	x.queue.Set(d)
	if x.queue.Len() > x.service.options.MaxQueuedExpiries {
		last, _ := x.queue.PopMax()
		x.truncated, x.horizon = true, last.at
	}
}

// followLog queues newly published messages until the store is closed.
func (x *messageExpirer) followLog(ctx context.Context, watcher *kg.Watcher) error {
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
func (x *messageExpirer) run(ctx context.Context) error {
	for {
		next, reload := x.nextDue()
		if reload {
			if err := x.refillQueue(ctx); kg.CodeOf(err) == kg.CodeClosed || err != nil && !x.waitPause(ctx) {
				return nil
			}
			continue
		}
		if next == nil {
			if !waitOrWake(ctx, 0, x.wake) {
				return nil
			}
			continue
		}
		if now := x.service.options.Clock(); now.UnixMilli() < next.at {
			// At most one pause: the clock may be set, and the machine may sleep.
			if !waitOrWake(ctx, min(x.service.options.pause, time.UnixMilli(next.at).Sub(now)), x.wake) {
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
func (x *messageExpirer) nextDue() (next *queuedExpiry, reload bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if d, ok := x.queue.Min(); ok {
		return &d, false
	}
	return nil, x.truncated
}

// refillQueue reads the messages that did not fit into the queue before.
func (x *messageExpirer) refillQueue(ctx context.Context) error {
	x.mu.Lock()
	x.truncated = false
	x.mu.Unlock()
	snapshot, err := x.service.systemView(ctx)
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
func (x *messageExpirer) waitPause(ctx context.Context) bool {
	return waitOrWake(ctx, x.service.options.pause, nil)
}

// hasOverdue reports whether a message is already due.
func (x *messageExpirer) hasOverdue() bool {
	next, reload := x.nextDue()
	return reload || next != nil && next.at <= x.service.options.Clock().UnixMilli()
}

// commitExpired records as many due expiries as one commit may hold. It returns the
// number of messages.
func (x *messageExpirer) commitExpired(ctx context.Context) (written int, err error) {
	now := x.service.options.Clock().UnixMilli()
	var list []queuedExpiry
	x.mu.Lock()
	x.queue.Scan(func(d queuedExpiry) bool {
		if d.at <= now && len(list) < maxExpiryChanges {
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
	err = systemgraph.Update(ctx, x.service.store, meta, func(tx *kg.Tx) error {
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
				if looked > 0 && (changes > maxExpiryChanges || size > maxExpiryBytes) {
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
