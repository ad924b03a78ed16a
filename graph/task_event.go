package graph

import (
	"context"
	"iter"
	"sync/atomic"

	"koine/graph/executor"
	"koine/graph/internal/knowledge"
	"koine/internal/operation"
	"koine/internal/tasks"
	"koine/kg"
)

// taskSource is the source of a Stream of a task's events.
type taskSource struct {
	ownSource
	stream       *tasks.Stream
	first        *tasks.Task // the task at the start, until it is sent; nil if the stream resumes
	sentPosition atomic.Pointer[kg.Position]
	// current is the event being yielded. For the task itself it has none of
	// the event's kinds set.
	current tasks.Event
}

// Events yields the task, if that was requested, and then its events.
func (s *taskSource) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		if t := s.first; t != nil {
			at := s.stream.Position()
			s.current = tasks.Event{Position: at, Time: t.Updated, By: t.Creator, Version: t.Version}
			if !yield(s.currentEvent(), nil) {
				return
			}
			s.first = nil // the stream lasts longer
			s.sentPosition.Store(&at)
		}
		for e, err := range s.stream.Events() {
			if err != nil {
				yield(operation.Event{}, err)
				return
			}
			s.current = e
			if !yield(s.currentEvent(), nil) {
				return
			}
			s.sentPosition.Store(&e.Position)
		}
	}
}

// taskVersion is the property that changes with every change of a task.
var taskVersion = kg.IRI(kg.OwnVocabulary + "taskVersion")

// currentEvent represents an event by a statement of the task's record.
func (s *taskSource) currentEvent() operation.Event {
	t, e := s.stream.About(), &s.current
	q := kg.Quad{Subject: t.ID.Entity(), Predicate: taskVersion, Object: kg.Integer(e.Version), Graph: t.Graph()}
	return ownEvent(kg.Replace, q, &kg.Commit{Revision: e.Position.Revision, Time: e.Time, Principal: e.By, Actor: e.By, TaskID: string(t.ID)}, e.Position)
}

// Position is the position after the last event that was sent, or the zero
// Position if none is known.
func (s *taskSource) Position() kg.Position { return deref(s.sentPosition.Load()) }

// Close ends the stream.
func (s *taskSource) Close() { s.stream.Close() }

// taskEvent is the content of Subscription.taskChanged.
type taskEvent struct {
	field  *executor.Selected
	source *taskSource
}

func (c *taskEvent) Write(w *writer, t *knowledge.EventWriter, e *operation.Event) error {
	change := &TaskChange{record: &c.source.current, about: c.source.stream.About(), position: t.FormatPosition(e.Position)}
	if change.Kind() == TaskChangeKindTask {
		change.task = c.source.first
	}
	return w.Object(c.field.On(taskChangeObject), change)
}

// TaskChange is an event of a task.
type TaskChange struct {
	record   *tasks.Event
	about    *tasks.Task
	task     *tasks.Task // state at the event, nil if it has to be read
	position Position
}

// Kind is the kind of the event.
func (c *TaskChange) Kind() TaskChangeKind {
	switch {
	case c.record.Status != nil:
		return TaskChangeKindStatus
	case c.record.Chunk != nil:
		return TaskChangeKindArtifact
	case c.record.Message != nil:
		return TaskChangeKindMessage
	}
	return TaskChangeKindTask
}

// TaskID is the id of the task.
func (c *TaskChange) TaskID() string { return string(c.about.ID) }

// Task is the task at the event, or in its present state.
func (c *TaskChange) Task(ctx context.Context) (*Task, error) {
	if c.task != nil {
		return &Task{record: c.task, complete: !c.task.Partial}, nil
	}
	return taskIfAny(ctx, c.about.ID)
}

// Message is a message of the creator.
func (c *TaskChange) Message() *TaskMessage { return shownMessage(c.record.Message) }

// Artifact is a delivered artifact or a chunk of one.
func (c *TaskChange) Artifact() *Artifact {
	if c.record.Chunk == nil {
		return nil
	}
	return &Artifact{record: &c.record.Chunk.Artifact, task: c.about.ID}
}

// Append reports whether the chunk is appended to the existing artifact.
func (c *TaskChange) Append() *bool {
	if c.record.Chunk == nil {
		return nil
	}
	return &c.record.Chunk.Append
}

// Status is the new status of the task.
func (c *TaskChange) Status() *TaskStatus { return shownStatus(c.record.Status) }

// Failure is the reason of a failure.
func (c *TaskChange) Failure() *TaskFailure { return shownFailure(c.record.Failure) }

// Position is the position after the event.
func (c *TaskChange) Position() *Position { return &c.position }

// TaskChanged establishes Subscription.taskChanged.
func (*subscriptionRoot) TaskChanged(ctx context.Context, f *executor.Selected, args *subscriptionTaskChangedArgs) (*Stream, error) {
	return subscribeOwn(ctx, f, args.Resume, func(o *subscriptionSetup) (knowledge.EventContent, knowledge.Source, error) {
		service, by, err := runOf(ctx).taskService()
		if err != nil {
			return nil, nil, err
		}
		s := &taskSource{ownSource: ownSource{o.store}}
		switch start := o.start.Start; start {
		case operation.DefaultStart, operation.Snapshot:
			s.first, s.stream, err = service.Follow(o.streamCtx, by, tasks.TaskID(args.ID), tasks.ReadOptions{Artifacts: true, Partial: true})
		default:
			from := kg.Position{Epoch: o.store.Epoch(), Index: kg.EndOfCommit}
			if start != operation.Earliest {
				from, _ = o.startPosition()
			}
			s.sentPosition.Store(&from)
			s.stream, err = service.FollowFrom(o.streamCtx, by, tasks.TaskID(args.ID), from)
		}
		return &taskEvent{field: o.field, source: s}, s, err
	})
}
