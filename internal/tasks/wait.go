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
func (s *Service) Wait(ctx context.Context, by caller.Caller, t *Task, r ReadOptions) (*Task, error) {
	if !t.Status.State.Settled() {
		if err := s.waitSettled(ctx, by, t); err != nil && ctx.Err() != context.DeadlineExceeded {
			return nil, err
		}
	}
	return s.Get(context.WithoutCancel(ctx), by, t.ID, r)
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
