// Package conformance is the agent that the public A2A compatibility kit expects of
// a server that it tests: what it does is chosen by the prefix of a message's id. It
// stands in for koine's own behaviour (koine serve --conformance-agent), and is of no
// other use.
package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"koine/internal/caller"
	"koine/internal/tasks"
)

// Agent is the agent.
type Agent struct{}

var _ tasks.Worker = Agent{}

const greeting = "Hello from TCK"

// Answer answers what wants a message and no task.
func (Agent) Answer(_ context.Context, _ caller.Caller, m *tasks.Message) (*tasks.Message, error) {
	if !asks(m, "tck-message-response") && !asks(m, "tck-stream-002") {
		return nil, nil
	}
	return &tasks.Message{ID: m.ID + "-response", Role: tasks.Agent, Parts: []tasks.Part{tasks.TextPart(greeting)}}, nil
}

// asks tells whether a message is of the ids that begin so.
func asks(m *tasks.Message, prefix string) bool { return strings.HasPrefix(m.ID, prefix) }

// behaviours are in the order in which they are looked for.
var behaviours = []struct {
	prefix string
	work   func(*tasks.Message) []tasks.Report
}{
	{"tck-complete-task", completes},
	{"tck-artifact-text", makes(tasks.TextPart(greeting))},
	{"tck-artifact-file-url", makes(tasks.Part{URL: text("https://example.com/output.txt"), MediaType: "text/plain", Filename: "output.txt"})},
	{"tck-artifact-file", makes(textFile)},
	{"tck-artifact-data", makes(tasks.DataPart(json.RawMessage(`{"key":"value","count":42}`)))},
	{"tck-input-required", comesTo(tasks.InputRequired)},
	{"tck-reject-task", comesTo(tasks.Rejected)},
	{"tck-stream-artifact-chunked", streams(part("chunk 1 "), part("chunk 2"))},
	{"tck-stream-artifact-file", streams([]tasks.Part{textFile})},
	{"tck-stream-artifact-text", streams(part("Streamed text content"))},
	{"tck-stream-", streams(part("Stream hello from TCK"))},
}

var textFile = tasks.Part{
	Raw: text(base64.StdEncoding.EncodeToString([]byte(greeting))), MediaType: "text/plain", Filename: "output.txt",
}

func text(s string) *string { return &s }

func part(s string) []tasks.Part { return []tasks.Part{tasks.TextPart(s)} }

// Work does what the message's id asks for. What it does not know it completes.
func (Agent) Work(ctx context.Context, j *tasks.Job) error {
	work := completes
	for _, b := range behaviours {
		if asks(&j.Message, b.prefix) {
			work = b.work
			break
		}
	}
	for _, r := range work(&j.Message) {
		if err := j.Report(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func completes(*tasks.Message) []tasks.Report { return comesTo(tasks.Completed)(nil) }

// comesTo says a word with a state.
func comesTo(state tasks.State) func(*tasks.Message) []tasks.Report {
	return func(*tasks.Message) []tasks.Report {
		return []tasks.Report{{State: state, Message: &tasks.Message{Parts: part(greeting)}}}
	}
}

// makes hands one artifact over, and completes.
func makes(p tasks.Part) func(*tasks.Message) []tasks.Report {
	return func(*tasks.Message) []tasks.Report {
		a := tasks.Artifact{ID: "artifact-1", Parts: []tasks.Part{p}, Complete: true}
		return []tasks.Report{{Artifacts: []tasks.Chunk{{Artifact: a}}, State: tasks.Completed}}
	}
}

// streams works, hands an artifact over chunk by chunk, and completes.
func streams(chunks ...[]tasks.Part) func(*tasks.Message) []tasks.Report {
	return func(*tasks.Message) []tasks.Report {
		out := []tasks.Report{{State: tasks.Working}}
		for i, parts := range chunks {
			a := tasks.Artifact{ID: "artifact-1", Parts: parts, Complete: i == len(chunks)-1}
			out = append(out, tasks.Report{Artifacts: []tasks.Chunk{{Artifact: a, Append: i > 0}}})
		}
		return append(out, tasks.Report{State: tasks.Completed})
	}
}
