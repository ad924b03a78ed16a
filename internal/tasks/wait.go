package tasks

import (
	"context"

	"koine/internal/caller"
	"koine/kg"
)

// Wait waits until the handler has nothing more to do with a task, which stood as it
// is given, or its time is over, and reads it then.
//
// Errors: those of Get; the context's, but that its time is over.
func (s *Service) Wait(ctx context.Context, by caller.Caller, t *Task, r Reading) (*Task, error) {
	if !t.Status.State.Rests() {
		if err := s.untilRest(ctx, by, t); err != nil && ctx.Err() != context.DeadlineExceeded {
			return nil, err
		}
	}
	return s.Get(context.WithoutCancel(ctx), by, t.ID, r)
}

// untilRest returns when the handler has nothing more to do with the task.
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

// Rests tells whether nothing comes of the handler until somebody else does something.
func (s State) Rests() bool { return s.Ended() || s.Waits() }

// Behind is the position behind the commit that made a task, or changed it last when
// it was read: FollowFrom goes on there.
func (s *Service) Behind(t *Task) kg.Position {
	return kg.Position{Epoch: s.store.Epoch(), Revision: t.Revision, Index: kg.EndOfCommit}
}
