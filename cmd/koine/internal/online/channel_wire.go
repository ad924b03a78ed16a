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

// GraphQL and the methods channels/… have the same channels and messages in different forms.
// The types below are read in GraphQL's form and written in that of the methods, which is
// what --json prints.

// milliTime is written in milliseconds since 1970.
type milliTime struct{ time.Time }

// MarshalJSON writes the milliseconds.
func (t milliTime) MarshalJSON() ([]byte, error) { return json.Marshal(t.UnixMilli()) }

// milliOf returns a time in milliseconds since 1970, 0 for none.
func milliOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// enumText is a value of an enum, written in lower case.
type enumText string

// MarshalJSON writes the value in lower case.
func (e enumText) MarshalJSON() ([]byte, error) { return json.Marshal(strings.ToLower(string(e))) }

// messageRef is a message, written as its id.
type messageRef struct {
	ID       string
	Sequence int64
}

// MarshalJSON writes the id.
func (r messageRef) MarshalJSON() ([]byte, error) { return json.Marshal(r.ID) }

// toClient converts a channel or a message to the type of package client.
func toClient[T any](from any) (*T, error) {
	text, err := cli.EncodeJSON(from)
	if err != nil {
		return nil, err
	}
	out := new(T)
	return out, json.Unmarshal(text, out)
}

// channelFields selects the fields of a channel that channels/get returns.
const channelFields = `fragment channel on Channel { id name visibility createdAt createdBy: createdById members(first: 1000) { nodes { principalId: agentId role joinedAt } } metadata version
  scopeId closedAt closedReason }`

// nodesOf are the elements of a connection, which is {"nodes": […]} in an answer.
type nodesOf[T any] []T

func (n *nodesOf[T]) UnmarshalJSON(text []byte) error {
	var page struct{ Nodes []T }
	err := json.Unmarshal(text, &page)
	*n = page.Nodes
	return err
}

// graphQLChannel is a channel as channelFields selects it.
type graphQLChannel struct {
	ID         string    `json:"id"`
	Name       string    `json:"name,omitempty"`
	Visibility enumText  `json:"visibility"`
	CreatedAt  milliTime `json:"createdAt,omitzero"`
	CreatedBy  string    `json:"createdBy,omitempty"`
	Members    nodesOf[struct {
		Agent    string    `json:"principalId"`
		Role     enumText  `json:"role,omitempty"`
		JoinedAt milliTime `json:"joinedAt,omitzero"`
	}] `json:"members"`
	Metadata     *json.RawMessage `json:"metadata,omitempty"`
	Version      int64            `json:"version"`
	Kind         string           `json:"kind"`
	ScopeID      string           `json:"scopeId,omitempty"`
	ClosedAt     milliTime        `json:"closedAt,omitzero"`
	ClosedReason string           `json:"closedReason,omitempty"`
}

// runMutation runs a mutation on the channel and prints the channel.
func (c *changedChannel) runMutation(ctx context.Context, t cli.Terminal, server *client.Client, mutation, inputType string, input map[string]any) error {
	query := fmt.Sprintf(`mutation($input: %s!) { %s(input: $input) `, inputType, mutation)
	if c.JSON {
		query += "{ channel { ...channel } } } " + channelFields
	} else {
		query += "{ channel { id } } }"
	}
	var answer map[string]struct{ Channel *graphQLChannel }
	if err := server.GraphQL(ctx, query, map[string]any{"input": input}, &answer); err != nil {
		return err
	}
	changed := answer[mutation].Channel
	if changed == nil {
		return cli.InvalidResponse(fmt.Errorf("it has no %s", mutation))
	}
	changed.Kind = "channel"
	is, err := toClient[client.Channel](changed)
	if err != nil {
		return err
	}
	return printChannel(t, c.JSON, is.ID, is.Raw)
}

// printChannel prints the id of a channel, or as JSON the channel.
func printChannel(t cli.Terminal, asJSON bool, id string, raw json.RawMessage) error {
	if asJSON {
		return cli.PrintJSON(t.Out, fmt.Appendf(nil, `{"channel":%s}`, raw), true)
	}
	_, err := fmt.Fprintln(t.Out, id)
	return err
}

// messageFields selects all fields of a message that channels/history returns.
const messageFields = `fragment message on Message { id channelId sequence timestamp: time author: authorId parts artifactRefs metadata idempotencyKey
  messageType contentType format tags recipient recipients: recipientIds correlationId expiresAt replyToId threadId
  retracts { id sequence } withheld: withheldReason factCount proposalId answeredBy { id } }`

// graphQLMessage is a message as messageFields selects it. The receipt status is selected in
// the inbox only.
type graphQLMessage struct {
	ID             string            `json:"id"`
	ChannelID      string            `json:"channelId"`
	Sequence       int64             `json:"sequence"`
	Timestamp      milliTime         `json:"timestamp"`
	Author         string            `json:"author"`
	Parts          []json.RawMessage `json:"parts,omitempty"`
	ArtifactRefs   []string          `json:"artifactRefs,omitempty"`
	Metadata       *json.RawMessage  `json:"metadata,omitempty"`
	IdempotencyKey string            `json:"idempotencyKey,omitempty"`
	Kind           string            `json:"kind"`
	MessageType    enumText          `json:"messageType,omitempty"`
	ContentType    enumText          `json:"contentType,omitempty"`
	Format         string            `json:"format,omitempty"`
	Tags           []string          `json:"tags,omitempty"`
	Recipient      string            `json:"recipient,omitempty"`
	Recipients     []string          `json:"recipients,omitempty"`
	CorrelationID  string            `json:"correlationId,omitempty"`
	ExpiresAt      milliTime         `json:"expiresAt,omitzero"`
	ReplyToID      string            `json:"replyToId,omitempty"`
	ThreadID       string            `json:"threadId,omitempty"`
	Retracts       messageRef        `json:"retracts,omitzero"`
	FactCount      int               `json:"factCount,omitempty"`
	ProposalID     string            `json:"proposalId,omitempty"`
	AnsweredBy     messageRef        `json:"answeredBy,omitzero"`
	Withheld       enumText          `json:"withheld,omitempty"`
	ReceiptStatus  enumText          `json:"receiptStatus,omitempty"`
}

// clientMessage converts the message to the form of channels/history.
func (m *graphQLMessage) clientMessage() (*client.Message, error) {
	m.Kind = "messageEvent"
	return toClient[client.Message](m)
}
