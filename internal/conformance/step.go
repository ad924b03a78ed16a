package conformance

import (
	"cmp"
	"context"
	"time"

	"koine/internal/tasks"
)

// step is a part of a behaviour.
type step func(context.Context, Agent, *tasks.Job) error

var completes = []step{says(tasks.Completed, greeting)}

func text(s string) *string { return &s }

func part(s string) []tasks.Part { return []tasks.Part{tasks.TextPart(s)} }

func reports(r tasks.Report) step {
	return func(ctx context.Context, _ Agent, j *tasks.Job) error { return j.Report(ctx, r) }
}

// reaches reports a state; says reports a state with a message.
func reaches(state tasks.State) step { return reports(tasks.Report{State: state}) }

func says(state tasks.State, word string) step {
	return func(ctx context.Context, _ Agent, j *tasks.Job) error {
		return j.Report(ctx, tasks.Report{State: state, Message: &tasks.Message{Parts: part(word)}})
	}
}

// pause gives the kit time to observe the working task.
func pause(ctx context.Context, a Agent, _ *tasks.Job) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(cmp.Or(a.Delay, DefaultDelay)):
		return nil
	}
}

// makes delivers one artifact and completes.
func makes(p tasks.Part) []step {
	a := tasks.Artifact{ID: "artifact-1", Parts: []tasks.Part{p}, Complete: true}
	return []step{reports(tasks.Report{Artifacts: []tasks.Chunk{{Artifact: a}}, State: tasks.Completed})}
}

// streams works, delivers an artifact in chunks, and completes.
func streams(chunks ...[]tasks.Part) []step {
	out := []step{reaches(tasks.Working)}
	for i, parts := range chunks {
		a := tasks.Artifact{ID: "artifact-1", Parts: parts, Complete: i == len(chunks)-1}
		out = append(out, reports(tasks.Report{Artifacts: []tasks.Chunk{{Artifact: a, Append: i > 0}}}))
	}
	return append(out, reaches(tasks.Completed))
}
