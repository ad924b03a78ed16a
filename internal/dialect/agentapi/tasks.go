package agentapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"koine/internal/caller"
	"koine/internal/rest"
	"koine/internal/tasks"
	"koine/kg"
)

// reading selects the shown parts of a task: this protocol has no history.
var reading = tasks.ReadOptions{Artifacts: true}

// taskPage is the answer of GET /tasks.
type taskPage struct {
	Tasks []*task `json:"tasks"`
	Next  string  `json:"nextPageToken,omitempty"`
	Total int     `json:"total"`
}

// listTasks handles GET /tasks: the tasks that the caller created or handles.
func (h *Handler) listTasks(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	first, after, err := pageOf(r)
	if err != nil {
		return 0, nil, err
	}
	q, values := tasks.Query{First: first, After: after, Reading: reading}, r.URL.Query()
	if agent := values.Get("agentId"); agent != "" {
		q.Handler = kg.CanonicalAgent(agent)
	}
	if state := values.Get("state"); state != "" {
		if q.States = statesMeant[state]; q.States == nil {
			return 0, nil, kg.Errorf(kg.CodeInvalid, "state must be pending, in_progress, completed or failed").At("state")
		}
	}
	q.Parent = tasks.TaskID(values.Get("parentId"))
	page, err := h.deps.Tasks.List(r.Context(), who, q)
	if err != nil {
		return 0, nil, err
	}
	out := taskPage{Tasks: []*task{}, Next: page.Next, Total: page.Total}
	for i := range page.Tasks {
		t, err := writeTask(&page.Tasks[i])
		if err != nil {
			return 0, nil, err
		}
		out.Tasks = append(out.Tasks, t)
	}
	return http.StatusOK, out, nil
}

// getTask handles GET /tasks/:taskId.
func (h *Handler) getTask(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	if acceptsEvents(r) {
		status, err := h.followTask(w, r, who, tasks.TaskID(r.PathValue("id")))
		return status, nil, err
	}
	t, err := h.deps.Tasks.Get(r.Context(), who, tasks.TaskID(r.PathValue("id")), reading)
	if err != nil {
		return 0, nil, err
	}
	rest.SetAnswerHeaders(w, "", t.Version, false)
	out, err := writeTask(t)
	return http.StatusOK, out, err
}

// acceptsEvents reports whether the client accepts Server-Sent Events.
func acceptsEvents(r *http.Request) bool {
	for _, line := range r.Header.Values("Accept") {
		for kind := range strings.SplitSeq(line, ",") {
			if kind, _, _ = strings.Cut(kind, ";"); strings.EqualFold(strings.TrimSpace(kind), "text/event-stream") {
				return true
			}
		}
	}
	return false
}

// change is the body of PUT /tasks/:taskId: absent members stay unchanged. Artifacts
// are matched by id, or by index; others stay.
type change struct {
	State     string          `json:"state"`
	Error     *wireError      `json:"error"`
	Artifacts []piece         `json:"artifacts"`
	Metadata  json.RawMessage `json:"metadata"`
	Message   []part          `json:"message"` // message of the state
	// Extensions of koine, as in a report to the hub: the ids of the acknowledged
	// messages, the expected version of the task, and an idempotency key.
	Letters []string `json:"letters"`
	Version int64    `json:"version"`
	Key     string   `json:"idempotencyKey"`
	// Parent and User are fixed at creation and may only be repeated.
	Parent *tasks.TaskID `json:"parentId"`
	User   *string       `json:"userId"`
}

// checkFixed returns an error if a change modifies a member that is fixed at creation.
func (h *Handler) checkFixed(ctx context.Context, who caller.Caller, id tasks.TaskID, c *change) error {
	if c.Parent == nil && c.User == nil {
		return nil
	}
	t, err := h.deps.Tasks.Get(ctx, who, id, tasks.ReadOptions{})
	if err != nil {
		return err
	}
	const late = "the member cannot change after the task is created"
	switch {
	case c.Parent != nil && *c.Parent != t.Parent:
		return kg.Errorf(kg.CodeInvalid, late).At("parentId")
	case c.User != nil && *c.User != t.User:
		return kg.Errorf(kg.CodeInvalid, late).At("userId")
	}
	return nil
}

func (c *change) toReport(id tasks.TaskID) (r tasks.Report, err error) {
	r.Letters, r.Version, r.Key = c.Letters, c.Version, c.Key
	if c.Version < 0 {
		return r, kg.Errorf(kg.CodeInvalid, "version must be at least 1").At("version")
	}
	if r.State, r.Failure, err = readState(c.State, c.Error); err != nil {
		return r, err
	}
	for i := range c.Artifacts {
		if isStatusArtifact(id, c.Artifacts[i].ID) {
			continue // the message of a status, sent back unchanged
		}
		a, err := c.Artifacts[i].toChunk(i)
		if err != nil {
			return r, kg.AsError(err).At("artifacts")
		}
		r.Artifacts = append(r.Artifacts, a)
	}
	if string(c.Metadata) != "null" {
		r.Metadata = c.Metadata
	}
	if len(c.Message) > 0 {
		parts, err := readParts(c.Message)
		if err != nil {
			return r, err
		}
		r.Message = &tasks.Message{Parts: parts}
	}
	return r, nil
}

// putTask handles PUT /tasks/:taskId. The handler reports; the creator may cancel by
// reporting failed with CANCELED.
func (h *Handler) putTask(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body change
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	key, err := rest.IdempotencyKey(r)
	if err != nil {
		return 0, nil, err
	}
	body.Key = cmp.Or(key, body.Key)
	prefer, read := rest.Preference(r), reading
	if prefer == rest.PreferMinimal {
		read = tasks.ReadOptions{}
	}
	done, err := h.applyChange(r.Context(), who, tasks.TaskID(r.PathValue("id")), &body, read)
	if err != nil {
		return 0, nil, err
	}
	rest.SetAnswerHeaders(w, prefer, done.Task.Version, done.Replayed)
	if prefer == rest.PreferMinimal {
		small := minimal{ID: done.Task.ID, State: states[done.Task.Status.State], Version: done.Task.Version}
		for _, a := range done.Artifacts {
			small.Artifacts = append(small.Artifacts, artifactSize(a))
		}
		return http.StatusOK, small, nil
	}
	out, err := writeTask(done.Task)
	return http.StatusOK, out, err
}

// minimal is the minimal answer to a change.
type minimal struct {
	ID        tasks.TaskID   `json:"id"`
	State     string         `json:"state"`
	Version   int64          `json:"version"`
	Artifacts []artifactSize `json:"artifacts,omitempty"`
}

type artifactSize struct {
	ID     string `json:"id"`
	Chunks int    `json:"chunks"`
}

func (h *Handler) applyChange(ctx context.Context, who caller.Caller, id tasks.TaskID, c *change, read tasks.ReadOptions) (*tasks.ReportReceipt, error) {
	report, err := c.toReport(id)
	if err != nil {
		return nil, err
	}
	if err := h.checkFixed(ctx, who, id, c); err != nil {
		return nil, err
	}
	if report.State == tasks.Canceled && len(report.Artifacts) == 0 && report.Metadata == nil && report.Message == nil && report.Letters == nil && report.Key == "" && report.Version == 0 {
		t, err := h.deps.Tasks.CancelFor(ctx, who, id, report.Failure)
		return &tasks.ReportReceipt{Task: t}, err
	}
	return h.deps.Tasks.SubmitReport(ctx, who, id, report, read)
}

// deleteTask handles DELETE /tasks/:taskId.
func (h *Handler) deleteTask(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	return http.StatusNoContent, nil, h.deps.Tasks.Delete(r.Context(), who, tasks.TaskID(r.PathValue("id")))
}
