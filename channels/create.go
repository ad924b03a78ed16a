package channels

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/channels/scope"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Create creates a channel with the caller as owner. If the caller has used the
// idempotency key before, it returns the existing channel with Replayed set.
//
// Errors: CodeInvalid; CodeLimitExceeded; CodeIdempotencyConflict for a key that was
// used for a different request; CodeChannelNotFound if the channel of the key was
// deleted.
func (s *Service) Create(ctx context.Context, by Caller, d channel.Draft) (*channel.Channel, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	if d.Audit {
		return nil, errNoEvents()
	}
	if d.MemberPolicy != "" {
		return nil, channel.ErrPolicyWithoutScope()
	}
	c, err := s.newChannel(agent, d)
	if err != nil {
		return nil, err
	}
	return s.createChannel(ctx, by, c, d.IdempotencyKey, func(*kg.Tx) error { return nil })
}

// createChannel creates a channel unless its key has created one before. It calls may
// within the update; an error from may rejects the channel.
func (s *Service) createChannel(ctx context.Context, by Caller, c *channel.Channel, key string, may func(*kg.Tx) error) (*channel.Channel, error) {
	request, err := channelCreationKey(c, key)
	if err != nil {
		return nil, err
	}
	var earlier kg.Term
	err = systemgraph.Update(ctx, s.store, by.UpdateMeta("channels/create"), func(tx *kg.Tx) (err error) {
		if earlier, err = request.findEarlier(tx); err != nil || !earlier.IsZero() {
			return err
		}
		if err := may(tx); err != nil {
			return err
		}
		for _, m := range c.Members {
			if err := tx.CheckAgent(m.Agent); err != nil {
				return kg.AsError(err).At("members")
			}
		}
		if _, err := s.writeChannel(tx, c); err != nil {
			return err
		}
		return request.writeTo(tx, c.ID.RecordGraph(), c.ID.Entity())
	})
	if err != nil {
		return nil, err
	}
	if !earlier.IsZero() {
		if c, err = s.Get(ctx, by, vocab.IDOf[channel.ID](earlier, channel.ChannelPrefix)); err == nil {
			c.Replayed = true
		}
		return c, err
	}
	channel.SortMembers(c.Members)
	return c, nil
}

// writeChannel writes the record of a new channel. It returns the number of statements.
func (s *Service) writeChannel(tx *kg.Tx, c *channel.Channel) (n int, err error) {
	if s.table.ChannelCount() >= s.options.MaxChannels {
		return 0, check.TooMuch("", "server has %d channels, which is the limit", s.options.MaxChannels)
	}
	if s.table.ServerRestrictions().AppliesTo(c.CreatedBy, false, tx.Time()) {
		return 0, check.Denied("caller is banned from all channels of this server")
	}
	if err := s.checkChannelQuota(tx, c.CreatedBy); err != nil {
		return 0, err
	}
	c.CreatedAt, c.ExpireAfterSetAt = tx.Time(), tx.Time()
	for i := range c.Members {
		c.Members[i].Joined = tx.Time()
	}
	return channel.CreateRecord(tx, c)
}

// newChannel validates a draft and builds the channel.
func (s *Service) newChannel(agent kg.AgentID, d channel.Draft) (*channel.Channel, error) {
	switch d.Visibility {
	case "":
		d.Visibility = channel.Private
	case channel.Private, channel.Public:
	default:
		return nil, kg.Errorf(kg.CodeInvalid, "visibility must be private or public, not %.60q", d.Visibility).At("visibility")
	}
	switch d.Kind {
	case "":
		d.Kind = channel.Ordered
	case channel.Ordered, channel.Broadcast, channel.Room:
	default:
		return nil, kg.Errorf(kg.CodeInvalid, "kind must be channel, broadcast or room, not %.60q", d.Kind).At("kind")
	}
	if err := d.Rights.ValidateFor(channel.EffectiveVisibility(d.Visibility, d.MemberPolicy)); err != nil {
		return nil, err
	}
	if err := d.Limits.Validate(); err != nil {
		return nil, err
	}
	if err := channel.CheckExpireAfter(d.ExpireAfter); err != nil {
		return nil, err
	}
	if err := channel.CheckKeepMessages(d.KeepMessages); err != nil {
		return nil, err
	}
	if err := channel.CheckTexts(d.Name, d.Topic); err != nil {
		return nil, err
	}
	metadata, err := check.JSONObject("metadata", d.Metadata, channel.MaxMetadataBytes)
	if err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	c := &channel.Channel{
		ID: channel.ID(id), Kind: d.Kind, Name: d.Name, Topic: d.Topic, Visibility: d.Visibility,
		CreatedBy: agent, Metadata: metadata, Rights: d.Rights, MaxMembers: d.MaxMembers, Limits: d.Limits, Version: 1, Members: []channel.Member{{Agent: agent, Role: channel.Owner}},
		ExpireAfter: d.ExpireAfter, KeepMessages: d.KeepMessages, Audit: d.Audit,
	}
	for _, m := range d.Members {
		m.Agent = kg.CanonicalAgent(string(m.Agent))
		if m.Agent == "" {
			return nil, kg.Errorf(kg.CodeInvalid, "member has no principalId").At("members")
		}
		if err := m.Agent.Valid(); err != nil {
			return nil, kg.AsError(err).At("members")
		}
		if m.Role, err = channel.ParseRole(m.Role); err != nil {
			return nil, kg.AsError(err).At("members")
		}
		switch had := c.MemberRole(m.Agent); {
		case m.Agent == agent:
			continue // the caller is always an owner
		case had == "":
			c.Members = append(c.Members, m)
		case had != m.Role:
			return nil, kg.Errorf(kg.CodeInvalid, "member %s has two roles", m.Agent).At("members")
		}
	}
	if most := s.memberLimit(c); len(c.Members) > most {
		return nil, check.TooMuch("members", "members has %d members; the limit is %d", len(c.Members), most)
	}
	return c, s.checkMaxMembers(c.MaxMembers, len(c.Members))
}

// channelCreationKey returns the creation key of a new channel.
func channelCreationKey(c *channel.Channel, key string) (creationKey, error) {
	if key == "" {
		return creationKey{}, nil
	}
	metadata, err := check.DecodeJSON(c.Metadata)
	if err != nil {
		return creationKey{}, err
	}
	members := slices.SortedFunc(slices.Values(c.Members), func(a, b channel.Member) int { return cmp.Compare(a.Agent, b.Agent) })
	return newCreationKey("channels/create", c.CreatedBy, key, c.Scope, c.MemberPolicy, c.Kind, c.Name, c.Topic, c.Visibility, members, metadata,
		c.Rights, c.MaxMembers, c.Limits, c.ExpireAfter, c.KeepMessages, c.Audit)
}

func newID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("create id: %w", err)
	}
	return id.String(), nil
}

// CreateIn creates a channel in a scope that the caller has access to. The channel
// needs a name that is unique in the intent, its tasks included. It is private: the scope and the member
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
	return s.createChannel(ctx, by, c, d.IdempotencyKey, func(tx *kg.Tx) error {
		if err := s.checkNewChannelIn(scope, by, tx.Time()); err != nil {
			return err
		}
		if len(s.table.ChannelsNamed(scope, c.Name)) > 0 {
			return channel.ErrNameTaken()
		}
		return nil
	})
}

// newScopedChannel validates a draft and builds a channel in a scope.
func (s *Service) newScopedChannel(agent kg.AgentID, scope scope.ID, d channel.Draft) (*channel.Channel, error) {
	policy, err := channel.ParseMemberPolicy(d.MemberPolicy)
	if err != nil {
		return nil, err
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

// checkNewChannelIn returns an error if the caller cannot create a channel in the scope in
// a commit at the time.
func (s *Service) checkNewChannelIn(id scope.ID, by Caller, at time.Time) error {
	_, sc, err := s.table.RequireLevel(by, id, scope.Write, at)
	switch {
	case err != nil:
		return err
	case sc.Ended():
		return scope.ErrEnded(sc.Status)
	case s.table.CountIn(id) >= scope.MaxChannels:
		return check.TooMuch("scopeId", "scope has the maximum of %d channels, including its tasks", scope.MaxChannels)
	}
	return nil
}

// checkNameFree returns an error if another channel of the intent has a new name.
func (s *Service) checkNameFree(c *channel.Channel, name string) error {
	if c.Scope == "" {
		return nil
	}
	if name == "" {
		return channel.ErrNoName()
	}
	if name != c.Name && len(s.table.ChannelsNamed(c.Scope, name)) > 0 {
		return channel.ErrNameTaken()
	}
	return nil
}
