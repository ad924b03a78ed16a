package channels

import "koine/kg"

// accessChange is a change of a channel or scope, or of the server-wide restrictions of
// an agent, that may affect access.
type accessChange struct {
	agent         kg.AgentID // set for a server-wide restriction
	before, after accessView
}

// accessView is an object with read access.
type accessView interface {
	readBy(kg.Principal) bool
}

// affects reports whether the change affects what the principal may read.
func (c *accessChange) affects(p kg.Principal) bool {
	if p.Trusted() { // reads everything
		return false
	}
	if c.agent != "" {
		return c.agent == p.ID
	}
	return c.before.readBy(p) != c.after.readBy(p)
}
