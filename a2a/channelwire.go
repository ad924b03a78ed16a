package a2a

import (
	"encoding/json"
	"time"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// wireChannel is Channel (channels extension, section 4.1). A direct channel without
// messages has no times and no creator. The members after kind are extensions of koine,
// absent if not set.
type wireChannel struct {
	ID         channel.ID         `json:"id"`
	Name       string             `json:"name,omitempty"`
	Visibility channel.Visibility `json:"visibility"`
	CreatedAt  int64              `json:"createdAt,omitempty"`
	CreatedBy  kg.AgentID         `json:"createdBy,omitempty"`
	Members    []wireMember       `json:"members"`
	Metadata   json.RawMessage    `json:"metadata,omitempty"`
	Version    int64              `json:"version"`
	Kind       string             `json:"kind"`

	ScopeID      scope.ID             `json:"scopeId,omitempty"`
	MemberPolicy channel.MemberPolicy `json:"memberPolicy,omitempty"`
	ClosedAt     int64                `json:"closedAt,omitempty"`
	ClosedReason string               `json:"closedReason,omitempty"`
	Overseers    []wireOverseer       `json:"overseers,omitempty"`
}

// wireOverseer is an agent that reads a channel without taking part.
type wireOverseer struct {
	PrincipalID kg.AgentID `json:"principalId"`
	Since       int64      `json:"since"`
}

// wireMember is ChannelMember (section 4.2).
type wireMember struct {
	PrincipalID kg.AgentID   `json:"principalId"`
	Role        channel.Role `json:"role"`
	JoinedAt    int64        `json:"joinedAt,omitempty"`
}

// The kinds of the extension's objects.
const (
	kindChannel      = "channel"
	kindMessageEvent = "messageEvent"
)

func encodeChannel(c *channel.Channel) *wireChannel {
	out := &wireChannel{
		ID: c.ID, Name: c.Name, Visibility: c.Visibility, CreatedAt: millisOf(c.CreatedAt), CreatedBy: c.CreatedBy,
		Members: make([]wireMember, 0, len(c.Members)), Metadata: c.Metadata, Version: c.Version, Kind: kindChannel,
		ScopeID: c.Scope, MemberPolicy: c.MemberPolicy, ClosedAt: millisOf(c.ClosedAt), ClosedReason: c.CloseReason,
	}
	for _, m := range c.Members {
		out.Members = append(out.Members, wireMember{m.Agent, m.Role, millisOf(m.Joined)})
	}
	for _, o := range c.Overseers {
		out.Overseers = append(out.Overseers, wireOverseer{o.Agent, millisOf(o.Since)})
	}
	return out
}

// millisOf returns a time in milliseconds since the epoch, 0 for the zero time.
func millisOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// wireMessage is MessageEvent (section 4.3) with koine's extensions:
// messageType and the members after it, absent if not set.
type wireMessage struct {
	ID             message.ID        `json:"id"`
	ChannelID      channel.ID        `json:"channelId"`
	Sequence       int64             `json:"sequence"`
	Timestamp      int64             `json:"timestamp"`
	Author         kg.AgentID        `json:"author"`
	Parts          []json.RawMessage `json:"parts,omitempty"` // absent if withheld
	ArtifactRefs   []string          `json:"artifactRefs,omitempty"`
	Metadata       json.RawMessage   `json:"metadata,omitempty"`
	IdempotencyKey string            `json:"idempotencyKey,omitempty"`
	Kind           string            `json:"kind"`

	MessageType   message.Interaction `json:"messageType,omitempty"`
	ContentType   message.ContentType `json:"contentType,omitempty"`
	Format        string              `json:"format,omitempty"`
	Tags          []string            `json:"tags,omitempty"`
	Recipient     string              `json:"recipient,omitempty"`
	Recipients    []kg.AgentID        `json:"recipients,omitempty"`
	CorrelationID message.ID          `json:"correlationId,omitempty"`
	ExpiresAt     int64               `json:"expiresAt,omitempty"`
	ReplyToID     message.ID          `json:"replyToId,omitempty"`
	ThreadID      string              `json:"threadId,omitempty"`
	Retracts      message.ID          `json:"retracts,omitempty"`
	FactCount     int                 `json:"factCount,omitempty"`
	ProposalID    string              `json:"proposalId,omitempty"`
	AnsweredBy    message.ID          `json:"answeredBy,omitempty"`
	Withheld      message.Withheld    `json:"withheld,omitempty"`
}

func encodeMessage(m *message.Message) *wireMessage {
	return &wireMessage{
		ID: m.ID, ChannelID: m.Channel, Sequence: m.Sequence, Timestamp: m.Time.UnixMilli(), Author: m.Author, Parts: m.Parts,
		ArtifactRefs: m.ArtifactRefs, Metadata: m.Metadata, IdempotencyKey: m.IdempotencyKey, Kind: kindMessageEvent,
		MessageType: m.Interaction, ContentType: m.ContentType, Format: m.Format, Tags: m.Tags, Recipient: m.To, Recipients: m.Recipients,
		CorrelationID: m.Correlation, ExpiresAt: millisOf(m.ExpiresAt), ReplyToID: m.ReplyTo, ThreadID: m.Thread, Retracts: m.Retracts, Withheld: m.Withheld,
		FactCount: m.FactCount, ProposalID: m.ProposalID, AnsweredBy: m.Answered,
	}
}
