package journal

import (
	"time"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// CloseExpired closes a channel as of the end of its idle timeout.
func CloseExpired(w *channel.Writer, c *channel.Channel) error {
	last, err := LastTimeTx(w.Tx, c.ID)
	if err != nil {
		return err
	}
	w.Close(c, c.ClosesAt(last), channel.ReasonExpired)
	return nil
}

// ClosedInCommit reports whether a commit closed the channel.
func ClosedInCommit(c *kg.Commit, id channel.ID) bool {
	for i := range c.Changes {
		if q := &c.Changes[i].Quad; q.Predicate == vocab.Closed && q.Graph == id.RecordGraph() {
			return true
		}
	}
	return false
}

// ClosedInSnapshot reports whether the channel is closed in a snapshot or its idle
// timeout has ended.
func (j *Journal) ClosedInSnapshot(snapshot *kg.Snapshot, e *access.Entry) (bool, error) {
	for _, err := range snapshot.Match(kg.Pattern{Subject: e.ID.Entity(), Predicate: vocab.Closed, Graph: e.ID.RecordGraph()}) {
		return err == nil, err
	}
	if e.ExpireAfter == 0 {
		return false, nil
	}
	last, err := LastTime(snapshot, e.ID)
	if err != nil {
		return false, err
	}
	due := e.ClosesAt(last)
	return !due.IsZero() && !j.clock().Before(due), nil
}

// LastTime is lastMessageTimeTx for a snapshot.
func LastTime(snapshot *kg.Snapshot, id channel.ID) (time.Time, error) {
	n, err := Count(snapshot, id)
	if n == 0 || err != nil {
		return time.Time{}, err
	}
	last, err := Read(snapshot, id, n, 1, message.Viewer{})
	if err != nil || len(last) == 0 {
		return time.Time{}, err
	}
	return last[0].Time, nil
}

// MustBeOpen returns an error if the channel is closed or its idle timeout has ended.
func MustBeOpen(tx *kg.Tx, c *channel.Channel) error {
	if c.Status() == channel.Open && c.ExpireAfter > 0 {
		last, err := LastTimeTx(tx, c.ID)
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

// LastTimeTx returns the time of the channel's last message, or the zero time.
func LastTimeTx(tx *kg.Tx, id channel.ID) (at time.Time, err error) {
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
