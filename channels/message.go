package channels

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"koine/kg"
)

// Message is a published message. Callers must not modify it.
type Message struct {
	ID      MessageID
	Channel ChannelID
	// Sequence is 1, 2, 3 … in the channel.
	Sequence int64
	Time     time.Time
	Author   kg.AgentID
	// Parts are JSON objects, byte for byte as published.
	Parts        []json.RawMessage
	ArtifactRefs []string
	Metadata     []byte // a JSON object, nil for none
	Envelope
	// IdempotencyKey is the key that the author gave.
	IdempotencyKey string
	// Retracts is the message that this one retracts. RetractedBy is the message that
	// retracted this one.
	Retracts, RetractedBy MessageID
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
	Answered MessageID
	// Revision is the revision of the commit that published the message.
	Revision kg.Revision

	// DeadlinePassed means that ExpiresAt has passed, even if the content was removed
	// for another reason. A recipient that has not read the message by then no longer
	// can.
	DeadlinePassed bool
}

// applyStatement adds one statement to the message. It fails only if the store holds
// invalid data.
func (m *Message) applyStatement(property, object kg.Term) error {
	switch property {
	case kg.Sequence:
		m.Sequence = integerValue(object)
	case propAuthor:
		m.Author = kg.AgentID(object.Value())
	case propSent:
		m.Time, _ = object.DateTimeValue()
	case propParts:
		return m.setParts(object.Value())
	case propData:
		m.Metadata = []byte(object.Value())
	case propArtifact:
		return json.Unmarshal([]byte(object.Value()), &m.ArtifactRefs)
	case propKey:
		m.IdempotencyKey = object.Value()
	case propPayload:
		m.Private = true
	case propExpired:
		m.ExpiresAt, _ = object.DateTimeValue()
		if m.DeadlinePassed = true; m.Withheld == "" {
			m.Withheld = Expired
		}
	case propAnswered:
		m.Answered = messageIDIn(object)
	case propFactCount:
		m.FactCount = int(integerValue(object))
	case propProposal:
		m.ProposalID = object.Value()
	case propRetracts:
		m.Retracts = messageIDIn(object)
	case propEvicted:
		if m.Withheld != Retracted { // Retracted takes precedence over other reasons
			m.Withheld = Evicted
		}
	case propRetractedBy:
		m.RetractedBy, m.Withheld = messageIDIn(object), Retracted
	default:
		m.Envelope.applyStatement(property, object)
	}
	return nil
}

// size returns the size of the content in bytes.
func (m *Message) size() int {
	n := len(m.Metadata)
	for _, part := range m.Parts {
		n += len(part)
	}
	for _, ref := range m.ArtifactRefs {
		n += len(ref)
	}
	return n
}

// storedStatements lists the stored statements of the message except the sequence and
// the time, which are known only within the commit.
func (m *Message) storedStatements() (out []statement, err error) {
	// json.Marshal would reformat the parts.
	parts := append([]byte{'['}, bytes.Join(rawTexts(m.Parts), []byte{','})...)
	parts = append(parts, ']')
	out = append(make([]statement, 0, 8), // enough for most messages
		statement{rdfType, ClassMessage}, statement{propChannel, m.Channel.Entity()}, statement{propAuthor, kg.IRI(string(m.Author))}, statement{propParts, jsonLiteral(parts)})
	if m.Metadata != nil {
		out = append(out, statement{propData, jsonLiteral(m.Metadata)})
	}
	if len(m.ArtifactRefs) > 0 {
		refs, err := json.Marshal(m.ArtifactRefs)
		if err != nil {
			return nil, err
		}
		out = append(out, statement{propArtifact, jsonLiteral(refs)})
	}
	out = append(out, m.Envelope.envelopeStatements()...)
	if m.IdempotencyKey != "" {
		out = append(out, statement{propKey, kg.String(m.IdempotencyKey)}, statement{propOnce, onceKey(m.Channel, m.Author, m.IdempotencyKey)})
	}
	return out, nil
}

func integerValue(t kg.Term) int64 {
	n, _ := strconv.ParseInt(t.Value(), 10, 64)
	return n
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

func rawTexts(parts []json.RawMessage) [][]byte {
	out := make([][]byte, len(parts))
	for i, part := range parts {
		out[i] = part
	}
	return out
}

// statement is a property and its object, without the subject.
type statement struct{ property, object kg.Term }

// viewer is the agent that reads messages, and the time of reading.
type viewer struct {
	agent kg.AgentID // "" for koine itself, which ignores the content
	now   time.Time
}

// readMessages returns up to n messages of a channel in order, starting with sequence
// from, as the viewer sees them.
func readMessages(snapshot *kg.Snapshot, id ChannelID, from int64, n int, by viewer) ([]*Message, error) {
	list, _, err := readRun(snapshot, id, from, n, false, by)
	return list, err
}

// readRun is like readMessages but returns at most MaxPageBytes of content, and at
// least one message: the first messages or, with last, the last ones. cut reports that
// some were omitted.
func readRun(snapshot *kg.Snapshot, id ChannelID, from int64, n int, last bool, by viewer) (out []*Message, cut bool, err error) {
	out = make([]*Message, 0, n)
	var rows []kg.Row
	for row, err := range snapshot.Numbered(id.MessagesGraph(), from) {
		if err != nil {
			return nil, false, err
		}
		if rows = append(rows, row); len(rows) == n {
			break
		}
	}
	if len(rows) == 0 {
		return out, false, nil
	}
	r := &messageReader{snapshot: snapshot, channel: id, contents: snapshot.Sweep(), sequences: snapshot.SweepAsserted()}
	defer r.close()
	size := 0
	for i := range rows {
		m, err := r.readMessage(&rows[i], by)
		if err != nil {
			return nil, false, err
		}
		out = append(out, m)
		for size += m.size(); size > MaxPageBytes && len(out) > 1; cut = true {
			if !last {
				return out[:len(out)-1], true, nil
			}
			size -= out[0].size()
			out = out[1:]
		}
	}
	return out, cut, nil
}

// messageReader reads messages in sequence order. Subject ids are assigned in the same
// order, so the statements of a page of messages are adjacent in the index.
type messageReader struct {
	snapshot *kg.Snapshot
	channel  ChannelID
	// contents scans the statements about messages. Only the sequence statements need
	// their assertions, and each takes a lookup: sequences does these in ascending
	// order.
	contents, sequences *kg.Sweep
}

func (r *messageReader) close() {
	r.contents.Close()
	r.sequences.Close()
}

// readMessage returns the message of a sequence row, as the viewer sees it.
func (r *messageReader) readMessage(row *kg.Row, by viewer) (*Message, error) {
	subject, err := r.snapshot.Term(row.Subject)
	if err != nil {
		return nil, err
	}
	m := &Message{Channel: r.channel, ID: messageIDIn(subject)}
	for r.sequences.Seek(kg.IDPattern{Subject: row.Subject, Predicate: row.Predicate, Graph: row.Graph}, nil); r.sequences.Next(); {
		list, err := r.snapshot.Assertions(*r.sequences.Row())
		if err != nil {
			return nil, err
		}
		m.Revision, m.Time = list[0].Revision, list[0].Time
	}
	if err := r.sequences.Err(); err != nil {
		return nil, err
	}
	if err := r.readStatements(m, row.Subject, row.Graph); err != nil {
		return nil, err
	}
	if m.Private && m.isReadableBy(by.agent) {
		partition, known, err := r.snapshot.ID(m.contentGraph())
		if err != nil {
			return nil, err
		}
		if known {
			if err := r.readStatements(m, row.Subject, partition); err != nil {
				return nil, err
			}
		}
	}
	m.redactFor(by)
	return m, nil
}

// readStatements adds the statements about the message in a graph.
func (r *messageReader) readStatements(m *Message, subject, graph kg.ID) error {
	for r.contents.Seek(kg.IDPattern{Subject: subject, Graph: graph}, nil); r.contents.Next(); {
		row := r.contents.Row()
		property, err := r.snapshot.Term(row.Predicate)
		if err != nil {
			return err
		}
		object, err := r.snapshot.Term(row.Object)
		if err != nil {
			return err
		}
		if err := m.applyStatement(property, object); err != nil {
			return err
		}
	}
	return r.contents.Err()
}

// applyStored adds a stored statement, and takes the revision and, for an erased
// message, the time from the assertion of its sequence.
func (m *Message) applyStored(st *kg.Statement) error {
	if m.ID == "" {
		m.ID = messageIDIn(st.Subject)
	}
	if st.Predicate == kg.Sequence {
		m.Revision = st.Assertions[0].Revision
		if m.Time.IsZero() { // remains after the rest was erased
			m.Time = st.Assertions[0].Time
		}
	}
	return m.applyStatement(st.Predicate, st.Object)
}

// readMessage returns a message of a channel with its full content, or nil if the
// channel does not have it.
func readMessage(match matcher, channel ChannelID, id MessageID) (*Message, error) {
	m := &Message{ID: id, Channel: channel}
	for st, err := range match(kg.Pattern{Subject: id.Entity()}) {
		if err != nil {
			return nil, err
		}
		if of, part := channelOfGraph(st.Graph); of != channel || part != journalPart && part != partitionPart {
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

// readFromCommit returns the message that a commit published in the channel: the part
// that all readers of the channel may see, and the full message. The two are the same
// if the message is addressed to everyone, and nil if the commit published none.
func readFromCommit(c *kg.Commit, id ChannelID) (open, whole *Message, err error) {
	graph := id.MessagesGraph()
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Op == kg.Add && ch.Quad.Graph == graph && ch.Quad.Predicate == kg.Sequence {
			open = &Message{ID: messageIDIn(ch.Quad.Subject), Channel: id, Revision: c.Revision}
			break
		}
	}
	if open == nil {
		return nil, nil, nil
	}
	if err := open.applyCommit(c, graph); err != nil {
		return nil, nil, err
	}
	whole = open
	if open.Private {
		both := *open
		both.Recipients, both.Tags = slices.Clone(open.Recipients), slices.Clone(open.Tags)
		whole = &both
		err = whole.applyCommit(c, open.contentGraph())
	}
	return open, whole, err
}

// applyCommit adds the statements of a commit about the message in a graph.
func (m *Message) applyCommit(c *kg.Commit, graph kg.Term) error {
	subject := m.ID.Entity()
	for i := range c.Changes {
		if q := &c.Changes[i].Quad; c.Changes[i].Op == kg.Add && q.Graph == graph && q.Subject == subject {
			if err := m.applyStatement(q.Predicate, q.Object); err != nil {
				return err
			}
		}
	}
	return nil
}
