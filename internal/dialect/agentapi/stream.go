package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"reflect"
	"strings"

	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/rest"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// The events of a stream.
const (
	eventUpdate   = "update"
	eventComplete = "complete"
	eventError    = "error"
)

// update is the data of an update event: a piece of an artifact, or the state of the
// task.
type update struct {
	Type     string          `json:"type"` // partial or status
	Content  json.RawMessage `json:"content,omitempty"`
	Artifact string          `json:"artifactId,omitempty"`
	PartType string          `json:"contentType,omitempty"` // type of the part; text if absent
	// Replaces means that the artifact starts again with this piece: earlier pieces are
	// void.
	Replaces bool         `json:"replaces,omitempty"`
	State    string       `json:"state,omitempty"`
	TaskID   tasks.TaskID `json:"taskId,omitempty"`
}

// lastEventID is the header with the position to resume a stream after.
const lastEventID = "Last-Event-ID"

// streamMessage sends a message and streams its task to the end. A repeated message with a
// Last-Event-ID resumes after that event.
func (h *Handler) streamMessage(w http.ResponseWriter, r *http.Request, who caller.Caller, s tasks.SendRequest) error {
	after, err := h.resumePosition(r)
	if err != nil {
		return err
	}
	if after != nil && s.Message.ID == "" {
		e := kg.Errorf(kg.CodeInvalid, "resuming a stream requires the messageId of the first request").At("messageId")
		e.Hint = "Set messageId, or follow the task: GET tasks/<id> with Accept: text/event-stream."
		return e
	}
	return h.serveEvents(w, r, who, func(ctx context.Context) (*opened, error) {
		read := reading
		if after != nil {
			read = tasks.ReadOptions{} // the client has the parts
		}
		first, again, st, err := h.sendAndFollow(ctx, who, s, read)
		if err != nil {
			return nil, err
		}
		if after == nil || !again {
			return h.taskEvents(first, again, st), nil
		}
		st.Close()
		return h.eventsBehind(ctx, who, first.ID, *after)
	})
}

// followTask handles GET /tasks/:taskId with Accept: text/event-stream: the state of
// the task and its events, or the events after a Last-Event-ID. If the task ended
// before that, the answer is No Content, so that the client does not reconnect.
func (h *Handler) followTask(w http.ResponseWriter, r *http.Request, who caller.Caller, id tasks.TaskID) (int, error) {
	after, err := h.resumePosition(r)
	if err != nil {
		return 0, err
	}
	if after != nil {
		st, err := h.deps.Tasks.FollowFrom(r.Context(), who, id, *after)
		if err != nil {
			return 0, err
		}
		over := st.AtEnd()
		st.Close()
		if over {
			return http.StatusNoContent, nil
		}
	}
	return 0, h.serveEvents(w, r, who, func(ctx context.Context) (*opened, error) {
		if after != nil {
			return h.eventsBehind(ctx, who, id, *after)
		}
		first, st, err := h.deps.Tasks.Follow(ctx, who, id, reading)
		if err != nil {
			return nil, err
		}
		return h.taskEvents(first, true, st), nil
	})
}

// resumePosition returns the position of the Last-Event-ID, nil if absent.
func (h *Handler) resumePosition(r *http.Request) (*kg.Position, error) {
	last := r.Header.Get(lastEventID)
	if last == "" {
		return nil, nil
	}
	after, err := h.deps.Positions.ParsePosition(last)
	if err != nil {
		return nil, kg.AsError(err).At(lastEventID)
	}
	return &after, nil
}

// opened has the events of an open stream of a task. The stream must be closed, also if nobody reads
// its events: a client may leave before its answer begins.
type opened struct {
	events iter.Seq2[sse.Event, error]
	stream *tasks.Stream
}

// serveEvents answers with events. It calls begin when the stream has a place, with the
// context of the stream.
func (h *Handler) serveEvents(w http.ResponseWriter, r *http.Request, who caller.Caller, begin func(context.Context) (*opened, error)) error {
	out, err := h.deps.Streams.Open(r.Context(), sse.StreamOptions{IDs: true, Last: func(reason error, _ string) (sse.Event, bool) {
		data, err := plainjson.Encode(wireFailure{h.endOf(who, reason)})
		return sse.Event{Name: eventError, Data: data}, err == nil
	}})
	if err != nil {
		return rest.StreamError(err)
	}
	defer out.Close()
	o, err := begin(out.Context())
	if err != nil {
		return err
	}
	defer o.stream.Close()
	err = out.Serve(w, r, o.events)
	h.reportEnd(r.Context(), err)
	var refused *sse.Refused
	if errors.As(err, &refused) {
		return rest.StreamError(err)
	}
	return nil // the stream has reported its end
}

// sendAndFollow sends the message and starts the stream before any event of the task. again
// reports that the message was sent before; first is the present task then, with the parts that
// read selects.
func (h *Handler) sendAndFollow(ctx context.Context, who caller.Caller, s tasks.SendRequest, read tasks.ReadOptions) (first *tasks.Task, again bool, st *tasks.Stream, err error) {
	if s.Task != "" {
		if first, st, err = h.deps.Tasks.Follow(ctx, who, s.Task, tasks.ReadOptions{}); err != nil {
			return nil, false, nil, err
		}
	}
	sent, err := h.sendToTask(ctx, who, s)
	if st != nil && (err != nil || sent.Replayed) {
		st.Close()
	}
	switch {
	case err != nil:
		return nil, false, nil, err
	case sent.Replayed:
		first, st, err = h.deps.Tasks.Follow(ctx, who, sent.Task.ID, read)
		return first, true, st, err
	case st != nil:
		return first, false, st, nil
	}
	st, err = h.deps.Tasks.FollowFrom(ctx, who, sent.Task.ID, h.deps.Tasks.PositionAfter(sent.Task))
	return sent.Task, false, st, err
}

// reportEnd reports the end of a stream or socket to the operator, unless the client caused it.
func (h *Handler) reportEnd(ctx context.Context, reason error) {
	var refused *sse.Refused
	if reason == nil || errors.Is(reason, sse.ErrClientGone) || errors.Is(reason, context.Canceled) || errors.As(reason, &refused) {
		return
	}
	code := kg.CodeOf(reason)
	e := sse.End{Transport: "agent-api", Reason: string(code)}
	switch {
	case errors.Is(reason, sse.ErrShutdown):
		e.Reason = "SERVER_SHUTDOWN"
	case errors.Is(reason, sse.ErrSlowConsumer):
		e.Reason = "SLOW_CONSUMER"
	case errors.Is(reason, sse.ErrEventTooLarge):
		e.Reason = "EVENT_TOO_LARGE"
	case code == kg.CodeAccessChanged:
		e.Reason, e.Cause = string(kg.CodeResync), string(code)
	}
	h.deps.Streams.ReportEnd(ctx, e)
}

// endOf converts the reason for which a stream ends early.
func (h *Handler) endOf(who caller.Caller, reason error) *wireError {
	switch {
	case errors.Is(reason, sse.ErrShutdown):
		return &wireError{Code: codeOverloaded, Message: "the server is shutting down"}
	case errors.Is(reason, sse.ErrSlowConsumer):
		return &wireError{Code: codeOverloaded, Message: "the client read too slowly"}
	}
	return h.errorOf(who, reason)
}

// taskEvents yields the state of the task and its events. With again set it also yields the
// existing artifacts, and the end if the task has ended. It closes the stream.
func (h *Handler) taskEvents(first *tasks.Task, again bool, st *tasks.Stream) *opened {
	return &opened{stream: st, events: func(yield func(sse.Event, error) bool) {
		t := &eventWriter{handler: h, yield: yield}
		id := first.ID
		t.writeState(first, again)
		first = nil // the stream lasts longer
		t.followTask(id, st)
	}}
}

// eventsBehind yields the events of a task after a position.
func (h *Handler) eventsBehind(ctx context.Context, who caller.Caller, id tasks.TaskID, after kg.Position) (*opened, error) {
	st, err := h.deps.Tasks.FollowFrom(ctx, who, id, after)
	if err != nil {
		return nil, err
	}
	return &opened{stream: st, events: func(yield func(sse.Event, error) bool) {
		(&eventWriter{handler: h, yield: yield, after: after}).followTask(id, st)
	}}, nil
}

// eventWriter writes the events of a task until the client leaves.
type eventWriter struct {
	handler *Handler
	yield   func(sse.Event, error) bool
	after   kg.Position // events up to here were delivered
	ended   bool
}

func (t *eventWriter) followTask(id tasks.TaskID, st *tasks.Stream) {
	if t.ended {
		return
	}
	for e, err := range st.Events() {
		if err != nil {
			t.endWithError(err)
			return
		}
		if t.writeTaskEvent(id, &e); t.ended {
			return
		}
	}
}

// writeState writes the state of a task; with its parts, and its end, if again is set.
func (t *eventWriter) writeState(first *tasks.Task, again bool) {
	behind := t.handler.deps.Tasks.PositionAfter(first)
	t.writeEvent(eventUpdate, update{Type: "status", State: states[first.Status.State], TaskID: first.ID}, behind)
	if !again {
		return
	}
	for i := range first.Artifacts {
		t.writeParts(first.Artifacts[i].ID, first.Artifacts[i].Parts, behind)
	}
	if m := first.Status.Message; m != nil && m.Role == tasks.Agent {
		t.writeParts(statusArtifactID(first.ID, m.ID), m.Parts, behind)
	}
	if first.Status.State.Ended() {
		t.writeStatus(first.ID, &first.Status, first.Failure, behind)
	}
}

// writeTaskEvent writes an event: each part is an event of its own with its position.
func (t *eventWriter) writeTaskEvent(id tasks.TaskID, e *tasks.Event) {
	switch {
	case e.Chunk != nil:
		t.writeChunk(e)
	case e.Status != nil:
		if m := e.Status.Message; m != nil {
			for i := range m.Parts {
				t.writePart(statusArtifactID(id, m.ID), &m.Parts[i], false, e.PartPosition(i))
			}
		}
		t.writeStatus(id, e.Status, e.Failure, e.Position)
	}
}

// writeChunk writes the new content of an artifact: only the addition if the chunk extends
// the previous content.
func (t *eventWriter) writeChunk(e *tasks.Event) {
	parts, replaced := e.Chunk.Parts, e.Chunk.Replaced
	grown, rest := grownBy(replaced, parts)
	for i := range parts {
		p := &parts[i]
		if grown && i < len(replaced) {
			if i < len(replaced)-1 || rest == "" {
				continue
			}
			p = &tasks.Part{Text: &rest, Metadata: p.Metadata}
		}
		t.writePart(e.Chunk.ID, p, len(replaced) > 0 && !grown && i == 0, e.PartPosition(i))
	}
}

// grownBy reports whether the parts extend the previous ones, and returns the addition
// to the text of the last previous part.
func grownBy(before, now []tasks.Part) (grown bool, rest string) {
	if len(before) == 0 || len(now) < len(before) {
		return false, ""
	}
	last := len(before) - 1
	for i := range last {
		if !reflect.DeepEqual(before[i], now[i]) {
			return false, ""
		}
	}
	if reflect.DeepEqual(before[last], now[last]) {
		return true, ""
	}
	was, is := before[last].Text, now[last].Text
	if was == nil || is == nil {
		return false, ""
	}
	return strings.HasPrefix(*is, *was), strings.TrimPrefix(*is, *was)
}

// writeParts writes all existing parts of an artifact.
func (t *eventWriter) writeParts(artifact string, parts []tasks.Part, at kg.Position) {
	for i := range parts {
		t.writePart(artifact, &parts[i], false, at)
	}
}

func (t *eventWriter) writePart(artifact string, p *tasks.Part, replaces bool, at kg.Position) {
	written, err := writePart(p)
	if err != nil {
		t.endWithError(err)
		return
	}
	u := update{Type: "partial", Content: written.Content, Artifact: artifact, Replaces: replaces}
	if written.Type != typeText {
		u.PartType = written.Type
	}
	t.writeEvent(eventUpdate, u, at)
}

func (t *eventWriter) writeStatus(id tasks.TaskID, s *tasks.Status, why *tasks.Failure, at kg.Position) {
	switch {
	case s.State == tasks.Completed:
		t.writeEvent(eventComplete, wireSent{TaskID: id}, at)
	case s.State.Ended():
		t.writeEvent(eventError, wireFailure{failureOf(&tasks.Task{ID: id, Status: *s, Failure: why})}, at)
	default:
		t.writeEvent(eventUpdate, update{Type: "status", State: states[s.State], TaskID: id}, at)
	}
}

// writeEvent writes an event, unless it was delivered before.
func (t *eventWriter) writeEvent(kind string, data any, at kg.Position) {
	if t.ended || t.after.Revision > 0 && at.Compare(t.after) <= 0 {
		return
	}
	raw, err := plainjson.Encode(data)
	t.ended = !t.yield(sse.Event{ID: t.handler.deps.Positions.FormatPosition(at), Name: kind, Data: raw}, err) || err != nil
}

func (t *eventWriter) endWithError(err error) {
	if !t.ended {
		t.ended = true
		t.yield(sse.Event{}, err)
	}
}
