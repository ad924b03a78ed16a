package policy

import (
	"sync"

	"koine/kg"
)

// LimitGraphs is the Limit of the error that says that a principal has created as
// many graphs as it may.
const LimitGraphs = "graphs"

// makers counts who created how many of the graphs that have a policy, deleted
// ones included. It follows the table, so the committer finds it exact.
type makers struct {
	mu   sync.Mutex // guards what follows
	made map[kg.AgentID]int
}

// note takes in that a graph's policy became another; nil is none.
func (m *makers) note(before, after *ready) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before != nil && before.Maker != "" {
		if m.made[before.Maker]--; m.made[before.Maker] == 0 {
			delete(m.made, before.Maker)
		}
	}
	if after != nil && after.Maker != "" {
		if m.made == nil {
			m.made = map[kg.AgentID]int{}
		}
		m.made[after.Maker]++
	}
}

func (m *makers) of(agent kg.AgentID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.made[agent]
}

// Made is how many graphs the principal has created, deleted ones included.
func (ps *Policies) Made(agent kg.AgentID) int { return ps.makers.of(kg.CanonicalAgent(string(agent))) }

// mayMake refuses one more graph of who has created as many as it may. What is in
// this process, or works on the data directory, is not bounded.
func (g *Graphs) mayMake(who *kg.Principal) error {
	most, made := g.options.MaxMade, g.makers.of(who.ID)
	if most <= 0 || made < most || who.Trusted() {
		return nil
	}
	e := kg.Errorf(kg.CodeLimitExceeded, "you have created %d graphs, and may create %d", made, most)
	e.Limit = LimitGraphs
	e.Hint = "use one that is there, or ask the operator for a higher limit; deleted graphs count, because what is left of them is kept; who made one may make it again"
	return e
}
