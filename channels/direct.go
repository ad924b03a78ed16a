package channels

import "koine/kg"

// writeDirectChannel writes the record of the direct channel of two agents. It returns
// the number of statements.
func (s *Service) writeDirectChannel(tx *kg.Tx, a, b kg.AgentID) (n int, err error) {
	if s.table.count.Load() >= int64(s.options.MaxChannels) {
		return 0, errTooMuch("", "server has %d channels, which is the limit", s.options.MaxChannels)
	}
	for _, agent := range [...]kg.AgentID{a, b} {
		if err := tx.CheckAgent(agent); err != nil {
			return 0, kg.AsError(err).At("to")
		}
	}
	c := &Channel{
		ID: DirectID(a, b), Kind: Direct, Visibility: Private, CreatedAt: tx.Time(), CreatedBy: a, Version: 1,
		Members: []Member{{Agent: a, Role: Ordinary, Joined: tx.Time()}, {Agent: b, Role: Ordinary, Joined: tx.Time()}},
	}
	w := &writer{tx: tx, id: c.ID}
	w.writeChannel(c)
	return w.n, w.err
}

// directPeer returns the other agent of a direct channel, or "" if the server does not
// know it.
func (s *Service) directPeer(id ChannelID, agent kg.AgentID) (other kg.AgentID) {
	look := func(known kg.AgentID) bool {
		if known != agent && DirectID(agent, known) == id {
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
func (s *Service) pendingDirect(id ChannelID, agent kg.AgentID) *entry {
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
	c := Channel{ID: DirectID(a, b), Kind: Direct, Visibility: Private, Version: 1, Members: []Member{{Agent: a, Role: Ordinary}, {Agent: b, Role: Ordinary}}}
	return t.newEntry(c)
}
