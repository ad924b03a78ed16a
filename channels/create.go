package channels

import (
	"bytes"
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Draft describes a channel to create.
type Draft struct {
	Name       string
	Topic      string
	Kind       Kind       // Ordered if ""
	Visibility Visibility // Private if ""
	Rights     Rights
	MaxMembers int // 0 for the server's limit
	Limits     Limits
	// Members are the members besides the caller, who becomes an owner. Joined is
	// ignored.
	Members      []Member
	Metadata     []byte        // a JSON object, or nil
	ExpireAfter  time.Duration // see Channel
	KeepMessages int64
	Audit        bool // for a channel in a scope
	// MemberPolicy applies to a channel in a scope (CreateIn); Explicit if "".
	MemberPolicy MemberPolicy
	// IdempotencyKey, if set, makes a repeated request return the channel that the
	// first one created. Keys are per caller and live as long as the channel.
	IdempotencyKey string
}

// Create creates a channel with the caller as owner. If the caller has used the
// idempotency key before, it returns the existing channel with Replayed set.
//
// Errors: CodeInvalid; CodeLimitExceeded; CodeIdempotencyConflict for a key that was
// used for a different request; CodeChannelNotFound if the channel of the key was
// deleted.
func (s *Service) Create(ctx context.Context, by Caller, d Draft) (*Channel, error) {
	agent, err := by.actingAgent()
	if err != nil {
		return nil, err
	}
	if d.Audit {
		return nil, errNoEvents()
	}
	if d.MemberPolicy != "" {
		return nil, kg.Errorf(kg.CodeInvalid, "memberPolicy requires a scope").At("memberPolicy")
	}
	c, err := s.newChannel(agent, d)
	if err != nil {
		return nil, err
	}
	return s.createChannel(ctx, by, c, d.IdempotencyKey, func() error { return nil })
}

// createChannel creates a channel unless its key has created one before. It calls may
// within the update; an error from may rejects the channel.
func (s *Service) createChannel(ctx context.Context, by Caller, c *Channel, key string, may func() error) (*Channel, error) {
	request, err := c.creationKey(key)
	if err != nil {
		return nil, err
	}
	var earlier kg.Term
	err = systemgraph.Update(ctx, s.store, by.updateMeta("channels/create"), func(tx *kg.Tx) (err error) {
		if earlier, err = request.findEarlier(tx); err != nil || !earlier.IsZero() {
			return err
		}
		if err := may(); err != nil {
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
		if c, err = s.Get(ctx, by, idOf[ChannelID](earlier, channelPrefix)); err == nil {
			c.Replayed = true
		}
		return c, err
	}
	c.sortMembers()
	return c, nil
}

// writeChannel writes the record of a new channel. It returns the number of statements.
func (s *Service) writeChannel(tx *kg.Tx, c *Channel) (n int, err error) {
	if s.table.count.Load() >= int64(s.options.MaxChannels) {
		return 0, errTooMuch("", "server has %d channels, which is the limit", s.options.MaxChannels)
	}
	if s.table.serverRestrictions().appliesTo(c.CreatedBy, false, tx.Time()) {
		return 0, errDenied("caller is banned from all channels of this server")
	}
	if err := s.checkChannelQuota(tx, c.CreatedBy); err != nil {
		return 0, err
	}
	c.CreatedAt, c.expireAfterSetAt = tx.Time(), tx.Time()
	for i := range c.Members {
		c.Members[i].Joined = tx.Time()
	}
	w := &writer{tx: tx, id: c.ID}
	w.writeChannel(c)
	return w.n, w.err
}

// newChannel validates a draft and builds the channel.
func (s *Service) newChannel(agent kg.AgentID, d Draft) (*Channel, error) {
	switch d.Visibility {
	case "":
		d.Visibility = Private
	case Private, Public:
	default:
		return nil, kg.Errorf(kg.CodeInvalid, "visibility must be private or public, not %.60q", d.Visibility).At("visibility")
	}
	switch d.Kind {
	case "":
		d.Kind = Ordered
	case Ordered, Broadcast, Room:
	default:
		return nil, kg.Errorf(kg.CodeInvalid, "kind must be channel, broadcast or room, not %.60q", d.Kind).At("kind")
	}
	if err := d.Rights.validateFor(effectiveVisibility(d.Visibility, d.MemberPolicy)); err != nil {
		return nil, err
	}
	if err := d.Limits.validate(); err != nil {
		return nil, err
	}
	if err := checkExpireAfter(d.ExpireAfter); err != nil {
		return nil, err
	}
	if err := checkKeepMessages(d.KeepMessages); err != nil {
		return nil, err
	}
	if err := checkTexts(d.Name, d.Topic); err != nil {
		return nil, err
	}
	metadata, err := checkMetadata(d.Metadata)
	if err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	c := &Channel{
		ID: ChannelID(id), Kind: d.Kind, Name: d.Name, Topic: d.Topic, Visibility: d.Visibility,
		CreatedBy: agent, Metadata: metadata, Rights: d.Rights, MaxMembers: d.MaxMembers, Limits: d.Limits, Version: 1, Members: []Member{{Agent: agent, Role: Owner}},
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
		if m.Role, err = parseRole(m.Role); err != nil {
			return nil, kg.AsError(err).At("members")
		}
		switch had := c.memberRole(m.Agent); {
		case m.Agent == agent:
			continue // the caller is always an owner
		case had == "":
			c.Members = append(c.Members, m)
		case had != m.Role:
			return nil, kg.Errorf(kg.CodeInvalid, "member %s has two roles", m.Agent).At("members")
		}
	}
	if most := s.memberLimit(c); len(c.Members) > most {
		return nil, errTooMuch("members", "members has %d members; the limit is %d", len(c.Members), most)
	}
	return c, s.checkMaxMembers(c.MaxMembers, len(c.Members))
}

func checkTexts(name, topic string) error {
	if err := checkText("name", name, MaxNameRunes); err != nil {
		return err
	}
	return checkText("topic", topic, MaxTopicRunes)
}

func checkText(field, text string, most int) error {
	if !utf8.ValidString(text) {
		return kg.Errorf(kg.CodeInvalid, "%s must be valid UTF-8", field).At(field)
	}
	if n := utf8.RuneCountInString(text); n > most {
		return errTooMuch(field, "%s has %d characters; the limit is %d", field, n, most)
	}
	return nil
}

// checkMetadata returns a JSON object in compact form, or nil for none.
func checkMetadata(raw []byte) ([]byte, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil || raw[0] != '{' {
		return nil, kg.Errorf(kg.CodeInvalid, "metadata must be a JSON object").At("metadata")
	}
	if b.Len() > MaxMetadataBytes {
		return nil, errTooMuch("metadata", "metadata has %d bytes; the limit is %d", b.Len(), MaxMetadataBytes)
	}
	return b.Bytes(), nil
}
