package channels

import (
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
	channelClosed   bool // the channel is closed, so unread messages have expired
}

// markersOf reads the markers of an agent; they are 0 if there are none.
func markersOf(match systemgraph.Matcher, id channel.ID, agent kg.AgentID) (*markers, error) {
	k := &markers{match: match, graph: id.ReceiptsGraph(), agent: agent}
	for st, err := range match(kg.Pattern{Subject: kg.IRI(string(agent)), Graph: k.graph}) {
		if err != nil {
			return nil, err
		}
		switch st.Predicate {
		case vocab.DeliveredUpTo:
			k.delivered = vocab.IntegerOf(st.Object)
		case vocab.ReadUpTo:
			k.read = vocab.IntegerOf(st.Object)
		}
	}
	return k, nil
}

// forState returns the marker of a state.
func (k *markers) forState(state ReceiptState) int64 {
	if state == ReceiptRead {
		return k.read
	}
	return k.delivered
}

// receiptState returns the state of a message that is for the agent.
func (k *markers) receiptState(m *message.Message) (ReceiptState, error) {
	expires := !m.ExpiresAt.IsZero()
	if m.Sequence <= k.read && !expires {
		return ReceiptRead, nil
	}
	if read, err := k.hasReceipt(m.ID, vocab.ReadBy); err != nil || read {
		return ReceiptRead, err
	}
	if m.DeadlinePassed || k.channelClosed {
		return ReceiptExpired, nil
	}
	if m.Sequence <= k.delivered && !expires {
		return ReceiptDelivered, nil
	}
	if delivered, err := k.hasReceipt(m.ID, vocab.DeliveredTo); err != nil || delivered {
		return ReceiptDelivered, err
	}
	return ReceiptPending, nil
}

// hasReceipt reports whether the message has an individual receipt.
func (k *markers) hasReceipt(m message.ID, property kg.Term) (bool, error) {
	for _, err := range k.match(kg.Pattern{Subject: m.Entity(), Predicate: property, Object: kg.IRI(string(k.agent)), Graph: k.graph}) {
		return err == nil, err
	}
	return false, nil
}
