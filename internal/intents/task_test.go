package intents_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"koine/channels/channel"
	"koine/channels/scope"
	"koine/internal/intents"
	"koine/kg"
)

// A task keeps its fields and its version, and a final status ends its scope and its
// channels.
func TestTasks(t *testing.T) {
	s := serve(t)
	id, ctx := s.intent(t), t.Context()
	made, err := s.Tasks().Create(ctx, as("bob"), id, intents.TaskDraft{Name: "fetch", ExternalID: "task-123", TaskFields: intents.TaskFields{
		Description: "fetch the data", Priority: "high", Input: json.RawMessage(`{"from":"db"}`), Capabilities: []string{"sql"}, MaxAttempts: 3,
	}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.channels.CreateIn(ctx, as("bob"), made.ID, channel.Draft{Name: "progress"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Tasks().Create(ctx, as("ann"), id, intents.TaskDraft{Name: "again", ExternalID: "task-123"})
	wantCode(t, "the external id of another task", err, kg.CodeNameTaken)
	_, err = s.Tasks().Create(ctx, as("rita"), id, intents.TaskDraft{Name: "reader's"})
	wantCode(t, "a reader's task", err, kg.CodePermissionDenied)
	_, err = s.Tasks().Create(ctx, as("ann"), id, intents.TaskDraft{Name: "ended", Status: intents.TaskFailed})
	wantCode(t, "a task that begins ended", err, kg.CodeInvalid)

	running, agent := intents.TaskRunning, "bob"
	now, err := s.Tasks().Update(ctx, as("bob"), made.ID, 1, intents.TaskUpdate{Status: &running, AssignedAgent: &agent})
	if err != nil || now.Version != 2 || now.StartedAt.IsZero() || now.AssignedAgent != "bob" {
		t.Fatalf("the running task is %+v: %v", now, err)
	}
	_, err = s.Tasks().Update(ctx, as("bob"), made.ID, 1, intents.TaskUpdate{Status: &running})
	wantCode(t, "an update of an older version", err, kg.CodeVersionConflict)
	if conflict := (*intents.VersionError)(nil); !errors.As(err, &conflict) || conflict.Current != 2 {
		t.Errorf("the conflict names the version %+v, want 2", conflict)
	}
	_, err = s.Tasks().Update(ctx, as("rita"), made.ID, 2, intents.TaskUpdate{})
	wantCode(t, "a reader's update", err, kg.CodePermissionDenied)
	for _, by := range []string{"gus", "eve"} {
		_, err = s.Tasks().Get(ctx, as(by), made.ID)
		wantCode(t, "an outsider", err, kg.CodeScopeNotFound)
	}
	_, err = s.Tasks().Get(ctx, as("ann"), id)
	wantCode(t, "the intent as a task", err, kg.CodeScopeNotFound)

	done := intents.TaskCompleted
	if now, err = s.Tasks().Update(ctx, as("bob"), made.ID, 2, intents.TaskUpdate{Status: &done, Output: json.RawMessage(`[1,2]`)}); err != nil {
		t.Fatal(err)
	}
	if c, err := s.channels.Get(ctx, as("bob"), c.ID); err != nil || c.Status() != channel.Closed {
		t.Errorf("the channel of the completed task is %+v: %v", c, err)
	}
	_, err = s.Tasks().Update(ctx, as("bob"), made.ID, 3, intents.TaskUpdate{Status: &running})
	wantCode(t, "an update of a completed task", err, kg.CodeScopeEnded)
	s.restart(t)
	list, err := s.Tasks().List(ctx, as("rita"), id, "")
	if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0], now) {
		t.Errorf("after a restart the tasks are %+v, want %+v: %v", list, now, err)
	}
	if list, err := s.Tasks().List(ctx, as("rita"), id, intents.TaskFailed); err != nil || len(list) != 0 {
		t.Errorf("the failed tasks are %+v: %v", list, err)
	}
}

// A task ends with its intent, and a scope of another protocol is a task, too.
func TestTaskEndsWithIntent(t *testing.T) {
	s := serve(t)
	id, ctx := s.intent(t), t.Context()
	made, err := s.Tasks().Create(ctx, as("ann"), id, intents.TaskDraft{Name: "fetch"})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := s.channels.Scopes().Create(ctx, as("ann"), scope.Draft{Parent: id, Title: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Tasks().Get(ctx, as("ann"), plain.ID); err != nil || got.Name != "plain" || got.Status != intents.TaskPending || got.Version != 1 {
		t.Errorf("a scope without a record is the task %+v: %v", got, err)
	}
	if _, err := s.channels.Scopes().End(ctx, as("ann"), id, scope.Abandoned, ""); err != nil {
		t.Fatal(err)
	}
	for _, of := range []scope.ID{made.ID, plain.ID} {
		if got, err := s.Tasks().Get(ctx, as("ann"), of); err != nil || got.Status != intents.TaskCancelled || got.CompletedAt.IsZero() {
			t.Errorf("the task of an abandoned intent is %+v: %v", got, err)
		}
	}
}

func TestBoundsOfTasks(t *testing.T) {
	s := serve(t)
	id := s.intent(t)
	object := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }
	for what, row := range map[string]struct {
		fields intents.TaskFields
		want   kg.Code
	}{
		"input at the bound":       {intents.TaskFields{Input: object(intents.MaxTaskBytes)}, ""},
		"input past it":            {intents.TaskFields{Input: object(intents.MaxTaskBytes + 1)}, kg.CodeLimitExceeded},
		"output that is no JSON":   {intents.TaskFields{Output: json.RawMessage(`{`)}, kg.CodeInvalid},
		"texts at the bound":       {intents.TaskFields{DependsOn: make([]string, intents.MaxTaskTexts)}, ""},
		"texts past it":            {intents.TaskFields{DependsOn: make([]string, intents.MaxTaskTexts+1)}, kg.CodeLimitExceeded},
		"description at the bound": {intents.TaskFields{Description: strings.Repeat("ü", intents.MaxDescriptionRunes)}, ""},
		"description past it":      {intents.TaskFields{Description: strings.Repeat("ü", intents.MaxDescriptionRunes+1)}, kg.CodeLimitExceeded},
		"priority past the bound":  {intents.TaskFields{Priority: strings.Repeat("ü", intents.MaxTaskTextRunes+1)}, kg.CodeLimitExceeded},
	} {
		_, err := s.Tasks().Create(t.Context(), as("ann"), id, intents.TaskDraft{Name: "n", TaskFields: row.fields})
		wantCode(t, what, err, row.want)
	}
}
