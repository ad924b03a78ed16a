package policy

import (
	"sync"

	"koine/kg"
)

// LimitGraphs is the Limit of the error for a principal that has created too many
// graphs.
const LimitGraphs = "graphs"

// creatorCounts counts the graphs with a policy by creator, including deleted ones. It
// is updated with the table, so the committer sees exact numbers.
type creatorCounts struct {
	mu     sync.Mutex // guards the following
	counts map[kg.AgentID]int
}

// applyChange records that the policy of a graph changed; nil is no policy.
func (m *creatorCounts) applyChange(before, after *compiledPolicy) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before != nil && before.Creator != "" {
		if m.counts[before.Creator]--; m.counts[before.Creator] == 0 {
			delete(m.counts, before.Creator)
		}
	}
	if after != nil && after.Creator != "" {
		if m.counts == nil {
			m.counts = map[kg.AgentID]int{}
		}
		m.counts[after.Creator]++
	}
}

func (m *creatorCounts) countFor(agent kg.AgentID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[agent]
}

// CreatedCount returns the number of graphs that the principal has created, including
// deleted ones.
func (ps *Policies) CreatedCount(agent kg.AgentID) int {
	return ps.creators.countFor(kg.CanonicalAgent(string(agent)))
}

// checkQuota returns an error if the principal has created the maximum number of
// graphs. Callers in the process and with access to the data directory have no limit.
func (g *Graphs) checkQuota(principal *kg.Principal) error {
	limit, created := g.options.MaxGraphs, g.creators.countFor(principal.ID)
	if limit <= 0 || created < limit || principal.Trusted() {
		return nil
	}
	e := kg.Errorf(kg.CodeLimitExceeded, "caller has created %d graphs; the limit is %d", created, limit)
	e.Limit = LimitGraphs
	e.Hint = "use an existing graph, create a deleted one again, or ask the operator for a higher limit; deleted graphs count, because their tombstones are kept"
	return e
}
