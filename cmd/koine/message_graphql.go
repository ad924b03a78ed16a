package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"koine/client"
)

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
	text, err := encodeJSON(wire)
	if err != nil {
		return nil, err
	}
	out := new(client.Message)
	return out, json.Unmarshal(text, out)
}

// encodeJSON encodes a value as JSON without escaping HTML in embedded JSON.
func encodeJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, invalidResponse(err)
	}
	return b.Bytes(), nil
}
