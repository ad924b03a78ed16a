package agentchat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/presence"
	"koine/internal/rest"
	"koine/internal/sse"
	"koine/internal/throttle"
	"koine/internal/ws"
	"koine/kg"
)

// Limits of a socket.
const (
	DefaultPingInterval = 30 * time.Second
	DefaultAuthTimeout  = 10 * time.Second
	// MaxAuthBytes bounds a frame before the authentication, MaxFrameBytes one after.
	MaxAuthBytes  = 64 << 10
	MaxFrameBytes = 256 << 10
	MaxEmojiBytes = 64
	// MaxResumedRooms bounds the rooms of a resumption.
	MaxResumedRooms = 1000
	// MaxQueuedFrames bounds the frames that wait to be written.
	MaxQueuedFrames = 1024
)

// Close codes of the protocol beside those of package ws.
const (
	statusSilent    websocket.StatusCode = 4408
	statusTooMany   websocket.StatusCode = 4429
	reasonUndecided                      = "an internal error"
)

// errSilent ends a socket if its client sent no frame for Options.Silence.
var errSilent = errors.New("no frame arrived for too long")

// socket is a WebSocket of the protocol.
type socket struct {
	handler *Handler
	conn    *ws.Conn
	silence *time.Timer
	queue   *frameQueue
	guest   bool // it joined with an invitation: see invites.go; written before the feed runs

	mu  sync.Mutex // guards who, nil before the authentication
	who *requester

	deliverMu sync.Mutex           // guards the following, and the order of messages
	last      map[channel.ID]int64 // the last sequence written by a resumption
}

// addSockets adds the route of sockets.
func (h *Handler) addSockets() {
	o := &h.options
	h.sockets = ws.NewServer(ws.Options{
		Streams: h.deps.Streams, Intake: o.Intake, OriginChecked: o.OriginAllowed != nil, MaxPending: max(o.MaxPendingSockets, ws.DefaultMaxPending),
		FirstTimeout: o.AuthTimeout, ErrFirst: errNoAuthFrame(), MaxFirstBytes: MaxAuthBytes, MaxBytes: MaxFrameBytes,
		ErrLate:      kg.Errorf(kg.CodeTimeout, "a frame did not arrive completely in time"),
		WriteTimeout: o.WriteTimeout, PingInterval: o.PingInterval, PongTimeout: o.PingInterval,
		CloseReason: closeReason,
		Panicked: func(p any) error {
			o.Logger.Error("a socket panicked", "panic", p, "stack", string(debug.Stack()))
			return errors.New("a socket panicked")
		},
	})
	h.routes.Handle("GET /ws", h.serveSocket)
}

func errNoAuthFrame() *kg.Error {
	return kg.Errorf(kg.CodeUnauthenticated, `authentication required: send {"type":"auth","token":"ak_…"} as the first frame`)
}

// lateEnd passes the end of a credential on to a connection that may not exist yet.
type lateEnd struct {
	mu    sync.Mutex
	conn  *ws.Conn
	cause error
}

func (l *lateEnd) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		l.cause = cause
		return
	}
	l.conn.End(cause)
}

func (l *lateEnd) attach(conn *ws.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn = conn; l.cause != nil {
		conn.End(l.cause)
	}
}

// serveSocket serves a WebSocket. Its frame stays on the stack as long as the socket is
// open, so everything that needs much stack is in acceptSocket.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request) {
	if s := h.acceptSocket(w, r); s != nil {
		defer s.silence.Stop()
		s.conn.Serve(s.answerFrame)
	}
}

// acceptSocket opens a socket, or answers the request itself. The credential comes with the
// request, in the header or the query, or in the first frame.
func (h *Handler) acceptSocket(w http.ResponseWriter, r *http.Request) *socket {
	by := caller.From(r.Context())
	refuse := func(err error) { writeError(w, h.errorOf(by, err)) }
	if allowed := h.options.OriginAllowed; allowed != nil && !allowed(r) {
		refuse(kg.Errorf(kg.CodePermissionDenied, "the origin is not allowed to open a socket"))
		return nil
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		writeError(w, &wireError{Type: frameError, Code: codeInvalid, Message: "the path requires a WebSocket: send Upgrade: websocket", status: http.StatusUpgradeRequired})
		return nil
	}
	credential := h.options.QueryToken(r)
	if credential == "" && h.options.Admit != nil {
		credential = credentialOf(r.Header)
	}
	var ends lateEnd
	var refused error
	if credential != "" {
		var err error
		if by, err = h.connect(r.Context(), ends.end, by, credential); err != nil {
			refused, by = err, caller.From(r.Context())
			by.Principal = kg.Principal{ID: kg.Anonymous, Method: caller.MethodNone}
		}
	}
	who, _ := requesterOf(by)
	conn, err := h.sockets.Accept(w, r.WithContext(caller.With(r.Context(), by)), who != nil)
	if err != nil {
		refuse(rest.StreamError(err))
		return nil
	}
	if conn == nil {
		return nil
	}
	ends.attach(conn)
	s := &socket{handler: h, conn: conn}
	s.queue = newFrameQueue(func() { conn.Go(s.writeQueued) })
	s.silence = time.AfterFunc(h.options.Silence, s.endSilent)
	switch {
	case refused != nil:
		s.endWith(by, refused)
	case who != nil:
		if err := s.begin(who, nil, nil, nil); err != nil {
			s.endWith(by, err)
		}
	}
	return s
}

// connect authenticates a credential. The caller ends with the context.
func (h *Handler) connect(ctx context.Context, end func(error), by caller.Caller, credential string) (caller.Caller, error) {
	if h.options.Admit != nil {
		by, release, err := h.admit(ctx, by, credential, end)
		if err == nil {
			context.AfterFunc(ctx, release)
		}
		return by, err
	}
	if h.options.Connect == nil {
		return by, errUnauthorized()
	}
	return h.options.Connect(ctx, end, by, plainjson.MustEncode(map[string]string{"Authorization": "Bearer " + credential}))
}

// endSilent ends the socket of a silent client. Its agent is offline at once, unless it
// has another one.
func (s *socket) endSilent() {
	if who := s.requester(); who != nil {
		_, _ = s.handler.deps.Presence.Heartbeat(s.conn.Context(), who.agent, presence.Offline) // the connection ends anyway
	}
	s.conn.End(errSilent)
}

// endWith tells the client an error and ends the socket with it.
func (s *socket) endWith(by caller.Caller, err error) {
	raw, encodeErr := plainjson.Encode(s.handler.errorOf(by, err))
	if encodeErr == nil {
		_ = s.conn.Write(raw) // the client may be gone
	}
	s.conn.End(err)
}

func (s *socket) requester() *requester {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.who
}

func (s *socket) currentCaller() caller.Caller {
	if who := s.requester(); who != nil {
		return who.Caller
	}
	return caller.From(s.conn.Context())
}

// begin opens the feed of an authenticated client, answers auth_ok, and starts to deliver.
// Messages after the sequences of resume come first.
// hello is the answer, nil for auth_ok.
func (s *socket) begin(who *requester, requestID rawID, resume map[string]int64, hello *sentFrame) (err error) {
	ctx := caller.With(s.conn.Context(), who.Caller)
	var feed *feed
	// It reads rooms, which takes a large stack: that of the caller is kept as long as the
	// socket is open.
	opened := make(chan struct{})
	s.conn.Go(func() error {
		defer close(opened)
		feed, err = s.open(ctx, who, requestID, hello)
		return nil
	})
	<-opened
	if err != nil {
		return err
	}
	if feed == nil { // it panicked
		return context.Cause(s.conn.Context())
	}
	if s.guest {
		s.conn.Go(s.pingGuest)
	}
	s.conn.Go(func() error {
		defer feed.close()
		for id, after := range resume {
			if err := s.replay(ctx, who, channel.ID(id), after); err != nil {
				return err
			}
		}
		return feed.run(s.deliver)
	})
	return nil
}

// open opens the feed of an authenticated client, and answers.
func (s *socket) open(ctx context.Context, who *requester, requestID rawID, hello *sentFrame) (*feed, error) {
	feed, err := s.handler.openFeed(ctx, who, s.guest)
	if err != nil {
		return nil, err
	}
	if hello == nil {
		if hello, err = s.handler.hello(ctx, who); err != nil {
			feed.close()
			return nil, err
		}
	}
	hello.RequestID = requestID
	s.mu.Lock()
	s.who = who
	s.mu.Unlock()
	if err := s.send(hello); err != nil {
		feed.close()
		return nil, err
	}
	return feed, nil
}

// hello returns the answer to an authentication.
func (h *Handler) hello(ctx context.Context, who *requester) (*sentFrame, error) {
	record, err := h.deps.Agents.Get(ctx, who.agent)
	if err != nil && kg.CodeOf(err) != kg.CodeAgentNotFound {
		return nil, err
	}
	joined := true
	page, _, err := h.findRooms(ctx, who, roomQuery{joined: &joined}, MaxPage, "")
	if err != nil {
		return nil, err
	}
	rooms := []*room{}
	for _, c := range page {
		one, err := h.encodeRoomFor(ctx, who, c)
		if err != nil {
			return nil, err
		}
		rooms = append(rooms, one)
	}
	return &sentFrame{Type: frameAuthOK, Agent: h.encodeAgent(who.agent, record), Rooms: &rooms, ServerTime: h.now()}, nil
}

func (h *Handler) now() string { return formatTime(h.options.Clock()) }

// replay writes the messages of a room after a sequence, at the pace of the client, and
// remembers the last one, so that the feed does not repeat it. A room that the agent
// cannot read any more is reported as an error frame and skipped.
func (s *socket) replay(ctx context.Context, who *requester, id channel.ID, after int64) error {
	s.deliverMu.Lock()
	defer s.deliverMu.Unlock()
	for {
		since := after
		page, end, more, err := s.handler.deps.Channels.HistoryPage(ctx, who.onChannels(), id, channels.HistoryQuery{SinceSequence: &since, PageSize: channels.MaxPage})
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return s.queue.pushWaiting(ctx, plainjson.MustEncode(s.handler.errorOf(who.Caller, err)))
		}
		for _, m := range page {
			raw, err := encodeMessageFrame(m)
			if err != nil {
				return err
			}
			if err := s.queue.pushWaiting(ctx, raw); err != nil {
				return err
			}
			after = m.Sequence
		}
		if s.last == nil {
			s.last = map[channel.ID]int64{}
		}
		s.last[id] = after
		if !more {
			return nil
		}
		after = end
	}
}

// deliver queues a frame of the feed, unless a resumption has written its message already.
func (s *socket) deliver(frame json.RawMessage, m *message.Message) error {
	s.deliverMu.Lock()
	defer s.deliverMu.Unlock()
	if m != nil {
		if last, resumed := s.last[m.Channel]; resumed {
			if m.Sequence <= last {
				return nil
			}
			delete(s.last, m.Channel)
		}
	}
	return s.queue.push(frame)
}

// send queues a frame.
func (s *socket) send(frame any) error {
	raw, err := plainjson.Encode(frame)
	if err != nil {
		return err
	}
	return s.queue.push(raw)
}

// writeQueued writes the queued frames.
func (s *socket) writeQueued() error {
	for {
		frame, ok := s.queue.pop()
		if !ok {
			return nil
		}
		if err := s.conn.Write(frame); err != nil {
			return err
		}
	}
}

func closeReason(cause error) (websocket.StatusCode, string) {
	e := kg.AsError(cause)
	switch code := kg.CodeOf(cause); {
	case errors.Is(cause, sse.ErrClientGone):
		return websocket.StatusNormalClosure, ""
	case errors.Is(cause, sse.ErrShutdown) || code == kg.CodeClosed:
		return websocket.StatusGoingAway, "the server is shutting down"
	case errors.Is(cause, sse.ErrSlowConsumer) || code == kg.CodeResync:
		return websocket.StatusTryAgainLater, "the client read too slowly"
	case errors.Is(cause, errSilent):
		return statusSilent, cause.Error()
	case code == kg.CodeUnauthenticated:
		return ws.StatusUnauthorized, kg.Excerpt(e.Message, ws.MaxReasonBytes-len("…"))
	case code == kg.CodeLimitExceeded && e.Limit == "streams":
		return statusTooMany, kg.Excerpt(e.Message, ws.MaxReasonBytes-len("…"))
	case code == kg.CodePermissionDenied || code == kg.CodeSourceForbidden:
		return ws.StatusForbidden, kg.Excerpt(e.Message, ws.MaxReasonBytes-len("…"))
	case code == kg.CodeTimeout || code == kg.CodeChannelNotFound || code == kg.CodeLimitExceeded:
		return websocket.StatusPolicyViolation, kg.Excerpt(e.Message, ws.MaxReasonBytes-len("…"))
	case code == kg.CodeRateLimited || code == kg.CodeOverloaded || code == kg.CodeAccessChanged:
		return websocket.StatusTryAgainLater, string(code)
	}
	return websocket.StatusInternalError, reasonUndecided
}

// answerFrame executes a frame and queues the answer. Its error ends the socket.
func (s *socket) answerFrame(kind websocket.MessageType, raw []byte, taken *throttle.Received) error {
	defer taken.Release()
	s.silence.Reset(s.handler.options.Silence)
	var f received
	var err error
	if kind != websocket.MessageText {
		err = kg.Errorf(kg.CodeInvalid, "a frame must be text")
	} else {
		err = rest.Decode(raw, &f)
	}
	var answer *sentFrame
	if err == nil {
		answer, err = s.executeFrame(&f)
	}
	if s.conn.Context().Err() != nil {
		return nil // it has ended
	}
	if err != nil {
		out := s.handler.errorOf(s.currentCaller(), err)
		out.RequestID = f.RequestID
		return s.send(out)
	}
	if answer == nil {
		return nil
	}
	answer.RequestID = f.RequestID
	return s.send(answer)
}

// executeFrame executes a frame and returns the answer.
func (s *socket) executeFrame(f *received) (*sentFrame, error) {
	who := s.requester()
	if f.Type == frameAuth || f.Type == frameJoin && f.Key != "" && who == nil {
		return nil, s.authenticate(who, f)
	}
	if who == nil {
		err := errNoAuthFrame()
		s.endWith(s.currentCaller(), err)
		return nil, err
	}
	h, ctx := s.handler, caller.With(s.conn.Context(), who.Caller)
	id := channel.ID(f.RoomID)
	switch f.Type {
	case framePong: // the answer of a guest
		return nil, nil
	case framePing:
		return &sentFrame{Type: framePong, ServerTime: h.now()}, nil
	case frameJoin:
		room, err := h.join(ctx, who, id)
		return &sentFrame{Type: frameJoined, Room: room}, err
	case frameLeave:
		return &sentFrame{Type: frameLeft, RoomID: f.RoomID}, h.deps.Channels.Members().Leave(ctx, who.onChannels(), id)
	case frameMessage:
		return s.publish(ctx, who, f)
	case frameTyping:
		return nil, h.deps.Channels.Signal(ctx, who.onChannels(), id, channels.Typing, nil)
	case frameReaction:
		return nil, s.react(ctx, who, f)
	case frameStatus:
		return s.setStatus(ctx, who, f)
	case frameSubscribe:
		return s.subscribe(ctx, who, f)
	}
	return nil, kg.Errorf(kg.CodeInvalid, "must be auth, join, leave, message, ping, typing, reaction, status or subscribe").At("type")
}

// authenticate authenticates the client with its first frame.
func (s *socket) authenticate(who *requester, f *received) error {
	if who != nil {
		return kg.Errorf(kg.CodeInvalid, "the socket is authenticated already").At("type")
	}
	opened := caller.From(s.conn.Context())
	err := s.checkResume(f.Resume)
	if err != nil {
		return err
	}
	by, token := opened, f.Token
	if f.Type == frameJoin {
		s.guest, token = true, f.Key
	}
	if token == "" {
		err = errNoAuthFrame()
	} else {
		by, err = s.handler.connect(s.conn.Context(), s.conn.End, opened, token)
	}
	if err == nil {
		who, err = requesterOf(by)
	}
	if err == nil {
		if admitErr := s.conn.Admit(who.Caller); admitErr != nil {
			err = rest.StreamError(admitErr)
		}
	}
	var joined *sentFrame
	if err == nil && s.guest {
		joined, err = s.joinAsGuest(who, f)
	}
	if err == nil {
		err = s.begin(who, f.RequestID, f.Resume, joined)
	}
	if err != nil {
		s.endWith(opened, err)
	}
	return nil
}

// joinAsGuest joins the room of an invitation and returns the answer.
func (s *socket) joinAsGuest(who *requester, f *received) (*sentFrame, error) {
	id := f.RoomID
	if id == "" {
		id = f.Room
	}
	joined, err := s.handler.join(caller.With(s.conn.Context(), who.Caller), who, channel.ID(id))
	if err != nil {
		return nil, err
	}
	return &sentFrame{Type: frameJoined, AgentID: agents.ShortID(who.agent), Room: joined, Members: &joined.Members}, nil
}

// pingGuest sends ping frames, which guests answer with pong.
func (s *socket) pingGuest() error {
	ticker := time.NewTicker(s.handler.options.PingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.conn.Context().Done():
			return nil
		case <-ticker.C:
		}
		if err := s.send(&sentFrame{Type: framePing}); err != nil {
			return err
		}
	}
}

func (s *socket) checkResume(resume map[string]int64) error {
	if len(resume) > MaxResumedRooms {
		return kg.Errorf(kg.CodeLimitExceeded, "resume has %d rooms; the limit is %d", len(resume), MaxResumedRooms).At("resume")
	}
	for id, after := range resume {
		if after < 0 {
			return kg.Errorf(kg.CodeInvalid, "must be a sequence").At(fmt.Sprintf("resume.%.60s", id))
		}
	}
	return nil
}

func (s *socket) publish(ctx context.Context, who *requester, f *received) (*sentFrame, error) {
	d := messageDraft{Content: f.Content, Type: f.MessageType, Metadata: f.Metadata, Tags: f.Tags}
	p, err := d.toPublication(channel.ID(f.RoomID))
	if err != nil {
		if e := *kg.AsError(err); e.Field == "type" {
			e.Field = "message_type"
			return nil, &e
		}
		return nil, err
	}
	p.IdempotencyKey = f.IdempotencyKey
	m, err := s.handler.publish(ctx, who, p)
	if err != nil || f.RequestID == nil {
		return nil, err
	}
	return &sentFrame{Type: frameAck, Message: encodeMessage(m)}, nil
}

// reaction is the data of the signal of a reaction.
type reaction struct {
	MessageID message.ID `json:"messageId"`
	Emoji     string     `json:"emoji"`
}

func (s *socket) react(ctx context.Context, who *requester, f *received) error {
	switch {
	case f.Emoji == "":
		return kg.Errorf(kg.CodeInvalid, "is required").At("emoji")
	case !utf8.ValidString(f.Emoji):
		return kg.Errorf(kg.CodeInvalid, "must be UTF-8").At("emoji")
	case len(f.Emoji) > MaxEmojiBytes:
		return kg.Errorf(kg.CodeLimitExceeded, "has more than %d bytes", MaxEmojiBytes).At("emoji")
	}
	data, err := json.Marshal(reaction{message.ID(f.MessageID), f.Emoji})
	if err != nil {
		return err
	}
	return s.handler.deps.Channels.Signal(ctx, who.onChannels(), channel.ID(f.RoomID), channels.Reaction, data)
}

func (s *socket) setStatus(ctx context.Context, who *requester, f *received) (*sentFrame, error) {
	if err := s.handler.setStatus(ctx, who, f.Status); err != nil || f.RequestID == nil {
		return nil, err
	}
	return &sentFrame{Type: frameStatus, Status: f.Status}, nil
}

// subscribe writes again the messages of a room after a sequence.
func (s *socket) subscribe(ctx context.Context, who *requester, f *received) (*sentFrame, error) {
	if f.After == nil || *f.After < 0 {
		return nil, kg.Errorf(kg.CodeInvalid, "must be a sequence").At("after")
	}
	id := channel.ID(f.RoomID)
	c, err := s.handler.deps.Channels.Get(ctx, who.onChannels(), id)
	if err != nil {
		return nil, err
	}
	if c.MemberRole(who.agent) == "" {
		return nil, kg.Errorf(kg.CodePermissionDenied, "only a member of the room can do this")
	}
	if f.RequestID != nil {
		if err := s.send(&sentFrame{Type: frameSubscribed, RequestID: f.RequestID, RoomID: f.RoomID, After: f.After}); err != nil {
			return nil, err
		}
	}
	return nil, s.replay(ctx, who, id, *f.After)
}
