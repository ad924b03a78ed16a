package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/internal/sse"
	"koine/kg"
)

// step is one result of a running operation.
type step struct {
	result operation.Result
	// failed reports that the errors of the result ended the operation.
	failed bool
}

// feed is a running operation: a subscription, or the one result of a query or
// mutation. It must be closed.
type feed struct {
	handler       *Handler
	transport     string // for the operator (sse.End)
	caller        caller.Caller
	result        operation.Result
	subscription  Subscription       // nil for a query or mutation
	stop          context.CancelFunc // cancels the subscription's context
	releaseStream func()             // releases a slot among the streams; nil for none
	// sendProgress sends the result of UpToDate while allSteps waits for the next one. A
	// goroutine of its own calls it. nil sends none.
	sendProgress func(*operation.Result)

	// mu is held while a result is sent, so that they are sent one at a time and in the order
	// of their positions. It guards the fields below.
	mu       sync.Mutex
	sentTo   kg.Position // up to which results were sent
	sentAt   time.Time
	progress *time.Timer // calls reportProgress; nil when the operation has ended
}

// beginFeed executes a query or mutation, or establishes a subscription. It
// returns a result instead of a feed if the operation was refused before
// execution.
func (h *Handler) beginFeed(ctx context.Context, req operation.Request, kind ast.Operation) (*feed, *operation.Result) {
	if kind != ast.Subscription {
		result := h.executeOperation(ctx, req)
		if result.Data == nil && len(result.Errors) > 0 {
			return nil, &result
		}
		return &feed{handler: h, result: result}, nil
	}
	ctx, stop := context.WithCancel(ctx)
	s, err := h.subscribeEngine(ctx, req)
	if err == nil {
		return &feed{handler: h, caller: caller.From(ctx), subscription: s, stop: stop}, nil
	}
	stop()
	if invalid := (*operation.InvalidError)(nil); errors.As(err, &invalid) {
		return nil, &operation.Result{Errors: invalid.Errors}
	}
	return nil, &operation.Result{Errors: h.engine.Present(err)}
}

// beginShared begins an operation on a connection shared with others, where a
// subscription takes a slot among the streams of its own.
func (h *Handler) beginShared(ctx context.Context, req operation.Request, kind ast.Operation) (*feed, *operation.Result) {
	if kind != ast.Subscription {
		return h.beginFeed(ctx, req, kind)
	}
	leave, err := h.streams.Acquire(ctx)
	if err != nil {
		return nil, &operation.Result{Errors: h.presentRefused(err)}
	}
	f, refused := h.beginFeed(ctx, req, kind)
	if f == nil {
		leave()
		return nil, refused
	}
	f.releaseStream = leave
	return f, nil
}

func (h *Handler) subscribeEngine(ctx context.Context, req operation.Request) (_ Subscription, err error) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			err = panicError(p)
		}
		outcome := "ok"
		if err != nil {
			outcome = "failed"
		}
		h.options.Observe(string(ast.Subscription), outcome, time.Since(began))
	}()
	s, err := h.engine.Subscribe(ctx, req)
	if err != nil {
		return nil, err
	}
	told, ok := s.(Subscription)
	if !ok {
		s.Close()
		return nil, fmt.Errorf("a %T has no position", s)
	}
	return told, nil
}

// operationKind calls the engine's Kind. It returns "" after a panic, which executing
// the request then reports.
func (h *Handler) operationKind(req *operation.Request) (kind ast.Operation) {
	defer func() {
		if recover() != nil {
			kind = ""
		}
	}()
	return h.engine.Kind(req)
}

// executeOperation calls the engine's Execute. A panic becomes an internal error.
func (h *Handler) executeOperation(ctx context.Context, req operation.Request) (result operation.Result) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			result = operation.Result{Errors: h.engine.Present(panicError(p))}
		}
		h.options.Observe(cmp.Or(string(result.Kind), "invalid"), outcomeOf(&result), time.Since(began))
	}()
	return h.engine.Execute(ctx, req)
}

func outcomeOf(result *operation.Result) string {
	switch {
	case len(result.Errors) == 0:
		return "ok"
	case result.Data == nil:
		return "failed"
	}
	return "partial"
}

func panicError(value any) error { return fmt.Errorf("panic: %v\n%s", value, debug.Stack()) }

// close releases the resources of the operation. A nil feed has none.
func (f *feed) close() {
	if f == nil {
		return
	}
	if f.subscription != nil {
		f.stop()
		f.subscription.Close()
	}
	if f.releaseStream != nil {
		f.releaseStream()
	}
}

// sentPosition is the position up to which all results of a subscription were
// sent, the zero Position if unknown. A result counts when the next one is
// requested, so a result being sent does not count yet.
func (f *feed) sentPosition() kg.Position {
	if f == nil || f.subscription == nil {
		return kg.Position{}
	}
	return f.subscription.Position()
}

// rootField returns the name of a subscription's field.
func (f *feed) rootField() string {
	if f == nil || f.subscription == nil {
		return ""
	}
	return f.subscription.Field()
}

// allSteps yields the results of the operation. They end with an error only when
// ctx ends; otherwise the operation is complete.
func (f *feed) allSteps(ctx context.Context) iter.Seq2[step, error] {
	return func(yield func(step, error) bool) {
		if f.subscription == nil {
			yield(step{result: f.result}, nil)
			return
		}
		for result, err := range guardPanics(f.followResults) {
			if err != nil {
				yield(f.endStep(ctx, err))
				return
			}
			if !yield(step{result: result}, nil) {
				return
			}
		}
	}
}

// followResults yields the results of a subscription. While nothing matches, the
// position scanned to is regularly sent, so that a client that reconnects much later
// need not start over.
func (f *feed) followResults(yield func(operation.Result, error) bool) {
	defer f.endProgress()
	f.startProgress()
	for e, err := range f.subscription.Events() {
		if !f.yieldResult(&e, err, yield) {
			return
		}
	}
}

// yieldResult yields the result of an event and reports whether to continue.
func (f *feed) yieldResult(e *operation.Event, err error, yield func(operation.Result, error) bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !yield(e.Result, err) || err != nil {
		f.stopProgress()
		return false
	}
	f.sentTo, f.sentAt = e.Position, time.Now()
	return true
}

// startProgress begins to send progress.
func (f *feed) startProgress() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sentTo, f.sentAt = f.sentPosition(), time.Now()
	if f.sendProgress != nil {
		f.progress = time.AfterFunc(f.handler.options.UpToDateEvery, f.reportProgress)
	}
}

// endProgress waits for progress that is being sent. None is sent afterwards.
func (f *feed) endProgress() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopProgress()
}

// stopProgress must be called with f.mu held.
func (f *feed) stopProgress() {
	if f.progress != nil {
		f.progress.Stop()
		f.progress = nil
	}
}

// reportProgress sends the position scanned to if nothing was sent for the interval. It has the
// goroutine of a timer, where a panic would end the process: it ends the progress only.
func (f *feed) reportProgress() {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			f.handler.engine.Present(panicError(p)) // it logs
			f.stopProgress()
		}
	}()
	if f.progress == nil {
		return
	}
	every := f.handler.options.UpToDateEvery
	wait := every - time.Since(f.sentAt)
	if wait <= 0 {
		wait = every
		if at := f.sentPosition(); at.Compare(f.sentTo) > 0 {
			// The position goes back when something that may match has come.
			if e := f.subscription.UpToDate(); e.Position.Compare(f.sentTo) > 0 {
				f.sentTo, f.sentAt = e.Position, time.Now()
				f.sendProgress(&e.Result)
			}
		}
	}
	f.progress.Reset(wait)
}

// endStep returns the last step of a subscription. Resync is an ordinary result.
// Any other end is an error with the position from which a client may resume.
// The caller holds f.mu, or has ended the progress.
func (f *feed) endStep(ctx context.Context, err error) (step, error) {
	if ctx.Err() != nil {
		return step{}, err
	}
	told := f.sentTo
	if at := f.sentPosition(); at.Compare(told) > 0 {
		told = at
	}
	known := kg.AsError(err)
	end := sse.End{Transport: f.transport, Reason: string(kg.CodeResync), Method: f.subscription.Field(), Position: f.handler.positionToken(told)}
	var last step
	switch known.Code {
	case kg.CodeAccessChanged:
		end.Cause = string(known.Code)
		fallthrough
	case kg.CodeResync:
		last.result = f.subscription.Resync(known)
	default:
		errs := f.handler.engine.Present(err)
		end.Reason, _ = errs[0].Extensions["code"].(string)
		last = step{result: operation.Result{Errors: errs, Position: told}, failed: true}
	}
	f.handler.streams.ReportEnd(caller.With(ctx, f.caller), end)
	return last, nil
}

// guardPanics yields a panic of the sequence as its last error: in a goroutine it
// would end the process.
func guardPanics[T any](seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		wanted := true
		defer func() {
			if p := recover(); p != nil && wanted {
				var none T
				yield(none, panicError(p))
			}
		}()
		seq(func(value T, err error) bool {
			wanted = yield(value, err)
			return wanted
		})
	}
}
