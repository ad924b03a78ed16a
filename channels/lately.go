package channels

import "koine/kg"

// accessChange is what became of one channel or scope that was there before, or of one
// agent in all channels.
type accessChange struct {
	agent         kg.AgentID // set where it is about one agent in all channels
	before, after accessView
}

// accessView is what somebody may or may not read.
type accessView interface {
	readBy(kg.Principal) bool
}

// affects tells whether the reader may read something else than before.
func (c *accessChange) affects(p kg.Principal) bool {
	if p.Trusted() { // reads all, whatever changes
		return false
	}
	if c.agent != "" {
		return c.agent == p.ID
	}
	return c.before.readBy(p) != c.after.readBy(p)
}
