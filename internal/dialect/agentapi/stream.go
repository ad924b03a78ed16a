package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"

	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/rest"
	"koine/internal/sse"
	"koine/internal/tasks"
)

// The events of a stream.
const (
	eventUpdate   = "update"
	eventComplete = "complete"
	eventError    = "error"
)

// update is the data of an update: a piece of what is made, or how far the task is.
type update struct {
	Type     string          `json:"type"` // partial or status
	Content  json.RawMessage `json:"content,omitempty"`
	Artifact string          `json:"artifactId,omitempty"`
	PartType string          `json:"contentType,omitempty"` // of the part that it is; text if absent
	State    string          `json:"state,omitempty"`
	TaskID   tasks.TaskID    `json:"taskId,omitempty"`
	Message  []part          `json:"message,omitempty"`
}

// stream sends a message and tells what becomes of it, to the end. Events have no ids:
// there is nothing to resume, and who sends the message again is told all.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, who caller.Caller, s tasks.Sending) error {
	out, err := h.deps.Streams.Open(r.Context(), sse.StreamOptions{Last: func(reason error, _ string) (sse.Event, bool) {
		data, err := plainjson.Encode(wireFailure{h.endOf(who, reason)})
		return sse.Event{Name: eventError, Data: data}, err == nil
	}})
	if err != nil {
		return rest.NoStream(err)
	}
	defer out.Close()
	first, again, st, err := h.begin(out.Context(), who, s)
	if err != nil {
		return err
	}
	defer st.Close()
	err = out.Serve(w, r, h.events(first, again, st))
	var refused *sse.Refused
	if errors.As(err, &refused) {
		return rest.NoStream(err)
	}
	return nil // what ended it was said in it
}

// begin sends the message; the stream begins before anything can come of it. again tells
// that the message was sent before.
func (h *Handler) begin(ctx context.Context, who caller.Caller, s tasks.Sending) (first *tasks.Task, again bool, st *tasks.Stream, err error) {
	if s.Task != "" {
		if st, err = h.deps.Tasks.Follow(ctx, who, s.Task); err != nil {
			return nil, false, nil, err
		}
		sent, err := h.send(ctx, who, s)
		if err != nil {
			st.Close()
			return nil, false, nil, err
		}
		return st.Task, sent.Replayed, st, nil
	}
	sent, err := h.send(ctx, who, s)
	if err != nil {
		return nil, false, nil, err
	}
	st, err = h.deps.Tasks.FollowFrom(ctx, who, sent.Task.ID, h.deps.Tasks.Behind(sent.Task))
	return sent.Task, sent.Replayed, st, err
}

// endOf is why a stream ends that is not at its end.
func (h *Handler) endOf(who caller.Caller, reason error) *wireError {
	switch {
	case errors.Is(reason, sse.ErrShutdown):
		return &wireError{Code: codeOverloaded, Message: "the server is shutting down"}
	case errors.Is(reason, sse.ErrSlowConsumer):
		return &wireError{Code: codeOverloaded, Message: "the client did not take the events in time"}
	}
	return h.errorOf(who, reason)
}

// events is how the task is, and what becomes of it. A message that was sent again is
// answered with what was made already, and with the end where that has come.
func (h *Handler) events(first *tasks.Task, again bool, st *tasks.Stream) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		event, err := eventOf(eventUpdate, update{Type: "status", State: states[first.Status.State], TaskID: first.ID})
		if !yield(event, err) || err != nil {
			return
		}
		tell := func(list []sse.Event, err error) bool {
			if err != nil {
				yield(sse.Event{}, err)
				return false
			}
			for _, event := range list {
				if !yield(event, nil) {
					return false
				}
			}
			return true
		}
		if again && !tell(sofar(first)) {
			return
		}
		for e, err := range st.Events() {
			if err != nil {
				yield(sse.Event{}, err)
				return
			}
			if !tell(eventsOf(first.ID, &e)) {
				return
			}
		}
	}
}

// sofar is what a stream would have said of a task as it is.
func sofar(t *tasks.Task) (out []sse.Event, err error) {
	var happened []tasks.Event
	for i := range t.Artifacts {
		happened = append(happened, tasks.Event{Chunk: &tasks.Chunk{Artifact: t.Artifacts[i]}})
	}
	if t.Status.State.Ended() {
		happened = append(happened, tasks.Event{Status: &t.Status, Failure: t.Failure})
	}
	for i := range happened {
		list, err := eventsOf(t.ID, &happened[i])
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// eventsOf is what a stream says of something that happened.
func eventsOf(id tasks.TaskID, e *tasks.Event) (out []sse.Event, err error) {
	say := func(kind string, data any) {
		var event sse.Event
		if event, err = eventOf(kind, data); err == nil {
			out = append(out, event)
		}
	}
	switch {
	case e.Chunk != nil:
		for i := range e.Chunk.Parts {
			p, err := writePart(&e.Chunk.Parts[i])
			if err != nil {
				return nil, err
			}
			u := update{Type: "partial", Content: p.Content, Artifact: e.Chunk.ID}
			if p.Type != typeText {
				u.PartType = p.Type
			}
			say(eventUpdate, u)
		}
	case e.Status != nil && e.Status.State == tasks.Completed:
		say(eventComplete, wireSent{TaskID: id})
	case e.Status != nil && e.Status.State.Ended():
		say(eventError, wireFailure{failureOf(&tasks.Task{ID: id, Status: *e.Status, Failure: e.Failure})})
	case e.Status != nil:
		u := update{Type: "status", State: states[e.Status.State], TaskID: id}
		if m := e.Status.Message; m != nil {
			if u.Message, err = writeParts(m.Parts); err != nil {
				return nil, err
			}
		}
		say(eventUpdate, u)
	}
	return out, err
}

func eventOf(kind string, data any) (sse.Event, error) {
	raw, err := plainjson.Encode(data)
	return sse.Event{Name: kind, Data: raw}, err
}
