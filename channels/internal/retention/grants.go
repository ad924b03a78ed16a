package retention

import (
	"context"
	"fmt"
	"time"

	"koine/channels/internal/access"
	"koine/channels/scope"
	"koine/internal/jobs"
	"koine/internal/systemgraph"
	"koine/kg"
)

// maxGrantEnds bounds the scopes from which one commit removes expired grants.
const maxGrantEnds = 100

// GrantExpirer removes grants that have expired. They give no access from the time of their
// expiry; the commit that removes them ends the streams of agents that lost access.
type GrantExpirer struct {
	*jobs.Deadlines[scope.ID]
	table *access.Table
	store *kg.Store
}

// NewGrantExpirer returns an expirer, which does nothing before Start.
func NewGrantExpirer(clock func() time.Time, pause time.Duration) *GrantExpirer {
	return &GrantExpirer{Deadlines: jobs.NewDeadlines[scope.ID](clock, pause)}
}

// Start starts removing expired grants of the table's scopes, as a job of the group.
func (x *GrantExpirer) Start(g *jobs.Group, table *access.Table, store *kg.Store) {
	x.table, x.store = table, store
	g.Start("expire grants", func(ctx context.Context) error { return x.Run(ctx, maxGrantEnds, x.removeExpired) })
}

// removeExpired removes the expired grants of the scopes in one commit. Their change
// reschedules them.
func (x *GrantExpirer) removeExpired(ctx context.Context, list []scope.ID) error {
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "scopes/expire", Justification: fmt.Sprintf("grants of %d scopes have expired", len(list))}
	return systemgraph.Update(ctx, x.store, meta, func(tx *kg.Tx) error {
		for _, id := range list {
			sc := x.table.Scope(id)
			if sc == nil {
				continue
			}
			now := sc.Clone()
			for i := range sc.Grants {
				if sc.Grants[i].IsExpired(tx.Time()) {
					now.RemoveGrant(sc.Grants[i].ID)
				}
			}
			if err := now.WriteTo(tx, &sc.Scope); err != nil {
				return err
			}
		}
		return nil
	})
}
