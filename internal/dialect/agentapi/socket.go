package agentapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/rest"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/internal/throttle"
	"koine/kg"
)

// Limits of a socket.
const (
	DefaultPingInterval = 30 * time.Second
	DefaultAuthTimeout  = 10 * time.Second
	DefaultWriteTimeout = 10 * time.Second
	// DefaultPendingSockets bounds the sockets that have not authenticated,
	// MaxAuthBytes a frame on one of them.
	DefaultPendingSockets = 1_024
	MaxAuthBytes          = 8 << 10
	maxCloseReason        = 123 // the room in a close frame
)

// The close codes of sockets, beside those of RFC 6455.
const (
	closeUnauthorized websocket.StatusCode = 4401
	closeForbidden    websocket.StatusCode = 4403
)

// socket is one connection. The goroutine that opened it reads, a second one writes the
// events of the agent, and a third one pings the client.
type socket struct {
	handler        *Handler
	conn           *websocket.Conn
	ctx            context.Context // its cause is the reason for the end
	cancel         context.CancelCauseFunc
	all            sync.WaitGroup
	feeding        bool         // used by the reader only
	releasePending func()       // releases its place among the pending sockets
	leave          func()       // releases its place among the streams
	after          *kg.Position // last position delivered by an earlier socket; nil for none

	mu  sync.Mutex // guards who, the caller authenticated last
	who caller.Caller
}

// serveSocket handles /ws.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request) {
	if allowed := h.options.OriginAllowed; allowed != nil && !allowed(r) {
		writeError(w, &wireError{Code: codeAuthorization, Message: "the origin is not allowed to open a socket", status: http.StatusForbidden})
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		writeError(w, &wireError{Code: codeRequest, Message: "the path requires a WebSocket: send Upgrade: websocket", status: http.StatusUpgradeRequired})
		return
	}
	who := caller.From(r.Context())
	after, err := h.socketAfter(r)
	if err != nil {
		writeError(w, h.errorOf(who, err))
		return
	}
	// An authenticated client is refused at once if there is no place for a stream; one
	// that must still authenticate takes its place then.
	leave, err := h.deps.Streams.Acquire(r.Context())
	if err != nil {
		writeError(w, h.errorOf(who, rest.StreamError(err)))
		return
	}
	settled := func() {}
	if owner := throttle.OwnerOf(who); who.Principal.Method == caller.MethodNone {
		leave()
		leave = func() {}
		if !h.pending.Acquire(owner, 1) {
			writeError(w, h.errorOf(who, rest.StreamError(&sse.Refused{Reason: sse.ErrTooManyStreams, RetryAfter: sse.DefaultRetryAfter})))
			return
		}
		settled = sync.OnceFunc(func() { h.pending.Release(owner, 1) })
	}
	s := &socket{handler: h, who: who, releasePending: settled, leave: leave, after: after}
	defer func() { s.releasePending(); s.leave() }()
	place, err := h.deps.Streams.Attach(r.Context())
	if err != nil {
		writeError(w, h.errorOf(who, rest.StreamError(err)))
		return
	}
	defer place.Close()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: h.options.OriginAllowed != nil}) // checked above
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = conn.CloseNow() }()
	sse.BoundSendBuffer(r, sse.DefaultSendBuffer)
	conn.SetReadLimit(h.options.MaxBodyBytes)
	if who.Principal.Method == caller.MethodNone {
		conn.SetReadLimit(MaxAuthBytes)
	}
	s.conn = conn
	s.ctx, s.cancel = context.WithCancelCause(place.Context())
	s.serveConn()
}

// socketAfter returns the position in the query parameter after, nil if absent.
func (h *Handler) socketAfter(r *http.Request) (*kg.Position, error) {
	text := r.URL.Query().Get("after")
	if text == "" {
		return nil, nil
	}
	after, err := h.deps.Positions.ParsePosition(text)
	if err != nil {
		return nil, kg.AsError(err).At("after")
	}
	return &after, nil
}

func (s *socket) serveConn() {
	if s.who.Principal.Method == caller.MethodNone {
		timer := time.AfterFunc(s.handler.options.AuthTimeout, func() {
			if s.currentCaller().Principal.Method == caller.MethodNone {
				s.cancel(kg.Errorf(kg.CodeUnauthenticated, "authentication required: send {\"type\":\"auth\"} as the first frame"))
			}
		})
		defer timer.Stop()
	} else {
		s.startFeed()
	}
	s.all.Go(s.runPings)
	s.all.Go(s.closeOnEnd)
	s.readFrames()
	s.all.Wait()
}

func (s *socket) currentCaller() caller.Caller {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.who
}

// startFeed starts to deliver the events of the agent.
func (s *socket) startFeed() {
	if !s.feeding {
		s.feeding = true
		s.all.Go(s.runFeed)
	}
}

// runFeed writes the events of the agent, in order.
func (s *socket) runFeed() {
	work := s.handler.deps.Tasks
	concerning := work.OpenFeed
	if s.after != nil {
		concerning = func(ctx context.Context, by caller.Caller) (*tasks.Feed, error) {
			return work.OpenFeedFrom(ctx, by, *s.after)
		}
	}
	feed, err := concerning(s.ctx, s.currentCaller())
	if err != nil {
		s.cancel(err)
		return
	}
	defer feed.Close()
	for h, err := range feed.Events() {
		if err == nil {
			err = s.writeFeedEvent(&h)
		}
		if err != nil {
			s.cancel(err)
			return
		}
	}
}

func (s *socket) writeFeedEvent(h *tasks.FeedEvent) error {
	var f *sentFrame
	var err error
	switch {
	case h.More:
		f = &sentFrame{Type: frameMore}
	case h.Letter != nil && h.Letter.Canceled():
		f, err = taskFrame(h.Letter.Task)
		f.MessageID = h.Letter.ID()
	case h.Letter != nil:
		f, err = letterFrame(h.Letter)
	case h.Task.Version == 1: // its creator has the answer
		return nil
	default:
		f, err = taskFrame(h.Task)
	}
	if err != nil {
		return err
	}
	if h.Position.Revision > 0 {
		f.EventID = s.handler.deps.Positions.FormatPosition(h.Position)
	}
	return s.writeFrame(f)
}

// writeFrame sends a frame. It gives up on a client that does not read in time.
func (s *socket) writeFrame(f *sentFrame) error {
	raw, err := plainjson.Encode(f)
	if err != nil {
		return err
	}
	// Not the socket's context: the library closes a connection when a write is
	// cancelled, and the close reason would be lost.
	ctx, cancel := context.WithTimeout(context.Background(), s.handler.options.WriteTimeout)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageText, raw); err != nil {
		if ctx.Err() != nil {
			return sse.ErrSlowConsumer
		}
		return sse.ErrClientGone
	}
	return nil
}

// runPings pings the client.
func (s *socket) runPings() {
	tick := time.NewTicker(s.handler.options.PingInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(s.ctx, s.handler.options.PingInterval)
		err := s.conn.Ping(ctx)
		cancel()
		if err != nil {
			s.cancel(sse.ErrClientGone)
			return
		}
	}
}

// closeOnEnd closes the connection with the reason when the socket ends.
func (s *socket) closeOnEnd() {
	<-s.ctx.Done()
	code, reason := closeReason(context.Cause(s.ctx))
	_ = s.conn.Close(code, reason) // ends the read too
}

func closeReason(cause error) (websocket.StatusCode, string) {
	switch code := kg.CodeOf(cause); {
	case errors.Is(cause, sse.ErrClientGone):
		return websocket.StatusNormalClosure, ""
	case errors.Is(cause, sse.ErrShutdown) || code == kg.CodeClosed:
		return websocket.StatusGoingAway, "the server is shutting down"
	case errors.Is(cause, sse.ErrSlowConsumer) || code == kg.CodeResync:
		return websocket.StatusTryAgainLater, "the client read too slowly"
	case code == kg.CodeUnauthenticated:
		return closeUnauthorized, clipReason(kg.AsError(cause).Message)
	case code == kg.CodePermissionDenied || code == kg.CodeSourceForbidden:
		return closeForbidden, clipReason(kg.AsError(cause).Message)
	case code == kg.CodeTimeout:
		return websocket.StatusPolicyViolation, clipReason(kg.AsError(cause).Message)
	case code == kg.CodeRateLimited || code == kg.CodeOverloaded || code == kg.CodeAccessChanged:
		return websocket.StatusTryAgainLater, string(code)
	}
	return websocket.StatusInternalError, "an internal error"
}

// clipReason limits a message to the room in a close frame, in whole characters: a
// client fails a connection with a reason that is not UTF-8 (RFC 6455, section 5.5.1).
func clipReason(text string) string { return kg.Excerpt(text, maxCloseReason-len("…")) }

// readFrames reads frames until the connection ends.
func (s *socket) readFrames() {
	defer s.cancel(sse.ErrClientGone)
	for {
		// Not the socket's context: the library closes a connection when a read is
		// cancelled, and the close reason would be lost.
		kind, from, err := s.conn.Reader(context.Background())
		if err != nil {
			return
		}
		if s.ctx.Err() != nil {
			if _, err := io.Copy(io.Discard, from); err != nil {
				return
			}
			continue // discard frames until the client closes
		}
		raw, received, err := s.handler.options.Intake.ReadMessage(throttle.OwnerOf(s.currentCaller()), from, s.handler.options.MaxBodyBytes+2, s.endLate)
		if err != nil {
			if kg.CodeOf(err) == kg.CodeOverloaded {
				s.cancel(err)
			}
			return
		}
		err = s.answerFrame(kind, raw)
		received.Release()
		if err != nil {
			s.cancel(err)
		}
	}
}

// endLate ends a socket with an incomplete frame.
func (s *socket) endLate() {
	s.cancel(kg.Errorf(kg.CodeTimeout, "a frame did not arrive completely in time"))
}

// answerFrame executes a frame and writes the answer. Its error ends the socket.
func (s *socket) answerFrame(kind websocket.MessageType, raw []byte) (err error) {
	var f received
	if kind != websocket.MessageText {
		err = kg.Errorf(kg.CodeInvalid, "a frame must be text")
	} else {
		err = rest.Decode(raw, &f)
	}
	var answer *sentFrame
	if err == nil {
		answer, err = s.executeFrame(&f, raw)
	}
	if err != nil {
		answer = &sentFrame{Type: frameError, Error: s.handler.errorOf(s.currentCaller(), err)}
	}
	if answer == nil {
		return nil
	}
	answer.RequestID = f.RequestID
	return s.writeFrame(answer)
}

// executeFrame executes a frame and returns the answer.
func (s *socket) executeFrame(f *received, raw []byte) (*sentFrame, error) {
	who := s.currentCaller()
	if f.Type != frameAuth && who.Principal.Method == caller.MethodNone {
		return nil, kg.Errorf(kg.CodeUnauthenticated, "authentication required: send {\"type\":\"auth\"} as the first frame")
	}
	switch f.Type {
	case frameAuth:
		if err := s.authenticate(raw); err != nil || f.RequestID == nil {
			return nil, err
		}
		return &sentFrame{Type: frameAuth}, nil
	case frameMessage:
		return s.sendMessage(who, f)
	case frameUpdated, frameCompleted:
		return s.reportTask(who, f)
	case frameAck:
		for i, letter := range f.Letters {
			if err := s.handler.deps.Tasks.Acknowledge(s.ctx, who, letter); err != nil {
				return nil, kg.AsError(err).At("letters[" + strconv.Itoa(i) + "]")
			}
		}
		if f.RequestID == nil {
			return nil, nil
		}
		return &sentFrame{Type: frameAck}, nil
	}
	return nil, kg.Errorf(kg.CodeInvalid, "type must be auth, message, task.updated, task.completed or ack").At("type")
}

// authenticate authenticates with a credential in a frame, because browsers cannot set
// headers. A second authentication is ignored.
func (s *socket) authenticate(raw []byte) error {
	connect := s.handler.options.Connect
	if connect == nil || s.feeding {
		return nil
	}
	who, err := connect(s.ctx, s.cancel, s.currentCaller(), raw)
	if err != nil {
		s.cancel(err)
		return err
	}
	if who.Principal.Method != caller.MethodNone && s.currentCaller().Principal.Method == caller.MethodNone {
		leave, err := s.handler.deps.Streams.Acquire(caller.With(s.ctx, who))
		if err != nil {
			s.cancel(rest.StreamError(err))
			return rest.StreamError(err)
		}
		s.leave = leave
		s.releasePending()
		s.conn.SetReadLimit(s.handler.options.MaxBodyBytes)
	}
	s.mu.Lock()
	s.who = who
	s.mu.Unlock()
	s.startFeed()
	return nil
}

func (s *socket) sendMessage(who caller.Caller, f *received) (*sentFrame, error) {
	to := kg.CanonicalAgent(f.AgentID)
	if f.AgentID == "" {
		to = ""
	}
	sending, err := f.sending.toRequest(to)
	if err != nil {
		return nil, err
	}
	sent, err := s.handler.sendToTask(s.ctx, who, sending)
	if err != nil {
		return nil, err
	}
	t, err := writeTask(sent.Task)
	return &sentFrame{Type: frameCreated, TaskID: sent.Task.ID, Task: t, MessageID: sentOf(sent).MessageID}, err
}

func (s *socket) reportTask(who caller.Caller, f *received) (*sentFrame, error) {
	if f.Task == nil {
		return nil, kg.Errorf(kg.CodeInvalid, "is required").At("task")
	}
	if f.Type == frameCompleted && f.Task.State == "" {
		f.Task.State = completed
	}
	read := tasks.ReadOptions{}
	if f.RequestID != nil {
		read = reading
	}
	done, err := s.handler.applyChange(s.ctx, who, f.Task.ID, &f.Task.change, read)
	if err != nil || f.RequestID == nil {
		return nil, err // the feed delivers the new state to both agents
	}
	return taskFrame(done.Task)
}
