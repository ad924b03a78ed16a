package hub

import (
	"context"
	"errors"
	"iter"
	"net/http"

	"koine/a2a/internal/v1"
	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/rest"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// The events of a mailbox.
const (
	eventLetter = "letter"
	eventError  = "error"
)

// mailboxOwner returns the caller acting as the agent of the path.
//
// Errors: CodeAgentNotFound; CodeSourceForbidden.
func mailboxOwner(r *http.Request) (caller.Caller, error) {
	who, agent := caller.From(r.Context()), agentOf(r)
	switch {
	case agent.Valid() != nil || agent == kg.System:
		return who, kg.Errorf(kg.CodeAgentNotFound, "the agent has no mailbox").At("id")
	case !who.Principal.MayActFor(agent):
		return who, kg.Errorf(kg.CodeSourceForbidden, "you may not act for %s: only the agent may use its mailbox", agent)
	}
	who.Actor = agent
	return who, nil
}

// serveMailbox handles GET /agents/<id>/mailbox: a stream of the waiting letters and then
// new ones. A letter stays until it is acknowledged, so a reopened mailbox delivers it
// again.
func (h *Handler) serveMailbox(w http.ResponseWriter, r *http.Request) (int, any, error) {
	who, err := mailboxOwner(r)
	if err == nil {
		err = who.Principal.CheckWrite() // a read-only caller cannot work on letters
	}
	if err != nil {
		return 0, nil, err
	}
	// An agent with an open mailbox counts as present.
	ctx, leave := h.open.addMailbox(caller.With(r.Context(), who), who.Actor)
	defer leave()
	// Check after add, so that a concurrent deregistration ends the mailbox.
	if _, err := h.deps.Agents.Get(ctx, who.Actor); err != nil {
		if kg.CodeOf(err) == kg.CodeAgentNotFound {
			err = errUnregistered()
		}
		return 0, nil, err
	}
	var end *wireError // once the server has ended the mailbox
	out, err := h.deps.Streams.Open(ctx, sse.StreamOptions{Last: func(reason error, _ string) (sse.Event, bool) {
		end = h.endOf(ctx, reason)
		return sse.Event{Name: eventError, Data: plainjson.MustEncode(wireFailure{end})}, true
	}})
	if err != nil {
		return 0, nil, rest.StreamError(err)
	}
	defer out.Close()
	box, err := h.deps.Tasks.Mail(out.Context(), who)
	if err != nil {
		return 0, nil, err
	}
	defer box.Close()
	err = out.Serve(w, r, letterEvents(box))
	if end != nil {
		h.deps.Streams.ReportEnd(ctx, sse.End{Transport: "mailbox", Reason: end.Code})
	}
	var refused *sse.Refused
	if errors.As(err, &refused) {
		return 0, nil, rest.StreamError(err)
	}
	return 0, nil, nil // the stream has reported its end
}

// errUnregistered is the error for an agent that cannot receive messages.
func errUnregistered() *kg.Error {
	e := kg.Errorf(kg.CodeAgentNotFound, "the agent is not registered").At("id")
	e.Hint = "Register the agent first: PUT /agents/<id>."
	return e
}

func letterEvents(box *tasks.Mailbox) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		for letter, err := range box.Letters() {
			if err != nil {
				yield(sse.Event{}, err)
				return
			}
			data, err := Letter(&letter)
			if !yield(sse.Event{Name: eventLetter, Data: data}, err) || err != nil {
				return
			}
		}
	}
}

// endOf converts the reason for which a mailbox ends.
func (h *Handler) endOf(ctx context.Context, reason error) *wireError {
	switch {
	case errors.Is(reason, sse.ErrShutdown):
		return &wireError{Code: codeShutdown, Message: "the server is shutting down"}
	case errors.Is(reason, sse.ErrSlowConsumer):
		return &wireError{Code: codeSlow, Message: "the client read too slowly: open the mailbox again"}
	case errors.Is(reason, context.DeadlineExceeded):
		return &wireError{Code: string(kg.CodeTimeout), Message: "the stream's time limit was reached"}
	}
	return h.errorOf(ctx, reason)
}

// acknowledgeLetter handles DELETE /agents/<id>/mailbox/<letter>. It succeeds for a letter
// that was acknowledged before.
func (h *Handler) acknowledgeLetter(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	who, err := mailboxOwner(r)
	if err != nil {
		return 0, nil, err
	}
	if err := who.Principal.CheckWrite(); err != nil {
		return 0, nil, err
	}
	letter := r.PathValue("letter")
	if id, _, ok := tasks.ParseLetterID(letter); ok {
		_, err := h.readHandledTask(r, who, id)
		if kg.CodeOf(err) == kg.CodeTaskNotFound {
			err = kg.Errorf(kg.CodeTaskNotFound, "the mailbox has no such letter").At("letter")
		}
		if err != nil {
			return 0, nil, err
		}
	}
	return http.StatusNoContent, nil, h.deps.Tasks.Acknowledge(r.Context(), who, letter)
}

// readHandledTask reads a task that the agent of the mailbox handles.
func (h *Handler) readHandledTask(r *http.Request, who caller.Caller, id tasks.TaskID) (*tasks.Task, error) {
	t, err := h.deps.Tasks.Get(r.Context(), who, id, tasks.ReadOptions{})
	if err == nil && t.Handler != who.Actor {
		err = kg.Errorf(kg.CodeTaskNotFound, "the mailbox has no such task").At("taskId")
	}
	return t, err
}

// reportAnswer is the minimal answer to a report.
type reportAnswer struct {
	Task      tasks.TaskID   `json:"taskId"`
	Version   int64          `json:"version"`
	Artifacts []reportedSize `json:"artifacts,omitempty"`
}

type reportedSize struct {
	ID     string `json:"artifactId"`
	Chunks int    `json:"chunks"`
}

// reportTask handles POST /agents/<id>/mailbox/<task>: a report of the handler. It answers
// with the task, without artifacts and messages unless the client prefers the full
// representation, so that the cost of an append does not grow with the artifact.
func (h *Handler) reportTask(w http.ResponseWriter, r *http.Request) (int, any, error) {
	who, err := mailboxOwner(r)
	if err != nil {
		return 0, nil, err
	}
	body, err := h.readBody(w, r)
	if err != nil {
		return 0, nil, err
	}
	rep, err := v1.ReadReport(body)
	if err != nil {
		return 0, nil, err
	}
	id := tasks.TaskID(r.PathValue("task"))
	if _, err := h.readHandledTask(r, who, id); err != nil {
		return 0, nil, err
	}
	if rep.Key, err = rest.IdempotencyKey(r); err != nil {
		return 0, nil, err
	}
	prefer, reading := rest.Preference(r), tasks.ReadOptions{}
	if prefer == rest.PreferRepresentation {
		reading = tasks.ReadAll
	}
	out, err := h.deps.Tasks.SubmitReport(r.Context(), who, id, *rep, reading)
	if err != nil {
		return 0, nil, err
	}
	rest.SetAnswerHeaders(w, prefer, out.Task.Version, out.Replayed)
	if prefer != rest.PreferMinimal {
		return http.StatusOK, v1.Codec{}.Task(out.Task), nil
	}
	small := reportAnswer{Task: id, Version: out.Task.Version}
	for _, a := range out.Artifacts {
		small.Artifacts = append(small.Artifacts, reportedSize(a))
	}
	return http.StatusOK, small, nil
}
