package client

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Message is a message in a channel.
type Message struct {
	ID             string            `json:"id"`
	ChannelID      string            `json:"channelId"`
	Sequence       int64             `json:"sequence"`  // position in the channel, from 1
	Timestamp      int64             `json:"timestamp"` // milliseconds since 1970
	Author         string            `json:"author"`
	Parts          []json.RawMessage `json:"parts"` // as sent; empty if the message is withheld
	ArtifactRefs   []string          `json:"artifactRefs"`
	Metadata       json.RawMessage   `json:"metadata"`
	IdempotencyKey string            `json:"idempotencyKey"`
	Type           string            `json:"messageType"` // request, response, notify, broadcast
	ContentType    string            `json:"contentType"`
	Format         string            `json:"format"`
	Tags           []string          `json:"tags"`
	Recipient      string            `json:"recipient"`     // an agent, role:NAME, or *
	Recipients     []string          `json:"recipients"`    // the agents that Recipient resolved to
	CorrelationID  string            `json:"correlationId"` // the request that a response answers
	ExpiresAt      int64             `json:"expiresAt"`
	ReplyToID      string            `json:"replyToId"`
	ThreadID       string            `json:"threadId"`
	Retracts       string            `json:"retracts"`   // the id of the message that this one retracts
	FactCount      int               `json:"factCount"`  // number of patches published with it
	ProposalID     string            `json:"proposalId"` // the proposal that holds the patches, or ""
	AnsweredBy     string            `json:"answeredBy"` // the first response to a request, as of the read
	Withheld       string            `json:"withheld"`   // the reason why parts are missing: retracted, expired, addressed, evicted
	// Raw is the message as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON decodes a message and keeps the text in Raw.
func (m *Message) UnmarshalJSON(text []byte) error {
	type plain Message
	m.Raw = slices.Clone(text)
	return json.Unmarshal(text, (*plain)(m))
}

// Text returns the text parts, one per line.
func (m *Message) Text() string {
	text := ""
	for _, raw := range m.Parts {
		var part struct{ Text string }
		if json.Unmarshal(raw, &part) == nil && part.Text != "" {
			if text != "" {
				text += "\n"
			}
			text += part.Text
		}
	}
	return text
}

// TextPart returns a message part with text.
func TextPart(text string) any { return map[string]any{"type": "text", "text": text} }

// DataPart returns a message part with structured data.
func DataPart(data any) any { return map[string]any{"type": "data", "data": data} }

// Publication describes a message to publish, in a channel or to an agent.
type Publication struct {
	Channel string `json:"channelId,omitempty"` // the id of the channel
	To      string `json:"to,omitempty"`        // or the peer of a direct channel

	Parts        []any          `json:"parts,omitempty"` // 1 to 32 objects: TextPart, DataPart or others
	ArtifactRefs []string       `json:"artifactRefs,omitempty"`
	Metadata     map[string]any `json:"metadata,omitempty"`
	// IdempotencyKey makes a retry return the message of the first request. Without a key
	// the client generates one that covers its own retries.
	IdempotencyKey string   `json:"idempotencyKey,omitempty"`
	Type           string   `json:"messageType,omitempty"` // request, response, notify, broadcast
	ContentType    string   `json:"contentType,omitempty"`
	Format         string   `json:"format,omitempty"`
	Tags           []string `json:"tags,omitempty"`
	Recipient      string   `json:"recipient,omitempty"`     // an agent, role:NAME, or *; hidden from other agents
	CorrelationID  string   `json:"correlationId,omitempty"` // the request that a response answers
	ExpiresAt      int64    `json:"expiresAt,omitempty"`     // milliseconds since 1970
	ReplyToID      string   `json:"replyToId,omitempty"`
	ThreadID       string   `json:"threadId,omitempty"`
	// Patches are applied with the message, which is their evidence.
	Patches       []Patch `json:"patches,omitempty"`
	Justification string  `json:"justification,omitempty"`
	TaskID        string  `json:"taskId,omitempty"`
	SessionID     string  `json:"sessionId,omitempty"`
}

// Published is the result of Publish.
type Published struct {
	Message             *Message `json:"event"`
	Replayed            bool     `json:"replayed"`           // the message existed already, under its key
	StatementsAffected  int      `json:"statementsAffected"` // by its patches
	VerificationStatus  string   `json:"verificationStatus"` // of its patches
	VerificationDetails string   `json:"verificationDetails"`
	ProposalID          string   `json:"proposalId"` // of patches that are held for review
	// Raw is the result as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// Publish publishes a message. It retries with the same idempotency key while the outcome
// is unknown. The Recipient of a request defaults to To.
func (c *Client) Publish(ctx context.Context, p Publication) (*Published, error) {
	if err := c.requireCapability(Channels); err != nil {
		return nil, err
	}
	if p.IdempotencyKey == "" && !c.retry.FailFast {
		p.IdempotencyKey = uuid.NewString()
	}
	if p.Type == "request" {
		p.Recipient = cmp.Or(p.Recipient, p.To)
	}
	out := new(Published)
	if err := c.callWithRetry(ctx, "channels/publish", p, &out.Raw); err != nil {
		return nil, err
	}
	if err := decodeAnswer(out.Raw, out); err != nil {
		return nil, err
	}
	if out.Message == nil {
		return nil, &Error{Message: "the response has no message"}
	}
	return out, nil
}

// Respond publishes a response to a request, in the channel of the request.
func (c *Client) Respond(ctx context.Context, to *Message, parts ...any) (*Published, error) {
	return c.Publish(ctx, Publication{Channel: to.ChannelID, Type: "response", CorrelationID: to.ID, Recipient: to.Author, Parts: parts})
}

// DefaultAskTimeout is the wait of Ask if the caller gives none.
const DefaultAskTimeout = 30 * time.Second

// Ask publishes a request and returns the first response to it. It waits at most wait
// (0: DefaultAskTimeout) and then fails with Unanswered. A response that arrives while the
// connection is lost is not missed.
//
// A request needs a Recipient (an agent or role:NAME) or To. Only the author and the
// recipient can read the request and its response. An unanswered request stays in the
// channel, and may be answered after Ask has returned. Ask ignores a response that is
// retracted before it is read, and waits for another.
//
// With an idempotency key, a repeated Ask waits for the response to the first request,
// also after a restart of the program.
func (c *Client) Ask(ctx context.Context, p Publication, wait time.Duration) (*Message, error) {
	if wait <= 0 {
		wait = DefaultAskTimeout
	}
	p.Type = "request"
	unanswered := &Error{Reason: Unanswered, Message: "no response within " + wait.String()}
	bounded, cancel := context.WithTimeoutCause(ctx, wait, unanswered)
	defer cancel()
	m, retracted, err := c.publishAndWait(bounded, p)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		if retracted {
			return nil, &Error{Reason: Unanswered, Message: "the response was retracted, and no other came within " + wait.String()}
		}
		return nil, unanswered
	}
	return m, err
}

// publishAndWait is Ask without a timeout. It also reports whether it ignored a retracted
// response.
func (c *Client) publishAndWait(ctx context.Context, p Publication) (m *Message, retracted bool, err error) {
	published, err := c.Publish(ctx, p)
	if err != nil {
		return nil, false, err
	}
	request := published.Message
	for m, err := range c.Stream(ctx, request.ChannelID, StreamOptions{Since: request.Sequence}) {
		switch {
		case err != nil:
			return nil, retracted, err
		case m.Type != "response" || m.CorrelationID != request.ID:
		case m.Withheld == "retracted":
			retracted = true
		default:
			return m, retracted, nil
		}
	}
	return nil, retracted, ctx.Err() // not reached: a stream ends with an error
}
