package channels

import (
	"context"

	"koine/channels/channel"
	"koine/channels/internal/journal"
	"koine/channels/scope"
	"koine/internal/systemgraph"
	"koine/kg"
)

// End ends a scope and its tasks, and closes all of their channels in the same
// commit. It requires a manager of the scope.
//
// Errors: CodeInvalid for a status that is not final; CodeScopeEnded; those of
// UpdateScope.
func (s *Scopes) End(ctx context.Context, by Caller, id scope.ID, status scope.Status, reason string) (*scope.Scope, error) {
	if status != scope.Completed && status != scope.Abandoned {
		return nil, kg.Errorf(kg.CodeInvalid, "status must be completed or abandoned, not %.60q", status).At("status")
	}
	if err := checkReason(reason); err != nil {
		return nil, err
	}
	return s.alterScope(ctx, by, id, "scopes/end", func(tx *kg.Tx, sc *scope.Scope) error {
		if sc.Ended() {
			return scope.ErrEnded(sc.Status)
		}
		sc.Status, sc.EndedAt, sc.EndReason = status, tx.Time(), reason
		if err := s.closeAllOf(tx, id); err != nil {
			return err
		}
		for _, task := range s.table.TasksOf(id) {
			t := s.table.Scope(task).Clone()
			if t.Ended() {
				continue
			}
			t.Status, t.EndedAt, t.EndReason = status, tx.Time(), reason
			t.Version++
			if err := systemgraph.Write(tx, task.RecordGraph(), task.Entity(), t.ToRecord()); err != nil {
				return err
			}
			if err := s.closeAllOf(tx, task); err != nil {
				return err
			}
		}
		return nil
	})
}

// closeAllOf closes the open channels of a scope.
func (s *Scopes) closeAllOf(tx *kg.Tx, id scope.ID) error {
	for _, of := range s.table.ChannelsOf(id) {
		if e := s.table.Get(of); e.Deleted || e.Status() == channel.Closed {
			continue
		}
		_, err := channel.ChangeRecord(tx, of, func(w *channel.Writer, c *channel.Channel) error {
			if err := journal.MustBeOpen(tx, c); kg.CodeOf(err) == kg.CodeChannelClosed {
				return journal.CloseExpired(w, c) // the idle timeout was first
			} else if err != nil {
				return err
			}
			w.Close(c, tx.Time(), channel.ReasonEnded)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
