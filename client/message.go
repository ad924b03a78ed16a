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
	Sequence       int64             `json:"sequence"`  // its place in the channel, from 1
	Timestamp      int64             `json:"timestamp"` // milliseconds since 1970
	Author         string            `json:"author"`
	Parts          []json.RawMessage `json:"parts"` // as they were sent; none where it is withheld
	ArtifactRefs   []string          `json:"artifactRefs"`
	Metadata       json.RawMessage   `json:"metadata"`
	IdempotencyKey string            `json:"idempotencyKey"`
	Type           string            `json:"messageType"` // request, response, notify, broadcast
	ContentType    string            `json:"contentType"`
	Format         string            `json:"format"`
	Tags           []string          `json:"tags"`
	Recipient      string            `json:"recipient"`     // an agent, role:NAME, or *
	Recipients     []string          `json:"recipients"`    // whom that was
	CorrelationID  string            `json:"correlationId"` // the request that a response answers
	ExpiresAt      int64             `json:"expiresAt"`
	ReplyToID      string            `json:"replyToId"`
	ThreadID       string            `json:"threadId"`
	Retracts       string            `json:"retracts"`   // the message that this one takes back
	FactCount      int               `json:"factCount"`  // how many patches were published with it
	ProposalID     string            `json:"proposalId"` // that they were held in
	AnsweredBy     string            `json:"answeredBy"` // the first response to a request, if there was one when it was read
	Withheld       string            `json:"withheld"`   // why it has no parts: retracted, expired, addressed, evicted
	// Raw is all that the server sent.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps what it reads in Raw.
func (m *Message) UnmarshalJSON(text []byte) error {
	type plain Message
	m.Raw = slices.Clone(text)
	return json.Unmarshal(text, (*plain)(m))
}

// Text is what stands in its parts that are texts, a line for each.
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

// TextPart is a part of a message that is a text.
func TextPart(text string) any { return map[string]any{"type": "text", "text": text} }

// DataPart is one that holds data.
func DataPart(data any) any { return map[string]any{"type": "data", "data": data} }

// Publication is what is to be said, in a channel or to somebody.
type Publication struct {
	Channel string `json:"channelId,omitempty"` // by its id
	To      string `json:"to,omitempty"`        // or the other agent of a direct channel

	Parts        []any          `json:"parts,omitempty"` // objects, 1 to 32: TextPart, DataPart or one's own
	ArtifactRefs []string       `json:"artifactRefs,omitempty"`
	Metadata     map[string]any `json:"metadata,omitempty"`
	// IdempotencyKey makes the same message be published once. Without one the
	// client makes one up, for its own attempts.
	IdempotencyKey string   `json:"idempotencyKey,omitempty"`
	Type           string   `json:"messageType,omitempty"` // request, response, notify, broadcast
	ContentType    string   `json:"contentType,omitempty"`
	Format         string   `json:"format,omitempty"`
	Tags           []string `json:"tags,omitempty"`
	Recipient      string   `json:"recipient,omitempty"`     // an agent, role:NAME, or *: others do not read it
	CorrelationID  string   `json:"correlationId,omitempty"` // the request that a response answers
	ExpiresAt      int64    `json:"expiresAt,omitempty"`     // milliseconds since 1970
	ReplyToID      string   `json:"replyToId,omitempty"`
	ThreadID       string   `json:"threadId,omitempty"`
	// Patches are facts that come with it, which is their evidence.
	Patches       []Patch `json:"patches,omitempty"`
	Justification string  `json:"justification,omitempty"`
	TaskID        string  `json:"taskId,omitempty"`
	SessionID     string  `json:"sessionId,omitempty"`
}

// Published is what became of a publication.
type Published struct {
	Message             *Message `json:"event"`
	Replayed            bool     `json:"replayed"`           // it was there already, under its key
	StatementsAffected  int      `json:"statementsAffected"` // by its facts
	VerificationStatus  string   `json:"verificationStatus"` // of its facts
	VerificationDetails string   `json:"verificationDetails"`
	ProposalID          string   `json:"proposalId"` // of facts that wait for a review
	// Raw is all that the server sent.
	Raw json.RawMessage `json:"-"`
}

// Publish says something. It is sent again, with the same key, while it is not known
// whether it arrived. A request without a Recipient is for whom it is said To.
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
		return nil, &Error{Message: "the server's answer has no message"}
	}
	return out, nil
}

// Respond answers a request, in its channel.
func (c *Client) Respond(ctx context.Context, to *Message, parts ...any) (*Published, error) {
	return c.Publish(ctx, Publication{Channel: to.ChannelID, Type: "response", CorrelationID: to.ID, Recipient: to.Author, Parts: parts})
}

// DefaultAskTimeout is how long Ask waits without a bound of one's own.
const DefaultAskTimeout = 30 * time.Second

// Ask publishes a request and waits for the first response to it, at most as long as
// wait says (0: DefaultAskTime); then it is Unanswered. A response that comes while
// the connection is lost is not missed.
//
// A question needs a Recipient, an agent or role:NAME, or whom it is said To. In a
// channel of more nobody but the recipient and the author reads it, and the same is
// true of the response. One that nobody answered in time stands: it may be answered
// later, by which time Ask has given up on it. A response that was retracted by the time
// it is read is none: another is waited for.
//
// With an idempotency key the same question waits for the response to the first one,
// also after a restart of the program.
func (c *Client) Ask(ctx context.Context, p Publication, wait time.Duration) (*Message, error) {
	if wait <= 0 {
		wait = DefaultAskTimeout
	}
	p.Type = "request"
	unanswered := &Error{Reason: Unanswered, Message: "nobody responded within " + wait.String()}
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

// publishAndWait is Ask without a bound. It also tells whether a response was passed over because it
// was retracted.
func (c *Client) publishAndWait(ctx context.Context, p Publication) (m *Message, retracted bool, err error) {
	asked, err := c.Publish(ctx, p)
	if err != nil {
		return nil, false, err
	}
	request := asked.Message
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
