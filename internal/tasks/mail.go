package tasks

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"koine/internal/caller"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Letter is an unacknowledged message to a handler, or the cancellation of a task.
type Letter struct {
	Task *Task // without its artifacts and earlier messages
	// Message is the message; for a cancellation, a text that announces it.
	Message Message
	Number  int // of the message in the task, from 1; 0 for its cancellation
	// Position is the position after the letter in the mailbox.
	Position kg.Position
}

// ID identifies the letter: it is the same in every delivery.
func (l *Letter) ID() string { return LetterID(l.Task.ID, l.Number) }

// Canceled reports whether the letter is the cancellation of its task.
func (l *Letter) Canceled() bool { return l.Number == cancelNumber }

// Mailbox yields the mail of an agent, live. Close it when done.
type Mailbox struct {
	service *Service
	ctx     context.Context
	by      caller.Caller
	agent   kg.AgentID
	waiting []kg.Term     // messages, oldest first
	since   []kg.Revision // when each arrived
	from    kg.Position
	watcher *kg.Watcher
}

// Mail opens the mailbox of the calling agent: the waiting letters, then new ones. A
// letter stays until its handler acknowledges it, so an agent that reconnects finds the
// unacknowledged ones.
//
// Errors: those of kg.Store.Watch.
func (s *Service) Mail(ctx context.Context, by caller.Caller) (*Mailbox, error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	box, err := s.openMailbox(ctx, by, agent)
	if err != nil {
		return nil, err
	}
	view := kg.View{Principal: by.Reader(agent), AllGraphs: true}
	box.watcher, err = s.store.Watch(ctx, kg.Filter{View: view, Patterns: []kg.Pattern{mailOf(agent)}, Ops: []kg.Op{kg.Add}}, box.from)
	return box, err
}

func mailOf(agent kg.AgentID) kg.Pattern {
	return kg.Pattern{Predicate: systemgraph.Property(propMail), Object: kg.IRI(string(agent))}
}

// openMailbox returns the mailbox with the letters that wait now.
func (s *Service) openMailbox(ctx context.Context, by caller.Caller, agent kg.AgentID) (*Mailbox, error) {
	snapshot, err := s.snapshot(ctx, by)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	box := &Mailbox{service: s, ctx: ctx, by: by, agent: agent, from: snapshot.Position()}
	since := map[kg.Term]kg.Revision{}
	for st, err := range snapshot.Match(mailOf(agent)) {
		if err != nil {
			return nil, err
		}
		box.waiting = append(box.waiting, st.Subject)
		since[st.Subject] = st.Assertions[0].Revision
	}
	slices.SortFunc(box.waiting, func(a, b kg.Term) int { return cmp.Compare(since[a], since[b]) })
	for _, subject := range box.waiting {
		box.since = append(box.since, since[subject])
	}
	return box, nil
}

// Close ends the stream of letters.
func (b *Mailbox) Close() {
	if b.watcher != nil {
		b.watcher.Close()
	}
}

// Letters yields the waiting letters and then new ones, each once. It leaves out
// letters that were acknowledged meanwhile. It ends with the context's error, and as a
// kg.Watcher does. Call it once, from one goroutine.
func (b *Mailbox) Letters() iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		for i, subject := range b.waiting {
			if more := b.yieldLetter(subject, b.from, yield); !more {
				return
			}
			b.service.delivered.markUpTo(b.agent, b.since[i])
		}
		for e, err := range b.watcher.Events() {
			if err != nil {
				yield(Letter{}, err)
				return
			}
			if more := b.yieldLetter(e.Statement.Subject, e.Position, yield); !more {
				return
			}
			b.service.delivered.markUpTo(b.agent, e.Position.Revision)
		}
	}
}

func (b *Mailbox) yieldLetter(subject kg.Term, at kg.Position, yield func(Letter, error) bool) bool {
	letter, err := b.readLetter(subject)
	switch {
	case kg.CodeOf(err) == kg.CodeTaskNotFound || err == nil && letter == nil:
		return true
	case err != nil:
		yield(Letter{}, err)
		return false
	}
	letter.Position = at
	return yield(*letter, nil)
}

// readLetter returns nil for a letter that is no longer in the mailbox.
func (b *Mailbox) readLetter(subject kg.Term) (*Letter, error) {
	snapshot, err := b.service.snapshot(b.ctx, b.by)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	id, n := letterOf(subject)
	graph, err := graphIn(snapshot, id)
	if err != nil {
		return nil, err
	}
	r, err := systemgraph.Read(snapshot.Match, graph, subject)
	if err != nil || r[propMail] == nil {
		return nil, err
	}
	t, err := readHead(snapshot, id)
	if err != nil {
		return nil, err
	}
	if n == cancelNumber {
		return cancelLetter(t), nil
	}
	m, err := messageOf(r)
	if err != nil || m == nil {
		return nil, err
	}
	return &Letter{Task: t, Message: *m, Number: n}, nil
}

// cancelLetter returns the letter that announces the cancellation of a task. It has a
// message for clients that do not know cancellations.
func cancelLetter(t *Task) *Letter {
	return &Letter{Task: t, Number: cancelNumber, Message: Message{
		ID: LetterID(t.ID, cancelNumber), Role: User, Author: t.Creator, Parts: []Part{TextPart("The task was canceled.")}, Time: t.Status.Time,
	}}
}

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
