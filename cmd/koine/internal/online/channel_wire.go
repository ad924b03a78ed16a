package online

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

// channelFields selects the fields of a channel that channels/get returns.
const channelFields = `fragment channel on Channel { id name visibility createdAt createdBy members { agent role joinedAt } metadata version
  scopeId closedAt closedReason }`

// graphQLChannel is a channel as GraphQL encodes it.
type graphQLChannel struct {
	ID         string
	Name       string
	Visibility string
	CreatedAt  time.Time
	CreatedBy  string
	Members    []struct {
		Agent    string
		Role     string
		JoinedAt time.Time
	}
	Metadata     json.RawMessage
	Version      int64
	ScopeID      string
	ClosedAt     time.Time
	ClosedReason string
}

// toChannel converts the channel to the form that channels/get returns.
func (c *graphQLChannel) toChannel() (*client.Channel, error) {
	if string(c.Metadata) == "null" {
		c.Metadata = nil
	}
	wire := struct {
		ID           string          `json:"id"`
		Name         string          `json:"name,omitempty"`
		Visibility   string          `json:"visibility"`
		CreatedAt    int64           `json:"createdAt,omitempty"`
		CreatedBy    string          `json:"createdBy,omitempty"`
		Members      []client.Member `json:"members"`
		Metadata     json.RawMessage `json:"metadata,omitempty"`
		Version      int64           `json:"version"`
		Kind         string          `json:"kind"`
		ScopeID      string          `json:"scopeId,omitempty"`
		ClosedAt     int64           `json:"closedAt,omitempty"`
		ClosedReason string          `json:"closedReason,omitempty"`
	}{
		ID: c.ID, Name: c.Name, Visibility: strings.ToLower(c.Visibility), CreatedAt: milliOf(c.CreatedAt), CreatedBy: c.CreatedBy,
		Members: make([]client.Member, 0, len(c.Members)), Metadata: c.Metadata, Version: c.Version, Kind: "channel",
		ScopeID: c.ScopeID, ClosedAt: milliOf(c.ClosedAt), ClosedReason: c.ClosedReason,
	}
	for _, m := range c.Members {
		wire.Members = append(wire.Members, client.Member{Agent: m.Agent, Role: strings.ToLower(m.Role), JoinedAt: milliOf(m.JoinedAt)})
	}
	text, err := cli.EncodeJSON(wire)
	if err != nil {
		return nil, err
	}
	out := new(client.Channel)
	return out, json.Unmarshal(text, out)
}

// milliOf returns a time in milliseconds since 1970, 0 for none.
func milliOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// runMutation runs a mutation on the channel and prints the channel.
func (c *changedChannel) runMutation(ctx context.Context, t cli.Terminal, server *client.Client, mutation, inputType string, input map[string]any) error {
	query := fmt.Sprintf(`mutation($input: %s!) { %s(input: $input) `, inputType, mutation)
	if c.JSON {
		query += "{ ...channel } } " + channelFields
	} else {
		query += "{ id } }"
	}
	var answer map[string]*graphQLChannel
	if err := server.GraphQL(ctx, query, map[string]any{"input": input}, &answer); err != nil {
		return err
	}
	if answer[mutation] == nil {
		return fmt.Errorf("the server's answer: it has no %s", mutation)
	}
	is, err := answer[mutation].toChannel()
	if err != nil {
		return err
	}
	return c.printChannel(t, is)
}

// messageFields selects all fields of a message that channels/history returns.
const messageFields = `fragment message on Message { id channelId sequence time author parts artifactRefs metadata idempotencyKey
  messageType contentType format tags recipient recipients correlationId expiresAt replyToId threadId
  retracts { id sequence } withheldReason factCount proposalId answeredBy { id } }`

// graphQLMessage is a message as GraphQL encodes it.
type graphQLMessage struct {
	ID             string
	ChannelID      string
	Sequence       int64
	Time           time.Time
	Author         string
	Parts          []json.RawMessage
	ArtifactRefs   []string
	Metadata       json.RawMessage
	IdempotencyKey string
	MessageType    string
	ContentType    string
	Format         string
	Tags           []string
	Recipient      string
	Recipients     []string
	CorrelationID  string
	ExpiresAt      time.Time
	ReplyToID      string
	ThreadID       string
	Retracts       struct {
		ID       string
		Sequence int64
	}
	Withheld   string `json:"withheldReason"`
	FactCount  int
	ProposalID string
	AnsweredBy struct{ ID string }

	ReceiptStatus string
}

// clientMessage converts the message to the form of channels/history. The receipt status is
// included if it was selected.
func (m *graphQLMessage) clientMessage() (*client.Message, error) {
	if string(m.Metadata) == "null" {
		m.Metadata = nil
	}
	wire := struct {
		ID             string            `json:"id"`
		ChannelID      string            `json:"channelId"`
		Sequence       int64             `json:"sequence"`
		Timestamp      int64             `json:"timestamp"`
		Author         string            `json:"author"`
		Parts          []json.RawMessage `json:"parts,omitempty"`
		ArtifactRefs   []string          `json:"artifactRefs,omitempty"`
		Metadata       json.RawMessage   `json:"metadata,omitempty"`
		IdempotencyKey string            `json:"idempotencyKey,omitempty"`
		Kind           string            `json:"kind"`
		MessageType    string            `json:"messageType,omitempty"`
		ContentType    string            `json:"contentType,omitempty"`
		Format         string            `json:"format,omitempty"`
		Tags           []string          `json:"tags,omitempty"`
		Recipient      string            `json:"recipient,omitempty"`
		Recipients     []string          `json:"recipients,omitempty"`
		CorrelationID  string            `json:"correlationId,omitempty"`
		ExpiresAt      int64             `json:"expiresAt,omitempty"`
		ReplyToID      string            `json:"replyToId,omitempty"`
		ThreadID       string            `json:"threadId,omitempty"`
		Retracts       string            `json:"retracts,omitempty"`
		FactCount      int               `json:"factCount,omitempty"`
		ProposalID     string            `json:"proposalId,omitempty"`
		AnsweredBy     string            `json:"answeredBy,omitempty"`
		Withheld       string            `json:"withheld,omitempty"`
		ReceiptStatus  string            `json:"receiptStatus,omitempty"`
	}{
		ID: m.ID, ChannelID: m.ChannelID, Sequence: m.Sequence, Timestamp: m.Time.UnixMilli(), Author: m.Author, Parts: m.Parts,
		ArtifactRefs: m.ArtifactRefs, Metadata: m.Metadata, IdempotencyKey: m.IdempotencyKey, Kind: "messageEvent",
		MessageType: strings.ToLower(m.MessageType), ContentType: strings.ToLower(m.ContentType), Format: m.Format, Tags: m.Tags,
		Recipient: m.Recipient, Recipients: m.Recipients, CorrelationID: m.CorrelationID, ReplyToID: m.ReplyToID, ThreadID: m.ThreadID,
		Retracts: m.Retracts.ID, FactCount: m.FactCount, ProposalID: m.ProposalID, AnsweredBy: m.AnsweredBy.ID,
		Withheld: strings.ToLower(m.Withheld), ReceiptStatus: strings.ToLower(m.ReceiptStatus),
	}
	if !m.ExpiresAt.IsZero() {
		wire.ExpiresAt = m.ExpiresAt.UnixMilli()
	}
	text, err := cli.EncodeJSON(wire)
	if err != nil {
		return nil, err
	}
	out := new(client.Message)
	return out, json.Unmarshal(text, out)
}
