package tasks

import (
	"context"

	"koine/internal/caller"
	"koine/internal/records"
	"koine/kg"
)

// Delete removes a task with its messages and artifacts, and stops the work on it. Only
// its creator and administrators may delete it. Older revisions keep it.
//
// Errors: CodeTaskNotFound; CodePermissionDenied.
func (s *Service) Delete(ctx context.Context, by caller.Caller, id TaskID) error {
	agent, err := by.Agent()
	if err != nil {
		return err
	}
	_, err = s.update(ctx, by, "tasks/delete", func(tx *kg.Tx) error {
		e, err := find(tx, by.Reader(agent), id)
		if err != nil {
			return err
		}
		if e.task.Creator != agent && !administers(by.Principal) {
			return kg.Errorf(kg.CodePermissionDenied, "only the creator may delete a task").At("id")
		}
		return e.clear()
	})
	if err == nil {
		s.desk.stop(id)
	}
	return err
}

// clear removes all statements about the task, its messages and its artifacts.
func (e *edit) clear() error {
	subjects := []kg.Term{e.task.ID.Entity()}
	for st, err := range e.tx.MatchOwn(kg.Pattern{Predicate: records.Property(propTask), Object: e.task.ID.Entity(), Graph: e.graph}) {
		if err != nil {
			return err
		}
		subjects = append(subjects, st.Subject)
	}
	for _, subject := range subjects {
		var quads []kg.Quad
		for st, err := range e.tx.MatchOwn(kg.Pattern{Subject: subject, Graph: e.graph}) {
			if err != nil {
				return err
			}
			quads = append(quads, st.Quad)
		}
		for _, q := range quads {
			if err := e.tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
				return err
			}
		}
	}
	return nil
}
