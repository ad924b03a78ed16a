package channels

import (
	"context"
	"slices"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// ReceiptState is the state of a message at one of its recipients.
type ReceiptState string

// Receipt states, in order. ReceiptExpired applies to messages that expired unread, and
// to messages that were unread when their channel was closed, although their content
// remains readable.
const (
	ReceiptPending   ReceiptState = "pending"
	ReceiptDelivered ReceiptState = "delivered"
	ReceiptRead      ReceiptState = "read"
	ReceiptExpired   ReceiptState = "expired"
)

// MessageReceipt is the state of a message at one of its recipients.
type MessageReceipt struct {
	Agent kg.AgentID
	State ReceiptState
}

// receiptProperties maps the states that can be acknowledged to their properties.
var receiptProperties = map[ReceiptState]struct{ upTo, single kg.Term }{
	ReceiptDelivered: {vocab.DeliveredUpTo, vocab.DeliveredTo},
	ReceiptRead:      {vocab.ReadUpTo, vocab.ReadBy},
}

// Receipts returns the state of a message at each of its recipients; a message to
// everyone has all members except the author as its recipients. It requires read
// access.
//
// Errors: CodeChannelNotFound; CodeNotFound if the message is not in the channel.
func (s *Service) Receipts(ctx context.Context, by Caller, id channel.ID, message message.ID) ([]MessageReceipt, error) {
	_, e, err := s.table.RequireReadable(by, id)
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

// OwnReceipt returns the state of a message at the caller, or "" if the message is not
// for the caller.
//
// Errors: those of Receipts.
func (s *Service) OwnReceipt(ctx context.Context, by Caller, id channel.ID, message message.ID) (ReceiptState, error) {
	agent, e, err := s.table.RequireReadable(by, id)
	if err != nil {
		return "", err
	}
	snapshot, err := s.systemView(ctx)
	if err != nil {
		return "", err
	}
	defer snapshot.Close()
	m, err := s.readForReceipts(snapshot, e, message)
	if err != nil || !m.IsFor(agent) {
		return "", err
	}
	k, err := markersOf(snapshot.Match, id, agent)
	if err != nil {
		return "", err
	}
	return k.receiptState(m)
}

// readForReceipts returns a message with DeadlinePassed set as receipts need it.
func (s *Service) readForReceipts(snapshot *kg.Snapshot, e *access.Entry, id message.ID) (*message.Message, error) {
	m, err := message.Read(snapshot.Match, e.ID, id)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, message.ErrNotFound()
	}
	over, err := s.closedInSnapshot(snapshot, e)
	m.DeadlinePassed = m.DeadlinePassed || over || m.HasExpired(s.options.Clock())
	return m, err
}

// ReadMarker returns the sequence up to which the caller has read the channel, 0
// initially.
func (s *Service) ReadMarker(ctx context.Context, by Caller, id channel.ID) (int64, error) {
	agent, _, err := s.table.RequireReadable(by, id)
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

// MaxUnread bounds the messages after the read marker that Unread examines, so that its
// cost does not depend on the length of the channel.
const MaxUnread = 1000

// UnreadCount is the number of unread messages.
type UnreadCount struct {
	Count int
	// More means that there are messages beyond those examined.
	More bool
}

// Unread counts the unread messages for the caller: those after its read marker without
// an individual receipt and with content. A closed channel has none.
func (s *Service) Unread(ctx context.Context, by Caller, id channel.ID) (n UnreadCount, err error) {
	agent, e, err := s.table.RequireReadable(by, id)
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
			if m.Withheld != "" || !m.IsFor(agent) {
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
