package counting

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/journal"
	"koine/channels/internal/vocab"
	"koine/internal/jobs"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Messages are counted in the background, in batches of Options.CountBatch, so that
// counting adds no cost to publishing. Counts reads the messages that are not counted
// yet. Limits of the commits that store the counts:
const (
	CountPause   = time.Second // between two commits
	MaxUncounted = 20          // times CountBatch: the maximum of messages in one commit, and of uncounted messages that Counts reads
	maxTallies   = 1000        // tallies changed by one commit
)

// Counter counts messages in the background. Its state is in the store: after a
// restart it scans for channels with enough uncounted messages.
type Counter struct {
	table   *access.Table
	journal *journal.Journal
	batch   int // Options.CountBatch
	wake    chan struct{}

	mu  sync.Mutex // guards the following
	due map[channel.ID]bool
}

func NewCounter(table *access.Table, j *journal.Journal, batch int) *Counter {
	return &Counter{table: table, journal: j, batch: batch, wake: make(chan struct{}, 1), due: map[channel.ID]bool{}}
}

// NotePublished is called after a message with this sequence was published.
func (c *Counter) NotePublished(id channel.ID, sequence int64) {
	if sequence%int64(c.batch) == 0 {
		c.Enqueue(id)
	}
}

// Enqueue schedules the channel for counting. It does not block.
func (c *Counter) Enqueue(id channel.ID) {
	c.mu.Lock()
	c.due[id] = true
	c.mu.Unlock()
	jobs.Wake(c.wake)
}

// Run counts due messages until ctx is done or the store is closed. After an error it
// scans the store again.
func (c *Counter) Run(ctx context.Context) error {
	behind := c.scanUncounted(ctx)
	for {
		if behind == nil {
			behind = c.countBatch(ctx)
		}
		if ctx.Err() != nil || kg.CodeOf(behind) == kg.CodeClosed {
			return nil
		}
		jobs.Wait(ctx, CountPause, nil)
		if behind != nil {
			behind = c.scanUncounted(ctx)
			continue
		}
		if c.hasDue() {
			continue
		}
		jobs.Wait(ctx, 0, c.wake)
	}
}

func (c *Counter) hasDue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.due) > 0
}

// scanUncounted enqueues the channels that have at least CountBatch uncounted messages.
func (c *Counter) scanUncounted(ctx context.Context) error {
	snapshot, err := c.journal.SystemView(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	c.table.EachChannel(func(id channel.ID) bool {
		var head, counted int64
		if head, err = journal.Count(snapshot, id); err == nil && head >= int64(c.batch) {
			if counted, err = CountedUpTo(snapshot.Match, id); err == nil && head-counted >= int64(c.batch) {
				c.Enqueue(id)
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
	tally    Tally
}

// countBatch counts as many due messages as one commit may hold and stores the result.
func (c *Counter) countBatch(ctx context.Context) error {
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
	return systemgraph.Update(ctx, c.journal.Store, meta, func(tx *kg.Tx) error {
		for i := range batch {
			of := &batch[i]
			before, err := CountedUpTo(tx.MatchOwn, of.id)
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
func (c *Counter) gatherBatch(ctx context.Context, due []channel.ID) (batch []countedRange, messages int64, err error) {
	snapshot, err := c.journal.SystemView(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer snapshot.Close()
	every, tallies := int64(c.batch), 0
	for _, id := range due {
		left := every*MaxUncounted - messages
		if left <= 0 || tallies >= maxTallies || ctx.Err() != nil {
			break
		}
		before, err := CountedUpTo(snapshot.Match, id)
		if err != nil {
			return nil, 0, err
		}
		head, err := journal.Count(snapshot, id)
		if err != nil {
			return nil, 0, err
		}
		of := countedRange{id: id, from: before + 1, tally: Tally{}}
		if e := c.table.Get(id); e != nil && !e.Deleted {
			of.to, err = of.tally.CountFrom(snapshot, id, of.from, left, func(t Tally) bool { return tallies+len(t) >= maxTallies })
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
