package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/operation"
	"koine/kg"
)

// step is what an operation that is under way says next.
type step struct {
	result operation.Result
	// failed says that the errors of the result ended the operation, and that
	// there is no more of it.
	failed bool
}

// feed is an operation that has begun: a subscription, or the one result of a
// query or mutation. It must be closed.
type feed struct {
	handler      *Handler
	result       operation.Result
	subscription Subscription       // nil for a query or mutation
	stop         context.CancelFunc // ends the subscription's context
	leave        func()             // gives a place among the streams back; nil if it has none
}

// begin executes a query or mutation, or establishes a subscription. If that was
// refused, and nothing of it was done, there is no feed but a result that says so.
func (h *Handler) begin(ctx context.Context, req operation.Request, kind ast.Operation) (*feed, *operation.Result) {
	if kind != ast.Subscription {
		result := h.execute(ctx, req)
		if result.Data == nil && len(result.Errors) > 0 {
			return nil, &result
		}
		return &feed{handler: h, result: result}, nil
	}
	ctx, stop := context.WithCancel(ctx)
	s, err := h.subscribe(ctx, req)
	if err == nil {
		return &feed{handler: h, subscription: s, stop: stop}, nil
	}
	stop()
	if invalid := (*operation.InvalidError)(nil); errors.As(err, &invalid) {
		return nil, &operation.Result{Errors: invalid.Errors}
	}
	return nil, &operation.Result{Errors: h.engine.Present(err)}
}

// beginShared begins an operation on a connection that it shares with others: there a
// subscription has a place among the streams of its own.
func (h *Handler) beginShared(ctx context.Context, req operation.Request, kind ast.Operation) (*feed, *operation.Result) {
	if kind != ast.Subscription {
		return h.begin(ctx, req, kind)
	}
	leave, err := h.streams.Acquire(ctx)
	if err != nil {
		return nil, &operation.Result{Errors: h.presentRefused(err)}
	}
	f, refused := h.begin(ctx, req, kind)
	if f == nil {
		leave()
		return nil, refused
	}
	f.leave = leave
	return f, nil
}

func (h *Handler) subscribe(ctx context.Context, req operation.Request) (_ Subscription, err error) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
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
		return nil, fmt.Errorf("a %T does not tell where it is", s)
	}
	return told, nil
}

// kind is the engine's Kind; a request that makes it panic has none, and the
// error is that of executing it.
func (h *Handler) kind(req *operation.Request) (kind ast.Operation) {
	defer func() {
		if recover() != nil {
			kind = ""
		}
	}()
	return h.engine.Kind(req)
}

// execute is the engine's Execute; a panic is an internal error.
func (h *Handler) execute(ctx context.Context, req operation.Request) (result operation.Result) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			result = operation.Result{Errors: h.engine.Present(panicked(p))}
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

func panicked(value any) error { return fmt.Errorf("panic: %v\n%s", value, debug.Stack()) }

// close frees what the operation holds.
func (f *feed) close() {
	if f.subscription != nil {
		f.stop()
		f.subscription.Close()
	}
	if f.leave != nil {
		f.leave()
	}
}

// position is up to where all results of a subscription have been sent; the zero
// Position when there is no saying. One counts once the next is asked for, so
// one that is on its way does not yet.
func (f *feed) position() kg.Position {
	if f == nil || f.subscription == nil {
		return kg.Position{}
	}
	return f.subscription.Position()
}

// steps are all that the operation says. They end with an error only when ctx
// ends, whose owner says why; else the operation is complete.
func (f *feed) steps(ctx context.Context) iter.Seq2[step, error] {
	return func(yield func(step, error) bool) {
		if f.subscription == nil {
			yield(step{result: f.result}, nil)
			return
		}
		told := f.position()
		for result, err := range guarded(f.follow(ctx)) {
			if err != nil {
				yield(f.end(ctx, err, told))
				return
			}
			if !yield(step{result: result}, nil) {
				return
			}
			told = result.Position
		}
	}
}

// follow is the results of a subscription. While nothing matches it tells now
// and then the position scanned to, so that a client that comes back after a
// long time need not start anew.
func (f *feed) follow(ctx context.Context) iter.Seq2[operation.Result, error] {
	return func(yield func(operation.Result, error) bool) {
		pulling, stop := context.WithCancel(ctx)
		events, wait := pull(pulling, f.subscription.Events())
		defer wait()
		defer stop()
		defer f.stop() // before the wait: the log may have nothing to say
		every := f.handler.options.UpToDateEvery
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		told := f.position()
		for {
			select {
			case e, ok := <-events:
				if !ok || !yield(e.event.Result, e.err) || e.err != nil {
					return
				}
				told = e.event.Position
				close(e.sent)
				ticker.Reset(every)
			case <-ticker.C:
				if at := f.position(); at.Compare(told) > 0 {
					told = at
					if !yield(f.subscription.UpToDate().Result, nil) {
						return
					}
				}
			}
		}
	}
}

// end tells why a subscription cannot go on. Resync is a result like others; any
// other end is an error, after which a client may come back behind what it was
// told last.
func (f *feed) end(ctx context.Context, err error, told kg.Position) (step, error) {
	if ctx.Err() != nil {
		return step{}, err
	}
	if known := kg.AsError(err); known.Code == kg.CodeResync || known.Code == kg.CodeAccessChanged {
		return step{result: f.subscription.Resync(known)}, nil
	}
	if at := f.position(); at.Compare(told) > 0 {
		told = at
	}
	return step{result: operation.Result{Errors: f.handler.engine.Present(err), Position: told}, failed: true}, nil
}

// pulled is an element of a sequence that is read on another goroutine.
type pulled struct {
	event operation.Event
	err   error
	sent  chan struct{} // to be closed when the event is out
}

// pull reads the sequence on a goroutine of its own, and asks for an element
// when the one before is out. It ends with ctx; wait waits for that.
func pull(ctx context.Context, seq iter.Seq2[operation.Event, error]) (events <-chan pulled, wait func()) {
	out := make(chan pulled)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(out)
		for e, err := range guarded(seq) {
			p := pulled{e, err, make(chan struct{})}
			select {
			case out <- p:
			case <-ctx.Done():
				return
			}
			select {
			case <-p.sent:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, func() { <-done }
}

// guarded is the sequence with a panic as its last error: one on a goroutine of
// ours would end the process.
func guarded[T any](seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		wanted := true
		defer func() {
			if p := recover(); p != nil && wanted {
				var none T
				yield(none, panicked(p))
			}
		}()
		seq(func(value T, err error) bool {
			wanted = yield(value, err)
			return wanted
		})
	}
}
