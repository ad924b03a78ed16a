package channels

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Messages are counted in the background, in batches of Options.CountBatch, so that
// counting adds no cost to publishing. Counts reads the messages that are not counted
// yet. Limits of the commits that store the counts:
const (
	countPause   = time.Second // between two commits
	maxUncounted = 20          // times CountBatch: the maximum of messages in one commit, and of uncounted messages that Counts reads
	maxTallies   = 1000        // tallies changed by one commit
)

// messageCounter counts messages in the background. Its state is in the store: after a
// restart it scans for channels with enough uncounted messages.
type messageCounter struct {
	service *Service
	wake    chan struct{}

	mu  sync.Mutex // guards the following
	due map[channel.ID]bool
}

func newMessageCounter(s *Service) *messageCounter {
	return &messageCounter{service: s, wake: make(chan struct{}, 1), due: map[channel.ID]bool{}}
}

// notePublished is called after a message with this sequence was published.
func (c *messageCounter) notePublished(id channel.ID, sequence int64) {
	if sequence%int64(c.service.options.CountBatch) == 0 {
		c.enqueue(id)
	}
}

// enqueue schedules the channel for counting. It does not block.
func (c *messageCounter) enqueue(id channel.ID) {
	c.mu.Lock()
	c.due[id] = true
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run counts due messages until ctx is done or the store is closed. After an error it
// scans the store again.
func (c *messageCounter) run(ctx context.Context) error {
	behind := c.scanUncounted(ctx)
	for {
		if behind == nil {
			behind = c.countBatch(ctx)
		}
		if ctx.Err() != nil || kg.CodeOf(behind) == kg.CodeClosed {
			return nil
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

// scanUncounted enqueues the channels that have at least CountBatch uncounted messages.
func (c *messageCounter) scanUncounted(ctx context.Context) error {
	snapshot, err := c.service.systemView(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	c.service.table.EachChannel(func(id channel.ID) bool {
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

// countedRange is the tally of a range of messages of one channel.
type countedRange struct {
	id       channel.ID
	from, to int64
	tally    tally
}

// countBatch counts as many due messages as one commit may hold and stores the result.
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
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "channels/count", Justification: fmt.Sprintf("counted %d messages", messages)}
	return systemgraph.Update(ctx, c.service.store, meta, func(tx *kg.Tx) error {
		for i := range batch {
			of := &batch[i]
			before, err := countedUpTo(tx.MatchOwn, of.id)
			if err != nil {
				return err
			}
			if before != of.from-1 {
				return kg.Errorf(kg.CodeInternal, "messages of a channel are counted up to sequence %d, expected %d", before, of.from-1)
			}
			if err := of.tally.writeTo(tx, of.id); err != nil {
				return err
			}
			q := kg.Quad{Subject: of.id.Entity(), Predicate: vocab.CountedUpTo, Object: kg.Integer(of.to), Graph: of.id.ReceiptsGraph()}
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Replace, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
}

// gatherBatch counts messages of the due channels up to the limits of one commit, and
// removes the channels that are complete from c.due.
func (c *messageCounter) gatherBatch(ctx context.Context, due []channel.ID) (batch []countedRange, messages int64, err error) {
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
		if e := c.service.table.Get(id); e != nil && !e.Deleted {
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
