package channels

import (
	"bytes"
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"koine/internal/records"
	"koine/kg"
)

// Draft is a channel that is to be made.
type Draft struct {
	Name       string
	Topic      string
	Kind       Kind       // Ordered when ""
	Visibility Visibility // Private when ""
	Rights     Rights
	MaxMembers int // 0 for the server's bound
	Limits     Limits
	// Members beside the caller, who becomes an owner. Joined is not looked at.
	Members      []Member
	Metadata     []byte        // a JSON object, or nil
	ExpireAfter  time.Duration // see Channel
	KeepMessages int64
	Audit        bool // for a channel in a scope
	// MemberPolicy is for a channel in a scope (CreateIn): Explicit when "".
	MemberPolicy MemberPolicy
	// IdempotencyKey, if set, makes a repetition of the request answer the channel that
	// the first one made. It is the caller's own and lives as long as the channel.
	IdempotencyKey string
}

// Create makes a channel, which the caller owns. Under an idempotency key that the
// caller used before it returns the channel as it stands, with Replayed set.
//
// Errors: CodeInvalid for what cannot be; CodeLimitExceeded past a bound;
// CodeIdempotencyConflict for a key that was used for another channel;
// CodeChannelNotFound if the channel that the key made is gone.
func (s *Service) Create(ctx context.Context, by Caller, d Draft) (*Channel, error) {
	agent, err := by.actingAgent()
	if err != nil {
		return nil, err
	}
	if d.Audit {
		return nil, errNoEvents()
	}
	if d.MemberPolicy != "" {
		return nil, kg.Errorf(kg.CodeInvalid, "a channel outside of a scope has no member policy").At("memberPolicy")
	}
	c, err := s.newChannel(agent, d)
	if err != nil {
		return nil, err
	}
	return s.createChannel(ctx, by, c, d.IdempotencyKey, func() error { return nil })
}

// createChannel makes a channel unless its key made one before. may refuses the channel within
// the update.
func (s *Service) createChannel(ctx context.Context, by Caller, c *Channel, key string, may func() error) (*Channel, error) {
	request, err := c.creationKey(key)
	if err != nil {
		return nil, err
	}
	var earlier kg.Term
	err = records.Update(ctx, s.store, by.updateMeta("channels/create"), func(tx *kg.Tx) (err error) {
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

// writeChannel writes the record of a new channel, and tells of how many statements it is.
func (s *Service) writeChannel(tx *kg.Tx, c *Channel) (n int, err error) {
	if s.table.count.Load() >= int64(s.options.MaxChannels) {
		return 0, errTooMuch("", "there are %d channels already, as many as this server keeps", s.options.MaxChannels)
	}
	if s.table.serverRestrictions().appliesTo(c.CreatedBy, false, tx.Time()) {
		return 0, errDenied("you are banned from the channels of this server")
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

// newChannel checks a draft and makes a channel of it.
func (s *Service) newChannel(agent kg.AgentID, d Draft) (*Channel, error) {
	switch d.Visibility {
	case "":
		d.Visibility = Private
	case Private, Public:
	default:
		return nil, kg.Errorf(kg.CodeInvalid, "a channel is private or public, not %.60q", d.Visibility).At("visibility")
	}
	switch d.Kind {
	case "":
		d.Kind = Ordered
	case Ordered, Broadcast, Room:
	default:
		return nil, kg.Errorf(kg.CodeInvalid, "a channel is made as a channel, broadcast or room, not %.60q", d.Kind).At("kind")
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
			return nil, kg.Errorf(kg.CodeInvalid, "a member needs a principalId").At("members")
		}
		if err := m.Agent.Valid(); err != nil {
			return nil, kg.AsError(err).At("members")
		}
		if m.Role, err = parseRole(m.Role); err != nil {
			return nil, kg.AsError(err).At("members")
		}
		switch had := c.memberRole(m.Agent); {
		case m.Agent == agent:
			continue // the owner in any case
		case had == "":
			c.Members = append(c.Members, m)
		case had != m.Role:
			return nil, kg.Errorf(kg.CodeInvalid, "%s cannot have two roles", m.Agent).At("members")
		}
	}
	if most := s.memberLimit(c); len(c.Members) > most {
		return nil, errTooMuch("members", "%d members are more than the %d that the channel has", len(c.Members), most)
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
		return kg.Errorf(kg.CodeInvalid, "a %s is UTF-8", field).At(field)
	}
	if n := utf8.RuneCountInString(text); n > most {
		return errTooMuch(field, "a %s of %d characters is longer than the %d that it may have", field, n, most)
	}
	return nil
}

// checkMetadata gives a JSON object in its shortest form, nil for none.
func checkMetadata(raw []byte) ([]byte, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil || raw[0] != '{' {
		return nil, kg.Errorf(kg.CodeInvalid, "metadata is a JSON object").At("metadata")
	}
	if b.Len() > MaxMetadataBytes {
		return nil, errTooMuch("metadata", "metadata of %d bytes is more than the %d that are kept", b.Len(), MaxMetadataBytes)
	}
	return b.Bytes(), nil
}
