package channels

import (
	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/kg"
)

// writeDirectChannel writes the record of the direct channel of two agents. It returns
// the number of statements.
func (s *Service) writeDirectChannel(tx *kg.Tx, a, b kg.AgentID) (n int, err error) {
	if s.table.count.Load() >= int64(s.options.MaxChannels) {
		return 0, check.TooMuch("", "server has %d channels, which is the limit", s.options.MaxChannels)
	}
	for _, agent := range [...]kg.AgentID{a, b} {
		if err := tx.CheckAgent(agent); err != nil {
			return 0, kg.AsError(err).At("to")
		}
	}
	c := &channel.Channel{
		ID: channel.DirectID(a, b), Kind: channel.Direct, Visibility: channel.Private, CreatedAt: tx.Time(), CreatedBy: a, Version: 1,
		Members: []channel.Member{{Agent: a, Role: channel.Ordinary, Joined: tx.Time()}, {Agent: b, Role: channel.Ordinary, Joined: tx.Time()}},
	}
	return channel.CreateRecord(tx, c)
}

// directPeer returns the other agent of a direct channel, or "" if the server does not
// know it.
func (s *Service) directPeer(id channel.ID, agent kg.AgentID) (other kg.AgentID) {
	look := func(known kg.AgentID) bool {
		if known != agent && channel.DirectID(agent, known) == id {
			other = known
		}
		return other == ""
	}
	if s.options.Agents(look); other == "" {
		s.table.eachMember(look)
	}
	return other
}

// pendingDirect returns the direct channel of the agent and another known agent before
// its first message, or nil if id is not such a channel.
func (s *Service) pendingDirect(id channel.ID, agent kg.AgentID) *entry {
	if !id.IsDirect() {
		return nil
	}
	other := s.directPeer(id, agent)
	if other == "" {
		return nil
	}
	return s.table.newDirectEntry(agent, other)
}

// newDirectEntry returns the direct channel of two agents before its first message.
func (t *table) newDirectEntry(a, b kg.AgentID) *entry {
	c := channel.Channel{ID: channel.DirectID(a, b), Kind: channel.Direct, Visibility: channel.Private, Version: 1, Members: []channel.Member{{Agent: a, Role: channel.Ordinary}, {Agent: b, Role: channel.Ordinary}}}
	return t.newEntry(c)
}
