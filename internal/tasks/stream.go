package tasks

import (
	"context"
	"iter"
	"time"

	"koine/internal/caller"
	"koine/internal/records"
	"koine/kg"
)

// Event is something that happened to a task: exactly one of Status, Chunk and
// Message is set.
type Event struct {
	// Position is behind the event: a stream goes on from there.
	Position kg.Position
	Time     time.Time
	By       kg.AgentID // who did it
	Version  int64      // of the task from then on
	Status   *Status
	Failure  *Failure // with a Status, where the handler said why
	Chunk    *Chunk
	Message  *Message // of the creator's
}

// Last tells that no event comes behind it.
func (e *Event) Last() bool { return e.Status != nil && e.Status.State.Ended() }

// Stream is a task as it goes on. Close it when done.
type Stream struct {
	// Task is how it stood where the stream begins; nil where it goes on from a
	// position.
	Task    *Task
	about   *Task
	id      TaskID
	graph   kg.Term
	after   kg.Position // what is up to here was told
	over    bool        // nothing comes behind that
	watcher *kg.Watcher
}

// Follow follows a task from now on.
//
// Errors: CodeTaskNotFound; those of kg.Store.Watch.
func (s *Service) Follow(ctx context.Context, by caller.Caller, id TaskID) (*Stream, error) {
	snapshot, err := s.view(ctx, by)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	t, err := readTask(snapshot, id, Whole)
	if err != nil {
		return nil, err
	}
	st := &Stream{Task: t, id: id, after: snapshot.Position()}
	return st, s.open(ctx, snapshot, st, st.after)
}

// FollowFrom follows a task behind a position: that of one of its events, or of any
// other commit.
//
// Errors: those of Follow; CodePositionGone.
func (s *Service) FollowFrom(ctx context.Context, by caller.Caller, id TaskID, after kg.Position) (*Stream, error) {
	snapshot, err := s.view(ctx, by)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	st := &Stream{id: id, after: after}
	if after.Index == kg.EndOfCommit {
		return st, s.open(ctx, snapshot, st, after)
	}
	// Between two events of a commit.
	from := kg.Position{Epoch: after.Epoch, Revision: after.Revision - min(after.Revision, 1), Index: kg.EndOfCommit}
	return st, s.open(ctx, snapshot, st, from)
}

// followKnown follows a task behind what the caller has read of it.
func (s *Service) followKnown(ctx context.Context, by caller.Caller, t *Task) (*Stream, error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	st := &Stream{about: t, id: t.ID, graph: t.Graph(), after: s.Behind(t)}
	return st, s.watch(ctx, by.Reader(agent), st, st.after)
}

// open begins to watch behind what was told before.
func (s *Service) open(ctx context.Context, snapshot *kg.Snapshot, st *Stream, from kg.Position) (err error) {
	if st.graph, err = graphIn(snapshot, st.id); err != nil {
		return err
	}
	r, err := records.Read(snapshot.Match, st.graph, st.id.Entity())
	if err != nil {
		return err
	}
	st.about = taskOf(st.id, r)
	changed, err := lastChange(snapshot, st.graph, st.id)
	if err != nil {
		return err
	}
	end := kg.Position{Epoch: snapshot.Position().Epoch, Revision: changed, Index: kg.EndOfCommit}
	if st.about.Status.State.Ended() {
		if st.over, err = s.toldToTheEnd(ctx, snapshot, st, end); err != nil {
			return err
		}
	}
	return s.watch(ctx, snapshot.View().Principal, st, from)
}

// toldToTheEnd tells whether the last event of a task that has ended is not behind where the
// stream begins.
func (s *Service) toldToTheEnd(ctx context.Context, snapshot *kg.Snapshot, st *Stream, end kg.Position) (bool, error) {
	if st.after.Compare(end) >= 0 || st.after.Revision < end.Revision {
		return st.after.Compare(end) >= 0, nil
	}
	c, err := s.store.Commit(ctx, snapshot.View().Principal, end.Revision)
	if err != nil {
		return false, err
	}
	events, err := eventsIn(c, st.id, st.graph)
	if err != nil || len(events) == 0 {
		return false, err
	}
	return st.after.Index >= events[len(events)-1].Position.Index, nil
}

// watch watches the version: everything that changes a task moves it on.
func (s *Service) watch(ctx context.Context, reader kg.Principal, st *Stream, from kg.Position) (err error) {
	st.watcher, err = s.store.Watch(ctx, kg.Filter{
		View:     kg.View{Principal: reader, Graphs: []kg.Term{st.graph}},
		Patterns: []kg.Pattern{{Subject: st.id.Entity(), Predicate: records.Property(propVersion), Graph: st.graph}},
	}, from)
	return err
}

// Close ends the stream.
func (st *Stream) Close() {
	if st.watcher != nil {
		st.watcher.Close()
	}
}

// Events yields what happens, each once, in order, and waits for more. It ends
// behind the event that is the last, at once where that was told before; with CodeTaskNotFound when the task was deleted;
// with the context's error; with CodeClosed and CodeResync as a kg.Watcher does. It
// is used once, from one goroutine.
func (st *Stream) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if st.over {
			return
		}
		for e, err := range st.watcher.Events() {
			if err != nil {
				yield(Event{}, err)
				return
			}
			if e.Op == kg.Remove {
				if !movesOn(e.Commit, st.id, st.graph) {
					yield(Event{}, errNoTask())
					return
				}
				continue // the version that comes in its place is told too
			}
			events, err := eventsIn(e.Commit, st.id, st.graph)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, event := range events {
				event.Position.Epoch = e.Position.Epoch
				if event.Position.Compare(st.after) <= 0 {
					if event.Last() {
						return
					}
					continue
				}
				st.after = event.Position
				if !yield(event, nil) || event.Last() {
					return
				}
			}
		}
	}
}

// About is the task that is followed, as it was when the stream began: its id, its
// context and whose it is.
func (st *Stream) About() *Task { return st.about }

// Position is behind what the stream has told.
func (st *Stream) Position() kg.Position { return st.after }

// lastChange is the commit that changed the task last.
func lastChange(s *kg.Snapshot, graph kg.Term, id TaskID) (at kg.Revision, err error) {
	for st, err := range s.Match(kg.Pattern{Subject: id.Entity(), Predicate: records.Property(propVersion), Graph: graph}) {
		if err != nil {
			return 0, err
		}
		at = st.Assertions[0].Revision
	}
	return at, nil
}

// Over tells whether nothing comes: the last event is not behind where the stream begins.
func (st *Stream) Over() bool { return st.over }
