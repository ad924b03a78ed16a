// Package message has the data of messages: a Message with its Envelope, the statements as
// which it is stored in the journal of its channel, and the part of it that a Viewer may
// see (Message.RedactFor). Content that is addressed to some of the readers is in a
// partition (Message.ContentGraph); the journal then has only the properties of Skeleton.
//
// Begin with Message and Envelope.
package message

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Message is a published message. Callers must not modify it.
type Message struct {
	ID      ID
	Channel channel.ID
	// Sequence is 1, 2, 3 … in the channel.
	Sequence int64
	Time     time.Time
	Author   kg.AgentID
	// Parts are JSON objects, byte for byte as published.
	Parts        []json.RawMessage
	ArtifactRefs []string
	Metadata     []byte // a JSON object, nil for none
	// Embedding is that of the assertion of the parts. Pages of messages are read without it.
	Embedding *kg.Embedding
	Envelope
	// IdempotencyKey is the key that the author gave.
	IdempotencyKey string
	// Retracts is the message that this one retracts. RetractedBy is the message that
	// retracted this one.
	Retracts, RetractedBy ID
	// Withheld is the reason why the content is not shown, or "".
	Withheld Withheld
	// FactCount is the number of patches published with the message, including rejected
	// ones.
	FactCount int
	// ProposalID is the proposal in which the facts of the message await review.
	ProposalID string
	// Private means that only the author and the recipients can read the content.
	Private bool
	// Answered is the first response to a request, or "".
	Answered ID
	// Revision is the revision of the commit that published the message.
	Revision kg.Revision

	// DeadlinePassed means that ExpiresAt has passed, even if the content was removed
	// for another reason. A recipient that has not read the message by then no longer
	// can.
	DeadlinePassed bool
}

// ID identifies a message: a version 7 UUID.
type ID string

const messagePrefix = "urn:koine:message:"

// Entity returns the message as an entity of the graph.
func (m ID) Entity() kg.Term { return kg.IRI(messagePrefix + string(m)) }

// IsValid reports whether a message may have the id. A message with an invalid id is not
// found.
func (m ID) IsValid() bool {
	return m != "" && len(m) <= channel.MaxIDBytes && kg.IsAbsoluteIRI(messagePrefix+string(m))
}

// IDOf returns the id of a message entity, or "" for another term.
func IDOf(entity kg.Term) ID {
	if entity.IsLiteral() {
		return ""
	}
	return IDIn(entity)
}

// IDIn returns the id of a message entity, or "" for another term.
func IDIn(t kg.Term) ID { return vocab.IDOf[ID](t, messagePrefix) }

// Limits of messages (channels extension, section 8).
const (
	MaxParts          = 32
	MaxArtifactRefs   = 32
	MaxReferenceBytes = 1 << 10 // per artifact reference
	MaxPageBytes      = 4 << 20 // content of a page, which always has at least one message
)

// ApplyStatement adds one statement to the message. It fails only if the store holds
// invalid data.
func (m *Message) ApplyStatement(property, object kg.Term) error {
	switch property {
	case kg.Sequence:
		m.Sequence = vocab.IntegerOf(object)
	case vocab.Author:
		m.Author = kg.AgentID(object.Value())
	case vocab.Sent:
		m.Time, _ = object.DateTimeValue()
	case vocab.Parts:
		return m.setParts(object.Value())
	case vocab.Data:
		m.Metadata = []byte(object.Value())
	case vocab.Artifact:
		return json.Unmarshal([]byte(object.Value()), &m.ArtifactRefs)
	case vocab.Key:
		m.IdempotencyKey = object.Value()
	case vocab.Payload:
		m.Private = true
	case vocab.Expired:
		m.ExpiresAt, _ = object.DateTimeValue()
		if m.DeadlinePassed = true; m.Withheld == "" {
			m.Withheld = Expired
		}
	case vocab.Answered:
		m.Answered = IDIn(object)
	case vocab.FactCount:
		m.FactCount = int(vocab.IntegerOf(object))
	case vocab.Proposal:
		m.ProposalID = object.Value()
	case vocab.Retracts:
		m.Retracts = IDIn(object)
	case vocab.Evicted:
		if m.Withheld != Retracted { // Retracted takes precedence over other reasons
			m.Withheld = Evicted
		}
	case vocab.RetractedBy:
		m.RetractedBy, m.Withheld = IDIn(object), Retracted
	default:
		m.Envelope.applyStatement(property, object)
	}
	return nil
}

// Size returns the size of the content in bytes.
func (m *Message) Size() int {
	n := len(m.Metadata) + m.Embedding.Bytes()
	for _, part := range m.Parts {
		n += len(part)
	}
	for _, ref := range m.ArtifactRefs {
		n += len(ref)
	}
	return n
}

// IsFor reports whether the message is for an agent that can read its channel.
func (m *Message) IsFor(agent kg.AgentID) bool {
	return m.Author != agent && (len(m.Recipients) == 0 || slices.Contains(m.Recipients, agent))
}

// HasExpired reports whether the message has expired at the given time. An answered
// request does not expire.
func (m *Message) HasExpired(at time.Time) bool {
	return !m.ExpiresAt.IsZero() && !at.Before(m.ExpiresAt) && m.Answered == ""
}

// IsReadableBy reports whether the agent, which can read the channel, can read the
// content.
func (m *Message) IsReadableBy(agent kg.AgentID) bool {
	return !m.Private || agent == m.Author || slices.Contains(m.Recipients, agent)
}

// ReaderSet returns the readers of a private message: its author and its recipients.
func (m *Message) ReaderSet() []kg.AgentID {
	list := append([]kg.AgentID{m.Author}, m.Recipients...)
	slices.Sort(list)
	return slices.Compact(list)
}

// ContentGraph returns the graph of the content.
func (m *Message) ContentGraph() kg.Term {
	if m.Private {
		return m.Channel.PartitionGraph(m.ReaderSet())
	}
	return m.Channel.MessagesGraph()
}

// Skeleton is the set of message properties that all readers of the channel may see,
// even if the message is addressed to some.
var Skeleton = map[kg.Term]bool{
	kg.Sequence: true, vocab.Type: true, vocab.Channel: true, vocab.Author: true, vocab.Sent: true,
	vocab.Interaction: true, vocab.To: true, vocab.Recipient: true, vocab.Payload: true,
}

// StoredStatements lists the stored statements of the message except the sequence and
// the time, which are known only within the commit.
func (m *Message) StoredStatements() (out []vocab.Statement, err error) {
	out = append(make([]vocab.Statement, 0, 8), // enough for most messages
		vocab.NewStatement(vocab.Type, vocab.ClassMessage), vocab.NewStatement(vocab.Channel, m.Channel.Entity()), vocab.NewStatement(vocab.Author, kg.IRI(string(m.Author))), vocab.NewStatement(vocab.Parts, vocab.JSON(joinParts(m.Parts))))
	if m.Metadata != nil {
		out = append(out, vocab.NewStatement(vocab.Data, vocab.JSON(m.Metadata)))
	}
	if len(m.ArtifactRefs) > 0 {
		refs, err := json.Marshal(m.ArtifactRefs)
		if err != nil {
			return nil, err
		}
		out = append(out, vocab.NewStatement(vocab.Artifact, vocab.JSON(refs)))
	}
	out = append(out, m.Envelope.envelopeStatements()...)
	if m.IdempotencyKey != "" {
		out = append(out, vocab.NewStatement(vocab.Key, kg.String(m.IdempotencyKey)), vocab.NewStatement(vocab.Once, OnceKey(m.Channel, m.Author, m.IdempotencyKey)))
	}
	return out, nil
}

// joinParts returns the JSON array of the parts as they are: json.Marshal would reformat them.
func joinParts(parts []json.RawMessage) string {
	size := len("[]") + max(len(parts)-1, 0)
	for _, part := range parts {
		size += len(part)
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteByte('[')
	for i, part := range parts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(part)
	}
	b.WriteByte(']')
	return b.String()
}

// OnceKey returns the literal under which the message of an author's key in a channel
// is stored.
func OnceKey(id channel.ID, author kg.AgentID, key string) kg.Term {
	sum := sha256.Sum256([]byte(string(id) + "\n" + string(author) + "\n" + key))
	return kg.String(base64.RawURLEncoding.EncodeToString(sum[:]))
}

// CanonicalContent returns the same bytes for equal publications, regardless of how
// their JSON is written.
func (m *Message) CanonicalContent(patches []byte) ([]byte, error) {
	list := make([]any, 0, len(m.Parts)+3)
	for _, part := range append(m.Parts[:len(m.Parts):len(m.Parts)], m.Metadata, patches) {
		value, err := check.DecodeJSON(part)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	refs := m.ArtifactRefs
	if refs == nil {
		refs = []string{}
	}
	list = append(list, refs, m.Envelope.canonicalFields())
	if m.Embedding != nil {
		list = append(list, m.Embedding)
	}
	return json.Marshal(list)
}

// setParts splits the stored array of parts. The parts were validated before they were
// stored, so it only finds their boundaries.
func (m *Message) setParts(text string) error {
	raw, ok := []byte(text), false // shared by the parts
	if m.Parts, ok = splitArray(raw); ok {
		return nil
	}
	return json.Unmarshal(raw, &m.Parts)
}

// splitArray returns the elements of a valid JSON array without white space around its
// elements. It returns false if raw obviously is not such an array.
func splitArray(raw []byte) (list []json.RawMessage, ok bool) {
	if len(raw) < 2 || raw[0] != '[' || raw[len(raw)-1] != ']' {
		return nil, false
	}
	depth, from := 0, 1
	for i := 1; i < len(raw)-1; i++ {
		switch raw[i] {
		case '"':
			n := stringEnd(raw[i+1:])
			if n < 0 {
				return nil, false
			}
			i += 1 + n
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				list, from = append(list, raw[from:i:i]), i+1
			}
		}
	}
	end := len(raw) - 1
	return append(list, raw[from:end:end]), depth == 0 && from < end
}

// stringEnd returns the index of the closing quote of a JSON string, or -1. text starts
// after the opening quote.
func stringEnd(text []byte) int {
	for from := 0; ; {
		i := bytes.IndexByte(text[from:], '"')
		if i < 0 {
			return -1
		}
		escapes := 0
		for at := from + i - 1; at >= 0 && text[at] == '\\'; at-- {
			escapes++
		}
		if escapes%2 == 0 {
			return from + i
		}
		from += i + 1
	}
}

// applyStored adds a stored statement, and takes the revision and, for an erased
// message, the time from the assertion of its sequence.
func (m *Message) applyStored(st *kg.Statement) error {
	if m.ID == "" {
		m.ID = IDIn(st.Subject)
	}
	if st.Predicate == kg.Sequence {
		m.Revision = st.Assertions[0].Revision
		if m.Time.IsZero() { // remains after the rest was erased
			m.Time = st.Assertions[0].Time
		}
	}
	if st.Predicate == vocab.Parts {
		m.Embedding = st.Assertions[0].Embedding
	}
	return m.ApplyStatement(st.Predicate, st.Object)
}

// Read returns a message of a channel with its full content, or nil if the
// channel does not have it.
func Read(match systemgraph.Matcher, in channel.ID, id ID) (*Message, error) {
	m := &Message{ID: id, Channel: in}
	for st, err := range match(kg.Pattern{Subject: id.Entity()}) {
		if err != nil {
			return nil, err
		}
		if of, part := channel.OfGraph(st.Graph); of != in || part != channel.JournalPart && part != channel.PartitionPart {
			continue
		}
		if err := m.applyStored(&st); err != nil {
			return nil, err
		}
	}
	if m.Sequence == 0 {
		return nil, nil
	}
	return m, nil
}

// ReadFromCommit returns the message that a commit published in the channel: the part
// that all readers of the channel may see, and the full message. The two are the same
// if the message is addressed to everyone, and nil if the commit published none.
func ReadFromCommit(c *kg.Commit, id channel.ID) (open, whole *Message, err error) {
	graph := id.MessagesGraph()
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Op == kg.Add && ch.Quad.Graph == graph && ch.Quad.Predicate == kg.Sequence {
			open = &Message{ID: IDIn(ch.Quad.Subject), Channel: id, Revision: c.Revision}
			break
		}
	}
	if open == nil {
		return nil, nil, nil
	}
	if err := open.ApplyCommit(c, graph); err != nil {
		return nil, nil, err
	}
	whole = open
	if open.Private {
		both := *open
		both.Recipients, both.Tags = slices.Clone(open.Recipients), slices.Clone(open.Tags)
		whole = &both
		err = whole.ApplyCommit(c, open.ContentGraph())
	}
	return open, whole, err
}

// ApplyCommit adds the statements of a commit about the message in a graph.
func (m *Message) ApplyCommit(c *kg.Commit, graph kg.Term) error {
	subject := m.ID.Entity()
	for i := range c.Changes {
		if q := &c.Changes[i].Quad; c.Changes[i].Op == kg.Add && q.Graph == graph && q.Subject == subject {
			if q.Predicate == vocab.Parts {
				m.Embedding = c.Changes[i].Assertion.Embedding
			}
			if err := m.ApplyStatement(q.Predicate, q.Object); err != nil {
				return err
			}
		}
	}
	return nil
}

// ErrAhead reports a sequence that the channel has not reached: it belongs to another
// channel, or the store was restored from a backup.
func ErrAhead(count, since int64) *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "sequence %d is ahead of the channel, whose last sequence is %d", since, count).At("sinceSequence")
}

// ErrNotInChannel reports a message that is not in the channel. The error is the same
// for a message of another channel, so that it reveals nothing.
func ErrNotInChannel(field string) *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "message not found in the channel").At(field)
}

// ErrEvicted reports a bound in the request that is before the oldest retained message.
func ErrEvicted(oldest int64, field string) *kg.Error {
	e := kg.Errorf(kg.CodePositionGone, "oldest retained message of the channel is %d", oldest).At(field)
	e.OldestSequence = oldest
	return e
}

func ErrNotFound() *kg.Error {
	return kg.Errorf(kg.CodeNotFound, "message not found in the channel").At("messageId")
}
