package channels

import (
	"context"

	"koine/kg"
)

// JudgedMessage is a message that an update is about to publish, with its channel, for who
// judges updates (kg.Verifier).
type JudgedMessage struct {
	// Message is whole, whoever it is addressed to. Sequence and Time are those that it
	// would have now.
	Message *Message
	// Channel is as the table knows it: without Metadata, Messages and LastMessageAt.
	Channel *Channel
	// Depends is what of it is not in the changes of the update.
	Depends []kg.Dependency
}

// JudgedMessages lists what the update of a judgement publishes, in the order of its changes;
// of one that applies a proposal, the message that the proposal's facts came with.
//
// Errors: CodeInvalid where that message is not there any more.
func (s *Service) JudgedMessages(ctx context.Context, j kg.Judgement) (out []JudgedMessage, err error) {
	c := kg.Commit{Changes: j.Changes}
	for i := range j.Changes {
		ch := &j.Changes[i]
		id, part := channelOfGraph(ch.Quad.Graph)
		if part != journalPart || ch.Op != kg.Add || ch.Quad.Predicate != kg.Sequence {
			continue
		}
		m := &Message{ID: messageIDIn(ch.Quad.Subject), Channel: id}
		if err := m.applyCommit(&c, id.MessagesGraph()); err != nil {
			return nil, err
		}
		if m.Private {
			if err := m.applyCommit(&c, m.contentGraph()); err != nil {
				return nil, err
			}
		}
		if out, err = s.appendJudged(out, m); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 && j.Meta.ProposalID != "" && j.Meta.MessageID != "" {
		m, err := s.readJudgedMessage(ctx, MessageID(j.Meta.MessageID))
		if err != nil {
			return nil, err
		}
		return s.appendJudged(nil, m)
	}
	return out, nil
}

// appendJudged adds a message with its channel, which is made in the same commit where it is
// not there.
func (s *Service) appendJudged(list []JudgedMessage, m *Message) ([]JudgedMessage, error) {
	e := s.table.get(m.Channel)
	if e == nil {
		e = s.table.pendingEntry(m.Channel)
	}
	if e == nil {
		return nil, kg.Errorf(kg.CodeInternal, "a message is judged whose channel %s is not known", m.Channel)
	}
	return append(list, JudgedMessage{Message: m, Channel: &e.Channel, Depends: []kg.Dependency{{Graph: m.Channel.RecordGraph()}}}), nil
}

// readJudgedMessage gives a message whole, as far as it is still there.
func (s *Service) readJudgedMessage(ctx context.Context, id MessageID) (*Message, error) {
	snapshot, err := s.systemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(kg.Pattern{Subject: id.Entity(), Predicate: kg.Sequence}) {
		if err != nil {
			return nil, err
		}
		if channel, part := channelOfGraph(st.Graph); part == journalPart {
			m, err := readMessage(snapshot.Match, channel, id)
			if err == nil && (m == nil || m.RetractedBy != "") {
				err = errNoEvidence()
			}
			return m, err
		}
	}
	return nil, errNoEvidence()
}

func errNoEvidence() *kg.Error {
	return kg.Errorf(kg.CodeInvalid, "the message of these facts is not there any more")
}
