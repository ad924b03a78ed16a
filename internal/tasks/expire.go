package tasks

import (
	"context"
	"time"

	"koine/internal/systemgraph"
	"koine/kg"
)

// runExpiry fails unclaimed tasks and those of agents that left, in rounds, until Close.
func (s *Service) runExpiry(ctx context.Context) error {
	tick := time.NewTicker(min(expiryPace, max(min(s.options.Expiry, s.options.LeaveGrace)/4, time.Millisecond)))
	defer tick.Stop()
	if err := s.noteDeparted(ctx); err != nil && ctx.Err() == nil {
		s.options.Logger.Error("cannot record the departure of agents", "error", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := s.expireDue(ctx); err != nil && ctx.Err() == nil {
			s.options.Logger.Error("cannot expire tasks", "error", err)
		}
		if err := s.failAbandoned(ctx); err != nil && ctx.Err() == nil {
			s.options.Logger.Error("cannot fail the tasks of agents that left", "error", err)
		}
	}
}

// expireDue fails the tasks that their handler has not claimed in time.
func (s *Service) expireDue(ctx context.Context) error {
	due, err := s.listUnclaimed(ctx, s.options.Clock().Add(-s.options.Expiry))
	if err != nil {
		return err
	}
	for _, id := range due {
		err := s.editTask(ctx, systemCaller(), "tasks/expire", id, func(e *edit) error {
			if e.task.Status.State != Submitted { // claimed meanwhile
				return errEnded(e.task.Status.State)
			}
			return e.failFor(FailureExpired, "the task was not claimed in time")
		})
		if err != nil && kg.CodeOf(err) != kg.CodeTaskEnded && kg.CodeOf(err) != kg.CodeTaskNotFound {
			return err
		}
	}
	return nil
}

// failFor fails the task with a code of koine's own. It removes the task's letters from
// the mailbox, because the handler will not answer them.
func (e *edit) failFor(code, message string) error {
	if err := e.removeAllLetters(); err != nil {
		return err
	}
	if err := e.setFailure(&Failure{Code: code, Message: message}); err != nil {
		return err
	}
	return e.setStatus(Failed, nil)
}

// listUnclaimed lists tasks that have waited for their handler since before a time. The
// index has them in order of creation, so it stops at the first that is too young.
func (s *Service) listUnclaimed(ctx context.Context, before time.Time) (ids []TaskID, err error) {
	snapshot, err := s.snapshot(ctx, systemCaller())
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(kg.Pattern{Predicate: systemgraph.Property(propState), Object: kg.String(string(Submitted))}) {
		if err != nil {
			return nil, err
		}
		id := IDOf(st.Subject)
		if id.createdAt().After(before.Add(madeSlack)) {
			break
		}
		_, handler, ok := pairOf(st.Graph)
		if !ok || s.Worker(handler) != nil || st.Assertions[0].Time.After(before) {
			continue
		}
		if ids = append(ids, id); len(ids) == maxExpired {
			break
		}
	}
	return ids, nil
}

// madeSlack is how far the order of ids may differ from the order of commits: an id is
// made before its commit is written.
const madeSlack = time.Minute

// failInterrupted fails the tasks of workers in this process that had not ended when
// the process stopped: their progress is unknown.
func (s *Service) failInterrupted(ctx context.Context) error {
	ids, err := s.listInterrupted(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, err := s.applyReport(ctx, systemCaller(), id, Report{
			State: Failed, Failure: &Failure{Code: FailureInterrupted, Message: "the server stopped while the task was running"},
			Message: &Message{Parts: []Part{TextPart("The server stopped while the task was running. Send it again.")}},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) listInterrupted(ctx context.Context) (ids []TaskID, err error) {
	snapshot, err := s.snapshot(ctx, systemCaller())
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	for _, handler := range s.workerIDs() {
		// Only open tasks: the cost does not depend on the number of others.
		for st, err := range snapshot.Match(openOf(handler)) {
			if err != nil {
				return nil, err
			}
			under, err := isUnderWay(snapshot, st)
			if err != nil {
				return nil, err
			}
			if under {
				ids = append(ids, IDOf(st.Subject))
			}
		}
	}
	return ids, nil
}

// isUnderWay reports whether an open task waits for its handler and not for its
// creator.
func isUnderWay(snapshot *kg.Snapshot, open kg.Statement) (bool, error) {
	st, found, err := systemgraph.First(snapshot.Match, kg.Pattern{Subject: open.Subject, Predicate: systemgraph.Property(propState), Graph: open.Graph})
	state := State(st.Object.Value())
	return found && (state == Submitted || state == Working), err
}
