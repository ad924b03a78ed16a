// Package conformance is the agent that the public A2A compatibility kit expects of the server under
// test: the prefix of a message's id selects its behaviour. It replaces koine's own agent (koine serve
// --conformance-agent) and has no other use. The kit reuses message ids: messages with the same id are
// not repetitions of each other (tasks.Options.Repeats).
package conformance

import (
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
			return &tasks.Message{ID: m.ID + "-response", Role: tasks.Agent, Parts: part("Direct message response")}, nil
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
	{"tck-delayed-complete", []step{reaches(tasks.Working), pause, says(tasks.Completed, "Done after delay")}},
	{"test-resubscribe-message-id", []step{reaches(tasks.Working), pause, pause, reaches(tasks.Completed)}},
	{"tck-artifact-text", makes(tasks.TextPart("Generated text content"))},
	{"tck-artifact-file-url", makes(tasks.Part{URL: text("https://example.com/output.txt"), MediaType: "text/plain", Filename: "output.txt"})},
	{"tck-artifact-file", makes(textFile)},
	{"tck-artifact-data", makes(tasks.DataPart(json.RawMessage(`{"key":"value","count":42}`)))},
	{"tck-input-required", []step{reaches(tasks.InputRequired)}},
	{"tck-auth-required", []step{reaches(tasks.AuthRequired)}},
	{"tck-reject-task", []step{says(tasks.Rejected, "rejected")}},
	{"tck-stream-artifact-chunked", streams(part("chunk-1 "), part("chunk-2"))},
	{"tck-stream-artifact-file", streams([]tasks.Part{textFile})},
	{"tck-stream-artifact-text", streams(part("Streamed text content"))},
	{"tck-stream-ordering-001", streams(part("Ordered output"))},
	{"tck-stream-003", streams(part("Stream task lifecycle"))},
	{"tck-stream-", streams(part("Stream hello from TCK"))},
}

var textFile = tasks.Part{
	Raw: text(base64.StdEncoding.EncodeToString([]byte(greeting))), MediaType: "text/plain", Filename: "output.txt",
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
