package channels

import (
	"time"

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

// contentProperties are the properties removed with a message's content. The kind,
// time, author and idempotency key stay. The content hash and the salt of the scope
// event's hash are removed too, because short content could be guessed from the hash.
var contentProperties = []kg.Term{propParts, propData, propArtifact, propTag, propFormat, propContent, propSalt}

// removePayload removes the content of a message from all graphs of the channel.
func removePayload(tx *kg.Tx, id ChannelID, m MessageID) error {
	_, err := removeContent(tx, id, m)
	return err
}

// removeContent is like removePayload and returns the number of removed statements.
func removeContent(tx *kg.Tx, id ChannelID, m MessageID) (int, error) {
	var gone []kg.Quad
	for _, property := range contentProperties {
		for st, err := range tx.MatchOwn(kg.Pattern{Subject: m.Entity(), Predicate: property}) {
			if err != nil {
				return 0, err
			}
			if of, part := channelOfGraph(st.Graph); of == id && (part == journalPart || part == partitionPart) {
				gone = append(gone, st.Quad)
			}
		}
	}
	for _, q := range gone {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
			return 0, err
		}
	}
	return len(gone), nil
}

// viewerOf returns a viewer for the agent at the current time.
func (s *Service) viewerOf(agent kg.AgentID) viewer {
	return viewer{agent, s.options.Clock()}
}

// redactFor removes the content that the viewer may not see, and the expiry time of an
// answered request, which no longer expires.
func (m *Message) redactFor(to viewer) {
	if m.Answered != "" {
		m.ExpiresAt = time.Time{}
	}
	m.DeadlinePassed = m.DeadlinePassed || m.hasExpired(to.now)
	switch {
	case m.Withheld == Retracted:
	case m.Withheld == Evicted:
		m.withholdContent(Evicted)
	case !m.isReadableBy(to.agent):
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
