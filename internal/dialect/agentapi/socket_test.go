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

// hears reads the next frame, and gives the first id in it.
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

// Requester and handler hear of a task, from its beginning to its end, and nobody
// else does.
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
	first, second := bot.next(), bot.next() // the answer, and what everybody hears
	if want := `{"type":"task.completed","requestId":7,` + done; first != want && second != want {
		t.Errorf("answered %s and %s, want %s", first, second, want)
	}
	ann.hears(`{"type":"task.completed",` + done)
	ann.say(`{"type":"task.completed","requestId":[1],"task":{"id":"` + id + `"}}`)
	ann.hears(`{"type":"error","requestId":[1],"error":{"code":"AUTHORIZATION_ERROR","message":"what becomes of a task is its handler's to say","details":{"field":"id","reason":"PERMISSION_DENIED"}}}`)
	eve.say(`{"type":"task.updated","requestId":"r2","task":{"id":"` + id + `","state":"completed"}}`)
	eve.hears(`{"type":"error","requestId":"r2","error":{"code":"TASK_NOT_FOUND","message":"there is no such task","details":{"field":"id","reason":"TASK_NOT_FOUND"}}}`)
	for _, frame := range []string{`{"type":"nothing"}`, `{`, `{"type":"message","agentId":"none","message":[{"type":"text","content":"x"}]}`, `{"type":"task.updated"}`} {
		eve.say(frame)
		if got := eve.next(); !strings.HasPrefix(got, `{"type":"error","error":{"code":`) {
			t.Errorf("%s: %s", frame, got)
		}
	}
}

// next is the next frame.
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

// An agent that was away finds what waits, and then what comes, in order.
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

// Frames have a bound, and a socket that passes it is closed.
func TestSocketBounds(t *testing.T) {
	s := start(t)
	ann := s.dial("ann")
	ann.say(`{"type":"message","agentId":"bot","message":[{"type":"text","content":"` + strings.Repeat("x", 1<<20) + `"}]}`)
	ann.ends(websocket.StatusMessageTooBig)
}

// Where the server wants to know who is calling, the first frame says it.
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
	ann.hears(`{"type":"error","requestId":1,"error":{"code":"AUTHENTICATION_ERROR","message":"the first frame says who you are: {\"type\":\"auth\"}","details":{"reason":"UNAUTHENTICATED"}}}`)
	ann.say(`{"type":"auth","authorization":"Bearer good"}`)
	ann.say(`{"type":"message","agentId":"bot","message":[{"type":"text","content":"x"}]}`)
	ann.hears(`{"type":"task.created",` + frameHead + `"pending"` + frameTime + `,"artifacts":[]},"messageId":"<id>.1"}`)
	eve := s.dial("")
	eve.say(`{"type":"auth","authorization":"Bearer bad"}`)
	eve.ends(4401)
	late := startWith(t, func(o *options) { o.anonymous, o.AuthTimeout = caller.MethodNone, 50*time.Millisecond }).dial("")
	late.ends(4401)
}

// What ends the server ends its sockets, with the code for that.
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
}
