package openintent

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"koine/channels/scope"
	"koine/internal/caller"
	"koine/internal/intents"
	"koine/kg"
)

// Bounds of a list of tasks.
const (
	DefaultTasks = 100
	MaxTasks     = 1000
)

// wireTask is a task of an intent. All members are always present.
type wireTask struct {
	ID             string          `json:"id"`
	IntentID       scope.ID        `json:"intent_id"`
	PlanID         *string         `json:"plan_id"`
	Name           string          `json:"name"`
	Description    *string         `json:"description"`
	Status         string          `json:"status"`
	Priority       string          `json:"priority"`
	Input          json.RawMessage `json:"input"`
	Output         json.RawMessage `json:"output"`
	Artifacts      []string        `json:"artifacts"`
	AssignedAgent  *string         `json:"assigned_agent"`
	LeaseID        *string         `json:"lease_id"`
	Capabilities   []string        `json:"capabilities_required"`
	DependsOn      []string        `json:"depends_on"`
	Blocks         []string        `json:"blocks"`
	ParentTask     *string         `json:"parent_task_id"`
	RetryPolicy    *string         `json:"retry_policy"`
	TimeoutSeconds *int64          `json:"timeout_seconds"`
	Attempt        int64           `json:"attempt"`
	MaxAttempts    int64           `json:"max_attempts"`
	Permissions    string          `json:"permissions"`
	MemoryPolicy   *string         `json:"memory_policy"`
	RequiresTools  []string        `json:"requires_tools"`
	BlockedReason  *string         `json:"blocked_reason"`
	Error          *string         `json:"error"`
	Metadata       json.RawMessage `json:"metadata"`
	TaskMetadata   json.RawMessage `json:"task_metadata"`
	Version        int64           `json:"version"`
	CreatedAt      string          `json:"created_at"`
	StartedAt      *string         `json:"started_at"`
	CompletedAt    *string         `json:"completed_at"`
}

// defaultAttempts is max_attempts of a task that names none.
const defaultAttempts = 3

func taskOf(t *intents.Task) *wireTask {
	out := &wireTask{
		ID: string(t.ID), IntentID: t.Intent, Name: t.Name, Description: orNull(t.Description), Status: string(t.Status), Priority: cmp.Or(t.Priority, "normal"),
		Input: orEmptyObject(t.Input), Output: t.Output, Artifacts: []string{}, AssignedAgent: orNull(bare(kg.AgentID(t.AssignedAgent))), Capabilities: orNone(t.Capabilities), DependsOn: orNone(t.DependsOn),
		Blocks: []string{}, ParentTask: orNull(t.ParentTask), Attempt: 1, MaxAttempts: cmp.Or(t.MaxAttempts, defaultAttempts), Permissions: cmp.Or(t.Permissions, "inherit"),
		RequiresTools: orNone(t.RequiresTools), BlockedReason: orNull(t.BlockedReason), Error: orNull(t.Error), Metadata: orEmptyObject(t.Metadata), TaskMetadata: orEmptyObject(t.Metadata),
		Version: t.Version, CreatedAt: formatTime(t.CreatedAt), StartedAt: timeOrNull(t.StartedAt), CompletedAt: timeOrNull(t.CompletedAt),
	}
	if t.TimeoutSeconds > 0 {
		out.TimeoutSeconds = &t.TimeoutSeconds
	}
	return out
}

// orNone returns an empty list for nil.
func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// taskDraft is the body of POST /tasks.
type taskDraft struct {
	Intent *scope.ID `json:"intent_id"`
	Name   *string   `json:"name"`
	Status string    `json:"status"`
	intents.TaskFields
}

// createTask handles POST /tasks.
func (h *Handler) createTask(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body taskDraft
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	switch {
	case body.Intent == nil:
		return 0, nil, errRequired("intent_id")
	case body.Name == nil:
		return 0, nil, errRequired("name")
	}
	t, err := h.deps.Intents.Tasks().Create(r.Context(), channelCaller(who), *body.Intent, intents.TaskDraft{Name: *body.Name, Status: intents.TaskStatus(body.Status), TaskFields: withoutNull(body.TaskFields)})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, taskOf(t), nil
}

// withoutNull removes nulls from the members that are JSON.
func withoutNull(f intents.TaskFields) intents.TaskFields {
	for _, raw := range []*json.RawMessage{&f.Input, &f.Output, &f.Metadata} {
		if string(*raw) == "null" {
			*raw = nil
		}
	}
	return f
}

// taskNotFound names a task in the error of an absent one.
func taskNotFound(err error) error {
	if kg.CodeOf(err) == kg.CodeScopeNotFound {
		return errNotFound("Task")
	}
	return err
}

// getTask handles GET /tasks/{task}.
func (h *Handler) getTask(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	t, err := h.deps.Intents.Tasks().Get(r.Context(), channelCaller(who), scope.ID(r.PathValue("task")))
	if err != nil {
		return 0, nil, taskNotFound(err)
	}
	return http.StatusOK, taskOf(t), nil
}

// taskStatuses are the states of a task.
var taskStatuses = []intents.TaskStatus{
	intents.TaskPending, intents.TaskReady, intents.TaskClaimed, intents.TaskRunning, intents.TaskBlocked,
	intents.TaskCompleted, intents.TaskFailed, intents.TaskCancelled, intents.TaskSkipped,
}

// listTasks handles GET /intents/{id}/tasks.
func (h *Handler) listTasks(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	limit, err := intParam(r, "limit", DefaultTasks, 1, MaxTasks)
	if err != nil {
		return 0, nil, err
	}
	skip, err := intParam(r, "offset", 0, 0, MaxSkipped)
	if err != nil {
		return 0, nil, err
	}
	status := intents.TaskStatus(r.URL.Query().Get("status"))
	if status != "" && !slices.Contains(taskStatuses, status) {
		e := errField("status", "status must be a state of tasks", "enum")
		e.query = true
		return 0, nil, e
	}
	list, err := h.deps.Intents.Tasks().List(r.Context(), channelCaller(who), scope.ID(r.PathValue("id")), status)
	if err != nil {
		return 0, nil, err
	}
	list = list[min(skip, len(list)):]
	out := make([]*wireTask, 0, len(list))
	for _, t := range list[:min(limit, len(list))] {
		out = append(out, taskOf(t))
	}
	return http.StatusOK, out, nil
}

// taskChange is the body of PATCH /tasks/{task}.
type taskChange struct {
	Status        *intents.TaskStatus `json:"status"`
	Output        json.RawMessage     `json:"output"`
	Error         *string             `json:"error"`
	AssignedAgent *string             `json:"assigned_agent"`
	BlockedReason *string             `json:"blocked_reason"`
}

// updateTask handles PATCH /tasks/{task}.
func (h *Handler) updateTask(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	if r.Header.Get("If-Match") == "" {
		return 0, nil, &wireError{Message: "If-Match header required", Code: string(kg.CodeInvalid), status: http.StatusPreconditionRequired}
	}
	version, err := ifMatch(r)
	if err != nil {
		return 0, nil, err
	}
	var body taskChange
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if string(body.Output) == "null" {
		body.Output = nil
	}
	t, err := h.deps.Intents.Tasks().Update(r.Context(), channelCaller(who), scope.ID(r.PathValue("task")), version, intents.TaskUpdate(body))
	if err != nil {
		return 0, nil, taskNotFound(err)
	}
	return http.StatusOK, taskOf(t), nil
}
