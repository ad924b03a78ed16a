package retention

import (
	"context"
	"fmt"
	"time"

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

// IdleCloser orders channels by their idle deadlines. Publishing does not update the
// queue: when a deadline passes, the time of the last message is looked up, and the
// channel is closed or rescheduled.
type IdleCloser struct {
	*jobs.Deadlines[channel.ID]
	clock   func() time.Time
	table   *access.Table
	journal *journal.Journal
}

func NewIdleCloser(clock func() time.Time, pause time.Duration) *IdleCloser {
	return &IdleCloser{Deadlines: jobs.NewDeadlines[channel.ID](clock, pause), clock: clock}
}

// Start starts closing the idle channels of the table, as a job of the group.
func (l *IdleCloser) Start(g *jobs.Group, table *access.Table, j *journal.Journal) {
	l.table, l.journal = table, j
	g.Start("close idle channels", func(ctx context.Context) error { return l.Run(ctx, maxIdleCloses, l.closeIdle) })
}

// closeIdle closes the channels of the list that have been idle for their timeout, in one
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
