package demo

import (
	"context"

	"koine/internal/policy"
	"koine/internal/systemgraph"
	"koine/kg"
)

// graphs are the named graphs, each with its owner.
var graphs = []struct {
	name  kg.Term
	owner kg.AgentID
}{
	{labIRI("literature"), bruno},
	{labIRI("measurements"), chen},
}

// Publish makes the named graphs readable for every authenticated agent and gives each
// to its owner. A graph keeps an existing policy, and an empty graph gets none.
// policies must be those of the store.
func Publish(ctx context.Context, store *kg.Store, policies *policy.Policies) error {
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Justification: "The demo is for everybody to read"}
	_, err := store.Update(ctx, meta, func(tx *kg.Tx) error {
		for _, g := range graphs {
			if _, stored := policies.PolicyOf(g.name); stored {
				continue
			}
			_, held, err := systemgraph.First(tx.Match, kg.Pattern{Graph: g.name})
			if err != nil {
				return err
			}
			if !held {
				continue
			}
			if err := policy.Write(tx, policy.Policy{Graph: g.name, Public: true, Owners: []policy.Grantee{policy.Agent(g.owner)}}); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
