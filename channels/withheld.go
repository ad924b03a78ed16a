package channels

import "koine/kg"

// Withheld says why a message is shown without its content: every member sees
// every sequence, and not all of what was said with it.
type Withheld string

// The reasons.
const (
	Retracted Withheld = "retracted" // its author or an owner took it back
)

// payload are the properties that a message loses when its content goes. What it
// was, when, by whom, and under which key stays.
var payload = []kg.Term{propParts, propData, propArtifact, propTag, propFormat}

// dropPayload takes the content of a message away, in whatever graph of the channel
// it stands.
func dropPayload(tx *kg.Tx, id ChannelID, m MessageID) error {
	var gone []kg.Quad
	for _, property := range payload {
		for st, err := range tx.MatchOwn(kg.Pattern{Subject: m.Entity(), Predicate: property}) {
			if err != nil {
				return err
			}
			if of, part := channelOf(st.Graph); of == id && part == journalPart {
				gone = append(gone, st.Quad)
			}
		}
	}
	for _, q := range gone {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
			return err
		}
	}
	return nil
}
