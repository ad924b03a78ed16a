package conformance

import (
	"cmp"
	"context"
	"time"

	"koine/internal/tasks"
)

// step is a part of a behaviour.
type step func(context.Context, Agent, *tasks.Job) error

var completes = []step{messageStep(tasks.Completed, greeting)}

func stringPtr(s string) *string { return &s }

func textParts(s string) []tasks.Part { return []tasks.Part{tasks.TextPart(s)} }

func reportStep(r tasks.Report) step {
	return func(ctx context.Context, _ Agent, j *tasks.Job) error { return j.Report(ctx, r) }
}

// stateStep reports a state; says reports a state with a message.
func stateStep(state tasks.State) step { return reportStep(tasks.Report{State: state}) }

func messageStep(state tasks.State, word string) step {
	return func(ctx context.Context, _ Agent, j *tasks.Job) error {
		return j.Report(ctx, tasks.Report{State: state, Message: &tasks.Message{Parts: textParts(word)}})
	}
}

// pauseStep gives the kit time to observe the working task.
func pauseStep(ctx context.Context, a Agent, _ *tasks.Job) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(cmp.Or(a.Delay, DefaultDelay)):
		return nil
	}
}

// artifactSteps delivers one artifact and completes.
func artifactSteps(p tasks.Part) []step {
	a := tasks.Artifact{ID: "artifact-1", Parts: []tasks.Part{p}, Complete: true}
	return []step{reportStep(tasks.Report{Artifacts: []tasks.Chunk{{Artifact: a}}, State: tasks.Completed})}
}

// streamSteps works, delivers an artifact in chunks, and completes.
func streamSteps(chunks ...[]tasks.Part) []step {
	out := []step{stateStep(tasks.Working)}
	for i, parts := range chunks {
		a := tasks.Artifact{ID: "artifact-1", Parts: parts, Complete: i == len(chunks)-1}
		out = append(out, reportStep(tasks.Report{Artifacts: []tasks.Chunk{{Artifact: a, Append: i > 0}}}))
	}
	return append(out, stateStep(tasks.Completed))
}
