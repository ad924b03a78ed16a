package channels

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"koine/internal/records"
	"koine/kg"
)

// Messages are counted by koine itself behind their publication, many at a time
// (Options.CountEvery), so that to publish costs nothing for it; what is not counted
// yet is read when somebody asks. Bounds of the commits that write counts down:
const (
	countPause   = time.Second // between two
	maxUncounted = 20          // times CountEvery: messages of one commit, and that are read when somebody asks
	maxTallies   = 1000        // that one commit changes
)

// messageCounter counts messages. What it knows is in the store: after a stop it looks
// which channels have so many messages that are not counted.
type messageCounter struct {
	service *Service
	stop    context.CancelFunc
	done    sync.WaitGroup
	wake    chan struct{}

	mu  sync.Mutex // guards what follows
	due map[ChannelID]bool
}

func newMessageCounter(s *Service) *messageCounter {
	return &messageCounter{service: s, stop: func() {}, wake: make(chan struct{}, 1), due: map[ChannelID]bool{}}
}

// start begins to count, until close.
func (c *messageCounter) start() {
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.done.Go(func() { c.run(ctx) })
}

func (c *messageCounter) close() {
	c.stop()
	c.done.Wait()
}

// notePublished notes that a channel has a message with this number.
func (c *messageCounter) notePublished(id ChannelID, sequence int64) {
	if sequence%int64(c.service.options.CountBatch) == 0 {
		c.enqueue(id)
	}
}

// enqueue lets the messages of a channel be counted. It does not block.
func (c *messageCounter) enqueue(id ChannelID) {
	c.mu.Lock()
	c.due[id] = true
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *messageCounter) run(ctx context.Context) {
	behind := c.scanUncounted(ctx)
	for {
		if behind == nil {
			behind = c.countBatch(ctx)
		}
		if ctx.Err() != nil || kg.CodeOf(behind) == kg.CodeClosed {
			return
		}
		waitOrWake(ctx, countPause, nil)
		if behind != nil {
			behind = c.scanUncounted(ctx)
			continue
		}
		if c.hasDue() {
			continue
		}
		waitOrWake(ctx, 0, c.wake)
	}
}

func (c *messageCounter) hasDue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.due) > 0
}

// scanUncounted finds the channels in which so many messages are not counted.
func (c *messageCounter) scanUncounted(ctx context.Context) error {
	snapshot, err := c.service.systemView(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	c.service.table.entries.Range(func(key, _ any) bool {
		id := key.(ChannelID)
		var head, counted int64
		if head, err = countMessages(snapshot, id); err == nil && head >= int64(c.service.options.CountBatch) {
			if counted, err = countedUpTo(snapshot.Match, id); err == nil && head-counted >= int64(c.service.options.CountBatch) {
				c.enqueue(id)
			}
		}
		return err == nil && ctx.Err() == nil
	})
	return err
}

// countedRange is what was counted of one channel.
type countedRange struct {
	id       ChannelID
	from, to int64
	tally    tally
}

// countBatch writes down what there is to be counted, as much as one commit may.
func (c *messageCounter) countBatch(ctx context.Context) error {
	c.mu.Lock()
	due := slices.Sorted(maps.Keys(c.due))
	c.mu.Unlock()
	if len(due) == 0 {
		return nil
	}
	batch, messages, err := c.gatherBatch(ctx, due)
	if err != nil || len(batch) == 0 {
		return err
	}
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "channels/count", Justification: fmt.Sprintf("%d messages were counted", messages)}
	return records.Update(ctx, c.service.store, meta, func(tx *kg.Tx) error {
		for i := range batch {
			of := &batch[i]
			before, err := countedUpTo(tx.MatchOwn, of.id)
			if err != nil {
				return err
			}
			if before != of.from-1 {
				return kg.Errorf(kg.CodeInternal, "messages of a channel are counted up to %d, not %d", before, of.from-1)
			}
			if err := of.tally.writeTo(tx, of.id); err != nil {
				return err
			}
			q := kg.Quad{Subject: of.id.Entity(), Predicate: propCountedUpTo, Object: kg.Integer(of.to), Graph: of.id.ReceiptsGraph()}
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Replace, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
}

// gatherBatch counts the messages of channels, as many as one commit may, and takes those
// that are done from what is due.
func (c *messageCounter) gatherBatch(ctx context.Context, due []ChannelID) (batch []countedRange, messages int64, err error) {
	snapshot, err := c.service.systemView(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer snapshot.Close()
	every, tallies := int64(c.service.options.CountBatch), 0
	for _, id := range due {
		left := every*maxUncounted - messages
		if left <= 0 || tallies >= maxTallies || ctx.Err() != nil {
			break
		}
		before, err := countedUpTo(snapshot.Match, id)
		if err != nil {
			return nil, 0, err
		}
		head, err := countMessages(snapshot, id)
		if err != nil {
			return nil, 0, err
		}
		of := countedRange{id: id, from: before + 1, tally: tally{}}
		if e := c.service.table.get(id); e != nil && !e.deleted {
			of.to, err = of.tally.countFrom(snapshot, id, of.from, left, func(t tally) bool { return tallies+len(t) >= maxTallies })
		}
		if err != nil {
			return nil, 0, err
		}
		if of.to > 0 {
			batch = append(batch, of)
			messages, tallies = messages+of.to-before, tallies+len(of.tally)
		}
		if of.to == 0 || head-of.to < every {
			c.mu.Lock()
			delete(c.due, id)
			c.mu.Unlock()
		}
	}
	return batch, messages, nil
}
