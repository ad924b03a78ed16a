package tasks

import (
	"context"
	"iter"
	"time"

	"koine/internal/caller"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Event is an event of a task: exactly one of Status, Chunk and Message is set.
type Event struct {
	// Position is the position after the event: a stream resumes there.
	Position kg.Position
	Time     time.Time
	By       kg.AgentID // the agent that caused it
	Version  int64      // of the task after the commit
	Status   *Status
	Failure  *Failure // with a Status, if the handler gave a reason
	Chunk    *Chunk
	Message  *Message // from the creator
}

// Last reports whether the event is the last of its task.
func (e *Event) Last() bool { return e.Status != nil && e.Status.State.Ended() }

// Stream follows a task. Close it when done.
type Stream struct {
	about   *Task
	id      TaskID
	graph   kg.Term
	after   kg.Position // events up to here were delivered
	atEnd   bool        // the last event was delivered
	watcher *kg.Watcher
}

// Follow returns a task as it is now, and streams its events from then on. The stream lasts
// longer than the task is needed, and does not hold it.
//
// Errors: those of Get; those of kg.Store.Watch.
func (s *Service) Follow(ctx context.Context, by caller.Caller, id TaskID, r ReadOptions) (*Task, *Stream, error) {
	snapshot, err := s.snapshot(ctx, by)
	if err != nil {
		return nil, nil, err
	}
	defer snapshot.Close()
	t, err := s.readBounded(snapshot, id, r)
	if err != nil {
		return nil, nil, err
	}
	st := &Stream{id: id, after: snapshot.Position()}
	return t, st, s.startStream(ctx, snapshot, st, st.after)
}

// FollowFrom streams the events of a task after a position: that of one of its events,
// or of any other commit.
//
// Errors: those of Follow; CodePositionGone.
func (s *Service) FollowFrom(ctx context.Context, by caller.Caller, id TaskID, after kg.Position) (*Stream, error) {
	snapshot, err := s.snapshot(ctx, by)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	st := &Stream{id: id, after: after}
	if after.Index == kg.EndOfCommit {
		return st, s.startStream(ctx, snapshot, st, after)
	}
	// The position is between two events of a commit: read the whole commit again.
	from := kg.Position{Epoch: after.Epoch, Revision: after.Revision - min(after.Revision, 1), Index: kg.EndOfCommit}
	return st, s.startStream(ctx, snapshot, st, from)
}

// followKnown streams the events after the version that the caller has read. The stream does
// not hold the task.
func (s *Service) followKnown(ctx context.Context, by caller.Caller, t *Task) (*Stream, error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	st := &Stream{id: t.ID, graph: t.Graph(), after: s.PositionAfter(t)}
	return st, s.watchVersion(ctx, by.Reader(agent), st, st.after)
}

// startStream starts the watcher at a position.
func (s *Service) startStream(ctx context.Context, snapshot *kg.Snapshot, st *Stream, from kg.Position) (err error) {
	if st.graph, err = graphIn(snapshot, st.id); err != nil {
		return err
	}
	r, err := systemgraph.Read(snapshot.Match, st.graph, st.id.Entity())
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
		if st.atEnd, err = s.deliveredLast(ctx, snapshot, st, end); err != nil {
			return err
		}
	}
	return s.watchVersion(ctx, snapshot.View().Principal, st, from)
}

// deliveredLast reports whether the last event of an ended task is before the start of
// the stream.
func (s *Service) deliveredLast(ctx context.Context, snapshot *kg.Snapshot, st *Stream, end kg.Position) (bool, error) {
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

// watchVersion watches the version of the task, which every change increments.
func (s *Service) watchVersion(ctx context.Context, reader kg.Principal, st *Stream, from kg.Position) (err error) {
	st.watcher, err = s.store.Watch(ctx, kg.Filter{
		View:     kg.View{Principal: reader, Graphs: []kg.Term{st.graph}},
		Patterns: []kg.Pattern{{Subject: st.id.Entity(), Predicate: systemgraph.Property(propVersion), Graph: st.graph}},
	}, from)
	return err
}

// Close ends the stream.
func (st *Stream) Close() {
	if st.watcher != nil {
		st.watcher.Close()
	}
}

// Events yields the events, each once and in order, and waits for more. It ends after
// the last event of the task, at once if that was delivered before; with
// CodeTaskNotFound when the task is deleted; with the context's error; with CodeClosed
// and CodeResync as a kg.Watcher does. Call it once, from one goroutine.
func (st *Stream) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if st.atEnd {
			return
		}
		for e, err := range st.watcher.Events() {
			if err != nil {
				yield(Event{}, err)
				return
			}
			if e.Op == kg.Remove {
				if !advancesVersion(e.Commit, st.id, st.graph) {
					yield(Event{}, errNoTask())
					return
				}
				continue // the added version is an event too
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

// About returns the task at the start of the stream, for its id, context and agents.
func (st *Stream) About() *Task { return st.about }

// Position is the position after the last delivered event.
func (st *Stream) Position() kg.Position { return st.after }

func lastChange(s *kg.Snapshot, graph kg.Term, id TaskID) (at kg.Revision, err error) {
	st, found, err := systemgraph.First(s.Match, kg.Pattern{Subject: id.Entity(), Predicate: systemgraph.Property(propVersion), Graph: graph})
	if !found {
		return 0, err
	}
	return st.Assertions[0].Revision, nil
}

// AtEnd reports whether the stream is at its end: the last event of the task is before
// its start.
func (st *Stream) AtEnd() bool { return st.atEnd }

// Wait waits until the handler has nothing left to do, starting from the given state of
// the task, or until the context's deadline, and then reads the task.
//
// Errors: those of Get; the context's, except for its deadline.
func (s *Service) Wait(ctx context.Context, by caller.Caller, t *Task, r ReadOptions) (*Task, error) {
	id := t.ID // t is not held while waiting
	if !t.Status.State.Settled() {
		if err := s.waitSettled(ctx, by, t); err != nil && ctx.Err() != context.DeadlineExceeded {
			return nil, err
		}
	}
	return s.Get(context.WithoutCancel(ctx), by, id, r)
}

func (s *Service) waitSettled(ctx context.Context, by caller.Caller, t *Task) error {
	st, err := s.followKnown(ctx, by, t)
	if err != nil {
		return err
	}
	defer st.Close()
	for e, err := range st.Events() {
		if err != nil || e.Status != nil && e.Status.State.Settled() {
			return err
		}
	}
	return nil
}

// Settled reports whether the handler has nothing to do: the task ended or waits for its
// creator.
func (s State) Settled() bool { return s.Ended() || s.AwaitsCreator() }

// PositionAfter returns the position after the commit at which the task was read: FollowFrom
// resumes there.
func (s *Service) PositionAfter(t *Task) kg.Position {
	return kg.Position{Epoch: s.store.Epoch(), Revision: t.Revision, Index: kg.EndOfCommit}
}
