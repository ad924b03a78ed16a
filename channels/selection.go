package channels

import "koine/kg"

// channelSet says which channels a feed is of, as things stand at the moment.
type channelSet struct {
	list func() []ChannelID // sorted or not
	has  func(e *entry) bool
	// patterns are those of which one changes whenever a channel comes to be in it.
	patterns []kg.Pattern
}

// joinedChannels are the channels that the agent is a member of.
func (s *Service) joinedChannels(by Caller, agent kg.AgentID) channelSet {
	reader := by.readerPrincipal(agent)
	of := channelSet{
		list: func() []ChannelID { return s.table.channelsJoinedBy(agent) },
		has:  func(e *entry) bool { return e.asPrincipal(reader).canRead(agent) && e.roles[agent] != "" },
	}
	for _, r := range roles {
		of.patterns = append(of.patterns, kg.Pattern{Predicate: r.property, Object: kg.IRI(string(agent))})
	}
	return of
}

// inboxSet are the channels that the agent is a member of, and the others that it
// reads and in which something was said to it alone or to few: through their scope,
// or because everybody reads them.
func (s *Service) inboxSet(by Caller, agent kg.AgentID) channelSet {
	of, reader := s.joinedChannels(by, agent), by.readerPrincipal(agent)
	of.list = func() []ChannelID { return s.table.inboxChannels(agent) }
	of.has = func(e *entry) bool { return e.asPrincipal(reader).canRead(agent) }
	of.patterns = append(of.patterns, kg.Pattern{Predicate: propLaneReader, Object: kg.IRI(string(agent))})
	return of
}

// channelsWithin are the channels of a scope that the agent reads, those of an intent's
// tasks included.
func (s *Service) channelsWithin(by Caller, agent kg.AgentID, scope ScopeID) channelSet {
	reader := by.readerPrincipal(agent)
	return channelSet{
		list: func() []ChannelID { return s.table.channelsWithin(scope) },
		has: func(e *entry) bool {
			return e.asPrincipal(reader).canRead(agent) && e.Scope != "" && (e.Scope == scope || e.scope.get().Parent == scope)
		},
		patterns: []kg.Pattern{{Predicate: propScope}}, // of any: tasks come later, too
	}
}
