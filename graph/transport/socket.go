package transport

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/coder/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/internal/sse"
	"koine/internal/throttle"
	"koine/internal/ws"
	"koine/kg"
)

// socket is a connection of graphql-transport-ws. It has a goroutine that writes, and one for
// each operation.
type socket struct {
	handler    *Handler
	conn       *ws.Conn
	out        chan frame // unbuffered: results are made at the pace of writing
	operations *operations

	// Used by the reading goroutine only.
	caller      caller.Caller
	initialised bool
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
	conn, err := h.sockets.Accept(w, r, false)
	if err != nil {
		refuseStream(w, err)
		return
	}
	if conn == nil {
		return
	}
	s := &socket{handler: h, conn: conn, caller: caller.From(r.Context()), out: make(chan frame), operations: newOperations(h.options.MaxOperations)}
	conn.Go(s.write)
	conn.Serve(s.handleMessage)
	if s.initialised {
		h.reportSocketEnd(caller.With(conn.Context(), s.caller), context.Cause(conn.Context()))
	}
}

// reportSocketEnd reports the end of a socket with all its operations, unless the client
// caused it.
func (h *Handler) reportSocketEnd(ctx context.Context, cause error) {
	e := sse.End{Transport: transportSocket}
	var told *closing
	var ended *kg.Error
	switch {
	case errors.As(cause, &told):
		if told.code == websocket.StatusInternalError { // a panic, which is logged
			e.Reason = string(kg.CodeInternal)
			h.streams.ReportEnd(ctx, e)
		}
	case errors.As(cause, &ended) && ended.Code == kg.CodeOverloaded:
		e.Reason = string(ended.Code)
		h.streams.ReportEnd(ctx, e)
	default:
		h.reportEnd(ctx, cause, e)
	}
}

// newSocketServer returns the server of sockets.
func (h *Handler) newSocketServer() *ws.Server {
	o := &h.options
	return ws.NewServer(ws.Options{
		Streams: h.streams, Intake: o.Intake, Subprotocol: subprotocol, OriginChecked: o.OriginAllowed != nil, MaxPending: o.MaxPendingSockets,
		FirstTimeout: o.InitTimeout, ErrFirst: &closing{closeInitTimeout, "Connection initialisation timeout"},
		MaxFirstBytes: MaxInitBytes, MaxBytes: o.MaxBodyBytes,
		ErrLate:      &closing{websocket.StatusPolicyViolation, "A message did not arrive in time"},
		WriteTimeout: o.WriteTimeout, PingInterval: o.Heartbeat, PongTimeout: o.WriteTimeout + sse.DefaultLastTimeout,
		CloseReason: closeReason,
		Panicked: func(p any) error {
			h.engine.Present(panicError(p)) // it logs
			return &closing{websocket.StatusInternalError, "Internal error"}
		},
	})
}

// handleMessage handles a message. Its error ends the socket. received is released when
// the message has been answered.
func (s *socket) handleMessage(kind websocket.MessageType, text []byte, received *throttle.Received) error {
	var m message
	err := invalidMessage("it must be text")
	if kind == websocket.MessageText {
		m, err = readMessage(text)
	}
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
		who, err := connect(s.conn.Context(), s.conn.End, s.caller, m.payload)
		if err != nil {
			return notConnected(err)
		}
		s.caller = who
	}
	if err := s.conn.Admit(s.caller); err != nil {
		return &closing{websocket.StatusTryAgainLater, codeOfRefusal(err)}
	}
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
		return &closing{ws.StatusUnauthorized, "Unauthorized"}
	}
	op, err := s.operations.startOperation(s.conn.Context(), m.id)
	switch {
	case errors.Is(err, errDuplicate):
		reason := "Subscriber for " + m.id + " already exists"
		if len(reason) > ws.MaxReasonBytes {
			reason = "Subscriber already exists"
		}
		return &closing{closeDuplicate, reason}
	case errors.Is(err, errTooMany):
		s.send(frame{text: errorMessage(m.id, gqlerror.List{tooManyOperations()})})
		return nil
	case err != nil:
		return err
	}
	m.request.Principal, m.request.Actor = s.caller.Principal, s.caller.Actor
	started = true
	s.conn.Go(func() error {
		defer s.operations.endOperation(op)
		defer received.Release()
		s.runOperation(op, m)
		return nil
	})
	return nil
}

// notConnected returns the close frame for a caller that is not, or no longer,
// admitted.
func notConnected(err error) *closing {
	switch code := kg.CodeOf(err); code {
	case kg.CodeUnauthenticated:
		return &closing{ws.StatusUnauthorized, "Unauthorized"}
	case kg.CodeRateLimited, kg.CodeOverloaded:
		return &closing{websocket.StatusTryAgainLater, string(code)}
	}
	return &closing{ws.StatusForbidden, "Forbidden"}
}

// mayNotConnect reports whether an error with the code ends a socket with notConnected.
func mayNotConnect(code kg.Code) bool {
	return code == kg.CodeUnauthenticated || code == kg.CodePermissionDenied || code == kg.CodeOverloaded
}

// runOperation runs an operation and sends its results.
func (s *socket) runOperation(op *running, m message) {
	h := s.handler
	f, refused := s.beginOperation(op.ctx, m)
	if refused != nil {
		s.send(frame{errorMessage(m.id, refused.Errors), op, true})
		return
	}
	defer f.close()
	f.transport = transportSocket
	f.sendProgress = func(result *operation.Result) { s.send(frame{h.nextMessage(m.id, result), op, false}) }
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
	stopped := s.conn.Context().Done()
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
	for {
		select {
		case f := <-s.out:
			if f.operation != nil && !s.operations.maySend(f.operation, f.last) {
				continue
			}
			if err := s.conn.Write(f.text); err != nil {
				return err
			}
		case <-s.conn.Context().Done():
			return nil
		}
	}
}

// closeReason returns the close frame for the cause of a socket's end.
func closeReason(cause error) (websocket.StatusCode, string) {
	var told *closing
	var ended *kg.Error
	switch {
	case errors.As(cause, &told):
	case errors.As(cause, &ended) && mayNotConnect(ended.Code):
		told = notConnected(ended)
	case errors.Is(cause, sse.ErrShutdown):
		told = &closing{websocket.StatusGoingAway, "SERVER_SHUTDOWN"}
	case errors.Is(cause, sse.ErrSlowConsumer):
		told = &closing{websocket.StatusTryAgainLater, "SLOW_CONSUMER"}
	default:
		return 0, ""
	}
	return told.code, told.reason
}
