package tasks

import (
	"context"
	"iter"
	"sync"

	"koine/internal/caller"
	"koine/kg"
)

// Happening is something that concerns an agent: a letter in its mailbox, or a task,
// of those that it created or handles, to which something happened. Exactly one of
// Letter and Task is set.
type Happening struct {
	Letter *Letter
	// Task is how it is now, with its artifacts; Events are what happened to it in one
	// commit.
	Task   *Task
	Events []Event
}

// Feed is all that concerns an agent, as it comes. Close it when done.
type Feed struct {
	box      *Mailbox // what waited when the feed began
	agent    kg.AgentID
	dispatch *dispatch
	after    kg.Revision // what is up to here is in the box, or was before
	woken    chan struct{}

	mu    sync.Mutex // guards what follows
	queue []note
	ended error
}

// note is what the dispatch tells a feed of: a letter, or what happened to a task.
type note struct {
	at     kg.Position
	letter kg.Term // the zero Term for none
	task   TaskID
	events []Event
}

// MaxNotes bounds what waits for the reader of a feed.
const MaxNotes = 1024

// Concerning opens the mailbox of the agent that asks, as Mail does, and follows all
// tasks that it takes part in.
//
// Errors: CodeClosed; CodeSourceForbidden.
func (s *Service) Concerning(ctx context.Context, by caller.Caller) (*Feed, error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	f := &Feed{agent: agent, dispatch: s.dispatch, woken: make(chan struct{}, 1)}
	// What comes from here on is told to the feed; what it sees when it looks is left
	// out of that.
	if err := s.dispatch.add(f); err != nil {
		return nil, err
	}
	if f.box, err = s.waiting(ctx, by, agent); err != nil {
		f.Close()
		return nil, err
	}
	f.after = f.box.from.Revision
	return f, nil
}

// Close ends the feed.
func (f *Feed) Close() { f.dispatch.remove(f) }

// tell puts a note into the queue.
func (f *Feed) tell(n note) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.ended != nil:
		return
	case len(f.queue) == MaxNotes:
		f.ended, f.queue = kg.Errorf(kg.CodeResync, "more than %d things wait to be read", MaxNotes), nil
	default:
		f.queue = append(f.queue, n)
	}
	f.wake()
}

// end lets the feed end, behind what it was told of.
func (f *Feed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended == nil {
		f.ended = err
	}
	f.wake()
}

func (f *Feed) wake() {
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

// next gives what waits in the queue; nothing and no error is to wait.
func (f *Feed) next() ([]note, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	notes := f.queue
	f.queue = nil
	if len(notes) == 0 {
		return nil, f.ended
	}
	return notes, nil
}

// Happenings yields what concerns the agent, in the order of the log, behind what
// waits in the mailbox. It ends with the context's error; with CodeResync for a reader
// that is too slow; with CodeClosed. It is used once, from one goroutine.
func (f *Feed) Happenings() iter.Seq2[Happening, error] {
	return func(yield func(Happening, error) bool) {
		letter := func(l Letter, err error) bool { return yield(Happening{Letter: &l}, err) }
		for _, subject := range f.box.waiting {
			if !f.box.tell(subject, f.box.from, letter) {
				return
			}
		}
		for {
			notes, err := f.next()
			if err != nil {
				yield(Happening{}, err)
				return
			}
			for i := range notes {
				if !f.happened(&notes[i], letter, yield) {
					return
				}
			}
			if len(notes) > 0 {
				continue
			}
			select {
			case <-f.box.ctx.Done():
				yield(Happening{}, context.Cause(f.box.ctx))
				return
			case <-f.woken:
			}
		}
	}
}

// happened tells of a note, unless it is about what was there when the feed began, or
// a task that is gone.
func (f *Feed) happened(n *note, letter func(Letter, error) bool, yield func(Happening, error) bool) bool {
	if n.at.Revision <= f.after {
		return true
	}
	if !n.letter.IsZero() {
		return f.box.tell(n.letter, n.at, letter)
	}
	t, err := f.box.service.Get(f.box.ctx, f.box.by, n.task, Reading{Artifacts: true})
	if kg.CodeOf(err) == kg.CodeTaskNotFound {
		return true
	}
	return yield(Happening{Task: t, Events: n.events}, err) && err == nil
}
