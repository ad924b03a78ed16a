package channels

import "koine/kg"

// selection says which channels a feed is of, as things stand at the moment.
type selection struct {
	list func() []ChannelID // sorted or not
	has  func(e *entry) bool
	// patterns are those of which one changes whenever a channel comes to be in it.
	patterns []kg.Pattern
}

// channelsOf are the channels that the agent is a member of.
func (s *Service) channelsOf(by Caller, agent kg.AgentID) selection {
	reader := by.reader(agent)
	of := selection{
		list: func() []ChannelID { return s.table.joined(agent) },
		has:  func(e *entry) bool { return e.as(reader).reads(agent) && e.roles[agent] != "" },
	}
	for _, r := range roles {
		of.patterns = append(of.patterns, kg.Pattern{Predicate: r.property, Object: kg.IRI(string(agent))})
	}
	return of
}

// inboxOf are the channels that the agent is a member of, and the others that it
// reads and in which something was said to it alone or to few: through their scope,
// or because everybody reads them.
func (s *Service) inboxOf(by Caller, agent kg.AgentID) selection {
	of, reader := s.channelsOf(by, agent), by.reader(agent)
	of.list = func() []ChannelID { return s.table.inboxed(agent) }
	of.has = func(e *entry) bool { return e.as(reader).reads(agent) }
	of.patterns = append(of.patterns, kg.Pattern{Predicate: propLaneReader, Object: kg.IRI(string(agent))})
	return of
}

// channelsWithin are the channels of a scope that the agent reads, those of an intent's
// tasks included.
func (s *Service) channelsWithin(by Caller, agent kg.AgentID, scope ScopeID) selection {
	reader := by.reader(agent)
	return selection{
		list: func() []ChannelID { return s.table.within(scope) },
		has: func(e *entry) bool {
			return e.as(reader).reads(agent) && e.Scope != "" && (e.Scope == scope || e.scope.get().Parent == scope)
		},
		patterns: []kg.Pattern{{Predicate: propScope}}, // of any: tasks come later, too
	}
}
