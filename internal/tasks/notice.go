package tasks

import (
	"context"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Notice announces a letter in a mailbox. The letter itself is read at delivery and may
// be gone by then.
type Notice struct {
	Task   TaskID
	Number int // of the message in the task; 0 for its cancellation
	Since  kg.Revision
}

// MailPattern is the pattern for a watcher of all mailboxes: each new letter adds a matching
// statement.
func MailPattern() kg.Pattern { return kg.Pattern{Predicate: systemgraph.Property(propMail)} }

// ParseMailEvent returns the owner of the mailbox and the letter of an event of MailPattern.
func ParseMailEvent(e *kg.Event) (kg.AgentID, Notice) {
	id, n := letterOf(e.Statement.Subject)
	return kg.AgentID(e.Statement.Object.Value()), Notice{id, n, e.Commit.Revision}
}

// Notices lists the letters in the mailbox of an agent, oldest first, and the revision
// of the list.
func (s *Service) Notices(ctx context.Context, agent kg.AgentID) (list []Notice, at kg.Revision, err error) {
	box, err := s.openMailbox(ctx, systemCaller(), agent)
	if err != nil {
		return nil, 0, err
	}
	for i, subject := range box.waiting {
		id, n := letterOf(subject)
		list = append(list, Notice{id, n, box.since[i]})
	}
	return list, box.from.Revision, nil
}

// ReadLetter reads a letter, nil if it is no longer in its mailbox.
func (s *Service) ReadLetter(ctx context.Context, n Notice) (*Letter, error) {
	l, err := (&Mailbox{service: s, ctx: ctx, by: systemCaller()}).readLetter(letterEntity(n.Task, n.Number))
	if kg.CodeOf(err) == kg.CodeTaskNotFound {
		return nil, nil
	}
	return l, err
}
