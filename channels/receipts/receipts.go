// Package receipts records which messages their recipients received and read. For each
// agent and channel it stores the sequences up to which all messages for the agent were
// delivered and read, and receipts of individual messages where these do not suffice.
//
// Begin with Receipts.Acknowledge. Acknowledgements of a channel share a commit.
package receipts

import (
	"context"
	"slices"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/journal"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// State is the state of a message at one of its recipients.
type State string

// Receipt states, in order. Expired applies to messages that expired unread, and
// to messages that were unread when their channel was closed, although their content
// remains readable.
const (
	Pending   State = "pending"
	Delivered State = "delivered"
	Read      State = "read"
	Expired   State = "expired"
)

// Receipt is the state of a message at one of its recipients.
type Receipt struct {
	Agent kg.AgentID
	State State
	// ReadAt is the commit time of the acknowledgement by which the agent read the message,
	// also of one that acknowledged all messages up to a later one. It is the zero time
	// unless State is Read, and where the history that tells it was removed.
	ReadAt time.Time
}

// receiptProperties maps the states that can be acknowledged to their properties.
var receiptProperties = map[State]struct{ upTo, single kg.Term }{
	Delivered: {vocab.DeliveredUpTo, vocab.DeliveredTo},
	Read:      {vocab.ReadUpTo, vocab.ReadBy},
}

// List returns the state of a message at each of its recipients; a message to
// everyone has all members except the author as its recipients. It requires read
// access.
//
// Errors: CodeChannelNotFound; CodeNotFound if the message is not in the channel.
func (s *Receipts) List(ctx context.Context, by access.Caller, id channel.ID, of message.ID) ([]Receipt, error) {
	_, e, snapshot, err := s.journal.ReadableView(ctx, by, id)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	m, err := s.readForReceipts(snapshot, e, of)
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
	times := s.newReadTimes(ctx)
	defer times.close()
	out := make([]Receipt, 0, len(agents))
	for _, agent := range agents {
		k, err := MarkersOf(snapshot.Match, id, agent)
		if err != nil {
			return nil, err
		}
		state, err := k.ReceiptState(m)
		if err != nil {
			return nil, err
		}
		one := Receipt{Agent: agent, State: state}
		if state == Read {
			if one.ReadAt, err = times.timeOf(k, m); err != nil {
				return nil, err
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// Own returns the state of a message at the caller, or "" if the message is not
// for the caller.
//
// Errors: those of List.
func (s *Receipts) Own(ctx context.Context, by access.Caller, id channel.ID, of message.ID) (State, error) {
	agent, e, snapshot, err := s.journal.ReadableView(ctx, by, id)
	if err != nil {
		return "", err
	}
	defer snapshot.Close()
	m, err := s.readForReceipts(snapshot, e, of)
	if err != nil || !m.IsFor(agent) {
		return "", err
	}
	k, err := MarkersOf(snapshot.Match, id, agent)
	if err != nil {
		return "", err
	}
	return k.ReceiptState(m)
}

// readForReceipts returns a message with DeadlinePassed set as receipts need it.
func (s *Receipts) readForReceipts(snapshot *kg.Snapshot, e *access.Entry, id message.ID) (*message.Message, error) {
	m, err := message.Read(snapshot.Match, e.ID, id)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, message.ErrNotFound()
	}
	over, err := s.journal.ClosedInSnapshot(snapshot, e)
	m.DeadlinePassed = m.DeadlinePassed || over || m.HasExpired(s.now())
	return m, err
}

// ReadMarker returns the sequence up to which the caller has read the channel, 0
// initially.
func (s *Receipts) ReadMarker(ctx context.Context, by access.Caller, id channel.ID) (int64, error) {
	agent, _, snapshot, err := s.journal.ReadableView(ctx, by, id)
	if err != nil {
		return 0, err
	}
	defer snapshot.Close()
	k, err := MarkersOf(snapshot.Match, id, agent)
	if err != nil {
		return 0, err
	}
	return k.read, nil
}

// MaxUnread bounds the messages after the read marker that Unread examines, so that its
// cost does not depend on the length of the channel.
const MaxUnread = 1000

// unreadPage is the number of messages that Unread reads at a time.
const unreadPage = 50

// UnreadCount is the number of unread messages.
type UnreadCount struct {
	Count int
	// More means that there are messages beyond those examined.
	More bool
}

// Unread counts the unread messages for the caller: those after its read marker without
// an individual receipt and with content. A closed channel has none.
func (s *Receipts) Unread(ctx context.Context, by access.Caller, id channel.ID) (n UnreadCount, err error) {
	agent, e, snapshot, err := s.journal.ReadableView(ctx, by, id)
	if err != nil {
		return n, err
	}
	defer snapshot.Close()
	if over, err := s.journal.ClosedInSnapshot(snapshot, e); err != nil || over {
		return n, err
	}
	k, err := MarkersOf(snapshot.Match, id, agent)
	if err != nil {
		return n, err
	}
	head, err := journal.Count(snapshot, id)
	if err != nil {
		return n, err
	}
	last := min(head, k.read+MaxUnread)
	for from := k.read + 1; from <= last; {
		list, _, err := journal.ReadRun(snapshot, id, from, int(min(unreadPage, last-from+1)), false, s.journal.ViewerOf(agent))
		if err != nil || len(list) == 0 {
			return n, err
		}
		for _, m := range list {
			if m.Withheld != "" || !m.IsFor(agent) {
				continue
			}
			state, err := k.ReceiptState(m)
			if err != nil {
				return n, err
			}
			if state != Read {
				n.Count++
			}
		}
		from += int64(len(list))
	}
	n.More = head > last
	return n, nil
}
