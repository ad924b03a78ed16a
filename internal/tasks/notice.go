package tasks

import (
	"context"

	"koine/internal/records"
	"koine/kg"
)

// Notice says that a letter came into a mailbox. The letter is read when its turn
// comes, and may be there no more.
type Notice struct {
	Task   TaskID
	Number int // of the message in the task; 0 for its cancel
	Since  kg.Revision
}

// Mail is what a watcher of all mailboxes asks for: each letter that comes is an addition
// that fits it.
func Mail() kg.Pattern { return kg.Pattern{Predicate: records.Property(propMail)} }

// MailIn is whose letter an event of Mail is about.
func MailIn(e *kg.Event) (kg.AgentID, Notice) {
	id, n := letterOf(e.Statement.Subject)
	return kg.AgentID(e.Statement.Object.Value()), Notice{id, n, e.Commit.Revision}
}

// Notices lists what waits in the mailbox of an agent, the oldest first, as of a revision.
func (s *Service) Notices(ctx context.Context, agent kg.AgentID) (list []Notice, at kg.Revision, err error) {
	box, err := s.waiting(ctx, own(), agent)
	if err != nil {
		return nil, 0, err
	}
	for i, subject := range box.waiting {
		id, n := letterOf(subject)
		list = append(list, Notice{id, n, box.since[i]})
	}
	return list, box.from.Revision, nil
}

// Noticed reads a letter, nil for one that is not in its mailbox any more.
func (s *Service) Noticed(ctx context.Context, n Notice) (*Letter, error) {
	l, err := (&Mailbox{service: s, ctx: ctx, by: own()}).read(letterEntity(n.Task, n.Number))
	if kg.CodeOf(err) == kg.CodeTaskNotFound {
		return nil, nil
	}
	return l, err
}
