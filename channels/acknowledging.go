package channels

import (
	"context"
	"time"

	"koine/kg"
)

// acknowledging is an acknowledgement that waits for its commit.
type acknowledging struct {
	Acknowledgement
	service *Service
	agent   kg.AgentID
	reader  kg.Principal
	single  []MessageID // that are written down by themselves
	done    chan error
	err     error // what became of it in the last try
}

// prepare refuses what cannot be acknowledged, and finds the messages that are written
// down singly.
func (a *acknowledging) prepare(ctx context.Context, e *entry) error {
	s := a.service
	snapshot, err := s.system(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	if over, err := s.over(snapshot, e); err != nil || over {
		return errOr(err, errAllExpired())
	}
	if a.UpTo > 0 {
		head, err := countMessages(snapshot, a.Channel)
		if err != nil {
			return err
		}
		if a.UpTo > head {
			return kg.Errorf(kg.CodeInvalid, "the channel has %d messages", head).At("upToSequence")
		}
		k, err := markersOf(snapshot.Match, a.Channel, a.agent)
		if err != nil {
			return err
		}
		a.single, err = a.expiring(snapshot, k.of(a.State))
		return err
	}
	for _, id := range a.Messages {
		m, err := readMessage(snapshot.Match, a.Channel, id)
		if err != nil {
			return err
		}
		if m == nil {
			return errNoSuchMessage("messageIds")
		}
		if err := a.refused(m, s.options.Clock()); err != nil {
			return err
		}
	}
	a.single = a.Messages
	return nil
}

// expiring lists the messages behind a marker, up to where is acknowledged, that are
// going to expire: those of the journal, and of the lanes that the agent reads.
func (a *acknowledging) expiring(snapshot *kg.Snapshot, marker int64) (out []MessageID, err error) {
	graphs := []kg.Term{a.Channel.MessagesGraph()}
	for st, err := range snapshot.Match(kg.Pattern{Predicate: propLaneReader, Object: kg.IRI(string(a.agent)), Graph: a.Channel.RecordGraph()}) {
		if err != nil {
			return nil, err
		}
		graphs = append(graphs, st.Subject)
	}
	now := a.service.options.Clock()
	for _, graph := range graphs {
		for st, err := range snapshot.Match(kg.Pattern{Predicate: propExpires, Graph: graph}) {
			if err != nil {
				return nil, err
			}
			n, err := numberOf(snapshot, a.Channel, messageOf(st.Subject), "")
			if err != nil {
				return nil, err
			}
			if n <= marker || n > a.UpTo {
				continue
			}
			m, err := readMessage(snapshot.Match, a.Channel, messageOf(st.Subject))
			if err != nil {
				return nil, err
			}
			if a.refused(m, now) != nil {
				continue
			}
			if out = append(out, m.ID); len(out) > maxExpiryChanges {
				return nil, errTooMuch("upToSequence", "more than %d messages up to there are going to expire: acknowledge in smaller steps", maxExpiryChanges)
			}
		}
	}
	return out, nil
}

// refused says why the message is not acknowledged at a time.
func (a *acknowledging) refused(m *Message, at time.Time) error {
	switch {
	case !m.isFor(a.agent):
		return errDenied("only its recipients acknowledge a message").At("messageIds")
	case m.DeadlinePassed || m.expired(at):
		return kg.Errorf(kg.CodeMessageExpired, "the message has expired").At("messageIds")
	}
	return nil
}

// write writes it down inside of an update. What is refused by now goes to err, and
// leaves the others alone.
func (a *acknowledging) write(tx *kg.Tx, e *entry) error {
	a.err = nil
	if !e.as(a.reader).reads(a.agent) {
		a.err = errNoChannel()
		return nil
	}
	if err := a.service.mustBeOpen(tx, &e.Channel); kg.CodeOf(err) == kg.CodeChannelClosed {
		a.err = errAllExpired()
		return nil
	} else if err != nil {
		return err
	}
	graph, properties := a.Channel.ReceiptsGraph(), receiptProperties[a.State]
	for _, id := range a.single {
		m, err := readMessage(tx.MatchOwn, a.Channel, id)
		if err != nil {
			return err
		}
		if refused := a.refused(m, tx.Time()); refused != nil {
			if a.UpTo == 0 {
				a.err = refused
			}
			continue
		}
		q := kg.Quad{Subject: id.Entity(), Predicate: properties.single, Object: kg.IRI(string(a.agent)), Graph: graph}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return err
		}
	}
	k, err := markersOf(tx.MatchOwn, a.Channel, a.agent)
	if err != nil || a.UpTo <= k.of(a.State) {
		return err
	}
	q := kg.Quad{Subject: kg.IRI(string(a.agent)), Predicate: properties.upTo, Object: kg.Integer(a.UpTo), Graph: graph}
	return tx.ApplyOwn(kg.Patch{Op: kg.Replace, Quad: q})
}
