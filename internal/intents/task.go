package intents

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"koine/channels"
	"koine/channels/scope"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Limits of tasks.
const (
	MaxTaskBytes     = 256 << 10 // of each JSON member of a task
	MaxTaskTexts     = 100       // of each list of a task
	MaxTaskTextRunes = 1024      // of each text of a task, but its name and description
)

// TaskStatus is the status of a task.
type TaskStatus string

// Task states. The last four are final and end the scope of the task.
const (
	TaskPending   TaskStatus = "pending"
	TaskReady     TaskStatus = "ready"
	TaskClaimed   TaskStatus = "claimed"
	TaskRunning   TaskStatus = "running"
	TaskBlocked   TaskStatus = "blocked"
	TaskCompleted TaskStatus = "completed"
	TaskFailed    TaskStatus = "failed"
	TaskCancelled TaskStatus = "cancelled"
	TaskSkipped   TaskStatus = "skipped"
)

var taskStatuses = []TaskStatus{TaskPending, TaskReady, TaskClaimed, TaskRunning, TaskBlocked, TaskCompleted, TaskFailed, TaskCancelled, TaskSkipped}

// outcome returns the status of the scope of a task that has ended, "" before.
func (s TaskStatus) outcome() scope.Status {
	switch s {
	case TaskCompleted, TaskSkipped:
		return scope.Completed
	case TaskFailed, TaskCancelled:
		return scope.Abandoned
	}
	return ""
}

// TaskFields are the fields of a task that its authors choose.
type TaskFields struct {
	Description   string `json:"description,omitempty"`
	Priority      string `json:"priority,omitempty"`
	AssignedAgent string `json:"assigned_agent,omitempty"`
	BlockedReason string `json:"blocked_reason,omitempty"`
	Error         string `json:"error,omitempty"`
	ParentTask    string `json:"parent_task_id,omitempty"`
	Permissions   string `json:"permissions,omitempty"`
	// Capabilities, DependsOn and RequiresTools are lists of texts that koine keeps.
	Capabilities  []string `json:"capabilities_required,omitempty"`
	DependsOn     []string `json:"depends_on,omitempty"`
	RequiresTools []string `json:"requires_tools,omitempty"`
	// Input and Metadata are JSON objects, Output is any JSON value.
	Input    json.RawMessage `json:"input,omitempty"`
	Output   json.RawMessage `json:"output,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// TimeoutSeconds and MaxAttempts are kept and not enforced.
	TimeoutSeconds int64 `json:"timeout_seconds,omitempty"`
	MaxAttempts    int64 `json:"max_attempts,omitempty"`
}

// Task is a task of an intent: a scope within the intent's, with a record of its own.
type Task struct {
	ID         scope.ID
	Intent     scope.ID
	ExternalID string
	Name       string
	CreatedBy  kg.AgentID
	CreatedAt  time.Time
	Status     TaskStatus
	TaskFields
	// StartedAt is the time at which the task was first running, CompletedAt the one at
	// which it ended.
	StartedAt, CompletedAt time.Time
	// Version starts at 1 and increases with each update.
	Version int64
}

// TaskDraft describes a task to create. ExternalID, if set, is unique in the intent.
type TaskDraft struct {
	Name, ExternalID string
	Status           TaskStatus // TaskPending if ""; not final
	TaskFields
}

// TaskUpdate is a change of a task. Nil fields are unchanged.
type TaskUpdate struct {
	Status        *TaskStatus
	Output        json.RawMessage
	Error         *string
	AssignedAgent *string
	BlockedReason *string
}

const (
	taskPart  = "task"
	taskClass = "IntentTask"
)

// check returns an error if a field is out of bounds.
func (f *TaskFields) check() error {
	for _, t := range []struct{ field, text string }{
		{"description", f.Description}, {"priority", f.Priority}, {"assignedAgent", f.AssignedAgent}, {"blockedReason", f.BlockedReason},
		{"error", f.Error}, {"parentTaskId", f.ParentTask}, {"permissions", f.Permissions},
	} {
		most := MaxTaskTextRunes
		if t.field == "description" || t.field == "error" {
			most = MaxDescriptionRunes
		}
		if err := checkText(t.field, t.text, most); err != nil {
			return err
		}
	}
	for field, list := range map[string][]string{"capabilitiesRequired": f.Capabilities, "dependsOn": f.DependsOn, "requiresTools": f.RequiresTools} {
		if n := len(list); n > MaxTaskTexts {
			return kg.Errorf(kg.CodeLimitExceeded, "%s has %d elements; the limit is %d", field, n, MaxTaskTexts).At(field)
		}
		for _, text := range list {
			if err := checkText(field, text, MaxTaskTextRunes); err != nil {
				return err
			}
		}
	}
	for field, raw := range map[string]json.RawMessage{"input": f.Input, "output": f.Output, "metadata": f.Metadata} {
		if n := len(raw); n > MaxTaskBytes {
			return kg.Errorf(kg.CodeLimitExceeded, "%s has %d bytes; the limit is %d", field, n, MaxTaskBytes).At(field)
		}
		if raw != nil && !json.Valid(raw) {
			return kg.Errorf(kg.CodeInvalid, "%s is not JSON", field).At(field)
		}
	}
	return nil
}

func (t *Task) toRecord() (systemgraph.Record, error) {
	raw, err := json.Marshal(t.TaskFields)
	if err != nil {
		return nil, err
	}
	r := systemgraph.Record{
		systemgraph.Type: systemgraph.Class(taskClass), "taskStatus": systemgraph.Values(string(t.Status)),
		"taskFields": systemgraph.JSON(raw), "taskVersion": {kg.Integer(t.Version)}, "taskStartedAt": nil, "taskCompletedAt": nil, "taskAgent": systemgraph.Text(t.AssignedAgent),
	}
	if !t.StartedAt.IsZero() {
		r["taskStartedAt"] = []kg.Term{kg.DateTime(t.StartedAt)}
	}
	if !t.CompletedAt.IsZero() {
		r["taskCompletedAt"] = []kg.Term{kg.DateTime(t.CompletedAt)}
	}
	return r, nil
}

// readTask returns the task of a scope. A scope without a record of a task, which another
// protocol created, has a status that follows from the scope's.
func readTask(match systemgraph.Matcher, sc *scope.Scope) (*Task, error) {
	t := &Task{ID: sc.ID, Intent: sc.Parent, ExternalID: sc.ExternalID, Name: sc.Title, CreatedBy: sc.CreatedBy, CreatedAt: sc.CreatedAt, Status: TaskPending, Version: 1}
	r, err := systemgraph.Read(match, sc.ID.PartGraph(taskPart), sc.ID.Entity())
	if err != nil {
		return nil, err
	}
	if r != nil {
		t.Status, t.Version = TaskStatus(r.Text("taskStatus")), r.Integer("taskVersion")
		t.StartedAt, t.CompletedAt = r.Time("taskStartedAt"), r.Time("taskCompletedAt")
		if err := json.Unmarshal(r.JSON("taskFields"), &t.TaskFields); err != nil {
			return nil, err
		}
	}
	// The scope may have ended with the intent, which writes no record of the task.
	if sc.Ended() && t.Status.outcome() != sc.Status {
		if t.CompletedAt = sc.EndedAt; sc.Status == scope.Completed {
			t.Status = TaskCompleted
		} else {
			t.Status = TaskCancelled
		}
	}
	return t, nil
}

// Tasks manages the tasks of intents. Its methods may be called concurrently.
type Tasks struct {
	store  *kg.Store
	scopes *channels.Scopes
}

// Create creates a task of an intent.
//
// Errors: CodeNameTaken for an external id that another task of the intent has; CodeInvalid;
// CodeLimitExceeded; those of channels.Scopes.Create.
func (s *Tasks) Create(ctx context.Context, by channels.Caller, intent scope.ID, d TaskDraft) (*Task, error) {
	if d.Status == "" {
		d.Status = TaskPending
	}
	if !slices.Contains(taskStatuses, d.Status) || d.Status.outcome() != "" {
		return nil, kg.Errorf(kg.CodeInvalid, "status of a new task is pending, ready, claimed, running or blocked, not %.60q", d.Status).At("status")
	}
	if intent == "" {
		return nil, scope.ErrNotFound()
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	t := &Task{Intent: intent, Name: d.Name, Status: d.Status, TaskFields: d.TaskFields, Version: 1}
	// A task adds no rule of its own: access to the intent is access to it.
	draft := scope.Draft{Parent: intent, Title: d.Name, ExternalID: d.ExternalID, Access: scope.Access{Everybody: true}}
	sc, err := s.scopes.CreateWith(ctx, by, draft, func(tx *kg.Tx, sc *scope.Scope) error {
		if t.Status == TaskRunning {
			t.StartedAt = tx.Time()
		}
		r, err := t.toRecord()
		if err != nil {
			return err
		}
		return systemgraph.WriteOver(tx, sc.ID.PartGraph(taskPart), sc.ID.Entity(), nil, r)
	})
	if err != nil {
		return nil, err
	}
	t.ID, t.ExternalID, t.CreatedBy, t.CreatedAt = sc.ID, sc.ExternalID, sc.CreatedBy, sc.CreatedAt
	return t, nil
}

// Get returns a task.
//
// Errors: CodeScopeNotFound, also for the id of an intent.
func (s *Tasks) Get(ctx context.Context, by channels.Caller, id scope.ID) (t *Task, err error) {
	sc, err := s.scopes.Get(ctx, by, id)
	if err != nil {
		return nil, err
	}
	if sc.Parent == "" {
		return nil, scope.ErrNotFound()
	}
	err = viewPart(ctx, s.store, by, func(snapshot *kg.Snapshot) error {
		t, err = readTask(snapshot.Match, sc)
		return err
	})
	return t, err
}

// List returns the tasks of an intent in order of creation; at most scope.MaxTasks. status,
// if set, excludes others.
//
// Errors: CodeScopeNotFound.
func (s *Tasks) List(ctx context.Context, by channels.Caller, intent scope.ID, status TaskStatus) (list []*Task, err error) {
	if _, err := s.scopes.Get(ctx, by, intent); err != nil {
		return nil, err
	}
	var scopes []*scope.Scope
	for q := (scope.ListQuery{Parent: intent, PageSize: channels.MaxPage}); ; {
		page, end, err := s.scopes.ListPage(ctx, by, q)
		if err != nil {
			return nil, err
		}
		scopes = append(scopes, page...)
		if q.Behind = end; end == "" {
			break
		}
	}
	err = viewPart(ctx, s.store, by, func(snapshot *kg.Snapshot) error {
		for _, sc := range scopes {
			t, err := readTask(snapshot.Match, sc)
			if err != nil {
				return err
			}
			if status == "" || t.Status == status {
				list = append(list, t)
			}
		}
		return nil
	})
	return list, err
}

// Update changes a task that has the given version. A final status ends the scope of the
// task and closes its channels in the same commit. It requires the level scope.Write.
//
// Errors: CodeVersionConflict with a VersionError; CodeScopeEnded for a task that has ended;
// CodeInvalid; CodeLimitExceeded; those of channels.Scopes.Change.
func (s *Tasks) Update(ctx context.Context, by channels.Caller, id scope.ID, version int64, u TaskUpdate) (*Task, error) {
	if u.Status != nil && !slices.Contains(taskStatuses, *u.Status) {
		return nil, kg.Errorf(kg.CodeInvalid, "status %.60q is unknown", *u.Status).At("status")
	}
	var t *Task
	_, err := s.scopes.Change(ctx, by, id, scope.Write, "tasks/update", func(tx *kg.Tx, sc *scope.Scope) (err error) {
		if sc.Parent == "" {
			return scope.ErrNotFound()
		}
		if t, err = readTask(tx.MatchOwn, sc); err != nil {
			return err
		}
		if t.Version != version {
			return errVersion("task", t.Version, version)
		}
		if sc.Ended() {
			return scope.ErrEnded(sc.Status)
		}
		u.applyTo(t, tx.Time())
		if err := t.check(); err != nil {
			return err
		}
		if outcome := t.Status.outcome(); outcome != "" {
			if err := s.scopes.EndIn(tx, sc, outcome, ""); err != nil {
				return err
			}
		}
		r, err := t.toRecord()
		if err != nil {
			return err
		}
		return systemgraph.Write(tx, id.PartGraph(taskPart), id.Entity(), r)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// applyTo applies the update to a task and raises its version.
func (u *TaskUpdate) applyTo(t *Task, now time.Time) {
	if u.Status != nil {
		t.Status = *u.Status
	}
	if u.Output != nil {
		t.Output = u.Output
	}
	for target, value := range map[*string]*string{&t.Error: u.Error, &t.AssignedAgent: u.AssignedAgent, &t.BlockedReason: u.BlockedReason} {
		if value != nil {
			*target = *value
		}
	}
	if t.Status == TaskRunning && t.StartedAt.IsZero() {
		t.StartedAt = now
	}
	if t.Status.outcome() != "" {
		t.CompletedAt = now
	}
	t.Version++
}
