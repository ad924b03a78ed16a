package channels

import "koine/kg"

// reads tells whether the agent may read the channel.
func (e *entry) reads(agent kg.AgentID) bool {
	return e != nil && !e.deleted && (e.Visibility == Public || e.roles[agent] != "")
}

// hears tells whether a message in the channel may be addressed to the agent.
func (e *entry) hears(agent kg.AgentID) bool { return e.reads(agent) && e.roles[agent] != "" }

// posts tells whether the agent may publish.
func (e *entry) posts(agent kg.AgentID) bool { return e != nil && !e.deleted && e.roles[agent] != "" }
