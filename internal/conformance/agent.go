// Package conformance is the agent that the public A2A compatibility kit expects of the
// server under test: the prefix of a message's id selects its behaviour. With koine serve
// --conformance-agent it replaces koine's own agent; it has no other use. The kit reuses
// message ids: messages with the same id are not repetitions of each other
// (tasks.Options.Repeats).
package conformance

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"koine/internal/caller"
	"koine/internal/tasks"
)

// DefaultDelay is the duration of work that the kit wants to observe.
const DefaultDelay = 2 * time.Second

// Agent is the agent. The zero value is ready.
type Agent struct {
	Delay time.Duration // 0 is DefaultDelay
}

var _ tasks.Worker = Agent{}

const greeting = "Hello from TCK"

// CheckMessage rejects content of types other than text and JSON.
func (Agent) CheckMessage(m *tasks.Message) error { return m.CheckTypes("text/*", "application/json") }

// Answer answers messages that expect a message instead of a task.
func (Agent) Answer(_ context.Context, _ caller.Caller, m *tasks.Message) (*tasks.Message, error) {
	for _, prefix := range []string{"tck-message-response", "tck-stream-002"} {
		if strings.HasPrefix(m.ID, prefix) {
			return &tasks.Message{ID: m.ID + "-response", Role: tasks.Agent, Parts: textParts("Direct message response")}, nil
		}
	}
	return nil, nil
}

// behaviours are matched in order.
var behaviours = []struct {
	prefix string
	work   []step
}{
	{"tck-complete-task", completes},
	{"tck-delayed-complete", []step{stateStep(tasks.Working), pauseStep, messageStep(tasks.Completed, "Done after delay")}},
	{"test-resubscribe-message-id", []step{stateStep(tasks.Working), pauseStep, pauseStep, stateStep(tasks.Completed)}},
	{"tck-artifact-text", artifactSteps(tasks.TextPart("Generated text content"))},
	{"tck-artifact-file-url", artifactSteps(tasks.Part{URL: stringPtr("https://example.com/output.txt"), MediaType: "text/plain", Filename: "output.txt"})},
	{"tck-artifact-file", artifactSteps(textFile)},
	{"tck-artifact-data", artifactSteps(tasks.DataPart(json.RawMessage(`{"key":"value","count":42}`)))},
	{"tck-input-required", []step{stateStep(tasks.InputRequired)}},
	{"tck-auth-required", []step{stateStep(tasks.AuthRequired)}},
	{"tck-reject-task", []step{messageStep(tasks.Rejected, "rejected")}},
	{"tck-stream-artifact-chunked", streamSteps(textParts("chunk-1 "), textParts("chunk-2"))},
	{"tck-stream-artifact-file", streamSteps([]tasks.Part{textFile})},
	{"tck-stream-artifact-text", streamSteps(textParts("Streamed text content"))},
	{"tck-stream-ordering-001", streamSteps(textParts("Ordered output"))},
	{"tck-stream-003", streamSteps(textParts("Stream task lifecycle"))},
	{"tck-stream-", streamSteps(textParts("Stream hello from TCK"))},
}

var textFile = tasks.Part{
	Raw: stringPtr(base64.StdEncoding.EncodeToString([]byte(greeting))), MediaType: "text/plain", Filename: "output.txt",
}

// Work runs the behaviour for the message's id. It completes unknown ones.
func (a Agent) Work(ctx context.Context, j *tasks.Job) error {
	work := completes
	for _, b := range behaviours {
		if strings.HasPrefix(j.Message.ID, b.prefix) {
			work = b.work
			break
		}
	}
	for _, do := range work {
		if err := do(ctx, a, j); err != nil {
			return err
		}
	}
	return nil
}

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
