package agentapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"koine/internal/caller"
	"koine/internal/dialect/agentapi"
	"koine/internal/slowtest"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/internal/throttle"
	"koine/kg"
)

// peer is the other end of a socket.
type peer struct {
	t    testing.TB
	conn *websocket.Conn
}

func (s *server) dial(agent string) *peer {
	s.t.Helper()
	conn, _, err := websocket.Dial(s.t.Context(), s.URL+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-ID": {agent}}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return &peer{s.t, conn}
}

func (p *peer) say(frame string) {
	p.t.Helper()
	if err := p.conn.Write(p.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		p.t.Fatal(err)
	}
}

// hears reads the next frame and returns the first id in it.
func (p *peer) hears(want string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	_, raw, err := p.conn.Read(ctx)
	if err != nil {
		p.t.Fatalf("%v, want %s", err, want)
	}
	if got := mask(string(raw)); got != want {
		p.t.Errorf("heard\n%s\nwant\n%s", got, want)
	}
	return ids.FindString(string(raw))
}

func (p *peer) ends(want websocket.StatusCode) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	for {
		_, raw, err := p.conn.Read(ctx)
		if err == nil {
			if !strings.Contains(string(raw), `"type":"error"`) {
				p.t.Errorf("heard %s", raw)
			}
			continue
		}
		if got := websocket.CloseStatus(err); got != want {
			p.t.Errorf("closed with %d (%v), want %d", got, err, want)
		}
		return
	}
}

const (
	frameHead = `"taskId":"<id>","task":{"id":"<id>","agentId":"bot","state":`
	frameTime = `,"createdAt":"<time>","updatedAt":"<time>"`
)

// Creator and handler receive the frames of a task from start to end, and no other
// agent does.
func TestSockets(t *testing.T) {
	s := start(t)
	ann, bot, eve := s.dial("ann"), s.dial("bot"), s.dial("eve")
	ann.say(`{"type":"message","requestId":"r1","agentId":"bot","message":[{"type":"text","content":"weather?"}],"metadata":{"k":1}}`)
	task := frameHead + `"pending"` + frameTime + `,"artifacts":[],"metadata":{"k":1}}`
	id := ann.hears(`{"type":"task.created","requestId":"r1",` + task + `,"messageId":"<id>.1"}`)
	bot.hears(`{"type":"task.created",` + task + `,"messageId":"<id>.1","agentId":"bot","from":"ann","message":[{"type":"text","content":"weather?"}]}`)
	bot.say(`{"type":"task.updated","task":{"id":"` + id + `","state":"in_progress"}}`)
	working := `{"type":"task.updated",` + frameHead + `"in_progress"` + frameTime + `,"artifacts":[],"metadata":{"k":1}}}`
	bot.hears(working)
	ann.hears(working)
	bot.say(`{"type":"task.completed","requestId":7,"task":{"id":"` + id + `","artifacts":[{"type":"result","content":{"c":20}}]}}`)
	done := frameHead + `"completed"` + frameTime + `,"artifacts":[{"id":"artifact-1","type":"result","content":{"c":20}}],"metadata":{"k":1}}}`
	first, second := bot.next(), bot.next() // the answer, and the event for all
	if want := `{"type":"task.completed","requestId":7,` + done; first != want && second != want {
		t.Errorf("answered %s and %s, want %s", first, second, want)
	}
	ann.hears(`{"type":"task.completed",` + done)
	ann.say(`{"type":"task.completed","requestId":[1],"task":{"id":"` + id + `"}}`)
	ann.hears(`{"type":"error","requestId":[1],"error":{"code":"AUTHORIZATION_ERROR","message":"only the handler may report on a task","details":{"field":"id","reason":"PERMISSION_DENIED"}}}`)
	eve.say(`{"type":"task.updated","requestId":"r2","task":{"id":"` + id + `","state":"completed"}}`)
	eve.hears(`{"type":"error","requestId":"r2","error":{"code":"TASK_NOT_FOUND","message":"the task does not exist","details":{"field":"id","reason":"TASK_NOT_FOUND"}}}`)
	for _, frame := range []string{`{"type":"nothing"}`, `{`, `{"type":"message","agentId":"none","message":[{"type":"text","content":"x"}]}`, `{"type":"task.updated"}`} {
		eve.say(frame)
		if got := eve.next(); !strings.HasPrefix(got, `{"type":"error","error":{"code":`) {
			t.Errorf("%s: %s", frame, got)
		}
	}
}

// next returns the next frame.
func (p *peer) next() string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	_, raw, err := p.conn.Read(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	return mask(string(raw))
}

// An agent that was away receives the waiting letters, then new ones, in order.
func TestSocketOfWhoWasAway(t *testing.T) {
	s := start(t)
	id := s.sendTo("ann", `{"message":[{"type":"text","content":"1"}]}`)
	s.wants("more", "ann", "POST", "/agents/bot/messages", `{"taskId":"`+id+`","message":[{"type":"text","content":"2"}]}`, 202, `{"taskId":"<id>","messageId":"<id>.2"}`)
	bot := s.dial("bot")
	head := frameHead + `"pending"` + frameTime + `,"artifacts":[]},"messageId":`
	bot.hears(`{"type":"task.created",` + head + `"<id>.1","agentId":"bot","from":"ann","message":[{"type":"text","content":"1"}]}`)
	bot.hears(`{"type":"message",` + head + `"<id>.2","agentId":"bot","from":"ann","message":[{"type":"text","content":"2"}]}`)
	s.sendTo("ann", `{"message":[{"type":"text","content":"3"}]}`)
	bot.hears(`{"type":"task.created",` + head + `"<id>.1","agentId":"bot","from":"ann","message":[{"type":"text","content":"3"}]}`)
}

// The metadata of a message, which A2A has beside that of the task, is delivered with
// it.
func TestMetadataOfMessages(t *testing.T) {
	s := start(t)
	bot := s.dial("bot")
	s.open(1)
	by := caller.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}
	message := tasks.Message{Parts: []tasks.Part{tasks.TextPart("x")}, Metadata: json.RawMessage(`{"of":"the message","n":1.50}`)}
	if _, err := s.tasks.Send(t.Context(), by, tasks.SendRequest{To: "agent://bot", AlwaysTask: true, Message: message, Metadata: json.RawMessage(`{"of":"the task"}`)}); err != nil {
		t.Fatal(err)
	}
	bot.hears(`{"type":"task.created",` + frameHead + `"pending"` + frameTime + `,"artifacts":[],"metadata":{"of":"the task"}},"messageId":"<id>.1","agentId":"bot","from":"ann","message":[{"type":"text","content":"x"}],"metadata":{"of":"the message","n":1.50}}`)
}

// A socket that exceeds the limit of frames is closed.
func TestSocketBounds(t *testing.T) {
	s := start(t)
	ann := s.dial("ann")
	ann.say(`{"type":"message","agentId":"bot","message":[{"type":"text","content":"` + strings.Repeat("x", 1<<20) + `"}]}`)
	ann.ends(websocket.StatusMessageTooBig)
}

// If authentication is required, the first frame has the credential.
func TestSocketAuthentication(t *testing.T) {
	s := startWith(t, func(o *options) {
		o.anonymous = caller.MethodNone
		o.Connect = func(_ context.Context, _ func(error), _ caller.Caller, payload json.RawMessage) (caller.Caller, error) {
			if !strings.Contains(string(payload), "good") {
				return caller.Caller{}, kg.Errorf(kg.CodeUnauthenticated, "no such key")
			}
			return caller.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}, nil
		}
		o.AuthTimeout = time.Minute
	})
	ann := s.dial("")
	ann.say(`{"type":"message","requestId":1,"agentId":"bot","message":[{"type":"text","content":"x"}]}`)
	ann.hears(`{"type":"error","requestId":1,"error":{"code":"AUTHENTICATION_ERROR","message":"authentication required: send {\"type\":\"auth\"} as the first frame","details":{"reason":"UNAUTHENTICATED"}}}`)
	ann.say(`{"type":"auth","requestId":2,"authorization":"Bearer good"}`)
	ann.hears(`{"type":"auth","requestId":2}`)
	ann.say(`{"type":"auth","authorization":"Bearer good"}`) // a second one has no meaning
	ann.say(`{"type":"message","agentId":"bot","message":[{"type":"text","content":"x"}]}`)
	ann.hears(`{"type":"task.created",` + frameHead + `"pending"` + frameTime + `,"artifacts":[]},"messageId":"<id>.1"}`)
	eve := s.dial("")
	eve.say(`{"type":"auth","authorization":"Bearer bad"}`)
	eve.ends(4401)
	late := startWith(t, func(o *options) { o.anonymous, o.AuthTimeout = caller.MethodNone, 50*time.Millisecond }).dial("")
	late.ends(4401)
}

// Shutting down the server ends its sockets with the code for it.
func TestSocketsEndWithTheServer(t *testing.T) {
	s := start(t)
	ann := s.dial("ann")
	ann.say(`{"type":"nothing"}`)
	ann.next()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ann.ends(websocket.StatusGoingAway)
	}()
	if err := s.streams.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-ended
	if end, want := <-s.ends, (sse.End{Transport: "agent-api", Reason: "SERVER_SHUTDOWN"}); end != want {
		t.Errorf("reported %+v, want %+v", end, want)
	}
}

// Only creator and handler receive the frames of a task, not every agent that may read
// it.
func TestSocketsOfOthersHearNothing(t *testing.T) {
	s := start(t)
	ann, bot, root, eve := s.dial("ann"), s.dial("bot"), s.dial("root"), s.dial("eve")
	ann.say(`{"type":"message","agentId":"bot","message":[{"type":"text","content":"x"}]}`)
	head := frameHead + `"pending"` + frameTime + `,"artifacts":[]},"messageId":"<id>.1"`
	id := ann.hears(`{"type":"task.created",` + head + `}`)
	bot.hears(`{"type":"task.created",` + head + `,"agentId":"bot","from":"ann","message":[{"type":"text","content":"x"}]}`)
	bot.say(`{"type":"task.completed","task":{"id":"` + id + `"}}`)
	done := `{"type":"task.completed",` + frameHead + `"completed"` + frameTime + `,"artifacts":[]}}`
	bot.hears(done)
	ann.hears(done)
	for _, other := range []*peer{root, eve} { // whose first frame is the answer to their own
		other.say(`{"type":"nothing","requestId":"mine"}`)
		if got := other.next(); !strings.HasPrefix(got, `{"type":"error","requestId":"mine","error":{"code":"INVALID_REQUEST"`) {
			t.Errorf("heard %s", got)
		}
	}
}

// The id of a request is repeated exactly; the answer to a frame without one has none.
func TestRequestIDsComeBack(t *testing.T) {
	s := start(t)
	ann := s.dial("ann")
	for _, id := range []string{`"a"`, `1.50`, `null`, `{"a":[1]}`, `9007199254740993`} {
		ann.say(`{"type":"message","requestId":` + id + `,"agentId":"bot","message":[{"type":"text","content":"x"}]}`)
		if got := ann.next(); !strings.HasPrefix(got, `{"type":"task.created","requestId":`+id+`,"taskId":`) {
			t.Errorf("%s: answered %s", id, got)
		}
		ann.say(`{"type":"task.updated","requestId":` + id + `,"task":{"id":"none"}}`)
		if got := ann.next(); !strings.HasPrefix(got, `{"type":"error","requestId":`+id+`,"error":{"code":"TASK_NOT_FOUND"`) {
			t.Errorf("%s: answered %s", id, got)
		}
	}
	for _, frame := range []string{`{"type":"message","agentId":"bot","message":[]}`, `no JSON`} {
		ann.say(frame)
		if got := ann.next(); !strings.HasPrefix(got, `{"type":"error","error":{"code":"INVALID_REQUEST"`) {
			t.Errorf("%s: answered %s", frame, got)
		}
	}
	if err := ann.conn.Write(t.Context(), websocket.MessageBinary, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if got := ann.next(); !strings.Contains(got, "a frame must be text") {
		t.Errorf("bytes: answered %s", got)
	}
}

// A page of an origin that is not allowed opens no socket.
func TestSocketOrigins(t *testing.T) {
	s := startWith(t, func(o *options) {
		o.OriginAllowed = func(r *http.Request) bool { return r.Header.Get("Origin") == "https://good.example" }
	})
	for origin, want := range map[string]int{"https://good.example": http.StatusSwitchingProtocols, "https://evil.example": http.StatusForbidden, "": http.StatusForbidden} {
		conn, response, err := websocket.Dial(t.Context(), s.URL+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-ID": {"ann"}, "Origin": {origin}}})
		if err == nil {
			_ = conn.CloseNow()
		}
		if response == nil || response.StatusCode != want {
			t.Errorf("%q: %v, want %d", origin, err, want)
		}
	}
}

// open waits until n streams are open.
func (s *server) open(n int) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); s.streams.Streams() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%d are open, want %d", s.streams.Streams(), n)
		}
	}
}

// A client that does not answer pings is disconnected and releases its place.
func TestSocketThatDoesNotAnswer(t *testing.T) {
	slowtest.Long(t)
	s := startWith(t, func(o *options) { o.PingInterval = 20 * time.Millisecond })
	s.dial("ann") // which reads nothing, and so answers nothing
	s.open(0)
}

// A client that does not read is cut off, releases its place, and delays no other
// client.
func TestSocketThatTakesNothing(t *testing.T) {
	slowtest.Long(t)
	s := startWith(t, func(o *options) { o.WriteTimeout, o.PingInterval = 3*time.Second, time.Hour }) // no ping finds it out
	s.dial("bot")
	ann := s.dial("ann")
	s.open(2)
	large := strings.Repeat("x", 200<<10)
	for range 60 { // more than the buffers between the two hold
		ann.say(`{"type":"message","agentId":"bot","message":[{"type":"text","content":"` + large + `"}]}`)
		ann.next()
	}
	s.open(1)
	ann.say(`{"type":"message","requestId":1,"agentId":"bot","message":[{"type":"text","content":"x"}]}`)
	if got := ann.next(); !strings.HasPrefix(got, `{"type":"task.created","requestId":1`) {
		t.Errorf("heard %s", got)
	}
}

// begin sends the start of a frame.
func (p *peer) begin(size int) {
	p.t.Helper()
	w, err := p.conn.Writer(p.t.Context(), websocket.MessageText)
	if err == nil {
		_, err = w.Write([]byte(strings.Repeat("x", size)))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// Before authentication the limit of a frame is that of a credential.
func TestSocketBytesBeforeAuth(t *testing.T) {
	s := startWith(t, func(o *options) {
		o.anonymous, o.AuthTimeout = caller.MethodNone, time.Minute
		o.Connect = func(context.Context, func(error), caller.Caller, json.RawMessage) (caller.Caller, error) {
			return caller.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}, nil
		}
	})
	const empty = `{"type":"auth","requestId":"","authorization":"x"}`
	id := func(size int) string { return `"` + strings.Repeat("i", size-len(empty)) + `"` } // of a frame of the size
	auth := func(size int) string { return strings.Replace(empty, `""`, id(size), 1) }
	ann := s.dial("")
	ann.say(auth(agentapi.MaxAuthBytes))
	ann.hears(`{"type":"auth","requestId":` + id(agentapi.MaxAuthBytes) + `}`)
	ann.say(`{"type":"message","requestId":1,"agentId":"nobody","message":[{"type":"text","content":"` + strings.Repeat("x", 2*agentapi.MaxAuthBytes) + `"}]}`) // and behind it more
	ann.hears(`{"type":"error","requestId":1,"error":{"code":"AGENT_NOT_FOUND","message":"there is no such agent","details":{"field":"agentId","reason":"AGENT_NOT_FOUND"}}}`)
	eve := s.dial("")
	eve.say(auth(agentapi.MaxAuthBytes + 1))
	eve.ends(websocket.StatusMessageTooBig)
}

// Unauthenticated sockets have a limit of their own, of which one address may use half.
func TestPendingSockets(t *testing.T) {
	s := startWith(t, func(o *options) {
		o.anonymous, o.AuthTimeout, o.MaxPendingSockets = caller.MethodNone, time.Minute, 4
	})
	first := s.dial("")
	s.dial("")
	_, response, err := websocket.Dial(t.Context(), s.URL+"/ws", nil)
	if err == nil || response == nil || response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("past the share: got %v, %v", response, err)
	}
	_ = first.conn.CloseNow()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // the server has noticed
		conn, response, err := websocket.Dial(t.Context(), s.URL+"/ws", nil)
		if err == nil {
			_ = conn.CloseNow()
			return
		}
		if time.Now().After(deadline) || response == nil || response.StatusCode != http.StatusTooManyRequests {
			t.Fatal(err)
		}
	}
}

// An incomplete frame has a time limit.
func TestSocketUnfinishedFrame(t *testing.T) {
	s := startWith(t, func(o *options) {
		o.Intake = throttle.Intake{Grace: 50 * time.Millisecond, BytesPerSecond: 1 << 20}
	})
	ann := s.dial("ann")
	ann.begin(10_000)
	ann.ends(websocket.StatusPolicyViolation)
}

// Unanswered bytes have a budget, of which one caller may use half.
func TestSocketBytesReceived(t *testing.T) {
	pool := throttle.NewPool(64 << 10)
	s := startWith(t, func(o *options) { o.Intake = throttle.Intake{Pool: pool} })
	first, second := s.dial("ann"), s.dial("ann")
	first.begin(20_000)
	for deadline := time.Now().Add(time.Minute); pool.InUse() < 16<<10; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("what was sent is not accounted for")
		}
	}
	second.begin(30_000)
	second.ends(websocket.StatusTryAgainLater)
}
