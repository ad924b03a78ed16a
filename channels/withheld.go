package channels

import (
	"time"

	"koine/kg"
)

// Withheld says why a message is shown without its content: every member sees
// every sequence, and not all of what was said with it.
type Withheld string

// The reasons.
const (
	Retracted Withheld = "retracted" // its author, an owner or a moderator took it back
	Expired   Withheld = "expired"   // it was to be read before a time that has come
	Addressed Withheld = "addressed" // it is for others
	Evicted   Withheld = "evicted"   // the channel keeps so many messages only
	Erased    Withheld = "erased"    // it was taken out of the store (kg.Erase)
)

// contentProperties are the properties that a message loses when its content goes. What it
// was, when, by whom, and under which key stays. The hash of the content goes, and the
// salt of the one in the scope's event: few words could be guessed from it.
var contentProperties = []kg.Term{propParts, propData, propArtifact, propTag, propFormat, propContent, propSalt}

// removePayload takes the content of a message away, in whatever graph of the channel
// it stands.
func removePayload(tx *kg.Tx, id ChannelID, m MessageID) error {
	_, err := removeContent(tx, id, m)
	return err
}

// removeContent is dropPayload, and tells of how many statements that was.
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

// viewerOf is that of an agent, at this moment.
func (s *Service) viewerOf(agent kg.AgentID) viewer {
	return viewer{agent, s.options.Clock()}
}

// redactFor takes away what the reader may not see of the message, and what does not hold:
// a request that was answered does not expire.
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
	case m.Parts == nil && m.Withheld == "": // each has some
		m.withholdContent(Erased)
	}
}

// withholdContent leaves of the message what everybody may know, and says why.
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
