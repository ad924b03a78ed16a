package tasks

import (
	"context"

	"koine/internal/caller"
	"koine/kg"
)

// Worker handles the tasks of an agent in this process. Its methods may be called
// concurrently.
type Worker interface {
	// Takes refuses a message that the agent can do nothing with, be it for a new task or
	// one that goes on: CodeContentType, mostly.
	Takes(m *Message) error
	// Answer may answer a message at once, without a task. It gives nil where a task
	// is to be made; an error refuses the message.
	Answer(ctx context.Context, by caller.Caller, m *Message) (*Message, error)
	// Work is at a task until it has ended or waits for its creator: what it leaves
	// otherwise is taken for completed. An error fails the task. The context ends when
	// the task is canceled, and with the server.
	Work(ctx context.Context, job *Job) error
}

// Job is a message to a task that a worker has to deal with.
type Job struct {
	// By is who sent the message: what is done for it is done in that name.
	By      caller.Caller
	Task    *Task // with the message, as it was when it came
	Message Message
	service *Service
}

// Report says what becomes of the task.
func (j *Job) Report(ctx context.Context, r Report) error {
	_, err := j.service.report(ctx, own(), j.Task.ID, r)
	return err
}

// run does the work, and sees to it that the task comes to something.
func (j *Job) run(ctx context.Context, w Worker) {
	err := j.attempt(ctx, w)
	// What is canceled, or deleted, is not reported of any more; what the end of the
	// server interrupts is found when it begins.
	if ctx.Err() != nil {
		return
	}
	now, getErr := j.service.Get(ctx, own(), j.Task.ID, Reading{})
	if getErr != nil || now.Status.State.Ended() || err == nil && now.Status.State.Waits() {
		return
	}
	end := Report{State: Completed}
	if err != nil {
		end = Report{State: Failed, Failure: FailureFor(err)}
		end.Message = &Message{Parts: []Part{TextPart(end.Failure.Message)}}
	}
	if err := j.Report(ctx, end); err != nil {
		j.service.options.Logger.Error("a task came to no end", "task", j.Task.ID, "error", err)
	}
}

func (j *Job) attempt(ctx context.Context, w Worker) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = kg.Errorf(kg.CodeInternal, "panic: %v", value)
		}
		if kg.CodeOf(err) == kg.CodeInternal {
			j.service.options.Logger.Error("a task failed", "task", j.Task.ID, "error", err)
		}
	}()
	return w.Work(ctx, j)
}

// FailureFor is what is said of an error outside: nothing of what is internal.
func FailureFor(err error) *Failure {
	e := kg.AsError(err)
	if e.Code == kg.CodeInternal {
		return &Failure{Code: FailureInternal, Message: "an internal error"}
	}
	return &Failure{Code: string(e.Code), Message: e.Error()}
}
