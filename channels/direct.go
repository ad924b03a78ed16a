package channels

import (
	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/kg"
)

// writeDirectChannel writes the record of the direct channel of two agents. It returns
// the number of statements.
func (s *Service) writeDirectChannel(tx *kg.Tx, a, b kg.AgentID) (n int, err error) {
	if s.table.ChannelCount() >= s.options.MaxChannels {
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
