package tasks

import (
	"context"
	"iter"
	"slices"
	"sync"

	"koine/internal/caller"
	"koine/kg"
)

// Happening is something that concerns an agent: a letter in its mailbox, or a task,
// of those that it created or handles, to which something happened. Exactly one of
// Letter, Task and More is set.
type Happening struct {
	Letter *Letter
	// Task is how a commit left it, with its artifacts; Events are what happened to it in
	// that commit.
	Task   *Task
	Events []Event
	// Position is behind it in the feed: FeedFrom goes on there. It is the zero Position for
	// letters that waited, which are told again whenever a feed begins.
	Position kg.Position
	// More tells, behind the tasks that changed before the feed began, that there are others.
	More bool
}

// Feed is all that concerns an agent, as it comes. Close it when done.
type Feed struct {
	box      *Mailbox // what waited when the feed began
	agent    kg.AgentID
	dispatch *dispatch
	after    kg.Revision // what is up to here is in the box, or was before
	woken    chan struct{}
	// missed are the tasks that changed before the feed began, and more tells that there are
	// others. They are read as they are told: a thousand may have more artifacts than fit
	// into memory.
	missed []note
	more   bool

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
	return s.ConcerningFrom(ctx, by, s.store.Head())
}

// MaxMissed bounds the tasks that a feed tells of first, of those that changed while nobody
// heard.
const MaxMissed = 1000

// maxMissedLooked bounds the tasks that are looked at for them: those that were only made
// meanwhile are not told of.
const maxMissedLooked = 10 * MaxMissed

// ConcerningFrom is Concerning for an agent that was told of what happened up to a position:
// the feed begins with how each task is that changed behind it, those that changed last and
// MaxMissed at the most.
//
// Errors: those of Concerning; CodePositionGone for a position of another log.
func (s *Service) ConcerningFrom(ctx context.Context, by caller.Caller, after kg.Position) (*Feed, error) {
	head := s.store.Head()
	if after.Epoch != head.Epoch || after.Revision > head.Revision {
		return nil, s.store.CheckPosition(after)
	}
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
	if f.missed, f.more, err = s.missed(ctx, by, after, f.box.from); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// missed lists the tasks of the agent that changed behind a position, up to another one, in
// the order of the log, and tells whether older ones are left out.
func (s *Service) missed(ctx context.Context, by caller.Caller, after, upTo kg.Position) (out []note, more bool, err error) {
	if after.Revision >= upTo.Revision {
		return nil, false, nil
	}
	snapshot, err := s.viewAt(ctx, by, upTo.Revision)
	if err != nil {
		return nil, false, err
	}
	defer snapshot.Close()
	q := Query{Created: true, Handled: true, First: MaxPage}
	for looked := 0; ; {
		page, err := s.list(snapshot, by, q)
		if err != nil {
			return nil, false, err
		}
		for i := range page.Tasks {
			t := &page.Tasks[i]
			changed, err := lastChange(snapshot, t.Graph(), t.ID)
			if err != nil {
				return nil, false, err
			}
			if changed <= after.Revision {
				page.Next = ""
				break
			}
			looked++
			if more = len(out) == MaxMissed || looked > maxMissedLooked; more {
				page.Next = ""
				break
			}
			if t.Version > 1 { // who made it was told
				out = append(out, note{task: t.ID, at: kg.Position{Epoch: upTo.Epoch, Revision: changed, Index: kg.EndOfCommit}})
			}
		}
		if q.After = page.Next; q.After == "" {
			slices.Reverse(out)
			return out, more, nil
		}
	}
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

// Happenings yields what concerns the agent, in the order of the log, behind what it missed
// and what waits in the mailbox. It ends with the context's error; with CodeResync for a reader
// that is too slow; with CodeClosed. It is used once, from one goroutine.
func (f *Feed) Happenings() iter.Seq2[Happening, error] {
	return func(yield func(Happening, error) bool) {
		for i := range f.missed {
			n := &f.missed[i]
			t, err := f.taskAt(n.task, f.after)
			if kg.CodeOf(err) == kg.CodeTaskNotFound {
				continue
			}
			h := Happening{Task: t, Position: n.at}
			if f.more {
				h.Position = kg.Position{} // older ones are not told of
			}
			if !yield(h, err) || err != nil {
				return
			}
		}
		if f.missed = nil; f.more && !yield(Happening{More: true, Position: f.box.from}, nil) {
			return
		}
		letter := func(l Letter, err error) bool { return yield(Happening{Letter: &l}, err) }
		for i, subject := range f.box.waiting {
			if !f.box.tell(subject, f.box.from, letter) {
				return
			}
			f.box.service.told.upTo(f.agent, f.box.since[i])
		}
		for {
			notes, err := f.next()
			if err != nil {
				yield(Happening{}, err)
				return
			}
			for i := range notes {
				if !f.happened(&notes[i], yield) {
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
func (f *Feed) happened(n *note, yield func(Happening, error) bool) bool {
	if n.at.Revision <= f.after {
		return true
	}
	if !n.letter.IsZero() {
		if _, number := letterOf(n.letter); number == cancelNumber {
			return true // its task tells
		}
		letter := func(l Letter, err error) bool { return yield(Happening{Letter: &l, Position: n.at}, err) }
		if !f.box.tell(n.letter, n.at, letter) {
			return false
		}
		f.box.service.told.upTo(f.agent, n.at.Revision)
		return true
	}
	t, err := f.taskAt(n.task, n.at.Revision)
	if kg.CodeOf(err) == kg.CodeTaskNotFound {
		return true
	}
	return yield(Happening{Task: t, Events: n.events, Position: n.at}, err) && err == nil
}

// taskAt is a task as a commit left it, with its artifacts.
func (f *Feed) taskAt(id TaskID, at kg.Revision) (*Task, error) {
	snapshot, err := f.box.service.viewAt(f.box.ctx, f.box.by, at)
	if kg.CodeOf(err) == kg.CodeRevisionGone {
		return nil, kg.Errorf(kg.CodeResync, "what is to be read is not kept any more")
	}
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	return readTask(snapshot, id, Reading{Artifacts: true})
}
