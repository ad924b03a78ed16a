package channels

import (
	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/vocab"
	"koine/channels/scope"
	"koine/kg"
)

// channelSet is the set of channels of a feed. It changes over time.
type channelSet struct {
	list func() []channel.ID // in any order
	has  func(e *access.Entry) bool
	// patterns match at least one change of every commit that adds a channel to the
	// set.
	patterns []kg.Pattern
}

// joinedChannels is the set of channels that the agent is a member of.
func (s *Service) joinedChannels(by Caller, agent kg.AgentID) channelSet {
	reader := by.ReaderPrincipal(agent)
	of := channelSet{
		list: func() []channel.ID { return s.table.ChannelsJoinedBy(agent) },
		has:  func(e *access.Entry) bool { return e.AsPrincipal(reader).CanRead(agent) && e.RoleOf(agent) != "" },
	}
	of.patterns = channel.MemberPatterns(agent)
	return of
}

// inboxSet is the set of channels that the agent is a member of, and of the other
// readable channels with messages addressed to it: channels of its scopes and public
// ones.
func (s *Service) inboxSet(by Caller, agent kg.AgentID) channelSet {
	of, reader := s.joinedChannels(by, agent), by.ReaderPrincipal(agent)
	of.list = func() []channel.ID { return s.table.InboxChannels(agent) }
	of.has = func(e *access.Entry) bool { return e.AsPrincipal(reader).CanRead(agent) }
	of.patterns = append(of.patterns, kg.Pattern{Predicate: vocab.LaneReader, Object: kg.IRI(string(agent))})
	return of
}

// channelsWithin is the set of readable channels of a scope. The channels of an intent
// include those of its tasks.
func (s *Service) channelsWithin(by Caller, agent kg.AgentID, id scope.ID) channelSet {
	reader := by.ReaderPrincipal(agent)
	return channelSet{
		list: func() []channel.ID { return s.table.ChannelsWithin(id) },
		has: func(e *access.Entry) bool {
			return e.AsPrincipal(reader).CanRead(agent) && e.IsWithin(id)
		},
		patterns: []kg.Pattern{{Predicate: vocab.Scope}}, // of any scope, because tasks may be added
	}
}
