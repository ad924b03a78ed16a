package channels

import (
	"context"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/channels/scope"
	"koine/kg"
)

// CreateIn creates a channel in a scope that the caller has access to. The channel
// needs a name that is unique in the scope. It is private: the scope and the member
// policy decide access.
//
// Errors: those of Create; CodeScopeNotFound; CodeScopeEnded; CodeNameTaken.
func (s *Service) CreateIn(ctx context.Context, by Caller, scope scope.ID, d channel.Draft) (*channel.Channel, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	c, err := s.newScopedChannel(agent, scope, d)
	if err != nil {
		return nil, err
	}
	return s.createChannel(ctx, by, c, d.IdempotencyKey, func() error {
		if err := s.checkNewChannelIn(scope, by.ReaderPrincipal(agent)); err != nil {
			return err
		}
		if s.table.ChannelByName(scope, c.Name) != "" {
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
	sc := s.table.Scope(id)
	switch {
	case !sc.AdmitsPrincipal(reader):
		return scope.ErrNotFound()
	case sc.Ended():
		return scope.ErrEnded(sc.Status)
	case s.table.CountIn(id) >= scope.MaxChannels:
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
	if other := s.table.ChannelByName(c.Scope, name); other != "" && other != c.ID {
		return channel.ErrNameTaken()
	}
	return nil
}
