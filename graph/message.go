package graph

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"koine/channels"
	"koine/channels/message"
	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/internal/proposals"
	"koine/kg"
)

// Message is a message as the caller sees it.
type Message struct {
	record    *message.Message
	channel   *Channel    // nil if it was not loaded
	Sequence  int64       // number of the message in its channel
	Time      time.Time   // when the message was published
	Private   bool        // only the author and the recipients may read the content
	FactCount int         // patches published with the message
	Revision  kg.Revision // of the message's commit
}

// messageOf returns a message of the domain.
func messageOf(m *message.Message) *Message {
	return &Message{record: m, Sequence: m.Sequence, Time: m.Time, Private: m.Private, FactCount: m.FactCount, Revision: m.Revision}
}

// readMessage answers Query.message.
func readMessage(ctx context.Context, id string) (*Message, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	m, err := service.Message(ctx, by, message.ID(id))
	if err != nil {
		return nil, atArgument(err)
	}
	return messageOf(m), r.chargeBytes(sizeOfMessage(m))
}

// messageIfAny returns the message with the id, nil for "" and if the caller
// may not read it.
func messageIfAny(ctx context.Context, id message.ID) (*Message, error) {
	if id == "" || runOf(ctx).engine.deps.Channels == nil {
		return nil, nil
	}
	return unlessGone(readMessage(ctx, string(id)))
}

// ID is the id of the message.
func (m *Message) ID() string { return string(m.record.ID) }

// ChannelID is the id of the message's channel.
func (m *Message) ChannelID() string { return string(m.record.Channel) }

// Channel is the channel of the message.
func (m *Message) Channel(ctx context.Context) (*Channel, error) {
	if m.channel != nil {
		return m.channel, nil
	}
	return unlessGone(readChannel(ctx, string(m.record.Channel)))
}

// Author is the agent that published the message.
func (m *Message) Author() *Agent { return agentOf(m.record.Author) }

// AuthorID is the id of the author.
func (m *Message) AuthorID() string { return string(m.record.Author) }

// Parts is the content of the message.
func (m *Message) Parts() []json.RawMessage { return notNil(m.record.Parts) }

// Text joins the texts of the parts. A part of any format is a text if it has
// a member `text`.
func (m *Message) Text() string {
	var lines []string
	for _, raw := range m.record.Parts {
		var part struct{ Text *string }
		if json.Unmarshal(raw, &part) == nil && part.Text != nil {
			lines = append(lines, *part.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// WithheldReason is the reason why the content is not shown, nil if it is.
func (m *Message) WithheldReason() *WithheldReason {
	return enumOrNil[WithheldReason](m.record.Withheld)
}

// Retracts is the message that this one retracts.
func (m *Message) Retracts(ctx context.Context) (*Message, error) {
	return messageIfAny(ctx, m.record.Retracts)
}

// RetractedBy is the message that retracted this one.
func (m *Message) RetractedBy(ctx context.Context) (*Message, error) {
	return messageIfAny(ctx, m.record.RetractedBy)
}

// AnsweredBy is the first response to a request.
func (m *Message) AnsweredBy(ctx context.Context) (*Message, error) {
	return messageIfAny(ctx, m.record.Answered)
}

// Metadata is a JSON object, nil for none.
func (m *Message) Metadata() json.RawMessage { return m.record.Metadata }

// Embedding is the embedding of the message, nil for none.
func (m *Message) Embedding(ctx context.Context) (*kg.Embedding, error) {
	r := runOf(ctx)
	e, err := channels.ReadEmbedding(ctx, r.engine.deps.Channels, m.record)
	if err != nil {
		return nil, err
	}
	return e, r.chargeBytes(e.Bytes())
}

// ArtifactRefs are the references to artifacts.
func (m *Message) ArtifactRefs() []string { return notNil(m.record.ArtifactRefs) }

// IdempotencyKey is the key that the author gave.
func (m *Message) IdempotencyKey() *string { return nilIfEmpty(m.record.IdempotencyKey) }

// MessageType is the kind of interaction, nil if the author gave none.
func (m *Message) MessageType() *MessageType { return enumOrNil[MessageType](m.record.Interaction) }

// ContentType is the kind of content, nil if the author gave none.
func (m *Message) ContentType() *MessageContentType {
	return enumOrNil[MessageContentType](m.record.ContentType)
}

// enumOrNil converts a word of the domain to an enum value of the schema, nil
// for "".
func enumOrNil[E, T ~string](word T) *E {
	if word == "" {
		return nil
	}
	e := E(inSchema(word))
	return &e
}

// Format is the format of the text.
func (m *Message) Format() *string { return nilIfEmpty(m.record.Format) }

// Tags are sorted.
func (m *Message) Tags() []string { return notNil(m.record.Tags) }

// Recipient is the address that the author gave.
func (m *Message) Recipient() *string { return nilIfEmpty(m.record.To) }

// Recipients are the agents that the address stood for.
func (m *Message) Recipients() []Agent { return agentsOf(m.record.Recipients) }

// RecipientIds are their ids.
func (m *Message) RecipientIds() []string { return agentTexts(m.record.Recipients) }

// CorrelationID is the id of the request that the message answers.
func (m *Message) CorrelationID() *string { return nilIfEmpty(string(m.record.Correlation)) }

// Correlation is the request that the message answers.
func (m *Message) Correlation(ctx context.Context) (*Message, error) {
	return messageIfAny(ctx, m.record.Correlation)
}

// ExpiresAt is nil if the message does not expire.
func (m *Message) ExpiresAt() *time.Time { return timeOrNil(m.record.ExpiresAt) }

// ReplyToID is the id of the message that this one replies to.
func (m *Message) ReplyToID() *string { return nilIfEmpty(string(m.record.ReplyTo)) }

// ReplyTo is the message that this one replies to.
func (m *Message) ReplyTo(ctx context.Context) (*Message, error) {
	return messageIfAny(ctx, m.record.ReplyTo)
}

// ThreadID is the id of the message's thread.
func (m *Message) ThreadID() *string { return nilIfEmpty(m.record.Thread) }

// ProposalID is the id of the proposal that holds the message's facts.
func (m *Message) ProposalID() *string { return nilIfEmpty(m.record.ProposalID) }

// Proposal is that proposal, nil if the caller may not read it.
func (m *Message) Proposal(ctx context.Context) (*Proposal, error) {
	if m.record.ProposalID == "" {
		return nil, nil
	}
	return unlessGone(readProposal(ctx, m.record.ProposalID))
}

// Entity is the message as an entity.
func (m *Message) Entity(ctx context.Context, f *executor.Selected) (executor.Value, error) {
	return knowledge.ReadOwnEntity(ctx, f, m.record.ID.Entity())
}

// Facts are the statements that the message asserts.
func (m *Message) Facts(ctx context.Context, f *executor.Selected, args *messageFactsArgs) (executor.Value, error) {
	return readFacts(ctx, f, string(m.record.ID), knowledge.PageArgs{First: args.First, After: args.After}, func(ctx context.Context, r *run) ([]*kg.Commit, error) { return r.commitsOf(ctx, m.record) })
}

// Position is the position after that commit.
func (m *Message) Position(ctx context.Context) Position {
	store := runOf(ctx).engine.deps.Store
	return Position(store.FormatPosition(endOf(store, m.record.Revision)))
}

// endOf returns the position after a commit.
func endOf(store *kg.Store, r kg.Revision) kg.Position {
	return kg.Position{Epoch: store.Epoch(), Revision: r, Index: kg.EndOfCommit}
}

// readFacts answers Message.facts and TaskCommit.facts: the statements that
// commits asserted and that the operation's view still shows. of names the
// object that has the list.
func readFacts(ctx context.Context, f *executor.Selected, of string, a knowledge.PageArgs, find func(context.Context, *run) ([]*kg.Commit, error)) (executor.Value, error) {
	return knowledge.ReadFacts(ctx, f, of, a, func(s *kg.Snapshot) (iter.Seq2[kg.Row, error], error) {
		commits, err := find(ctx, runOf(ctx))
		return factsOf(s, commits), err
	})
}

// commitsOf returns the commits that asserted a message's facts: its own and
// that of its proposal, as far as the log has them and the caller may see
// them.
func (r *run) commitsOf(ctx context.Context, m *message.Message) (list []*kg.Commit, err error) {
	revisions := []kg.Revision{m.Revision}
	if m.ProposalID != "" && r.engine.deps.Reviews != nil {
		// The proposal is read as the system: the caller may see its result
		// without being allowed to see the proposal.
		p, err := unlessGone(r.engine.deps.Reviews.Get(ctx, proposals.Caller{Principal: kg.SystemPrincipal()}, m.ProposalID))
		if err != nil {
			return nil, err
		}
		if p != nil && p.AppliedIn != 0 {
			revisions = append(revisions, p.AppliedIn)
		}
	}
	for _, revision := range revisions {
		c, err := r.commitSeen(ctx, revision)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		list = append(list, c)
	}
	return list, nil
}

// factsOf yields the statements asserted by commits that the snapshot shows with
// those assertions, each once.
func factsOf(s *kg.Snapshot, commits []*kg.Commit) iter.Seq2[kg.Row, error] {
	return func(yield func(kg.Row, error) bool) {
		seen := map[kg.Quad]bool{}
		for _, c := range commits {
			for i := range c.Changes {
				ch := &c.Changes[i]
				if ch.Op == kg.Remove || kg.IsOwnGraph(ch.Quad.Graph) || seen[ch.Quad] {
					continue
				}
				row, stands, err := assertedIn(s, ch.Quad, c.Revision)
				if seen[ch.Quad] = stands; err != nil || stands {
					if !yield(row, err) || err != nil {
						return
					}
				}
			}
		}
	}
}

// assertedIn finds a statement that has an assertion made by the commit.
func assertedIn(s *kg.Snapshot, q kg.Quad, revision kg.Revision) (row kg.Row, found bool, err error) {
	p, known, err := s.PatternIDs(kg.Pattern(q))
	if !known || err != nil {
		return row, false, err
	}
	for row, err := range s.MatchIDs(p, nil) {
		if err != nil {
			return row, false, err
		}
		st, err := s.Statement(row)
		if err != nil {
			return row, false, err
		}
		for _, a := range st.Assertions {
			if a.Revision == revision {
				return row, true, nil
			}
		}
	}
	return row, false, nil
}
