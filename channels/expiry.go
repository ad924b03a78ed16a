package channels

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"koine/internal/records"
	"koine/kg"
)

// Messages expire by themselves in what is shown (Message.show), and then, by a
// commit that says when they were due, in what is stored, so that every replay
// agrees. Bounds of these commits:
const (
	expiryPause      = time.Second // between two looks at the clock
	maxExpiryChanges = 4000        // of one
	maxExpiryBytes   = 4 << 20     // of content that one takes away
)

// queuedExpiry is a message that expires.
type queuedExpiry struct {
	at      int64 // in milliseconds since the epoch
	message MessageID
	channel ChannelID
}

func (d queuedExpiry) less(other queuedExpiry) bool {
	return cmp.Or(cmp.Compare(d.at, other.at), cmp.Compare(d.message, other.message)) < 0
}

// messageExpirer writes down what has expired. It follows the log, so that it knows of every
// message whoever publishes it; what it is about stands in the store, so that after
// a stop it goes on where it was.
type messageExpirer struct {
	service *Service
	cancel  context.CancelFunc
	done    sync.WaitGroup
	wake    chan struct{}

	mu    sync.Mutex // guards what follows
	queue *btree.BTreeG[queuedExpiry]
	// Where left, those that are due from horizon on are not in the queue.
	truncated bool
	horizon   int64
}

// startExpiry reads what is due, and begins.
func (s *Service) startExpiry() error {
	ctx, cancel := context.WithCancel(context.Background())
	x := &messageExpirer{service: s, cancel: cancel, wake: make(chan struct{}, 1)}
	watcher, err := x.loadQueue(ctx)
	if err != nil {
		cancel()
		return err
	}
	s.expiry = x
	x.done.Go(func() { x.followLog(ctx, watcher) })
	x.done.Go(func() { x.run(ctx) })
	return nil
}

// close ends it, and waits.
func (x *messageExpirer) close() {
	x.cancel()
	x.done.Wait()
}

// loadQueue fills the queue from what stands, and watches what comes behind it.
func (x *messageExpirer) loadQueue(ctx context.Context) (*kg.Watcher, error) {
	x.mu.Lock()
	x.queue, x.truncated = btree.NewBTreeG(queuedExpiry.less), false
	x.mu.Unlock()
	snapshot, err := x.service.systemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	pattern := kg.Pattern{Predicate: propExpires}
	for st, err := range snapshot.Match(pattern) {
		if err != nil {
			return nil, err
		}
		x.addStatement(st)
	}
	view := kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true}
	return x.service.store.Watch(ctx, kg.Filter{Patterns: []kg.Pattern{pattern}, Ops: []kg.Op{kg.Add}, View: view}, snapshot.Position())
}

// addStatement takes in that a message expires.
func (x *messageExpirer) addStatement(st kg.Statement) {
	at, ok := st.Object.DateTimeValue()
	channel, part := channelOfGraph(st.Graph)
	if !ok || part != journalPart && part != partitionPart {
		return
	}
	d := queuedExpiry{at.UnixMilli(), messageIDIn(st.Subject), channel}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.enqueue(d)
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

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

// followLog takes in what is published, until the store is closed.
func (x *messageExpirer) followLog(ctx context.Context, watcher *kg.Watcher) {
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
				return
			}
			watcher, err = x.loadQueue(ctx)
		}
	}
}

// run writes down what is due, until the store is closed.
func (x *messageExpirer) run(ctx context.Context) {
	for {
		next, reload := x.nextDue()
		if reload {
			if err := x.refillQueue(ctx); kg.CodeOf(err) == kg.CodeClosed || err != nil && !x.waitPause(ctx) {
				return
			}
			continue
		}
		if next == nil {
			if !waitOrWake(ctx, 0, x.wake) {
				return
			}
			continue
		}
		if now := x.service.options.Clock(); now.UnixMilli() < next.at {
			// Not for longer: clocks are set, and machines sleep.
			if !waitOrWake(ctx, min(x.service.options.pause, time.UnixMilli(next.at).Sub(now)), x.wake) {
				return
			}
			continue
		}
		written, err := x.commitExpired(ctx)
		if kg.CodeOf(err) == kg.CodeClosed {
			return
		}
		if err == nil && written > 0 && x.hasOverdue() {
			continue // more than one commit may
		}
		if !x.waitPause(ctx) {
			return
		}
	}
}

// nextDue is what is due next, nil for nothing; reload tells that the queue has to be
// filled from the store.
func (x *messageExpirer) nextDue() (next *queuedExpiry, reload bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if d, ok := x.queue.Min(); ok {
		return &d, false
	}
	return nil, x.truncated
}

// refillQueue reads those that found no place before.
func (x *messageExpirer) refillQueue(ctx context.Context) error {
	x.mu.Lock()
	x.truncated = false
	x.mu.Unlock()
	snapshot, err := x.service.systemView(ctx)
	if err == nil {
		defer snapshot.Close()
		for st, failed := range snapshot.Match(kg.Pattern{Predicate: propExpires}) {
			if err = failed; err != nil {
				break
			}
			x.addStatement(st)
		}
	}
	if err != nil {
		x.mu.Lock()
		x.truncated, x.horizon = true, 0 // none is in the queue for sure
		x.mu.Unlock()
	}
	return err
}

// waitPause lets a pause go by; false when it is time to end.
func (x *messageExpirer) waitPause(ctx context.Context) bool {
	return waitOrWake(ctx, x.service.options.pause, nil)
}

// hasOverdue tells whether something is due already.
func (x *messageExpirer) hasOverdue() bool {
	next, reload := x.nextDue()
	return reload || next != nil && next.at <= x.service.options.Clock().UnixMilli()
}

// commitExpired writes down the expiry of what is due, as much as one commit may, and tells
// of how many messages that was.
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
		Justification: fmt.Sprintf("messages expired that were due by %s", time.UnixMilli(list[len(list)-1].at).UTC().Format(time.RFC3339Nano))}
	err = records.Update(ctx, x.service.store, meta, func(tx *kg.Tx) error {
		looked = 0
		changes, size := 0, 0
		for _, d := range list {
			if tx.Time().UnixMilli() < d.at {
				return nil
			}
			m, err := readMessage(tx.MatchOwn, d.channel, d.message)
			if err != nil {
				return err
			}
			if m != nil {
				changes += 8 + len(m.Tags)
				size += m.size()
				if looked > 0 && (changes > maxExpiryChanges || size > maxExpiryBytes) {
					return nil
				}
				if err := m.expireIfDue(tx); err != nil {
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

// expireIfDue takes the content of a message away whose time has come, and says when
// that was. What was answered, or taken back, stays as it is.
func (m *Message) expireIfDue(tx *kg.Tx) error {
	if !m.hasExpired(tx.Time()) || m.Withheld != "" {
		return nil
	}
	return m.expireAt(tx, m.ExpiresAt)
}

// expireAt takes the content of the message away, and says that it expired then.
func (m *Message) expireAt(tx *kg.Tx, at time.Time) error {
	if err := removePayload(tx, m.Channel, m.ID); err != nil {
		return err
	}
	q := kg.Quad{Subject: m.ID.Entity(), Predicate: propExpires, Object: kg.DateTime(m.ExpiresAt), Graph: m.contentGraph()}
	if !m.ExpiresAt.IsZero() {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
			return err
		}
	}
	q.Predicate, q.Object = propExpired, kg.DateTime(at)
	return tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q})
}
