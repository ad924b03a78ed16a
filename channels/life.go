package channels

import (
	"context"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// CloseChannel closes a channel: it remains readable and accepts no more messages.
// Unread messages become ReceiptExpired permanently, and requests can no longer be
// answered. Streams end after the last message, as do Ask and AskAll. It requires an
// owner, the creator, or a manager of the scope.
//
// Errors: CodeChannelClosed if the channel is already closed; CodeChannelNotFound;
// CodePermissionDenied; CodeLimitExceeded.
func (s *Service) CloseChannel(ctx context.Context, by Caller, id channel.ID, reason string) (*channel.Channel, error) {
	if err := checkReason(reason); err != nil {
		return nil, err
	}
	must := func(e *access.Entry, agent kg.AgentID) error {
		if e.CanRead(agent) && e.CreatedBy == agent {
			return nil
		}
		return e.MustOwn(agent)
	}
	return s.alterChannel(ctx, by, id, "channels/close", must, func(w *channel.Writer, c *channel.Channel) error {
		if err := s.mustBeOpen(w.Tx, c); err != nil {
			return err
		}
		s.closeAt(w, c, w.Tx.Time(), reason)
		return nil
	})
}

// isClosed reports whether the closing of the channel is recorded.
func (s *Service) isClosed(id channel.ID) bool {
	e := s.table.Get(id)
	return e != nil && e.Status() == channel.Closed
}

// closedInCommit reports whether a commit closed the channel.
func closedInCommit(c *kg.Commit, id channel.ID) bool {
	for i := range c.Changes {
		if q := &c.Changes[i].Quad; q.Predicate == vocab.Closed && q.Graph == id.RecordGraph() {
			return true
		}
	}
	return false
}

// closeAt closes a channel within an update, as of the time at, which is not after the
// commit's time.
func (s *Service) closeAt(w *channel.Writer, c *channel.Channel, at time.Time, reason string) {
	c.ClosedAt, c.CloseReason = at, reason
	w.SetProperty(vocab.Closed, kg.DateTime(at))
	w.SetText(vocab.CloseReason, reason)
}

// closedInSnapshot reports whether the channel is closed in a snapshot or its idle
// timeout has ended.
func (s *Service) closedInSnapshot(snapshot *kg.Snapshot, e *access.Entry) (bool, error) {
	for _, err := range snapshot.Match(kg.Pattern{Subject: e.ID.Entity(), Predicate: vocab.Closed, Graph: e.ID.RecordGraph()}) {
		return err == nil, err
	}
	if e.ExpireAfter == 0 {
		return false, nil
	}
	last, err := lastMessageTime(snapshot, e.ID)
	if err != nil {
		return false, err
	}
	due := e.ClosesAt(last)
	return !due.IsZero() && !s.options.Clock().Before(due), nil
}

// lastMessageTime is lastMessageTimeTx for a snapshot.
func lastMessageTime(snapshot *kg.Snapshot, id channel.ID) (time.Time, error) {
	n, err := countMessages(snapshot, id)
	if n == 0 || err != nil {
		return time.Time{}, err
	}
	last, err := readMessages(snapshot, id, n, 1, message.Viewer{})
	if err != nil || len(last) == 0 {
		return time.Time{}, err
	}
	return last[0].Time, nil
}

// mustBeOpen returns an error if the channel is closed or its idle timeout has ended.
func (s *Service) mustBeOpen(tx *kg.Tx, c *channel.Channel) error {
	if c.Status() == channel.Open && c.ExpireAfter > 0 {
		last, err := lastMessageTimeTx(tx, c.ID)
		if err != nil {
			return err
		}
		if tx.Time().Before(c.ClosesAt(last)) {
			return nil
		}
		return channel.ErrClosed()
	}
	if c.Status() == channel.Closed {
		return channel.ErrClosed()
	}
	return nil
}

// lastMessageTimeTx returns the time of the channel's last message, or the zero time.
func lastMessageTimeTx(tx *kg.Tx, id channel.ID) (at time.Time, err error) {
	graph := id.MessagesGraph()
	n, err := tx.CountOwn(graph, kg.Sequence)
	if n == 0 || err != nil {
		return at, err
	}
	for st, err := range tx.MatchOwn(kg.Pattern{Predicate: kg.Sequence, Object: kg.Integer(int64(n)), Graph: graph}) {
		if err != nil {
			return at, err
		}
		at = st.Assertions[0].Time
		for sent, err := range tx.MatchOwn(kg.Pattern{Subject: st.Subject, Predicate: vocab.Sent, Graph: graph}) {
			if err != nil {
				return at, err
			}
			if t, ok := sent.Object.DateTimeValue(); ok {
				at = t
			}
		}
	}
	return at, nil
}
