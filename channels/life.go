package channels

import (
	"context"
	"time"
	"unicode/utf8"

	"koine/kg"
)

// Status tells whether a channel takes messages.
type Status string

// The states. A closed channel is read as before, and never opens again.
const (
	Open   Status = "open"
	Closed Status = "closed"
)

// Bounds of how long a channel stays open after its last message.
const (
	MinExpireAfter = time.Second
	MaxExpireAfter = 10 * 365 * 24 * time.Hour
)

// The reasons that koine itself has to close a channel.
const (
	reasonExpired = "expired"
	reasonEnded   = "its scope has ended"
)

// Status tells whether the channel takes messages.
func (c *Channel) Status() Status {
	if c.ClosedAt.IsZero() {
		return Open
	}
	return Closed
}

// closesAt is when the channel closes by itself if nothing comes after its last message;
// the zero time for never.
func (c *Channel) closesAt(last time.Time) time.Time {
	if c.ExpireAfter == 0 || c.Status() == Closed {
		return time.Time{}
	}
	if last.Before(c.expireAfterSetAt) {
		last = c.expireAfterSetAt
	}
	return last.Add(c.ExpireAfter)
}

// ExpiresAt is when the channel closes by itself if nothing more is said in it; the zero
// time for never, for one that is closed, and for who may find it only.
func (c *Channel) ExpiresAt() time.Time {
	if c.CreatedBy == "" {
		return time.Time{} // an outline, which does not say when the last message was
	}
	return c.closesAt(c.LastMessageAt)
}

// markClosedIfDue shows a channel whose time has come as closed, before that is written down.
func (c *Channel) markClosedIfDue(now time.Time) {
	if due := c.closesAt(c.LastMessageAt); !due.IsZero() && !now.Before(due) {
		c.ClosedAt, c.CloseReason = due, reasonExpired
	}
}

// CloseChannel ends a channel: it takes no message any more, what it has is read on.
// What was not read until then is IsExpired for good, and its requests are answered
// no more. Streams of it end when they have told the last, and so do Ask and AskAll.
// Owners may, who made it, and who runs its scope.
//
// Errors: CodeChannelClosed for one that is closed already; CodeChannelNotFound;
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

// isClosed tells whether it is written down that the channel is closed.
func (s *Service) isClosed(id ChannelID) bool {
	e := s.table.get(id)
	return e != nil && e.Status() == Closed
}

// closedInCommit tells whether a commit closed the channel.
func closedInCommit(c *kg.Commit, id ChannelID) bool {
	for i := range c.Changes {
		if q := &c.Changes[i].Quad; q.Predicate == propClosed && q.Graph == id.RecordGraph() {
			return true
		}
	}
	return false
}

// closeAt closes a channel inside an update, as of a time that is not later.
func (s *Service) closeAt(w *writer, c *Channel, at time.Time, reason string) {
	c.ClosedAt, c.CloseReason = at, reason
	w.setProperty(propClosed, kg.DateTime(at))
	w.setText(propCloseReason, reason)
}

// closedInSnapshot tells whether a snapshot has the channel as one that takes no message any
// more, whether that is written down or not.
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

// lastMessageTime is lastSent, of a snapshot.
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

// mustBeOpen refuses a channel that is closed, or whose time has come.
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

// lastMessageTimeTx is when the last message of the channel was published; the zero time
// without one.
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
			if said, ok := sent.Object.DateTimeValue(); ok {
				at = said
			}
		}
	}
	return at, nil
}

func checkReason(reason string) error {
	if !utf8.ValidString(reason) {
		return kg.Errorf(kg.CodeInvalid, "a reason is UTF-8").At("reason")
	}
	if n := utf8.RuneCountInString(reason); n > MaxReasonRunes {
		return errTooMuch("reason", "a reason of %d characters is longer than the %d that it may have", n, MaxReasonRunes)
	}
	return nil
}

// checkExpireAfter refuses what is no time that a channel stays open; 0 is for ever.
func checkExpireAfter(d time.Duration) error {
	if d == 0 {
		return nil
	}
	if d < MinExpireAfter || d%time.Millisecond != 0 {
		return kg.Errorf(kg.CodeInvalid, "a channel expires %s after its last message or later, in whole milliseconds", MinExpireAfter).At("expireAfter")
	}
	if d > MaxExpireAfter {
		return errTooMuch("expireAfter", "a channel expires %s after its last message or earlier", MaxExpireAfter)
	}
	return nil
}
