package tasks_test

import (
	"encoding/json"
	"strings"
	"testing"

	"koine/internal/tasks"
	"koine/kg"
)

// Each limit of a message holds, at the limit and above.
func TestBoundsOfMessages(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	text := func(n int) string { return strings.Repeat("x", n) }
	object := func(n int) json.RawMessage { return json.RawMessage(`{"k":"` + text(n-len(`{"k":""}`)) + `"}`) }
	many := func(n int) (out []tasks.Part) {
		for range n {
			out = append(out, tasks.TextPart("x"))
		}
		return out
	}
	some := many(1)
	for name, row := range map[string]struct {
		n    int
		make func(n int) tasks.SendRequest
	}{
		"parts": {tasks.MaxParts, func(n int) tasks.SendRequest { return tasks.SendRequest{Message: tasks.Message{Parts: many(n)}} }},
		"bytes": {tasks.MaxMessageBytes, func(n int) tasks.SendRequest {
			return tasks.SendRequest{Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart(text(n))}}}
		}},
		"metadata": {tasks.MaxMetadataBytes, func(n int) tasks.SendRequest {
			return tasks.SendRequest{Message: tasks.Message{Parts: some, Metadata: object(n)}}
		}},
		"of the task": {tasks.MaxMetadataBytes, func(n int) tasks.SendRequest {
			return tasks.SendRequest{Metadata: object(n), Message: tasks.Message{Parts: some}}
		}},
		"id": {tasks.MaxKeyBytes, func(n int) tasks.SendRequest {
			return tasks.SendRequest{Message: tasks.Message{ID: text(n), Parts: some}}
		}},
		"context": {tasks.MaxKeyBytes, func(n int) tasks.SendRequest {
			return tasks.SendRequest{Context: text(n), Message: tasks.Message{Parts: some}}
		}},
		"extensions": {tasks.MaxExtensions, func(n int) tasks.SendRequest {
			return tasks.SendRequest{Message: tasks.Message{Parts: some, Extensions: strings.Split(text(n), "")}}
		}},
		"references": {tasks.MaxReferences, func(n int) tasks.SendRequest {
			return tasks.SendRequest{Message: tasks.Message{Parts: some, References: make([]tasks.TaskID, n)}}
		}},
		"type": {tasks.MaxTextBytes, func(n int) tasks.SendRequest {
			p := tasks.TextPart("x")
			p.MediaType = text(n)
			return tasks.SendRequest{Message: tasks.Message{Parts: []tasks.Part{p}}}
		}},
	} {
		at := row.make(row.n)
		at.To = bot
		if _, err := b.Send(t.Context(), as(ann), at); err != nil {
			t.Errorf("%s at the bound: %v", name, err)
		}
		past := row.make(row.n + 1)
		past.To = bot
		_, err := b.Send(t.Context(), as(ann), past)
		wantCode(t, name+" past the bound", err, kg.CodeLimitExceeded)
	}
	two := tasks.TextPart("x")
	two.Data = json.RawMessage(`1`)
	for name, parts := range map[string][]tasks.Part{"no part": {}, "an empty part": {{}}, "two in one": {two}, "no text": {tasks.TextPart("\xff")}} {
		_, err := b.Send(t.Context(), as(ann), tasks.SendRequest{To: bot, Message: tasks.Message{Parts: parts}})
		wantCode(t, name, err, kg.CodeInvalid)
	}
}

func TestBoundsOfReports(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	task := b.send(ann, tasks.SendRequest{})
	var all []tasks.Chunk
	for i := range tasks.MaxArtifacts {
		all = append(all, chunk(strings.Repeat("a", i+1), false, "x"))
	}
	b.report(task.ID, tasks.Report{Artifacts: all})
	_, err := b.Report(t.Context(), as(bot), task.ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("b", false, "x")}})
	wantCode(t, "an artifact too many", err, kg.CodeLimitExceeded)
	for name, r := range map[string]tasks.Report{
		"no such state": {State: "DONE"}, "said without a status": {Message: &tasks.Message{Parts: []tasks.Part{tasks.TextPart("x")}}},
		"a reason without a failure": {State: tasks.Working, Failure: &tasks.Failure{Code: "X"}},
		"no id":                      {Artifacts: []tasks.Chunk{chunk("", false, "x")}}, "no parts": {Artifacts: []tasks.Chunk{chunk("a", false)}}, "no object": {Metadata: json.RawMessage(`[]`)},
	} {
		_, err := b.Report(t.Context(), as(bot), task.ID, r)
		wantCode(t, name, err, kg.CodeInvalid)
	}
	_, err = b.Report(t.Context(), as(bot), task.ID, tasks.Report{Artifacts: append(all, all[0])})
	wantCode(t, "too many at a time", err, kg.CodeLimitExceeded)
	_, err = b.Report(t.Context(), as(bot), task.ID, tasks.Report{State: tasks.Failed, Failure: &tasks.Failure{Code: "X", Message: strings.Repeat("x", tasks.MaxFailureBytes)}})
	wantCode(t, "too long a reason", err, kg.CodeLimitExceeded)
}

// An artifact is limited by its bytes plus an overhead for each chunk; one of an older
// build is counted when something is appended.
func TestBoundOfArtifacts(t *testing.T) {
	const most = 4 * (tasks.ChunkOverhead + 10)
	b := open(t, tasks.Options{MaxArtifactBytes: most}, nil)
	task := b.send(ann, tasks.SendRequest{})
	for i := range 4 {
		if i == 2 {
			b.uncount(task, "a")
		}
		b.report(task.ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", true, "0123456789")}})
	}
	_, err := b.Report(t.Context(), as(bot), task.ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", true, "0")}})
	wantCode(t, "a byte too many", err, kg.CodeLimitExceeded)
	if got := kg.AsError(err).Field; got != "artifacts[0].parts" {
		t.Errorf("refused at %q", got)
	}
	// A replacement is counted from zero.
	b.report(task.ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", false, strings.Repeat("0", most-tasks.ChunkOverhead))}})
	_, err = b.Report(t.Context(), as(bot), task.ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", false, strings.Repeat("0", most-tasks.ChunkOverhead+1))}})
	wantCode(t, "one that is too large", err, kg.CodeLimitExceeded)
}
