package receipts

import (
	"time"

	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/internal/systemgraph"
	"koine/kg"
)

// markers are the sequences up to which an agent received and read the messages of a
// channel.
type markers struct {
	match           systemgraph.Matcher
	graph           kg.Term
	agent           kg.AgentID
	delivered, read int64
	// readTime and readRevision are those of the commit that moved the marker to read.
	readTime      time.Time
	readRevision  kg.Revision
	ChannelClosed bool // the channel is closed, so unread messages have expired
}

// MarkersOf reads the markers of an agent; they are 0 if there are none.
func MarkersOf(match systemgraph.Matcher, id channel.ID, agent kg.AgentID) (*markers, error) {
	k := &markers{match: match, graph: id.ReceiptsGraph(), agent: agent}
	return k, k.load()
}

// load reads the markers.
func (k *markers) load() error {
	for st, err := range k.match(kg.Pattern{Subject: kg.IRI(string(k.agent)), Graph: k.graph}) {
		if err != nil {
			return err
		}
		switch st.Predicate {
		case vocab.DeliveredUpTo:
			k.delivered = vocab.IntegerOf(st.Object)
		case vocab.ReadUpTo:
			k.read = vocab.IntegerOf(st.Object)
			k.readTime, k.readRevision = st.Assertions[0].Time, st.Assertions[0].Revision
		}
	}
	return nil
}

// forState returns the marker of a state.
func (k *markers) forState(state State) int64 {
	if state == Read {
		return k.read
	}
	return k.delivered
}

// ReceiptState returns the state of a message that is for the agent.
func (k *markers) ReceiptState(m *message.Message) (State, error) {
	expires := !m.ExpiresAt.IsZero()
	if m.Sequence <= k.read && !expires {
		return Read, nil
	}
	if read, err := k.hasReceipt(m.ID, vocab.ReadBy); err != nil || read {
		return Read, err
	}
	if m.DeadlinePassed || k.ChannelClosed {
		return Expired, nil
	}
	if m.Sequence <= k.delivered && !expires {
		return Delivered, nil
	}
	if delivered, err := k.hasReceipt(m.ID, vocab.DeliveredTo); err != nil || delivered {
		return Delivered, err
	}
	return Pending, nil
}

// hasReceipt reports whether the message has an individual receipt.
func (k *markers) hasReceipt(m message.ID, property kg.Term) (bool, error) {
	_, found, err := systemgraph.First(k.match, kg.Pattern{Subject: m.Entity(), Predicate: property, Object: kg.IRI(string(k.agent)), Graph: k.graph})
	return found, err
}

// WriteIndividualReceipts converts the markers of the recipients into individual
// receipts for a message that had no expiry time, because markers do not count for
// expired messages.
func WriteIndividualReceipts(tx *kg.Tx, m *message.Message) error {
	if !m.ExpiresAt.IsZero() {
		return nil
	}
	for _, agent := range m.Recipients {
		k, err := MarkersOf(tx.MatchOwn, m.Channel, agent)
		if err != nil {
			return err
		}
		for _, state := range []State{Delivered, Read} {
			if m.Sequence > k.forState(state) {
				continue
			}
			q := kg.Quad{Subject: m.ID.Entity(), Predicate: receiptProperties[state].single, Object: kg.IRI(string(agent)), Graph: k.graph}
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
	}
	return nil
}
