package tasks

import (
	"context"

	"koine/internal/caller"
	"koine/kg"
)

// Worker handles the tasks of an agent in this process. Its methods may be called
// concurrently.
type Worker interface {
	// CheckMessage returns an error for a message that the agent cannot process, for a new
	// task or an open one: mostly CodeContentType.
	CheckMessage(m *Message) error
	// Answer may answer a message directly, without a task. It returns nil if a task is
	// to be created; an error refuses the message.
	Answer(ctx context.Context, by caller.Caller, m *Message) (*Message, error)
	// Work processes a task until it has ended or waits for its creator; a task left in
	// another state counts as completed. An error fails the task. The context ends when
	// the task is canceled or the server stops.
	Work(ctx context.Context, job *Job) error
}

// Job is a message of a task for a worker.
type Job struct {
	// By is the sender of the message; the work runs with its rights, which are those of the
	// last RenewRights.
	By      caller.Caller
	Task    *Task // as of the message
	Message Message
	service *Service
}

// RenewRights reduces the rights of By to those that the sender still has. The service calls
// it before Work, workers before each further step.
//
// Errors: those of Options.CurrentRights, for a sender without rights.
func (j *Job) RenewRights() error {
	now, err := j.service.options.CurrentRights(j.By.Principal)
	if err != nil {
		e := kg.AsError(err)
		return kg.Errorf(e.Code, "the sender no longer has the rights for it: %s. Send the rest again with a valid credential", e.Message)
	}
	j.By.Principal = now
	return nil
}

// Report reports on the task.
func (j *Job) Report(ctx context.Context, r Report) error {
	_, err := j.service.applyReport(ctx, systemCaller(), j.Task.ID, r)
	return err
}

// run runs the worker and makes sure that the task reaches a settled state.
func (j *Job) run(ctx context.Context, w Worker) {
	err := j.runRecovered(ctx, w)
	// A canceled or deleted task needs no report; tasks interrupted by a shutdown are
	// failed at the next start.
	if ctx.Err() != nil {
		return
	}
	now, getErr := j.service.Get(ctx, systemCaller(), j.Task.ID, ReadOptions{})
	if getErr != nil || now.Status.State.Ended() || err == nil && now.Status.State.AwaitsCreator() {
		return
	}
	end := Report{State: Completed}
	if err != nil {
		end = Report{State: Failed, Failure: FailureFor(err)}
		end.Message = &Message{Parts: []Part{TextPart(end.Failure.Message)}}
	}
	if err := j.Report(ctx, end); err != nil {
		j.service.options.Logger.Error("cannot report the end of a task", "task", j.Task.ID, "error", err)
	}
}

func (j *Job) runRecovered(ctx context.Context, w Worker) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = kg.Errorf(kg.CodeInternal, "panic: %v", value)
		}
		if kg.CodeOf(err) == kg.CodeInternal {
			j.service.options.Logger.Error("a task failed", "task", j.Task.ID, "error", err)
		}
	}()
	if err := j.RenewRights(); err != nil {
		return err
	}
	return w.Work(ctx, j)
}

// FailureFor converts an error for clients: it hides internal details.
func FailureFor(err error) *Failure {
	e := kg.AsError(err)
	if e.Code == kg.CodeInternal {
		return &Failure{Code: FailureInternal, Message: "an internal error"}
	}
	return &Failure{Code: string(e.Code), Message: e.Error()}
}
