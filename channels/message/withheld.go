package message

import (
	"slices"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/kg"
)

// Withheld is the reason why a message is shown without its content: every reader sees
// every sequence, but not all content.
type Withheld string

// Reasons for withholding content.
const (
	Retracted Withheld = "retracted" // by its author, an owner or a moderator
	Expired   Withheld = "expired"   // its expiry time has passed
	Addressed Withheld = "addressed" // it is addressed to other agents
	Evicted   Withheld = "evicted"   // the channel keeps only newer messages
	Erased    Withheld = "erased"    // it was erased from the store (kg.Erase)
)

// ContentProperties are the properties removed with a message's content. The kind,
// time, author and idempotency key stay. The content hash and the salt of the scope
// event's hash are removed too, because short content could be guessed from the hash.
var ContentProperties = []kg.Term{vocab.Parts, vocab.Data, vocab.Artifact, vocab.Tag, vocab.Format, vocab.Content, vocab.Salt}

// RemovePayload removes the content of a message from all graphs of the channel, its audit
// copy included.
func RemovePayload(tx *kg.Tx, id channel.ID, m ID) error {
	_, _, err := removeContent(tx, id, m, channel.JournalPart, channel.PartitionPart, channel.CopyPart)
	return err
}

// RemoveContent removes the content of a message, but not its audit copy. It returns the
// number of removed statements and about their size in the log.
func RemoveContent(tx *kg.Tx, id channel.ID, m ID) (n, bytes int, err error) {
	return removeContent(tx, id, m, channel.JournalPart, channel.PartitionPart)
}

// removeContent removes the content of a message from some parts of the channel.
func removeContent(tx *kg.Tx, id channel.ID, m ID, parts ...channel.Part) (n, bytes int, err error) {
	var gone []kg.Quad
	for _, property := range ContentProperties {
		for st, err := range tx.MatchOwn(kg.Pattern{Subject: m.Entity(), Predicate: property}) {
			if err != nil {
				return 0, 0, err
			}
			if of, part := channel.OfGraph(st.Graph); of == id && slices.Contains(parts, part) {
				gone = append(gone, st.Quad)
				bytes += st.Quad.TextBytes()
				for i := range st.Assertions {
					bytes += st.Assertions[i].ContentBytes()
				}
			}
		}
	}
	for _, q := range gone {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
			return 0, 0, err
		}
	}
	return len(gone), bytes, nil
}

// RedactFor removes the content that the viewer may not see, and the expiry time of an
// answered request, which no longer expires.
func (m *Message) RedactFor(to Viewer) {
	if m.Answered != "" {
		m.ExpiresAt = time.Time{}
	}
	m.DeadlinePassed = m.DeadlinePassed || m.HasExpired(to.Now)
	switch {
	case m.Withheld == Retracted:
	case m.Withheld == Evicted:
		m.withholdContent(Evicted)
	case !to.MayRead(m):
		m.withholdContent(Addressed)
	case m.DeadlinePassed:
		m.withholdContent(Expired)
	case m.Parts == nil && m.Withheld == "": // every message has parts
		m.withholdContent(Erased)
	}
}

// withholdContent reduces the message to the part that every reader may see, and sets
// the reason.
func (m *Message) withholdContent(why Withheld) {
	left := Message{
		ID: m.ID, Channel: m.Channel, Sequence: m.Sequence, Time: m.Time, Author: m.Author, Revision: m.Revision,
		Private: m.Private, Withheld: why, DeadlinePassed: m.DeadlinePassed,
		Envelope: Envelope{Interaction: m.Interaction, To: m.To, Recipients: m.Recipients},
	}
	if why == Expired {
		left.ExpiresAt = m.ExpiresAt
	}
	*m = left
}

// ExpireIfDue removes the content of the message and records its expiry time, if it has
// expired. Answered and retracted messages stay as they are.
func (m *Message) ExpireIfDue(tx *kg.Tx) error {
	if !m.HasExpired(tx.Time()) || m.Withheld != "" {
		return nil
	}
	return m.ExpireAt(tx, m.ExpiresAt)
}

// ExpireAt removes the content of the message and records at as the time of expiry.
func (m *Message) ExpireAt(tx *kg.Tx, at time.Time) error {
	if err := RemovePayload(tx, m.Channel, m.ID); err != nil {
		return err
	}
	q := kg.Quad{Subject: m.ID.Entity(), Predicate: vocab.Expires, Object: kg.DateTime(m.ExpiresAt), Graph: m.ContentGraph()}
	if !m.ExpiresAt.IsZero() {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
			return err
		}
	}
	q.Predicate, q.Object = vocab.Expired, kg.DateTime(at)
	return tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q})
}

// Viewer is the agent that reads messages, and the time of reading.
type Viewer struct {
	Agent kg.AgentID // "" for koine itself, which ignores the content
	Now   time.Time
	// Oversees means that the agent reads the channel as an overseer, and with it the content
	// that is addressed to others.
	Oversees bool
}

// MayRead reports whether the viewer, who can read the channel, can read the content.
func (to Viewer) MayRead(m *Message) bool { return to.Oversees || m.IsReadableBy(to.Agent) }
