package channels

import (
	"context"

	"koine/kg"
)

// MemberPolicy says who takes part in a channel of a scope. Channels outside of one
// have none.
type MemberPolicy string

// The policies.
const (
	Explicit MemberPolicy = "explicit" // members who also have access to the scope
	ByScope  MemberPolicy = "scope"    // whoever has access to the scope
)

// CreateIn makes a channel in a scope that the caller has access to. It needs a
// name, which no other channel of the scope has. Such a channel is private: who sees
// it is decided by the scope and the policy.
//
// Errors: those of Create; CodeScopeNotFound; CodeScopeEnded; CodeNameTaken.
func (s *Service) CreateIn(ctx context.Context, by Caller, scope ScopeID, d Draft) (*Channel, error) {
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
			return errNameTaken()
		}
		return nil
	})
}

// newScopedChannel checks a draft and makes a channel of a scope of it.
func (s *Service) newScopedChannel(agent kg.AgentID, scope ScopeID, d Draft) (*Channel, error) {
	policy := d.MemberPolicy
	switch policy {
	case "":
		policy = Explicit
	case Explicit, ByScope:
	default:
		return nil, kg.Errorf(kg.CodeInvalid, "a member policy is explicit or scope, not %.60q", policy).At("memberPolicy")
	}
	if d.MemberPolicy = policy; d.Visibility == Public {
		return nil, kg.Errorf(kg.CodeInvalid, "a channel in a scope is not public").At("visibility")
	}
	if d.Name == "" {
		return nil, errNoName()
	}
	c, err := s.newChannel(agent, d)
	if err != nil {
		return nil, err
	}
	c.Scope, c.MemberPolicy = scope, policy
	return c, nil
}

func errNoName() *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "a channel in a scope needs a name").At("name")
}

// checkNewChannelIn refuses a new channel in a scope.
func (s *Service) checkNewChannelIn(id ScopeID, reader kg.Principal) error {
	sc := s.table.scopes.get(id)
	switch {
	case !sc.admitsPrincipal(reader):
		return errNoScope()
	case sc.Ended():
		return errScopeEnded(&sc.Scope)
	case s.table.countIn(id) >= MaxScopeChannels:
		return errTooMuch("scopeId", "an intent and its tasks have at most %d channels", MaxScopeChannels)
	}
	return nil
}

// checkNameFree refuses a name that another channel of the scope has.
func (s *Service) checkNameFree(c *Channel, name string) error {
	if c.Scope == "" {
		return nil
	}
	if name == "" {
		return errNoName()
	}
	if other := s.table.channelByName(c.Scope, name); other != "" && other != c.ID {
		return errNameTaken()
	}
	return nil
}

// effectiveVisibility is the visibility that a channel has for those who have access to its
// scope.
func effectiveVisibility(v Visibility, policy MemberPolicy) Visibility {
	if policy == ByScope {
		return Public
	}
	return v
}

// asPrincipal is the channel as it is asked about by a principal, with the roles that it has.
func (e *entry) asPrincipal(p kg.Principal) *entry {
	if e == nil || e.scope == nil {
		return e
	}
	asked := *e
	asked.caller = &p
	return &asked
}

// admitsAgent tells whether the agent has access to the scope of the channel, if it is in
// one. An agent other than the one that asks is taken without roles.
func (e *entry) admitsAgent(agent kg.AgentID) bool {
	if e.scope == nil {
		return true
	}
	if e.caller != nil && e.caller.ID == agent {
		return e.scope.get().admitsPrincipal(*e.caller)
	}
	return e.scope.get().admitsPrincipal(kg.Principal{ID: agent})
}

// managedBy tells whether the agent manages the channel because it runs the scope,
// or the intent of the task, that the channel belongs to. Who runs a task needs access
// to its intent for that, as for everything.
func (e *entry) managedBy(agent kg.AgentID) bool {
	return e != nil && !e.deleted && e.scope.get().managedBy(agent) && e.admitsAgent(agent) && !e.table.serverRestrictions().appliesTo(agent, false, e.decisionTime())
}

// loadScopes reads the scopes that the store has. The table is locked.
func (s *Service) loadScopes(snapshot *kg.Snapshot) error {
	var tasks []*Scope
	for st, err := range snapshot.Match(kg.Pattern{Predicate: rdfType, Object: ClassScope}) {
		if err != nil {
			return err
		}
		id, part := scopeOfGraph(st.Graph)
		if part != recordPart || st.Subject != id.Entity() {
			continue
		}
		sc := &Scope{ID: id}
		for st, err := range snapshot.Match(kg.Pattern{Subject: id.Entity(), Graph: id.RecordGraph()}) {
			if err != nil {
				return err
			}
			sc.applyStatement(st.Predicate, st.Object)
		}
		if sc.Parent != "" {
			tasks = append(tasks, sc)
			continue
		}
		s.table.scopes.putScope(sc)
	}
	for _, task := range tasks { // their parents are there
		s.table.scopes.putScope(task)
	}
	return nil
}
