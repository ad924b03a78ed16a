package demo

import (
	"context"

	"koine/internal/policy"
	"koine/kg"
)

// graphs are the named graphs, each with the agent that fills it.
var graphs = []struct {
	name  kg.Term
	owner kg.AgentID
}{
	{lab("literature"), bruno},
	{lab("measurements"), chen},
}

// Publish lets everybody who is let in read the named graphs, and gives each to the
// agent that fills it. A graph that has a policy already keeps it, and one that holds
// nothing gets none. policies must be those of the store.
func Publish(ctx context.Context, store *kg.Store, policies *policy.Policies) error {
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Justification: "The demo is for everybody to read"}
	_, err := store.Update(ctx, meta, func(tx *kg.Tx) error {
		for _, g := range graphs {
			if _, stored := policies.PolicyOf(g.name); stored {
				continue
			}
			held, err := holds(tx, g.name)
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

func holds(tx *kg.Tx, graph kg.Term) (bool, error) {
	for _, err := range tx.Match(kg.Pattern{Graph: graph}) {
		return err == nil, err
	}
	return false, nil
}
