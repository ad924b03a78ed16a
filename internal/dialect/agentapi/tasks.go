package agentapi

import (
	"context"
	"encoding/json"
	"net/http"

	"koine/internal/caller"
	"koine/internal/tasks"
	"koine/kg"
)

// reading is how much of a task is shown: there is no history here.
var reading = tasks.Reading{Artifacts: true}

// taskPage is what GET /tasks answers.
type taskPage struct {
	Tasks []*task `json:"tasks"`
	Next  string  `json:"nextPageToken,omitempty"`
	Total int     `json:"total"`
}

// listTasks is GET /tasks: those that the caller created or handles.
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
		if q.States = meant[state]; q.States == nil {
			return 0, nil, kg.Errorf(kg.CodeInvalid, "is pending, in_progress, completed or failed").At("state")
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

// getTask is GET /tasks/:taskId.
func (h *Handler) getTask(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	t, err := h.deps.Tasks.Get(r.Context(), who, tasks.TaskID(r.PathValue("id")), reading)
	if err != nil {
		return 0, nil, err
	}
	out, err := writeTask(t)
	return http.StatusOK, out, err
}

// change is the body of PUT /tasks/:taskId: what is not said stays. Artifacts are those
// of these ids, or places; others stay.
type change struct {
	State     string          `json:"state"`
	Error     *wireError      `json:"error"`
	Artifacts []artifact      `json:"artifacts"`
	Metadata  json.RawMessage `json:"metadata"`
	Message   []part          `json:"message"` // said with the state
	// These are said when the task is made, and may be said again as they are.
	Parent *tasks.TaskID `json:"parentId"`
	User   *string       `json:"userId"`
}

// settled refuses a change of what is said when the task is made.
func (h *Handler) settled(ctx context.Context, who caller.Caller, id tasks.TaskID, c *change) error {
	if c.Parent == nil && c.User == nil {
		return nil
	}
	t, err := h.deps.Tasks.Get(ctx, who, id, tasks.Reading{})
	if err != nil {
		return err
	}
	const late = "is said when the task is made"
	switch {
	case c.Parent != nil && *c.Parent != t.Parent:
		return kg.Errorf(kg.CodeInvalid, late).At("parentId")
	case c.User != nil && *c.User != t.User:
		return kg.Errorf(kg.CodeInvalid, late).At("userId")
	}
	return nil
}

func (c *change) read() (r tasks.Report, err error) {
	if r.State, r.Failure, err = readState(c.State, c.Error); err != nil {
		return r, err
	}
	for i := range c.Artifacts {
		a, err := c.Artifacts[i].read(i)
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

// putTask is PUT /tasks/:taskId. Its handler reports; its creator may cancel it, which
// is to say that it failed with CANCELED.
func (h *Handler) putTask(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body change
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	t, err := h.update(r.Context(), who, tasks.TaskID(r.PathValue("id")), &body)
	if err != nil {
		return 0, nil, err
	}
	out, err := writeTask(t)
	return http.StatusOK, out, err
}

func (h *Handler) update(ctx context.Context, who caller.Caller, id tasks.TaskID, c *change) (*tasks.Task, error) {
	report, err := c.read()
	if err != nil {
		return nil, err
	}
	if err := h.settled(ctx, who, id, c); err != nil {
		return nil, err
	}
	if report.State == tasks.Canceled && len(report.Artifacts) == 0 && report.Metadata == nil && report.Message == nil {
		return h.deps.Tasks.CancelFor(ctx, who, id, report.Failure)
	}
	return h.deps.Tasks.Report(ctx, who, id, report)
}

// deleteTask is DELETE /tasks/:taskId.
func (h *Handler) deleteTask(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	return http.StatusNoContent, nil, h.deps.Tasks.Delete(r.Context(), who, tasks.TaskID(r.PathValue("id")))
}
