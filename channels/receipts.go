package channels

import (
	"context"
	"slices"

	"koine/kg"
)

// ReceiptState says what became of a message at one of its recipients.
type ReceiptState string

// The states, in their order. A message that expired before it was read is that, and
// so is what was not read when its channel closed, whose content is read on.
const (
	ReceiptPending   ReceiptState = "pending"
	ReceiptDelivered ReceiptState = "delivered"
	ReceiptRead      ReceiptState = "read"
	ReceiptExpired   ReceiptState = "expired"
)

// MessageReceipt is what became of a message at one of its recipients.
type MessageReceipt struct {
	Agent kg.AgentID
	State ReceiptState
}

// How receipts are stored, in ReceiptsGraph: for each agent up to which sequence
// everything that is for it was delivered, and read; and beside that single messages.
// One that expires is always written down singly, so that an agent which reads on
// behind it later has not read it. Nothing is written for what is pending.
var (
	propDeliveredUpTo = vocabTerm("deliveredUpTo")
	propReadUpTo      = vocabTerm("readUpTo")
	propDeliveredTo   = vocabTerm("deliveredTo")
	propReadBy        = vocabTerm("readBy")

	// propGone says of a request which of its recipients was removed from the server
	// (RemoveAgent) while others could answer it.
	propGone = vocabTerm("recipientGone")
)

// receiptProperties are those of the states that are acknowledged.
var receiptProperties = map[ReceiptState]struct{ upTo, single kg.Term }{
	ReceiptDelivered: {propDeliveredUpTo, propDeliveredTo},
	ReceiptRead:      {propReadUpTo, propReadBy},
}

// Receipts tells what became of a message at each of its recipients: for one to
// everybody, at the members but for its author. Who reads the channel may ask.
//
// Errors: CodeChannelNotFound; CodeNotFound for a message that the channel does not
// have.
func (s *Service) Receipts(ctx context.Context, by Caller, id ChannelID, message MessageID) ([]MessageReceipt, error) {
	_, e, err := s.requireReadable(by, id)
	if err != nil {
		return nil, err
	}
	snapshot, err := s.systemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	m, err := s.readForReceipts(snapshot, e, message)
	if err != nil {
		return nil, err
	}
	agents := m.Recipients
	if len(agents) == 0 {
		for i := range e.Members {
			if e.Members[i].Agent != m.Author {
				agents = append(agents, e.Members[i].Agent)
			}
		}
		slices.Sort(agents)
	}
	out := make([]MessageReceipt, 0, len(agents))
	for _, agent := range agents {
		k, err := markersOf(snapshot.Match, id, agent)
		if err != nil {
			return nil, err
		}
		state, err := k.receiptState(m)
		if err != nil {
			return nil, err
		}
		out = append(out, MessageReceipt{agent, state})
	}
	return out, nil
}

// OwnReceipt tells what became of a message at the caller, "" for one that is not for
// it.
//
// Errors: those of Receipts.
func (s *Service) OwnReceipt(ctx context.Context, by Caller, id ChannelID, message MessageID) (ReceiptState, error) {
	agent, e, err := s.requireReadable(by, id)
	if err != nil {
		return "", err
	}
	snapshot, err := s.systemView(ctx)
	if err != nil {
		return "", err
	}
	defer snapshot.Close()
	m, err := s.readForReceipts(snapshot, e, message)
	if err != nil || !m.isFor(agent) {
		return "", err
	}
	k, err := markersOf(snapshot.Match, id, agent)
	if err != nil {
		return "", err
	}
	return k.receiptState(m)
}

// readForReceipts reads a message of which receipts are told.
func (s *Service) readForReceipts(snapshot *kg.Snapshot, e *entry, message MessageID) (*Message, error) {
	m, err := readMessage(snapshot.Match, e.ID, message)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errNoMessage()
	}
	over, err := s.closedInSnapshot(snapshot, e)
	m.DeadlinePassed = m.DeadlinePassed || over || m.hasExpired(s.options.Clock())
	return m, err
}

// ReadMarker is the sequence up to which the caller has said that it read the
// channel, 0 at first.
func (s *Service) ReadMarker(ctx context.Context, by Caller, id ChannelID) (int64, error) {
	agent, _, err := s.requireReadable(by, id)
	if err != nil {
		return 0, err
	}
	snapshot, err := s.systemView(ctx)
	if err != nil {
		return 0, err
	}
	defer snapshot.Close()
	k, err := markersOf(snapshot.Match, id, agent)
	if err != nil {
		return 0, err
	}
	return k.read, nil
}

// MaxUnread is how many messages behind the read marker are looked at to count the
// unread ones: to ask costs the same however long the channel is.
const MaxUnread = 1000

// UnreadCount is how many messages wait for an agent.
type UnreadCount struct {
	Count int
	// More tells that there are messages beyond those that were looked at.
	More bool
}

// Unread counts the messages behind the caller's read marker that are for it, that it
// did not acknowledge singly, and that wait for it: not those whose content is gone,
// and none of a channel that has closed.
func (s *Service) Unread(ctx context.Context, by Caller, id ChannelID) (n UnreadCount, err error) {
	agent, e, err := s.requireReadable(by, id)
	if err != nil {
		return n, err
	}
	snapshot, err := s.systemView(ctx)
	if err != nil {
		return n, err
	}
	defer snapshot.Close()
	if over, err := s.closedInSnapshot(snapshot, e); err != nil || over {
		return n, err
	}
	k, err := markersOf(snapshot.Match, id, agent)
	if err != nil {
		return n, err
	}
	head, err := countMessages(snapshot, id)
	if err != nil {
		return n, err
	}
	last := min(head, k.read+MaxUnread)
	for from := k.read + 1; from <= last; {
		list, _, err := readRun(snapshot, id, from, int(min(DefaultPage, last-from+1)), false, s.viewerOf(agent))
		if err != nil || len(list) == 0 {
			return n, err
		}
		for _, m := range list {
			if m.Withheld != "" || !m.isFor(agent) {
				continue
			}
			state, err := k.receiptState(m)
			if err != nil {
				return n, err
			}
			if state != ReceiptRead {
				n.Count++
			}
		}
		from += int64(len(list))
	}
	n.More = head > last
	return n, nil
}
