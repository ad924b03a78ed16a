package agentapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"runtime/debug"
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
	"koine/internal/ws"
	"koine/kg"
)

// Limits of a socket.
const (
	DefaultPingInterval = 30 * time.Second
	DefaultAuthTimeout  = 10 * time.Second
	// MaxAuthBytes bounds a frame before the authentication.
	MaxAuthBytes = 8 << 10
)

// socket is one connection. One goroutine reads and answers, another writes the events of the
// agent.
type socket struct {
	handler *Handler
	conn    *ws.Conn
	feeding bool         // used by the reader only
	after   *kg.Position // last position delivered by an earlier socket; nil for none

	mu  sync.Mutex // guards who, the caller authenticated last
	who caller.Caller
}

// newSocketServer returns the server of sockets.
func (h *Handler) newSocketServer() *ws.Server {
	o := &h.options
	return ws.NewServer(ws.Options{
		Streams: h.deps.Streams, Intake: o.Intake, OriginChecked: o.OriginAllowed != nil, MaxPending: cmp.Or(o.MaxPendingSockets, ws.DefaultMaxPending),
		FirstTimeout: o.AuthTimeout, ErrFirst: errNotAuthenticated(), MaxFirstBytes: MaxAuthBytes, MaxBytes: o.MaxBodyBytes,
		ErrLate:      kg.Errorf(kg.CodeTimeout, "a frame did not arrive completely in time"),
		WriteTimeout: o.WriteTimeout, PingInterval: o.PingInterval, PongTimeout: o.PingInterval,
		CloseReason: closeReason,
		Panicked: func(p any) error {
			o.Logger.Error("a socket panicked", "panic", p, "stack", string(debug.Stack()))
			return errors.New("a socket panicked")
		},
	})
}

func errNotAuthenticated() *kg.Error {
	return kg.Errorf(kg.CodeUnauthenticated, "authentication required: send {\"type\":\"auth\"} as the first frame")
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
	authenticated := who.Principal.Method != caller.MethodNone
	conn, err := h.sockets.Accept(w, r, authenticated)
	if err != nil {
		writeError(w, h.errorOf(who, rest.StreamError(err)))
		return
	}
	if conn == nil {
		return
	}
	s := &socket{handler: h, conn: conn, who: who, after: after}
	if authenticated {
		s.startFeed()
	}
	conn.Serve(s.answerFrame)
	if s.feeding {
		h.reportEnd(caller.With(conn.Context(), s.currentCaller()), context.Cause(conn.Context()))
	}
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

func (s *socket) currentCaller() caller.Caller {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.who
}

// startFeed starts to deliver the events of the agent.
func (s *socket) startFeed() {
	if !s.feeding {
		s.feeding = true
		s.conn.Go(s.runFeed)
	}
}

// runFeed writes the events of the agent, in order.
func (s *socket) runFeed() error {
	work := s.handler.deps.Tasks
	concerning := work.OpenFeed
	if s.after != nil {
		concerning = func(ctx context.Context, by caller.Caller) (*tasks.Feed, error) {
			return work.OpenFeedFrom(ctx, by, *s.after)
		}
	}
	feed, err := concerning(s.conn.Context(), s.currentCaller())
	if err != nil {
		return err
	}
	defer feed.Close()
	for h, err := range feed.Events() {
		if err == nil {
			err = s.writeFeedEvent(&h)
		}
		if err != nil {
			return err
		}
	}
	return nil
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

// writeFrame sends a frame.
func (s *socket) writeFrame(f *sentFrame) error {
	raw, err := plainjson.Encode(f)
	if err != nil {
		return err
	}
	return s.conn.Write(raw)
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
		return ws.StatusUnauthorized, clipReason(kg.AsError(cause).Message)
	case code == kg.CodePermissionDenied || code == kg.CodeSourceForbidden:
		return ws.StatusForbidden, clipReason(kg.AsError(cause).Message)
	case code == kg.CodeTimeout:
		return websocket.StatusPolicyViolation, clipReason(kg.AsError(cause).Message)
	case code == kg.CodeRateLimited || code == kg.CodeOverloaded || code == kg.CodeAccessChanged:
		return websocket.StatusTryAgainLater, string(code)
	}
	return websocket.StatusInternalError, "an internal error"
}

// clipReason limits a message to the room in a close frame, in whole characters: a
// client fails a connection with a reason that is not UTF-8 (RFC 6455, section 5.5.1).
func clipReason(text string) string { return kg.Excerpt(text, ws.MaxReasonBytes-len("…")) }

// answerFrame executes a frame and writes the answer. Its error ends the socket.
func (s *socket) answerFrame(kind websocket.MessageType, raw []byte, taken *throttle.Received) (err error) {
	defer taken.Release()
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
		return nil, errNotAuthenticated()
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
			if err := s.handler.deps.Tasks.Acknowledge(s.conn.Context(), who, letter); err != nil {
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
	who, err := connect(s.conn.Context(), s.conn.End, s.currentCaller(), raw)
	if err != nil {
		s.conn.End(err)
		return err
	}
	if who.Principal.Method != caller.MethodNone {
		if err := s.conn.Admit(who); err != nil {
			s.conn.End(rest.StreamError(err))
			return rest.StreamError(err)
		}
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
	sent, err := s.handler.sendToTask(s.conn.Context(), who, sending)
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
	done, err := s.handler.applyChange(s.conn.Context(), who, f.Task.ID, &f.Task.change, read)
	if err != nil || f.RequestID == nil {
		return nil, err // the feed delivers the new state to both agents
	}
	return taskFrame(done.Task)
}
