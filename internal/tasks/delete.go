package tasks

import (
	"context"

	"koine/internal/caller"
	"koine/internal/systemgraph"
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
	_, err = s.runUpdate(ctx, by, "tasks/delete", func(tx *kg.Tx) error {
		e, err := editTask(tx, by.Reader(agent), id)
		if err != nil {
			return err
		}
		if e.task.Creator != agent && !isAdmin(by.Principal) {
			return kg.Errorf(kg.CodePermissionDenied, "only the creator may delete a task").At("id")
		}
		return e.removeTask()
	})
	if err == nil {
		s.pool.cancelJobs(id)
	}
	return err
}

// removeTask removes all statements about the task, its messages and its artifacts.
func (e *edit) removeTask() error {
	parts, err := systemgraph.Subjects(e.tx.MatchOwn, kg.Pattern{Predicate: systemgraph.Property(propTask), Object: e.task.ID.Entity(), Graph: e.graph})
	if err != nil {
		return err
	}
	for _, subject := range append(parts, e.task.ID.Entity()) {
		if err := systemgraph.Remove(e.tx, kg.Pattern{Subject: subject, Graph: e.graph}); err != nil {
			return err
		}
	}
	return nil
}
