package policy

import (
	"sync"

	"koine/kg"
)

// LimitGraphs is the Limit of the error that says that a principal has created as
// many graphs as it may.
const LimitGraphs = "graphs"

// creatorCounts counts who created how many of the graphs that have a policy, deleted
// ones included. It follows the table, so the committer finds it exact.
type creatorCounts struct {
	mu     sync.Mutex // guards what follows
	counts map[kg.AgentID]int
}

// applyChange takes in that a graph's policy became another; nil is none.
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

// CreatedCount is how many graphs the principal has created, deleted ones included.
func (ps *Policies) CreatedCount(agent kg.AgentID) int {
	return ps.creators.countFor(kg.CanonicalAgent(string(agent)))
}

// checkQuota refuses one more graph of who has created as many as it may. What is in
// this process, or works on the data directory, is not bounded.
func (g *Graphs) checkQuota(who *kg.Principal) error {
	most, made := g.options.MaxGraphs, g.creators.countFor(who.ID)
	if most <= 0 || made < most || who.Trusted() {
		return nil
	}
	e := kg.Errorf(kg.CodeLimitExceeded, "you have created %d graphs, and may create %d", made, most)
	e.Limit = LimitGraphs
	e.Hint = "use one that is there, or ask the operator for a higher limit; deleted graphs count, because what is left of them is kept; who made one may make it again"
	return e
}
