package tasks

import (
	"context"
	"iter"
	"slices"
	"sync"

	"koine/internal/caller"
	"koine/kg"
)

// FeedEvent is an event for an agent: a letter in its mailbox, or a change of a task
// that it created or handles. Exactly one of Letter, Task and More is set.
type FeedEvent struct {
	Letter *Letter
	// Task is the task as a commit left it, with its artifacts up to Options.MaxFeedBytes; if
	// it has ended, up to Options.MaxReadBytes. Events are its events in that commit.
	Task   *Task
	Events []Event
	// Position is the position after this event: OpenFeedFrom resumes there. It is zero for
	// letters that waited, which every feed yields again.
	Position kg.Position
	// More, after the missed tasks, reports that older ones are left out.
	More bool
}

// Feed yields everything that concerns an agent, live. Close it when done.
type Feed struct {
	box      *Mailbox // the letters that waited when the feed started
	agent    kg.AgentID
	dispatch *dispatcher
	after    kg.Revision // commits up to this revision are in box or missed
	woken    chan struct{}
	// missed are the tasks that changed before the feed started; more reports that
	// older ones are left out. Tasks are read when they are yielded, because a thousand
	// of them may not fit in memory.
	missed []notification
	more   bool

	mu    sync.Mutex // guards queue and ended
	queue []notification
	ended error
}

// notification is a message from the dispatcher: a letter, or the events of a task.
type notification struct {
	at     kg.Position
	letter kg.Term // the zero Term for none
	task   TaskID
	events []Event
}

// MaxNotes bounds the notifications that wait for the reader of a feed.
const MaxNotes = 1024

// OpenFeed opens the mailbox of the calling agent, as Mail does, and follows all
// tasks that it takes part in.
//
// Errors: CodeClosed; CodeSourceForbidden.
func (s *Service) OpenFeed(ctx context.Context, by caller.Caller) (*Feed, error) {
	return s.OpenFeedFrom(ctx, by, s.store.Head())
}

// MaxMissed bounds the missed tasks that a feed yields first.
const MaxMissed = 1000

// maxMissedLooked bounds the tasks that are read to find them: tasks that were only
// created in the meantime are read and left out.
const maxMissedLooked = 10 * MaxMissed

// OpenFeedFrom is OpenFeed for an agent that has read up to a position. The feed
// starts with the present state of each task that changed after it, the most recent
// MaxMissed at most.
//
// Errors: those of OpenFeed; CodePositionGone for a position of another log.
func (s *Service) OpenFeedFrom(ctx context.Context, by caller.Caller, after kg.Position) (*Feed, error) {
	head := s.store.Head()
	if after.Epoch != head.Epoch || after.Revision > head.Revision {
		return nil, s.store.CheckPosition(after)
	}
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	f := &Feed{agent: agent, dispatch: s.dispatch, woken: make(chan struct{}, 1)}
	// Register first: later commits reach the queue, and f.after skips those that the
	// snapshot already shows.
	if err := s.dispatch.addFeed(f); err != nil {
		return nil, err
	}
	if f.box, err = s.openMailbox(ctx, by, agent); err != nil {
		f.Close()
		return nil, err
	}
	f.after = f.box.from.Revision
	if f.missed, f.more, err = s.listMissed(ctx, by, after, f.box.from); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// listMissed lists the tasks of the agent that changed between two positions, in log order,
// and reports whether older ones are left out.
func (s *Service) listMissed(ctx context.Context, by caller.Caller, after, upTo kg.Position) (out []notification, more bool, err error) {
	if after.Revision >= upTo.Revision {
		return nil, false, nil
	}
	snapshot, err := s.snapshotAt(ctx, by, upTo.Revision)
	if err != nil {
		return nil, false, err
	}
	defer snapshot.Close()
	q := Query{Created: true, Handled: true, First: MaxPage}
	for examined := 0; ; {
		page, err := s.listAt(snapshot, by, q)
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
			examined++
			if more = len(out) == MaxMissed || examined > maxMissedLooked; more {
				page.Next = ""
				break
			}
			if t.Version > 1 { // its creator has the first version
				out = append(out, notification{task: t.ID, at: kg.Position{Epoch: upTo.Epoch, Revision: changed, Index: kg.EndOfCommit}})
			}
		}
		if q.After = page.Next; q.After == "" {
			slices.Reverse(out)
			return out, more, nil
		}
	}
}

// Close ends the feed.
func (f *Feed) Close() { f.dispatch.removeFeed(f) }

// enqueue appends a note to the queue.
func (f *Feed) enqueue(n notification) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.ended != nil:
		return
	case len(f.queue) == MaxNotes:
		f.ended, f.queue = kg.Errorf(kg.CodeResync, "the reader is more than %d events behind", MaxNotes), nil
	default:
		f.queue = append(f.queue, n)
	}
	f.wake()
}

// endWith ends the feed after the queued notes.
func (f *Feed) endWith(err error) {
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

// dequeueAll returns the queued notes. No notes and no error means to wait.
func (f *Feed) dequeueAll() ([]notification, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	notes := f.queue
	f.queue = nil
	if len(notes) == 0 {
		return nil, f.ended
	}
	return notes, nil
}

// Events yields the events that concern the agent, in log order: the missed tasks,
// the waiting letters, then live events. It ends with the context's error, with
// CodeResync if the reader is too slow, or with CodeClosed. Call it once, from one
// goroutine.
func (f *Feed) Events() iter.Seq2[FeedEvent, error] {
	return func(yield func(FeedEvent, error) bool) {
		for i := range f.missed {
			n := &f.missed[i]
			t, err := f.taskAt(n.task, f.after)
			if kg.CodeOf(err) == kg.CodeTaskNotFound {
				continue
			}
			h := FeedEvent{Task: t, Position: n.at}
			if f.more {
				h.Position = kg.Position{} // resuming here would skip older ones
			}
			if !yield(h, err) || err != nil {
				return
			}
		}
		if f.missed = nil; f.more && !yield(FeedEvent{More: true, Position: f.box.from}, nil) {
			return
		}
		letter := func(l Letter, err error) bool { return yield(FeedEvent{Letter: &l}, err) }
		for i, subject := range f.box.waiting {
			if !f.box.yieldLetter(subject, f.box.from, letter) {
				return
			}
			f.box.service.delivered.markUpTo(f.agent, f.box.since[i])
		}
		for {
			notes, err := f.dequeueAll()
			if err != nil {
				yield(FeedEvent{}, err)
				return
			}
			for i := range notes {
				if !f.deliverNote(&notes[i], yield) {
					return
				}
			}
			if len(notes) > 0 {
				continue
			}
			select {
			case <-f.box.ctx.Done():
				yield(FeedEvent{}, context.Cause(f.box.ctx))
				return
			case <-f.woken:
			}
		}
	}
}

// deliverNote yields a note. It skips notes that the start of the feed covered, and
// deleted tasks.
func (f *Feed) deliverNote(n *notification, yield func(FeedEvent, error) bool) bool {
	if n.at.Revision <= f.after {
		return true
	}
	if !n.letter.IsZero() {
		if _, number := letterOf(n.letter); number == cancelNumber {
			return true // the event of the task reports it
		}
		letter := func(l Letter, err error) bool { return yield(FeedEvent{Letter: &l, Position: n.at}, err) }
		if !f.box.yieldLetter(n.letter, n.at, letter) {
			return false
		}
		f.box.service.delivered.markUpTo(f.agent, n.at.Revision)
		return true
	}
	t, err := f.taskAt(n.task, n.at.Revision)
	if kg.CodeOf(err) == kg.CodeTaskNotFound {
		return true
	}
	return yield(FeedEvent{Task: t, Events: n.events, Position: n.at}, err) && err == nil
}

// taskAt returns a task as a commit left it, with its artifacts as far as FeedEvent has them.
// An artifact that grows by many chunks is not read again for each of them.
func (f *Feed) taskAt(id TaskID, at kg.Revision) (*Task, error) {
	snapshot, err := f.box.service.snapshotAt(f.box.ctx, f.box.by, at)
	if kg.CodeOf(err) == kg.CodeRevisionGone {
		return nil, kg.Errorf(kg.CodeResync, "the revision is no longer kept: start a new feed")
	}
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	t, err := readHead(snapshot, id)
	if err != nil {
		return nil, err
	}
	spent := &meter{limit: f.box.service.options.MaxFeedBytes}
	if t.Status.State.Ended() { // there is one such event of a task
		spent.limit = f.box.service.options.MaxReadBytes
	}
	if t.Artifacts, err = readArtifacts(snapshot, t.Graph(), id, spent); spent.refused {
		t.Partial = true
		return t, nil
	}
	return t, err
}
