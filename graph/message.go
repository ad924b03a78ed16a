package graph

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"koine/channels"
	"koine/kg"
)

// Message is a message as the caller sees it.
type Message struct {
	of      *channels.Message
	channel *Channel // nil where it was not read on the way
}

// readMessage answers Query.message.
func readMessage(ctx context.Context, id string) (*Message, error) {
	r := runOf(ctx)
	service, by, err := r.channels()
	if err != nil {
		return nil, err
	}
	m, err := service.Message(ctx, by, channels.MessageID(id))
	if err != nil {
		return nil, asAsked(err)
	}
	return &Message{of: m}, r.charge(sizeOfMessage(m))
}

// messageIfAny is the message with the id; nil for "" and where the caller reads none.
func messageIfAny(ctx context.Context, id channels.MessageID) (*Message, error) {
	if id == "" || runOf(ctx).engine.deps.Channels == nil {
		return nil, nil
	}
	return unlessGone(readMessage(ctx, string(id)))
}

// IsNode tells that Query.node finds it.
func (*Message) IsNode() {}

// ID of the message.
func (m *Message) ID() string { return string(m.of.ID) }

// ChannelID is that of its channel.
func (m *Message) ChannelID() string { return string(m.of.Channel) }

// Channel is where it was published.
func (m *Message) Channel(ctx context.Context) (*Channel, error) {
	if m.channel != nil {
		return m.channel, nil
	}
	return unlessGone(readChannel(ctx, string(m.of.Channel)))
}

// Sequence is its number in the channel.
func (m *Message) Sequence() int64 { return m.of.Sequence }

// Time is when it was published.
func (m *Message) Time() time.Time { return m.of.Time }

// Author is who published it.
func (m *Message) Author() string { return string(m.of.Author) }

// Parts are what it says.
func (m *Message) Parts() []json.RawMessage { return notNil(m.of.Parts) }

// Text joins the texts of its parts. A part is a text where it has one, in each of
// the forms in which parts are written.
func (m *Message) Text() string {
	var lines []string
	for _, raw := range m.of.Parts {
		var part struct{ Text *string }
		if json.Unmarshal(raw, &part) == nil && part.Text != nil {
			lines = append(lines, *part.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// Withheld says why its content is not shown, nil where it is.
func (m *Message) Withheld() *WithheldReason { return enumOrNil[WithheldReason](m.of.Withheld) }

// Retracts is the message that it takes back.
func (m *Message) Retracts(ctx context.Context) (*Message, error) {
	return messageIfAny(ctx, m.of.Retracts)
}

// RetractedBy is the message that took it back.
func (m *Message) RetractedBy(ctx context.Context) (*Message, error) {
	return messageIfAny(ctx, m.of.RetractedBy)
}

// Private tells whether only its author and its recipients read its content.
func (m *Message) Private() bool { return m.of.Private }

// AnsweredBy is the first response to a request.
func (m *Message) AnsweredBy(ctx context.Context) (*Message, error) {
	return messageIfAny(ctx, m.of.Answered)
}

// Metadata is a JSON object, nil for none.
func (m *Message) Metadata() json.RawMessage { return m.of.Metadata }

// ArtifactRefs are the artifacts that it refers to.
func (m *Message) ArtifactRefs() []string { return notNil(m.of.ArtifactRefs) }

// IdempotencyKey is its author's.
func (m *Message) IdempotencyKey() *string { return some(m.of.IdempotencyKey) }

// MessageType is what it is for, nil where it does not say.
func (m *Message) MessageType() *MessageType { return enumOrNil[MessageType](m.of.Interaction) }

// ContentType is how it is meant, nil where it does not say.
func (m *Message) ContentType() *MessageContentType {
	return enumOrNil[MessageContentType](m.of.ContentType)
}

// enumOrNil is a word of the domain as one of the schema's, nil for "".
func enumOrNil[E, T ~string](word T) *E {
	if word == "" {
		return nil
	}
	e := E(inSchema(word))
	return &e
}

// Format is the form of its text.
func (m *Message) Format() *string { return some(m.of.Format) }

// Tags are in order.
func (m *Message) Tags() []string { return notNil(m.of.Tags) }

// Recipient is whom its author addresses.
func (m *Message) Recipient() *string { return some(m.of.To) }

// Recipients are whom that stood for.
func (m *Message) Recipients() []string { return agentTexts(m.of.Recipients) }

// CorrelationID is the id of the request that it answers.
func (m *Message) CorrelationID() *string { return some(string(m.of.Correlation)) }

// Correlation is the request that it answers.
func (m *Message) Correlation(ctx context.Context) (*Message, error) {
	return messageIfAny(ctx, m.of.Correlation)
}

// ExpiresAt is nil for never.
func (m *Message) ExpiresAt() *time.Time { return timeOrNil(m.of.ExpiresAt) }

// ReplyToID is the id of what it replies to.
func (m *Message) ReplyToID() *string { return some(string(m.of.ReplyTo)) }

// ReplyTo is what it replies to.
func (m *Message) ReplyTo(ctx context.Context) (*Message, error) {
	return messageIfAny(ctx, m.of.ReplyTo)
}

// ThreadID is the thread that it belongs to.
func (m *Message) ThreadID() *string { return some(m.of.Thread) }

// FactCount is how many patches came with it.
func (m *Message) FactCount() int { return m.of.FactCount }

// ProposalID names the proposal of its facts.
func (m *Message) ProposalID() *string { return some(m.of.ProposalID) }

// Proposal is that proposal, nil where the caller may not read it.
func (m *Message) Proposal(ctx context.Context) (*Proposal, error) {
	if m.of.ProposalID == "" {
		return nil, nil
	}
	return unlessGone(readProposal(ctx, m.of.ProposalID))
}

// Entity is the message as an entity; the engine writes it.
func (m *Message) Entity(ctx context.Context) (*Entity, error) {
	return nil, readOwnEntity(ctx, m.of.ID.Entity())
}

// Facts are what it asserts; the engine writes them.
func (m *Message) Facts(ctx context.Context, first *int) ([]Statement, error) {
	return nil, readFacts(ctx, first, func(ctx context.Context, r *run) ([]*kg.Commit, error) { return r.commitsOf(ctx, m.of) })
}

// Revision is the commit that it came with.
func (m *Message) Revision() kg.Revision { return m.of.Revision }

// Position is behind that commit.
func (m *Message) Position(ctx context.Context) Position {
	store := runOf(ctx).engine.deps.Store
	return Position(store.FormatPosition(endOf(store, m.of.Revision)))
}

// endOf is the position behind a commit.
func endOf(store *kg.Store, r kg.Revision) kg.Position {
	return kg.Position{Epoch: store.Epoch(), Revision: r, Index: kg.EndOfCommit}
}
