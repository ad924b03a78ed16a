package channels

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"koine/internal/records"
	"koine/kg"
)

// A channel that expires after its last message is closed by itself in what is
// decided and shown (Channel.due), and then, by a commit that says when it was due,
// in what is stored. maxLapses bounds the channels that one commit closes.
const maxIdleCloses = 200

// idleDeadline is a channel that may be due at a time, or later.
type idleDeadline struct {
	at      int64 // in milliseconds since the epoch
	channel ChannelID
}

// idleQueue writes down which channels have expired. A channel is in the queue from
// when it is known to expire on; when its message was last is looked up once it is
// due by what was known, so that publishing costs nothing. All that it knows comes
// from the channels' records, so that after a stop it goes on where it was.
type idleQueue struct {
	wake chan struct{}
	done sync.WaitGroup
	stop context.CancelFunc

	mu        sync.Mutex // guards what follows
	queue     *btree.BTreeG[idleDeadline]
	deadlines map[ChannelID]int64 // where a channel is in the queue
}

func newIdleQueue() *idleQueue {
	return &idleQueue{
		wake: make(chan struct{}, 1), stop: func() {}, deadlines: map[ChannelID]int64{},
		queue: btree.NewBTreeG(func(a, b idleDeadline) bool {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.channel, b.channel)) < 0
		}),
	}
}

// schedule makes known when a channel may be due; the zero time takes it out. It does not
// block.
func (l *idleQueue) schedule(id ChannelID, at time.Time) {
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
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// dueChannels gives up to n channels that may be due, and when the next is: 0 for none.
func (l *idleQueue) dueChannels(now int64, n int) (list []ChannelID, next int64) {
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

// startIdleCloser begins to close what has expired, until closeLapses.
func (s *Service) startIdleCloser() {
	ctx, cancel := context.WithCancel(context.Background())
	s.table.idle.stop = cancel
	s.table.idle.done.Go(func() { s.runIdleCloser(ctx) })
}

func (l *idleQueue) close() {
	l.stop()
	l.done.Wait()
}

func (s *Service) runIdleCloser(ctx context.Context) {
	var before []ChannelID
	for {
		pause := time.Duration(0) // until something comes
		list, next := s.table.idle.dueChannels(s.options.Clock().UnixMilli(), maxIdleCloses)
		switch {
		case len(list) > 0:
			err := s.closeIdle(ctx, list)
			if kg.CodeOf(err) == kg.CodeClosed {
				return
			}
			if err == nil && len(list) == maxIdleCloses && !slices.Equal(list, before) {
				before = list
				continue // there may be more than one commit may close
			}
			pause = s.options.pause
		case next > 0: // not for longer than a pause: clocks are set, and machines sleep
			pause = min(s.options.pause, max(time.Millisecond, time.UnixMilli(next).Sub(s.options.Clock())))
		}
		wake := s.table.idle.wake
		if len(list) > 0 {
			wake = nil
		}
		if !waitOrWake(ctx, pause, wake) {
			return
		}
	}
}

// closeIdle closes those of the channels that are due, in one commit, and notes when the
// others are.
func (s *Service) closeIdle(ctx context.Context, list []ChannelID) error {
	later := map[ChannelID]time.Time{} // the zero time for what is due no more
	now := s.options.Clock()
	var due []ChannelID
	look := func(tx *kg.Tx, last func(ChannelID) (time.Time, error)) error {
		clear(later)
		due = due[:0]
		for _, id := range list {
			e := s.table.get(id)
			if e == nil || e.deleted || e.closesAt(time.Time{}).IsZero() {
				later[id] = time.Time{}
				continue
			}
			sent, err := last(id)
			if err != nil {
				return err
			}
			at := e.closesAt(sent)
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
	// Most are due later, because there were messages: no commit for these.
	if err := s.viewLastMessages(ctx, look); err != nil {
		return err
	}
	if len(due) > 0 {
		meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "channels/expire", Justification: fmt.Sprintf("%d channels had no message for as long as they stay open", len(due))}
		err := records.Update(ctx, s.store, meta, func(tx *kg.Tx) error {
			if err := look(tx, func(id ChannelID) (time.Time, error) { return lastMessageTimeTx(tx, id) }); err != nil {
				return err
			}
			for _, id := range due {
				if _, err := s.changeChannel(tx, id, s.endExpired); err != nil {
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
		s.table.idle.schedule(id, at)
	}
	return nil // those that were closed left the queue with their record
}

// viewLastMessages reads when the channels' last messages were from a snapshot.
func (s *Service) viewLastMessages(ctx context.Context, look func(*kg.Tx, func(ChannelID) (time.Time, error)) error) error {
	snapshot, err := s.systemView(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	return look(nil, func(id ChannelID) (time.Time, error) { return lastMessageTime(snapshot, id) })
}
