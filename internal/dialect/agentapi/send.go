package agentapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"koine/internal/caller"
	"koine/internal/tasks"
	"koine/kg"
)

// sending is the body of POST /agents/:agentId/messages. All members but message and
// stream are extensions of koine.
type sending struct {
	Message  []part          `json:"message"`
	Stream   bool            `json:"stream"`
	ID       string          `json:"messageId"` // a repeated message is sent once
	Task     tasks.TaskID    `json:"taskId"`    // task to continue
	Context  string          `json:"contextId"`
	Parent   tasks.TaskID    `json:"parentId"`
	User     string          `json:"userId"`
	Metadata json.RawMessage `json:"metadata"` // of a new task
}

func (s *sending) toRequest(to kg.AgentID) (out tasks.SendRequest, err error) {
	out = tasks.SendRequest{To: to, Task: s.Task, Context: s.Context, Parent: s.Parent, User: s.User, AlwaysTask: true}
	if string(s.Metadata) != "null" {
		out.Metadata = s.Metadata
	}
	out.Message.ID = s.ID
	out.Message.Parts, err = readParts(s.Message)
	return out, err
}

// wireSent is the answer to a message. The specification has taskId only.
type wireSent struct {
	TaskID    tasks.TaskID `json:"taskId"`
	MessageID string       `json:"messageId,omitempty"`
}

// sendMessage handles POST /agents/:agentId/messages.
func (h *Handler) sendMessage(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body sending
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	s, err := body.toRequest(kg.CanonicalAgent(r.PathValue("id")))
	if err != nil {
		return 0, nil, err
	}
	if body.Stream {
		return 0, nil, h.streamMessage(w, r, who, s)
	}
	sent, err := h.sendToTask(r.Context(), who, s)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusAccepted, sentOf(sent), nil
}

// sendToTask sends a message. It renames the field of errors in parts to message, its name in
// this protocol.
func (h *Handler) sendToTask(ctx context.Context, who caller.Caller, s tasks.SendRequest) (*tasks.SendResult, error) {
	sent, err := h.deps.Tasks.Send(ctx, who, s)
	if err == nil {
		return sent, nil
	}
	if place, ok := strings.CutPrefix(kg.AsError(err).Field, "parts"); ok {
		e := *kg.AsError(err)
		e.Field = "message" + place
		return nil, &e
	}
	return nil, err
}

func sentOf(sent *tasks.SendResult) wireSent {
	return wireSent{sent.Task.ID, messageID(sent.Task.ID, sent.Number)}
}

// messageID returns the id of a message for GET /messages. It is not the client's own
// id, which another client could choose too.
func messageID(task tasks.TaskID, n int) string { return string(task) + "." + strconv.Itoa(n) }

// message is the answer of GET /messages/:messageId.
type message struct {
	ID        string          `json:"id"`
	TaskID    tasks.TaskID    `json:"taskId"`
	AgentID   string          `json:"agentId"` // the handler of the task
	From      string          `json:"from"`
	CreatedAt string          `json:"createdAt"`
	Message   []part          `json:"message"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// getMessage handles GET /messages/:messageId.
func (h *Handler) getMessage(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	id := r.PathValue("id")
	task, number, _ := strings.Cut(id, ".")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0, nil, errNoMessage()
	}
	t, m, err := h.deps.Tasks.Message(r.Context(), who, tasks.TaskID(task), n)
	if kg.CodeOf(err) == kg.CodeTaskNotFound {
		err = errNoMessage()
	}
	if err != nil {
		return 0, nil, err
	}
	parts, err := writeParts(m.Parts)
	return http.StatusOK, message{
		ID: messageID(t.ID, n), TaskID: t.ID, AgentID: bareID(t.Handler), From: bareID(m.Author), CreatedAt: formatTime(m.Time), Message: parts, Metadata: m.Metadata,
	}, err
}

func errNoMessage() *kg.Error { return kg.Errorf(kg.CodeNotFound, "the message does not exist") }
