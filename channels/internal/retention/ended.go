package retention

import (
	"context"
	"fmt"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/journal"
	"koine/channels/internal/vocab"
	"koine/channels/scope"
	"koine/internal/jobs"
	"koine/internal/systemgraph"
	"koine/kg"
)

const (
	// EndedPause is the time between two looks for intents that ended long enough ago.
	EndedPause = time.Minute

	maxEndedScopes    = 200 // of one look at the table
	maxEndedEvictions = 500 // of one commit
)

// EndedEvictor evicts the messages of an intent's channels, and of its tasks' channels, a
// time after the intent ended, except those of audited channels.
type EndedEvictor struct {
	keep    time.Duration
	pause   time.Duration // between two looks
	clock   func() time.Time
	table   *access.Table
	journal *journal.Journal
	done    map[scope.ID]bool // intents without messages left
}

// StartEndedEvictor starts an evictor as a job of the group. keep must be positive.
func StartEndedEvictor(g *jobs.Group, keep, pause time.Duration, clock func() time.Time, table *access.Table, j *journal.Journal) {
	x := &EndedEvictor{keep: keep, pause: pause, clock: clock, table: table, journal: j, done: map[scope.ID]bool{}}
	g.Start("evict messages of ended intents", func(ctx context.Context) error {
		for {
			err := x.evictEnded(ctx)
			if kg.CodeOf(err) == kg.CodeClosed || !jobs.Wait(ctx, x.pause, nil) {
				return nil
			}
		}
	})
}

// evictEnded evicts the messages of all intents that ended long enough ago.
func (x *EndedEvictor) evictEnded(ctx context.Context) error {
	for behind := scope.ID(""); ; {
		due := x.clock().Add(-x.keep)
		list, next := x.table.ListScopes(behind, false, maxEndedScopes, func(s *access.Scope) bool {
			return s.Parent == "" && s.Ended() && !s.EndedAt.After(due) && !x.done[s.ID]
		})
		for _, s := range list {
			for _, id := range x.table.ChannelsWithin(s.ID) {
				if err := x.evictChannel(ctx, s, id); err != nil {
					return err
				}
			}
			x.done[s.ID] = true
		}
		if behind = next; next == "" {
			return nil
		}
	}
}

// evictChannel evicts all messages of a channel unless it is audited.
func (x *EndedEvictor) evictChannel(ctx context.Context, s *access.Scope, id channel.ID) error {
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "channels/expire", Justification: fmt.Sprintf("the intent ended more than %s ago", x.keep)}
	for {
		if e := x.table.Get(id); e == nil || e.Deleted || e.Audit {
			return nil
		}
		gone, count, err := x.counts(ctx, id)
		if err != nil || gone == count {
			return err
		}
		err = systemgraph.Update(ctx, x.journal.Store, meta, func(tx *kg.Tx) error {
			if tx.Time().Before(s.EndedAt.Add(x.keep)) {
				return nil
			}
			evicted, err := tx.CountOwn(id.MessagesGraph(), vocab.Evicted)
			if err != nil {
				return err
			}
			_, err = evict(tx, id, int64(evicted)+1, min(count, int64(evicted)+maxEndedEvictions), MaxExpiryChanges)
			return err
		})
		if err != nil {
			return err
		}
	}
}

// counts returns the number of evicted messages and that of all.
func (x *EndedEvictor) counts(ctx context.Context, id channel.ID) (gone, count int64, err error) {
	snapshot, err := x.journal.SystemView(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer snapshot.Close()
	oldest, err := journal.OldestKept(snapshot, id)
	if err == nil {
		count, err = journal.Count(snapshot, id)
	}
	return oldest - 1, count, err
}
