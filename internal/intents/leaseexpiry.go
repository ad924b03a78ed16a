package intents

import (
	"context"
	"fmt"
	"time"

	"koine/channels/scope"
	"koine/internal/jobs"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Bounds of the commits that record the expiry of leases.
const (
	expiryPause = time.Second // between two checks of the clock
	// maxDueIntents bounds the intents that one round looks at, maxExpiries the leases of its
	// commits: a commit takes on intents until it has looked at so many leases.
	maxDueIntents = 100
	maxExpiries   = MaxLeases
)

var leaseExpires = systemgraph.Property("leaseExpiresAt")

// leaseExpirer releases leases that have expired. Nobody can use a lease from the time of its
// expiry; the commit made here tells of it. The queue has one deadline for each intent, not
// later than the first expiry of its leases. It is derived from the store.
type leaseExpirer struct {
	*jobs.Deadlines[scope.ID]
	store *kg.Store
	clock func() time.Time
	stop  func()
}

func newLeaseExpirer(store *kg.Store, clock func() time.Time, pause time.Duration) *leaseExpirer {
	return &leaseExpirer{Deadlines: jobs.NewDeadlines[scope.ID](clock, pause), store: store, clock: clock, stop: func() {}}
}

// start loads the queue, and starts the job that releases expired leases.
func (x *leaseExpirer) start(ctx context.Context, g *jobs.Group) error {
	x.stop = x.store.Observe(x.follow)
	snapshot, err := x.store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		return err
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(kg.Pattern{Predicate: leaseExpires}) {
		if err != nil {
			return err
		}
		x.schedule(st.Quad)
	}
	g.Start("expire leases", func(ctx context.Context) error { return x.Run(ctx, maxDueIntents, x.releaseExpired) })
	return nil
}

// follow schedules the leases that a commit writes.
func (x *leaseExpirer) follow(c *kg.Commit) {
	for i := range c.Changes {
		if ch := &c.Changes[i]; len(ch.After) > 0 && ch.Quad.Predicate == leaseExpires {
			x.schedule(ch.Quad)
		}
	}
}

// schedule makes the intent due when the lease of the statement expires, if it is not due before.
func (x *leaseExpirer) schedule(q kg.Quad) {
	id, _ := scope.OfGraph(q.Graph)
	if at, ok := q.Object.DateTimeValue(); ok && id != "" && q.Graph == id.PartGraph(leasesPart) {
		x.ScheduleBy(id, at)
	}
}

// releaseExpired releases the expired leases of the intents, and reschedules the others.
func (x *leaseExpirer) releaseExpired(ctx context.Context, due []scope.ID) error {
	for _, id := range due { // before the leases are read, so that a renewal schedules them again
		x.Schedule(id, time.Time{})
	}
	for len(due) > 0 {
		n, err := x.commitExpiries(ctx, due)
		if err != nil {
			for _, id := range due {
				x.ScheduleBy(id, x.clock())
			}
			return err
		}
		due = due[n:]
	}
	return nil
}

// commitExpiries releases the expired leases of some intents in one commit, and reports how many
// intents these are. Whether a lease has expired is decided by the time of the commit.
func (x *leaseExpirer) commitExpiries(ctx context.Context, due []scope.ID) (n int, err error) {
	var later []Lease
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "leases/expire", Justification: fmt.Sprintf("leases in up to %d intents have expired", len(due))}
	err = systemgraph.Update(ctx, x.store, meta, func(tx *kg.Tx) error {
		n, later = 0, later[:0]
		for looked := 0; n < len(due) && looked < maxExpiries; n++ {
			leases, err := readLeases(tx.MatchOwn, due[n])
			if err != nil {
				return err
			}
			looked += len(leases)
			sc, err := systemgraph.Read(tx.MatchOwn, due[n].RecordGraph(), due[n].Entity())
			if err != nil {
				return err
			}
			ended := sc.Text("scopeStatus") != string(scope.Active)
			for i := range leases {
				l := &leases[i]
				switch {
				case !l.IsExpired(tx.Time()):
					later = append(later, *l)
				case ended: // it ended with the intent
					err = l.remove(tx)
				default:
					err = release(tx, l, kg.System)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for i := range later {
		x.ScheduleBy(later[i].Intent, later[i].ExpiresAt)
	}
	return n, nil
}
