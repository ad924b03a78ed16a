package channels

import (
	"context"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/channels/scope"
	"koine/kg"
)

// CreateIn creates a channel in a scope that the caller has access to. The channel
// needs a name that is unique in the scope. It is private: the scope and the member
// policy decide access.
//
// Errors: those of Create; CodeScopeNotFound; CodeScopeEnded; CodeNameTaken.
func (s *Service) CreateIn(ctx context.Context, by Caller, scope scope.ID, d channel.Draft) (*channel.Channel, error) {
	agent, err := by.actingAgent()
	if err != nil {
		return nil, err
	}
	c, err := s.newScopedChannel(agent, scope, d)
	if err != nil {
		return nil, err
	}
	return s.createChannel(ctx, by, c, d.IdempotencyKey, func() error {
		if err := s.checkNewChannelIn(scope, by.readerPrincipal(agent)); err != nil {
			return err
		}
		if s.table.channelByName(scope, c.Name) != "" {
			return channel.ErrNameTaken()
		}
		return nil
	})
}

// newScopedChannel validates a draft and builds a channel in a scope.
func (s *Service) newScopedChannel(agent kg.AgentID, scope scope.ID, d channel.Draft) (*channel.Channel, error) {
	policy := d.MemberPolicy
	switch policy {
	case "":
		policy = channel.Explicit
	case channel.Explicit, channel.ByScope:
	default:
		return nil, kg.Errorf(kg.CodeInvalid, "memberPolicy must be explicit or scope, not %.60q", policy).At("memberPolicy")
	}
	if d.MemberPolicy = policy; d.Visibility == channel.Public {
		return nil, kg.Errorf(kg.CodeInvalid, "visibility must be private in a scope").At("visibility")
	}
	if d.Name == "" {
		return nil, channel.ErrNoName()
	}
	c, err := s.newChannel(agent, d)
	if err != nil {
		return nil, err
	}
	c.Scope, c.MemberPolicy = scope, policy
	return c, nil
}

// checkNewChannelIn returns an error if the reader cannot create a channel in the
// scope.
func (s *Service) checkNewChannelIn(id scope.ID, reader kg.Principal) error {
	sc := s.table.scopes.get(id)
	switch {
	case !sc.admitsPrincipal(reader):
		return scope.ErrNotFound()
	case sc.Ended():
		return scope.ErrEnded(sc.Status)
	case s.table.countIn(id) >= scope.MaxChannels:
		return check.TooMuch("scopeId", "scope has the maximum of %d channels, including its tasks", scope.MaxChannels)
	}
	return nil
}

// checkNameFree returns an error if another channel of the scope has the name.
func (s *Service) checkNameFree(c *channel.Channel, name string) error {
	if c.Scope == "" {
		return nil
	}
	if name == "" {
		return channel.ErrNoName()
	}
	if other := s.table.channelByName(c.Scope, name); other != "" && other != c.ID {
		return channel.ErrNameTaken()
	}
	return nil
}

// asPrincipal returns the entry as seen by a principal, which brings its roles.
func (e *entry) asPrincipal(p kg.Principal) *entry {
	if e == nil || e.scope == nil {
		return e
	}
	asked := *e
	asked.caller = &p
	return &asked
}

// admitsAgent reports whether the agent has access to the channel's scope, if it has
// one. The roles of an agent other than the requesting principal are not considered.
func (e *entry) admitsAgent(agent kg.AgentID) bool {
	if e.scope == nil {
		return true
	}
	if e.caller != nil && e.caller.ID == agent {
		return e.scope.get().admitsPrincipal(*e.caller)
	}
	return e.scope.get().admitsPrincipal(kg.Principal{ID: agent})
}

// managedBy reports whether the agent manages the channel as the creator or coordinator
// of its scope or of the intent of its task. Managing through a task requires access to
// the intent, like everything else.
func (e *entry) managedBy(agent kg.AgentID) bool {
	return e != nil && !e.Deleted && e.scope.get().managedBy(agent) && e.admitsAgent(agent) && !e.table.serverRestrictions().AppliesTo(agent, false, e.decisionTime())
}

// loadScopes reads the scopes from the store. The caller holds the lock of the table.
func (s *Service) loadScopes(snapshot *kg.Snapshot) error {
	var tasks []*scope.Scope
	for st, err := range snapshot.Match(kg.Pattern{Predicate: vocab.Type, Object: vocab.ClassScope}) {
		if err != nil {
			return err
		}
		id, record := scope.OfGraph(st.Graph)
		if !record || st.Subject != id.Entity() {
			continue
		}
		sc := &scope.Scope{ID: id}
		for st, err := range snapshot.Match(kg.Pattern{Subject: id.Entity(), Graph: id.RecordGraph()}) {
			if err != nil {
				return err
			}
			sc.ApplyStatement(st.Predicate, st.Object)
		}
		if sc.Parent != "" {
			tasks = append(tasks, sc)
			continue
		}
		s.table.scopes.putScope(sc)
	}
	for _, task := range tasks { // their parents are loaded
		s.table.scopes.putScope(task)
	}
	return nil
}
