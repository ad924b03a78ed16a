package tasks

import (
	"context"
	"iter"

	"koine/internal/caller"
	"koine/internal/records"
	"koine/kg"
)

// Happening is something that concerns an agent: a letter in its mailbox, or a task,
// of those that it created or handles, to which something happened. Exactly one of
// Letter and Task is set.
type Happening struct {
	Letter *Letter
	// Task is how it is now, whole; Events are what happened to it in one commit.
	Task   *Task
	Events []Event
}

// Feed is all that concerns an agent, as it comes. Close it when done.
type Feed struct {
	box   *Mailbox
	agent kg.AgentID
}

// Concerning opens the mailbox of the agent that asks, as Mail does, and follows all
// tasks that it takes part in.
//
// Errors: those of Mail.
func (s *Service) Concerning(ctx context.Context, by caller.Caller) (*Feed, error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	box, err := s.mail(ctx, by, kg.Pattern{Predicate: records.Property(propVersion)})
	return &Feed{box: box, agent: agent}, err
}

// Close ends the feed.
func (f *Feed) Close() { f.box.Close() }

// Happenings yields what concerns the agent, in the order of the log, behind what
// waits in the mailbox. It ends as Mailbox.Letters does, and is used like it.
func (f *Feed) Happenings() iter.Seq2[Happening, error] {
	return func(yield func(Happening, error) bool) {
		letter := func(l Letter, err error) bool { return yield(Happening{Letter: &l}, err) }
		for _, subject := range f.box.waiting {
			if !f.box.tell(subject, f.box.from, letter) {
				return
			}
		}
		for e, err := range f.box.watcher.Events() {
			if err != nil {
				yield(Happening{}, err)
				return
			}
			if e.Statement.Predicate != records.Property(propVersion) {
				if !f.box.tell(e.Statement.Subject, e.Position, letter) {
					return
				}
				continue
			}
			h, err := f.happened(&e)
			if err == nil && h == nil {
				continue
			}
			if err != nil {
				yield(Happening{}, err)
				return
			}
			if !yield(*h, nil) {
				return
			}
		}
	}
}

// happened is nil for what concerns others, and for a task that is gone.
func (f *Feed) happened(e *kg.Event) (*Happening, error) {
	creator, handler, ours := pairOf(e.Statement.Graph)
	if !ours || creator != f.agent && handler != f.agent {
		return nil, nil // an administrator sees all
	}
	id := idOf(e.Statement.Subject)
	events, err := eventsIn(e.Commit, id, e.Statement.Graph)
	if err != nil {
		return nil, err
	}
	t, err := f.box.service.Get(f.box.ctx, f.box.by, id, Reading{Artifacts: true})
	if kg.CodeOf(err) == kg.CodeTaskNotFound {
		return nil, nil
	}
	return &Happening{Task: t, Events: events}, err
}
