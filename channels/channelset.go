package channels

import (
	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/channels/scope"
	"koine/kg"
)

// channelSet is the set of channels of a feed. It changes over time.
type channelSet struct {
	list func() []channel.ID // in any order
	has  func(e *entry) bool
	// patterns match at least one change of every commit that adds a channel to the
	// set.
	patterns []kg.Pattern
}

// joinedChannels is the set of channels that the agent is a member of.
func (s *Service) joinedChannels(by Caller, agent kg.AgentID) channelSet {
	reader := by.readerPrincipal(agent)
	of := channelSet{
		list: func() []channel.ID { return s.table.channelsJoinedBy(agent) },
		has:  func(e *entry) bool { return e.asPrincipal(reader).canRead(agent) && e.roles[agent] != "" },
	}
	of.patterns = channel.MemberPatterns(agent)
	return of
}

// inboxSet is the set of channels that the agent is a member of, and of the other
// readable channels with messages addressed to it: channels of its scopes and public
// ones.
func (s *Service) inboxSet(by Caller, agent kg.AgentID) channelSet {
	of, reader := s.joinedChannels(by, agent), by.readerPrincipal(agent)
	of.list = func() []channel.ID { return s.table.inboxChannels(agent) }
	of.has = func(e *entry) bool { return e.asPrincipal(reader).canRead(agent) }
	of.patterns = append(of.patterns, kg.Pattern{Predicate: vocab.LaneReader, Object: kg.IRI(string(agent))})
	return of
}

// channelsWithin is the set of readable channels of a scope. The channels of an intent
// include those of its tasks.
func (s *Service) channelsWithin(by Caller, agent kg.AgentID, scope scope.ID) channelSet {
	reader := by.readerPrincipal(agent)
	return channelSet{
		list: func() []channel.ID { return s.table.channelsWithin(scope) },
		has: func(e *entry) bool {
			return e.asPrincipal(reader).canRead(agent) && e.Scope != "" && (e.Scope == scope || e.scope.get().Parent == scope)
		},
		patterns: []kg.Pattern{{Predicate: vocab.Scope}}, // of any scope, because tasks may be added
	}
}
