package channels

import (
	"context"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

// JudgedMessage is a message that an update is about to publish, with its channel, for
// verifiers (kg.Verifier).
type JudgedMessage struct {
	// Message has its full content, even if it is addressed to some. Sequence and Time
	// are provisional.
	Message *message.Message
	// Channel comes from the table: it lacks Metadata and JournalState.
	Channel *channel.Channel
	// Depends lists the data read that is not part of the update's changes.
	Depends []kg.Dependency
}

// JudgedMessages lists the messages that a judged update publishes, in the order of its
// changes, without notices. For an update that applies a proposal, it is the message that the facts were
// published with.
//
// Errors: CodeInvalid if that message no longer exists.
func (s *Service) JudgedMessages(ctx context.Context, j kg.Judgement) (out []JudgedMessage, err error) {
	c := kg.Commit{Changes: j.Changes}
	for i := range j.Changes {
		ch := &j.Changes[i]
		id, part := channel.OfGraph(ch.Quad.Graph)
		if part != channel.JournalPart || ch.Op != kg.Add || ch.Quad.Predicate != kg.Sequence {
			continue
		}
		m := &message.Message{ID: message.IDIn(ch.Quad.Subject), Channel: id}
		if err := m.ApplyCommit(&c, id.MessagesGraph()); err != nil {
			return nil, err
		}
		if m.Private {
			if err := m.ApplyCommit(&c, m.ContentGraph()); err != nil {
				return nil, err
			}
		}
		if m.ContentType == message.Notice { // koine's own, perhaps in a channel that it makes with it
			continue
		}
		if out, err = s.appendJudged(out, m); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 && j.Meta.ProposalID != "" && j.Meta.MessageID != "" {
		m, err := s.readJudgedMessage(ctx, message.ID(j.Meta.MessageID))
		if err != nil {
			return nil, err
		}
		return s.appendJudged(nil, m)
	}
	return out, nil
}

// appendJudged appends a message with its channel, which may be created in the same
// commit.
func (s *Service) appendJudged(list []JudgedMessage, m *message.Message) ([]JudgedMessage, error) {
	e := s.table.Get(m.Channel)
	if e == nil {
		e = s.table.PendingEntry(m.Channel)
	}
	if e == nil {
		return nil, kg.Errorf(kg.CodeInternal, "judged message belongs to the unknown channel %s", m.Channel)
	}
	return append(list, JudgedMessage{Message: m, Channel: &e.Channel, Depends: []kg.Dependency{{Graph: m.Channel.RecordGraph()}}}), nil
}

// readJudgedMessage returns a message with its remaining content.
func (s *Service) readJudgedMessage(ctx context.Context, id message.ID) (*message.Message, error) {
	snapshot, err := s.journal.SystemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(kg.Pattern{Subject: id.Entity(), Predicate: kg.Sequence}) {
		if err != nil {
			return nil, err
		}
		if of, part := channel.OfGraph(st.Graph); part == channel.JournalPart {
			m, err := message.Read(snapshot.Match, of, id)
			if err == nil && (m == nil || m.RetractedBy != "") {
				err = errNoEvidence()
			}
			return m, err
		}
	}
	return nil, errNoEvidence()
}

func errNoEvidence() *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "message of these facts no longer exists")
}
