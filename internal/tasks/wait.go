package tasks

import (
	"context"

	"koine/internal/caller"
	"koine/kg"
)

// Wait waits until the handler has nothing left to do, starting from the given state of
// the task, or until the context's deadline, and then reads the task.
//
// Errors: those of Get; the context's, except for its deadline.
func (s *Service) Wait(ctx context.Context, by caller.Caller, t *Task, r Reading) (*Task, error) {
	if !t.Status.State.Rests() {
		if err := s.untilRest(ctx, by, t); err != nil && ctx.Err() != context.DeadlineExceeded {
			return nil, err
		}
	}
	return s.Get(context.WithoutCancel(ctx), by, t.ID, r)
}

// untilRest waits until the task is in a state that rests.
func (s *Service) untilRest(ctx context.Context, by caller.Caller, t *Task) error {
	st, err := s.followKnown(ctx, by, t)
	if err != nil {
		return err
	}
	defer st.Close()
	for e, err := range st.Events() {
		if err != nil || e.Status != nil && e.Status.State.Rests() {
			return err
		}
	}
	return nil
}

// Rests reports whether the handler has nothing to do: the task ended or waits for its
// creator.
func (s State) Rests() bool { return s.Ended() || s.Waits() }

// Behind returns the position after the commit at which the task was read: FollowFrom
// resumes there.
func (s *Service) Behind(t *Task) kg.Position {
	return kg.Position{Epoch: s.store.Epoch(), Revision: t.Revision, Index: kg.EndOfCommit}
}
