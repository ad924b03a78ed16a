package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/internal/sse"
	"koine/internal/throttle"
	"koine/kg"
)

// socket is a connection of graphql-transport-ws. It has a goroutine that
// reads, one that writes, one that pings, and one for each operation. serve
// waits for all of them.
type socket struct {
	handler    *Handler
	conn       *websocket.Conn
	ctx        context.Context // its cause is the reason of the socket's end
	cancel     context.CancelCauseFunc
	out        chan frame // unbuffered: results are made at the pace of writing
	operations *operations

	// Used by the reading goroutine only.
	caller         caller.Caller
	releasePending func() // releases its slot among the sockets before connection_init
	releaseStream  func() // releases its slot among the streams
	initialising   *time.Timer
	initialised    bool
}

// frame is a message on its way to the client. It is dropped if its operation
// was stopped meanwhile. The last frame of an operation frees its id.
type frame struct {
	text      []byte
	operation *running
	last      bool
}

func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// serveSocket upgrades a connection and serves it until its end. Like an event
// stream it takes a slot among the streams, so it is counted and shut down
// with them.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request) {
	if allowed := h.options.OriginAllowed; allowed != nil && !allowed(r) {
		writeRefusal(w, formJSON, http.StatusForbidden, string(kg.CodePermissionDenied), "pages of this origin may not open a socket")
		return
	}
	// A client learns at once that no slot is free. It takes one only after
	// connection_init.
	free, err := h.streams.Acquire(r.Context())
	if err != nil {
		refuseStream(w, err)
		return
	}
	free()
	who := caller.From(r.Context())
	settled, ok := h.takePendingSlot(who)
	if !ok {
		refuseStream(w, &sse.Refused{Reason: sse.ErrTooManyStreams, RetryAfter: sse.DefaultRetryAfter})
		return
	}
	defer settled()
	place, err := h.streams.Attach(r.Context())
	if err != nil {
		refuseStream(w, err)
		return
	}
	defer place.Close()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{subprotocol}, InsecureSkipVerify: h.options.OriginAllowed != nil, // OriginAllowed has checked it
	})
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = conn.CloseNow() }()
	if conn.Subprotocol() != subprotocol {
		_ = conn.Close(closeSubprotocol, "Subprotocol not acceptable")
		return
	}
	sse.BoundSendBuffer(r, sse.DefaultSendBuffer)
	conn.SetReadLimit(MaxInitBytes)
	s := &socket{handler: h, conn: conn, caller: who, releasePending: settled, releaseStream: func() {}, out: make(chan frame), operations: newOperations(h.options.MaxOperations)}
	s.ctx, s.cancel = context.WithCancelCause(place.Context())
	s.serveConnection()
}

// takePendingSlot takes a slot for a socket before connection_init. settled releases it
// and may be called again.
func (h *Handler) takePendingSlot(who caller.Caller) (settled func(), ok bool) {
	owner := throttle.OwnerOf(who)
	if !h.pending.Acquire(owner, 1) {
		return nil, false
	}
	return sync.OnceFunc(func() { h.pending.Release(owner, 1) }), true
}

func (s *socket) serveConnection() {
	s.initialising = time.AfterFunc(s.handler.options.InitTimeout, func() {
		s.cancel(&closing{closeInitTimeout, "Connection initialisation timeout"})
	})
	defer s.initialising.Stop()
	var all sync.WaitGroup
	all.Go(func() { s.guardRun(s.read) })
	all.Go(func() { s.guardRun(s.pingLoop) })
	s.guardRun(s.write)
	s.close()
	s.operations.waitAll()
	all.Wait()
	s.releaseStream()
}

// guardRun ends the socket when f returns. A panic would otherwise end the
// process.
func (s *socket) guardRun(f func() error) {
	defer func() {
		if p := recover(); p != nil {
			s.handler.engine.Present(panicError(p)) // Present logs it
			s.cancel(&closing{websocket.StatusInternalError, "Internal error"})
		}
	}()
	s.cancel(f())
}

// read handles messages until the connection ends.
func (s *socket) read() error {
	h := s.handler
	for {
		// The socket's context is not used: cancelling a read makes the library
		// close the connection, and the reason would be lost.
		kind, from, err := s.conn.Reader(context.Background())
		if err != nil {
			return sse.ErrClientGone
		}
		if s.ctx.Err() != nil {
			if _, err := io.Copy(io.Discard, from); err != nil {
				return sse.ErrClientGone
			}
			continue // drain until the client's close frame
		}
		// Two bytes beyond the bound let the library report a message that is
		// too large.
		text, received, err := h.options.Intake.ReadMessage(throttle.OwnerOf(s.caller), from, h.options.MaxBodyBytes+2, s.endLate)
		switch {
		case kg.CodeOf(err) == kg.CodeOverloaded:
			return notConnected(err)
		case err != nil:
			return sse.ErrClientGone
		}
		if kind != websocket.MessageText {
			received.Release()
			err = invalidMessage("it must be text")
		} else {
			err = s.handleMessage(text, received)
		}
		if err != nil {
			s.cancel(err)
		}
	}
}

// endLate ends a socket whose client does not complete a message in time.
func (s *socket) endLate() {
	s.cancel(&closing{websocket.StatusPolicyViolation, "A message did not arrive in time"})
}

// handleMessage handles a message. Its error ends the socket. received is released when
// the message has been answered.
func (s *socket) handleMessage(text []byte, received *throttle.Received) error {
	m, err := readMessage(text)
	if err == nil && m.kind == "subscribe" {
		return s.handleSubscribe(m, received)
	}
	defer received.Release()
	if err != nil {
		return err
	}
	switch m.kind {
	case "connection_init":
		return s.handleInit(m)
	case "ping":
		s.send(frame{text: pongMessage(m.payload)})
	case "complete":
		s.operations.stopOperation(m.id)
	}
	return nil
}

func (s *socket) handleInit(m message) error {
	if s.initialised {
		return &closing{closeManyInits, "Too many initialisation requests"}
	}
	if connect := s.handler.options.Connect; connect != nil {
		who, err := connect(s.ctx, s.cancel, s.caller, m.payload)
		if err != nil {
			return notConnected(err)
		}
		s.caller = who
	}
	leave, err := s.handler.streams.Acquire(caller.With(s.ctx, s.caller))
	if err != nil {
		return &closing{websocket.StatusTryAgainLater, codeOfRefusal(err)}
	}
	s.releaseStream = leave
	s.releasePending()
	s.conn.SetReadLimit(s.handler.options.MaxBodyBytes)
	s.initialising.Stop()
	s.initialised = true
	s.send(frame{text: ackMessage})
	return nil
}

func (s *socket) handleSubscribe(m message, received *throttle.Received) error {
	started := false
	defer func() {
		if !started {
			received.Release()
		}
	}()
	if !s.initialised {
		return &closing{closeUnauthorized, "Unauthorized"}
	}
	op, err := s.operations.startOperation(s.ctx, m.id)
	switch {
	case errors.Is(err, errDuplicate):
		reason := "Subscriber for " + m.id + " already exists"
		if len(reason) > maxCloseReason {
			reason = "Subscriber already exists"
		}
		return &closing{closeDuplicate, reason}
	case errors.Is(err, errTooMany):
		s.send(frame{text: errorMessage(m.id, gqlerror.List{tooManyOperations()})})
		return nil
	case err != nil: // the socket has ended
		return nil
	}
	m.request.Principal, m.request.Actor = s.caller.Principal, s.caller.Actor
	started = true
	go func() {
		defer s.operations.endOperation(op)
		defer received.Release()
		s.runOperation(op, m)
	}()
	return nil
}

// notConnected returns the close frame for a caller that is not, or no longer,
// admitted.
func notConnected(err error) *closing {
	switch code := kg.CodeOf(err); code {
	case kg.CodeUnauthenticated:
		return &closing{closeUnauthorized, "Unauthorized"}
	case kg.CodeRateLimited, kg.CodeOverloaded:
		return &closing{websocket.StatusTryAgainLater, string(code)}
	}
	return &closing{closeForbidden, "Forbidden"}
}

// maxCloseReason is the maximal length of a close reason.
const maxCloseReason = 123

// runOperation runs an operation and sends its results.
func (s *socket) runOperation(op *running, m message) {
	h := s.handler
	f, refused := s.beginOperation(op.ctx, m)
	if refused != nil {
		s.send(frame{errorMessage(m.id, refused.Errors), op, true})
		return
	}
	defer f.close()
	for step, err := range f.allSteps(op.ctx) {
		switch {
		case err != nil: // the operation was stopped, or the socket ended
			return
		case step.failed:
			s.send(frame{errorMessage(m.id, h.withPosition(&step.result)), op, true})
			return
		case !s.send(frame{h.nextMessage(m.id, &step.result), op, false}):
			return
		}
	}
	s.send(frame{completeMessage(m.id), op, true})
}

// beginOperation begins an operation, if it is admitted.
func (s *socket) beginOperation(ctx context.Context, m message) (*feed, *operation.Result) {
	h := s.handler
	leave, err := h.options.Admit(caller.With(ctx, s.caller))
	if err != nil {
		return nil, &operation.Result{Errors: h.engine.Present(err)}
	}
	defer leave()
	return h.beginShared(caller.With(ctx, s.caller), m.request, h.operationKind(&m.request))
}

// send passes a frame to the writing goroutine and reports whether it was
// accepted.
func (s *socket) send(f frame) bool {
	stopped := s.ctx.Done()
	if f.operation != nil {
		stopped = f.operation.ctx.Done()
	}
	select {
	case s.out <- f:
		return true
	case <-stopped:
		return false
	}
}

// write sends frames until the socket ends.
func (s *socket) write() error {
	// A frame being written when the socket ends has a short grace period.
	writing, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	defer cancel()
	defer context.AfterFunc(s.ctx, func() { time.AfterFunc(sse.DefaultLastTimeout, cancel) })()
	for {
		select {
		case f := <-s.out:
			if f.operation != nil && !s.operations.maySend(f.operation, f.last) {
				continue
			}
			if err := s.writeFrame(writing, f.text); err != nil {
				return err
			}
		case <-s.ctx.Done():
			return nil
		}
	}
}

// writeFrame writes a frame within a deadline. A client that barely meets it
// gets an error for being too slow. One that does not is disconnected, because
// nothing can follow half a frame.
func (s *socket) writeFrame(ctx context.Context, text []byte) error {
	limit := s.handler.options.WriteTimeout
	ctx, cancel := context.WithTimeout(ctx, limit+sse.DefaultLastTimeout)
	defer cancel()
	began := time.Now()
	if err := s.conn.Write(ctx, websocket.MessageText, text); err != nil {
		return sse.ErrClientGone
	}
	if time.Since(began) > limit {
		return sse.ErrSlowConsumer
	}
	return nil
}

// pingLoop pings the client and ends the socket if it does not answer.
func (s *socket) pingLoop() error {
	ticker := time.NewTicker(s.handler.options.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			// The socket's context is not used: a cancelled ping closes the
			// connection, and the reason would be lost.
			ctx, cancel := context.WithTimeout(context.Background(), s.handler.options.WriteTimeout+sse.DefaultLastTimeout)
			err := s.conn.Ping(ctx)
			cancel()
			if err != nil {
				return sse.ErrClientGone // unless there is a reason already
			}
		case <-s.ctx.Done():
			return nil
		}
	}
}

// close sends the client the reason, if it can be reached.
func (s *socket) close() {
	var told *closing
	var ended *kg.Error
	switch cause := context.Cause(s.ctx); {
	case errors.As(cause, &told):
	case errors.As(cause, &ended) && (ended.Code == kg.CodeUnauthenticated || ended.Code == kg.CodePermissionDenied):
		told = notConnected(ended)
	case errors.Is(cause, sse.ErrShutdown):
		told = &closing{websocket.StatusGoingAway, "SERVER_SHUTDOWN"}
	case errors.Is(cause, sse.ErrSlowConsumer):
		told = &closing{websocket.StatusTryAgainLater, "SLOW_CONSUMER"}
	default:
		_ = s.conn.CloseNow()
		return
	}
	_ = s.conn.Close(told.code, told.reason) // the client may be gone
}
