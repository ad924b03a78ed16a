package channels

import (
	"context"
	"time"
	"unicode/utf8"

	"koine/kg"
)

// Status is the state of a channel.
type Status string

// Channel states. A closed channel remains readable and never reopens.
const (
	Open   Status = "open"
	Closed Status = "closed"
)

// Limits of the idle timeout.
const (
	MinExpireAfter = time.Second
	MaxExpireAfter = 10 * 365 * 24 * time.Hour
)

// Reasons of koine itself for closing a channel.
const (
	reasonExpired = "expired"
	reasonEnded   = "its scope has ended"
)

// Status returns Open if the channel accepts messages.
func (c *Channel) Status() Status {
	if c.ClosedAt.IsZero() {
		return Open
	}
	return Closed
}

// closesAt returns the end of the idle timeout if last is the time of the last message;
// the zero time means never.
func (c *Channel) closesAt(last time.Time) time.Time {
	if c.ExpireAfter == 0 || c.Status() == Closed {
		return time.Time{}
	}
	if last.Before(c.expireAfterSetAt) {
		last = c.expireAfterSetAt
	}
	return last.Add(c.ExpireAfter)
}

// ExpiresAt returns the time at which the channel closes unless another message is
// published. It is the zero time if there is no idle timeout, if the channel is closed,
// and in an outline (see Service.Get).
func (c *Channel) ExpiresAt() time.Time {
	if c.CreatedBy == "" {
		return time.Time{} // an outline has no LastMessageAt
	}
	return c.closesAt(c.LastMessageAt)
}

// markClosedIfDue marks a channel as closed if its idle timeout has ended, before a
// commit records it.
func (c *Channel) markClosedIfDue(now time.Time) {
	if due := c.closesAt(c.LastMessageAt); !due.IsZero() && !now.Before(due) {
		c.ClosedAt, c.CloseReason = due, reasonExpired
	}
}

// CloseChannel closes a channel: it remains readable and accepts no more messages.
// Unread messages become ReceiptExpired permanently, and requests can no longer be
// answered. Streams end after the last message, as do Ask and AskAll. It requires an
// owner, the creator, or a manager of the scope.
//
// Errors: CodeChannelClosed if the channel is already closed; CodeChannelNotFound;
// CodePermissionDenied; CodeLimitExceeded.
func (s *Service) CloseChannel(ctx context.Context, by Caller, id ChannelID, reason string) (*Channel, error) {
	if err := checkReason(reason); err != nil {
		return nil, err
	}
	must := func(e *entry, agent kg.AgentID) error {
		if e.canRead(agent) && e.CreatedBy == agent {
			return nil
		}
		return e.mustOwn(agent)
	}
	return s.alterChannel(ctx, by, id, "channels/close", must, func(w *writer, c *Channel) error {
		if err := s.mustBeOpen(w.tx, c); err != nil {
			return err
		}
		s.closeAt(w, c, w.tx.Time(), reason)
		return nil
	})
}

// isClosed reports whether the closing of the channel is recorded.
func (s *Service) isClosed(id ChannelID) bool {
	e := s.table.get(id)
	return e != nil && e.Status() == Closed
}

// closedInCommit reports whether a commit closed the channel.
func closedInCommit(c *kg.Commit, id ChannelID) bool {
	for i := range c.Changes {
		if q := &c.Changes[i].Quad; q.Predicate == propClosed && q.Graph == id.RecordGraph() {
			return true
		}
	}
	return false
}

// closeAt closes a channel within an update, as of the time at, which is not after the
// commit's time.
func (s *Service) closeAt(w *writer, c *Channel, at time.Time, reason string) {
	c.ClosedAt, c.CloseReason = at, reason
	w.setProperty(propClosed, kg.DateTime(at))
	w.setText(propCloseReason, reason)
}

// closedInSnapshot reports whether the channel is closed in a snapshot or its idle
// timeout has ended.
func (s *Service) closedInSnapshot(snapshot *kg.Snapshot, e *entry) (bool, error) {
	for _, err := range snapshot.Match(kg.Pattern{Subject: e.ID.Entity(), Predicate: propClosed, Graph: e.ID.RecordGraph()}) {
		return err == nil, err
	}
	if e.ExpireAfter == 0 {
		return false, nil
	}
	last, err := lastMessageTime(snapshot, e.ID)
	if err != nil {
		return false, err
	}
	due := e.closesAt(last)
	return !due.IsZero() && !s.options.Clock().Before(due), nil
}

// lastMessageTime is lastMessageTimeTx for a snapshot.
func lastMessageTime(snapshot *kg.Snapshot, id ChannelID) (time.Time, error) {
	n, err := countMessages(snapshot, id)
	if n == 0 || err != nil {
		return time.Time{}, err
	}
	last, err := readMessages(snapshot, id, n, 1, viewer{})
	if err != nil || len(last) == 0 {
		return time.Time{}, err
	}
	return last[0].Time, nil
}

// mustBeOpen returns an error if the channel is closed or its idle timeout has ended.
func (s *Service) mustBeOpen(tx *kg.Tx, c *Channel) error {
	if c.Status() == Open && c.ExpireAfter > 0 {
		last, err := lastMessageTimeTx(tx, c.ID)
		if err != nil {
			return err
		}
		if tx.Time().Before(c.closesAt(last)) {
			return nil
		}
		return errChannelClosed()
	}
	if c.Status() == Closed {
		return errChannelClosed()
	}
	return nil
}

// lastMessageTimeTx returns the time of the channel's last message, or the zero time.
func lastMessageTimeTx(tx *kg.Tx, id ChannelID) (at time.Time, err error) {
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
		for sent, err := range tx.MatchOwn(kg.Pattern{Subject: st.Subject, Predicate: propSent, Graph: graph}) {
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

func checkReason(reason string) error {
	if !utf8.ValidString(reason) {
		return kg.Errorf(kg.CodeInvalid, "reason must be valid UTF-8").At("reason")
	}
	if n := utf8.RuneCountInString(reason); n > MaxReasonRunes {
		return errTooMuch("reason", "reason has %d characters; the limit is %d", n, MaxReasonRunes)
	}
	return nil
}

// checkExpireAfter validates an idle timeout; 0 means none.
func checkExpireAfter(d time.Duration) error {
	if d == 0 {
		return nil
	}
	if d < MinExpireAfter || d%time.Millisecond != 0 {
		return kg.Errorf(kg.CodeInvalid, "expireAfter must be at least %s, in whole milliseconds", MinExpireAfter).At("expireAfter")
	}
	if d > MaxExpireAfter {
		return errTooMuch("expireAfter", "expireAfter must be at most %s", MaxExpireAfter)
	}
	return nil
}
