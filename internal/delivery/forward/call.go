package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"koine/internal/delivery"
	"koine/internal/plainjson"
	"koine/internal/sse"
	"koine/internal/tasks"
)

// buildRequest returns the request of a call.
func (t *turn) buildRequest(ctx context.Context, op Op) (*http.Request, error) {
	c := &Call{Op: op, Task: t.link.task, Context: t.link.context, Hops: t.letter.Message.Hops + 1}
	if op == Send || op == SendStream {
		m := t.letter.Message
		m.ID = t.letterID() // unique, which the sender's need not be
		m.References = nil  // tasks of this server
		c.Message = &m
		if c.Context == "" {
			c.Context = contextAt(t.letter.Task)
		}
	}
	r, err := t.service.options.Wire.Request(t.setting.Dialect, c)
	if err != nil {
		return nil, err
	}
	return delivery.Request(ctx, &t.setting.Target, r.Method, r.Path, r.Header, r.Body)
}

// callOnce makes a call that has one answer.
func (t *turn) callOnce(op Op) (*Answer, error) {
	r, err := t.buildRequest(t.ctx, op)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	resp, err := t.service.sender.Client().Do(r)
	if err != nil {
		return nil, delivery.Sanitize(err)
	}
	defer resp.Body.Close()
	limit := t.service.options.MaxAnswerBytes
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	switch {
	case err != nil:
		return nil, delivery.Sanitize(err)
	case len(body) > limit:
		return nil, errTooLarge
	}
	return t.readAnswer(op, resp.StatusCode, body)
}

// readAnswer decodes an answer or an event.
func (t *turn) readAnswer(op Op, status int, data []byte) (*Answer, error) {
	a, err := t.service.options.Wire.Read(t.setting.Dialect, op, status, data)
	var refused *Refusal
	if err == nil || errors.As(err, &refused) || errors.Is(err, ErrTaskUnknown) || errors.Is(err, ErrUnsupported) || errors.Is(err, ErrNoAnswer) {
		return a, err
	}
	return nil, ErrMalformed
}

// streamOptions returns the options for the stream of a call.
func (t *turn) streamOptions(op Op) sse.ClientOptions {
	o := &t.service.options
	return sse.ClientOptions{
		Request: func(ctx context.Context, _ string) (*http.Request, error) {
			r, err := t.buildRequest(ctx, op)
			if err == nil {
				r.Header.Set("Accept", "text/event-stream")
				r.Header.Set("Accept-Encoding", "identity") // a compressor would hold events back
			}
			return r, err
		},
		HTTP: t.service.sender.Client(), Once: true, MaxEventBytes: o.MaxEventBytes, IdleTimeout: o.IdleTimeout,
	}
}

// applyAnswer reports an answer on the task.
func (t *turn) applyAnswer(a *Answer, interrupt context.CancelFunc) error {
	if !t.answered {
		t.answered = true
		t.noteAnswered(t.item)
	}
	if !t.service.options.MayForward(t.agent) {
		return errSuspended
	}
	if err := t.storeIDs(a, interrupt); err != nil {
		return err
	}
	direct := a.Task == ""
	state := a.State
	switch {
	case direct:
		state = tasks.Completed
	case state == tasks.Submitted:
		state = tasks.Working // the upstream has it
	}
	settles := state.Ended() || state.AwaitsCreator()
	chunks, err := t.chunksOf(a, state.Ended())
	if err != nil {
		return err
	}
	for len(chunks) > tasks.MaxReportChunks {
		if err := t.reportOnTask(tasks.Report{Artifacts: chunks[:tasks.MaxReportChunks], Letters: []string{}}); err != nil {
			return err
		}
		chunks = chunks[tasks.MaxReportChunks:]
	}
	if len(chunks) == 0 && (state == "" || !settles && t.isRepeated(a)) {
		return nil
	}
	t.item.polls = 0
	r := tasks.Report{Artifacts: chunks, State: state, Letters: []string{}}
	if settles {
		r.Letters = []string{t.letterID()}
	}
	if m := a.Message; m != nil && len(m.Parts) > 0 {
		r.Message = m
	}
	if err := t.reportOnTask(r); err != nil {
		return err
	}
	if settles {
		t.settled = true
		if state.Ended() {
			t.forgetTask(nil)
		}
	}
	return nil
}

// isRepeated reports whether an answer is a snapshot with the status of the one before.
func (t *turn) isRepeated(a *Answer) bool {
	if !a.Whole {
		t.item.said = ""
		return false
	}
	said := string(plainjson.MustEncode([]any{a.State, a.Message}))
	before := t.item.said
	t.item.said = said
	return said == before
}

// storeIDs stores the upstream's ids of the task, before anything of it is reported.
func (t *turn) storeIDs(a *Answer, interrupt context.CancelFunc) error {
	now := t.link
	now.away = time.Time{}
	if a.Task != "" {
		now.task, now.sent = a.Task, max(now.sent, t.item.Number)
	}
	if a.Context != "" {
		now.context = a.Context
	}
	if now == t.link {
		return nil
	}
	t.link = now
	if err := t.saveLink(t.upstream.ctx); err != nil {
		return err
	}
	if now.task != "" && t.nameTask(t.item, interrupt) {
		interrupt()
	}
	return nil
}
