package a2a

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"strconv"
	"time"

	"koine/a2a/internal/base"
	"koine/internal/caller"
	"koine/internal/tasks"
	"koine/kg"
)

// A subscription sent to koine as a streaming message is a task that lasts as long as
// its stream. Each event is an artifact of the stream that is not stored: the log has
// only the task, its status and its end. It counts as an open stream, and not among the
// tasks that koine runs at a time.

// maxSnapshotEvents limits the events that answer a subscription in a message that is not
// streamed.
const maxSnapshotEvents = 25

// closingTime limits how long it takes to record the end of a task whose client has
// left.
const closingTime = 5 * time.Second

// subscriptionIn returns the subscription in a message to koine; nil for any other message.
func (h *Handler) subscriptionIn(m *tasks.Message) (self, *order) {
	s, ok := h.tasks.Worker(h.agent).(self)
	if !ok || len(m.Parts) != 1 {
		return s, nil
	}
	o, err := s.orderOf(&m.Parts[0])
	if err != nil || o.method != subscribeMethod {
		return s, nil
	}
	return s, o
}

// following is a task that follows a subscription.
type following struct {
	handler *Handler
	version version
	by      caller.Caller
	id      tasks.TaskID
	context string
	task    *tasks.Task   // until it is sent
	changes *tasks.Stream // events of the task, to see its end
	feed    *feed
	cancel  context.CancelFunc // ends the feed
	// end delivers once the last status of the task, or the error that hides it.
	end  chan ending
	sent int    // number of events sent
	last string // position after the last of them
	over bool   // the end was sent
}

type ending struct {
	status tasks.Event
	err    error
}

// followSubscription creates the task of a subscription and establishes its stream. An invalid
// subscription fails the task, like every order to koine.
func (s self) followSubscription(ctx context.Context, h *Handler, v version, by caller.Caller, sending tasks.SendRequest, o *order) (*feed, error) {
	sending.Attended = true
	sent, err := h.tasks.Send(ctx, by, sending)
	if err != nil {
		return nil, err
	}
	changes, err := h.tasks.FollowFrom(ctx, by, sent.Task.ID, h.tasks.PositionAfter(sent.Task))
	if err != nil {
		return nil, err
	}
	if sent.Replayed { // the first stream has the events, this one follows the task
		return h.taskFeed(v, sent.Task, changes), nil
	}
	f := &following{handler: h, version: v, by: by, id: sent.Task.ID, context: sent.Task.Context, task: sent.Task, changes: changes, end: make(chan ending, 1)}
	if err := f.startFeed(ctx, s, o); err != nil {
		failed := domainError(err)
		r := tasks.Report{State: tasks.Failed, Failure: tasks.FailureFor(failed)}
		r.Message = &tasks.Message{Parts: []tasks.Part{tasks.TextPart(r.Failure.Message)}}
		if err := f.reportTask(ctx, r); err != nil {
			changes.Close()
			return nil, err
		}
		return h.taskFeed(v, sent.Task, changes), nil
	}
	if err := f.reportTask(ctx, tasks.Report{State: tasks.Working}); err != nil {
		f.closeAll()
		return nil, err
	}
	f.task.Status.State = tasks.Working
	return &feed{results: f.yieldResults(ctx), position: func() string { return "" }, close: f.closeAll}, nil
}

// startFeed establishes the feed, and starts to wait for the end of the task.
func (f *following) startFeed(ctx context.Context, s self, o *order) (err error) {
	o.ofTask(f.id)
	ctx, cancel := context.WithCancel(ctx)
	if f.feed, err = s.openSubscription(ctx, f.by, o.params); err != nil {
		cancel()
		return err
	}
	f.cancel = cancel
	go func() {
		defer cancel()
		for e, err := range f.changes.Events() {
			if err != nil || e.Last() {
				f.end <- ending{e, err}
				return
			}
		}
		f.end <- ending{err: kg.Errorf(kg.CodeClosed, "the stream of the task is closed")}
	}()
	return nil
}

// openSubscription establishes the feed of a knowledge/subscribe.
func (s self) openSubscription(ctx context.Context, by caller.Caller, params map[string]json.RawMessage) (*feed, error) {
	raw, err := appendJSON(nil, params)
	if err != nil {
		return nil, err
	}
	o, err := s.h.subscribeKnowledge(ctx, &call{caller: by, method: subscribeMethod, params: raw, header: http.Header{}})
	if err != nil {
		return nil, err
	}
	return o.establish(ctx)
}

// yieldResults yields the task, the events, and the status that ends the task.
func (f *following) yieldResults(ctx context.Context) iter.Seq2[result, error] {
	return func(yield func(result, error) bool) {
		v, about := f.version, base.About{Task: f.id, Context: f.context}
		first := v.Result(v.Task(f.task))
		f.task = nil // the stream lasts longer
		if !yield(result{first, f.feed.start}, nil) {
			return
		}
		var failed error
		for out, err := range f.feed.results {
			if err != nil {
				failed = err
				break
			}
			if out.position != "" {
				f.last = out.position
			}
			if out.value == nil {
				continue
			}
			f.sent++
			raw, err := appendJSON(nil, out.value)
			if err != nil {
				yield(result{}, err)
				return
			}
			c := &tasks.Chunk{Artifact: tasks.Artifact{ID: "event-" + strconv.Itoa(f.sent), Name: subscribeMethod, Parts: []tasks.Part{tasks.DataPart(raw)}, Complete: true}}
			if !yield(result{v.Result(v.Chunk(c, about)), out.position}, nil) {
				return
			}
		}
		if ctx.Err() != nil { // the stream reports its own end
			yield(result{}, failed)
			return
		}
		if err := f.endTask(ctx, failed); err != nil {
			yield(result{}, err)
			return
		}
		end := <-f.end
		if f.over = end.err == nil; !f.over {
			yield(result{}, end.err)
			return
		}
		yield(result{v.Result(v.Status(&end.status, about)), f.handler.store.FormatPosition(end.status.Position)}, nil)
	}
}

// endTask ends the task after the subscription ended by itself, unless the task has
// already ended.
func (f *following) endTask(ctx context.Context, failed error) error {
	r := tasks.Report{State: tasks.Completed, Message: f.lastMessage("")}
	if failed != nil {
		r.State, r.Failure = tasks.Failed, tasks.FailureFor(domainError(failed))
		r.Message = f.lastMessage(r.Failure.Message)
	}
	return f.reportTask(ctx, r)
}

// reportTask reports on the task. It ignores an ended or deleted task.
func (f *following) reportTask(ctx context.Context, r tasks.Report) error {
	_, err := f.handler.tasks.Report(ctx, caller.Caller{Principal: kg.SystemPrincipal()}, f.id, r)
	if code := kg.CodeOf(err); code == kg.CodeTaskEnded || code == kg.CodeTaskNotFound {
		return nil
	}
	return err
}

// lastMessage returns the last message: the reason, the number of events, and the position to
// resume from.
func (f *following) lastMessage(why string) *tasks.Message {
	text := fmt.Sprintf("%s sent.", countOf(f.sent, "event"))
	if f.last != "" {
		text += " Resume with resume: " + strconv.Quote(f.last)
	}
	if why != "" {
		text = why + ". " + text
	}
	return &tasks.Message{Parts: []tasks.Part{tasks.TextPart(text)}}
}

// closeAll ends the subscription, and cancels the task if it has not ended.
func (f *following) closeAll() {
	f.cancel()
	f.feed.close()
	if !f.over {
		ctx, cancel := context.WithTimeout(context.Background(), closingTime)
		defer cancel()
		if err := f.reportTask(ctx, tasks.Report{State: tasks.Canceled, Message: f.lastMessage("The stream was closed")}); err != nil {
			f.handler.log.Error("cannot cancel the task of a subscription", "task", f.id, "error", err)
		}
	}
	f.changes.Close()
}

// snapshotAnswer answers a subscription in a message that is not streamed.
type snapshotAnswer struct {
	Events []any `json:"events"`
	// Position is the position to start a stream from; absent if the snapshot has more
	// events.
	Position string `json:"position,omitempty"`
	More     bool   `json:"more,omitempty"`
}

// answerSnapshot answers a subscription with the first events of its snapshot; one without a
// snapshot with its start position.
func (s self) answerSnapshot(ctx context.Context, by caller.Caller, params map[string]json.RawMessage) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, s.h.options.MaxWait)
	defer cancel()
	out := snapshotAnswer{Events: []any{}}
	snapshot := maps.Clone(params)
	if _, present := params["metadata"]; !present {
		snapshot["metadata"] = json.RawMessage(`{"koine":{"snapshot":true}}`)
	}
	f, err := s.openSubscription(ctx, by, snapshot)
	if kg.CodeOf(err) == kg.CodeInvalid { // it has a start of its own, or no snapshot
		if f, err = s.openSubscription(ctx, by, params); err == nil {
			defer f.close()
			out.Position = f.start
			return out, nil
		}
	}
	if err != nil {
		return nil, err
	}
	defer f.close()
	for one, err := range f.results {
		event, isEvent := one.value.(wireEvent)
		switch {
		case err != nil:
			return nil, err
		case isEvent && !event.ChangeMetadata.Snapshot: // it has no snapshot
			return out, nil
		case isEvent:
			out.Events = append(out.Events, event)
		}
		if out.Position = one.position; out.Position != "" {
			return out, nil
		}
		if out.More = len(out.Events) == maxSnapshotEvents; out.More {
			return out, nil
		}
	}
	return out, nil
}

// summarizeSnapshot summarizes the answer to a subscription.
func summarizeSnapshot(raw []byte) summary {
	var r struct {
		Events []json.RawMessage
		More   bool
	}
	if json.Unmarshal(raw, &r) != nil {
		return summary{}
	}
	text := fmt.Sprintf("%s in the present state.", countOf(len(r.Events), "event"))
	if r.More {
		text = fmt.Sprintf("The first %s of the present state.", countOf(len(r.Events), "event"))
	}
	return summary{text: text + " To receive changes, send the subscription as a streaming message (SendStreamingMessage, in 0.3 message/stream), or call knowledge/subscribe."}
}
