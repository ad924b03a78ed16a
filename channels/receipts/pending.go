package receipts

import (
	"context"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/check"
	"koine/channels/internal/journal"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/kg"
)

// pendingAck is an acknowledgement that waits for its commit.
type pendingAck struct {
	Acknowledgement
	receipts   *Receipts
	agent      kg.AgentID
	reader     kg.Principal
	individual []message.ID // messages that get a receipt of their own
	done       chan error
	lastErr    error // result of the last attempt
}

// resolveMessages rejects an invalid acknowledgement and determines the messages that
// need individual receipts.
func (a *pendingAck) resolveMessages(ctx context.Context, e *access.Entry) error {
	s := a.receipts
	snapshot, err := s.journal.SystemView(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	if over, err := s.journal.ClosedInSnapshot(snapshot, e); err != nil || over {
		return check.FirstError(err, errAllExpired())
	}
	if a.UpTo > 0 {
		head, err := journal.Count(snapshot, a.Channel)
		if err != nil {
			return err
		}
		if a.UpTo > head {
			return kg.Errorf(kg.CodeInvalid, "upToSequence is ahead of the channel, whose last sequence is %d", head).At("upToSequence")
		}
		k, err := MarkersOf(snapshot.Match, a.Channel, a.agent)
		if err != nil {
			return err
		}
		a.individual, err = a.expiringMessages(snapshot, k.forState(a.State))
		return err
	}
	for _, id := range a.Messages {
		m, err := message.Read(snapshot.Match, a.Channel, id)
		if err != nil {
			return err
		}
		if m == nil {
			return message.ErrNotInChannel("messageIds")
		}
		if err := a.checkMessage(m, s.now()); err != nil {
			return err
		}
	}
	a.individual = a.Messages
	return nil
}

// expiringMessages lists the expiring messages after marker and up to a.UpTo, from the
// journal and from the partitions that the agent can read.
func (a *pendingAck) expiringMessages(snapshot *kg.Snapshot, marker int64) (out []message.ID, err error) {
	graphs := []kg.Term{a.Channel.MessagesGraph()}
	for st, err := range snapshot.Match(kg.Pattern{Predicate: vocab.LaneReader, Object: kg.IRI(string(a.agent)), Graph: a.Channel.RecordGraph()}) {
		if err != nil {
			return nil, err
		}
		graphs = append(graphs, st.Subject)
	}
	now := a.receipts.now()
	for _, graph := range graphs {
		for st, err := range snapshot.Match(kg.Pattern{Predicate: vocab.Expires, Graph: graph}) {
			if err != nil {
				return nil, err
			}
			n, err := journal.SequenceOf(snapshot, a.Channel, message.IDIn(st.Subject), "")
			if err != nil {
				return nil, err
			}
			if n <= marker || n > a.UpTo {
				continue
			}
			m, err := message.Read(snapshot.Match, a.Channel, message.IDIn(st.Subject))
			if err != nil {
				return nil, err
			}
			if a.checkMessage(m, now) != nil {
				continue
			}
			if out = append(out, m.ID); len(out) > maxExpiring {
				return nil, check.TooMuch("upToSequence", "more than %d messages up to this sequence expire: acknowledge in smaller steps", maxExpiring)
			}
		}
	}
	return out, nil
}

// checkMessage returns an error if the agent cannot acknowledge m at the given time.
func (a *pendingAck) checkMessage(m *message.Message, at time.Time) error {
	switch {
	case !m.IsFor(a.agent):
		return check.Denied("only a recipient of the message can acknowledge it").At("messageIds")
	case m.DeadlinePassed || m.HasExpired(at):
		return kg.Errorf(kg.CodeMessageExpired, "message has expired").At("messageIds")
	}
	return nil
}

// writeReceipts writes the receipts within an update. If the acknowledgement has become
// invalid, it stores the reason in lastErr and returns nil, so that the rest of the
// batch is committed.
func (a *pendingAck) writeReceipts(tx *kg.Tx, e *access.Entry) error {
	a.lastErr = nil
	if !e.AsPrincipal(a.reader).CanRead(a.agent) {
		a.lastErr = channel.ErrNotFound()
		return nil
	}
	if err := journal.MustBeOpen(tx, &e.Channel); kg.CodeOf(err) == kg.CodeChannelClosed {
		a.lastErr = errAllExpired()
		return nil
	} else if err != nil {
		return err
	}
	graph, properties := a.Channel.ReceiptsGraph(), receiptProperties[a.State]
	for _, id := range a.individual {
		m, err := message.Read(tx.MatchOwn, a.Channel, id)
		if err != nil {
			return err
		}
		if refused := a.checkMessage(m, tx.Time()); refused != nil {
			if a.UpTo == 0 {
				a.lastErr = refused
			}
			continue
		}
		q := kg.Quad{Subject: id.Entity(), Predicate: properties.single, Object: kg.IRI(string(a.agent)), Graph: graph}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return err
		}
	}
	k, err := MarkersOf(tx.MatchOwn, a.Channel, a.agent)
	if err != nil || a.UpTo <= k.forState(a.State) {
		return err
	}
	q := kg.Quad{Subject: kg.IRI(string(a.agent)), Predicate: properties.upTo, Object: kg.Integer(a.UpTo), Graph: graph}
	return tx.ApplyOwn(kg.Patch{Op: kg.Replace, Quad: q})
}

// errAllExpired reports that the messages of a closed channel have expired.
func errAllExpired() *kg.Error {
	return kg.Errorf(kg.CodeMessageExpired, "the channel is closed: its unread messages have expired").At("channelId")
}
