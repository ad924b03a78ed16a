package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"koine/graph"
	"koine/graph/transport"
	"koine/internal/caller"
	"koine/internal/slowtest"
	"koine/internal/sse"
	"koine/internal/throttle"
	"koine/kg"
)

// peer is the client's end of a socket.
type peer struct {
	t    testing.TB
	b    *bench
	conn *websocket.Conn
	ctx  context.Context
}

func (b *bench) dial(t testing.TB, server *httptest.Server, subprotocols ...string) *peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	if subprotocols == nil {
		subprotocols = []string{"graphql-transport-ws"}
	}
	conn, _, err := websocket.Dial(ctx, server.URL+"/graphql", &websocket.DialOptions{Subprotocols: subprotocols, HTTPHeader: http.Header{"X-Agent-Id": {"reader"}}})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &peer{t, b, conn, ctx}
}

// connected is a peer behind its connection_init.
func (b *bench) connected(t testing.TB, server *httptest.Server) *peer {
	t.Helper()
	p := b.dial(t, server)
	p.send(`{"type":"connection_init"}`)
	p.want(`{"type":"connection_ack"}`)
	return p
}

func (p *peer) send(text string) {
	p.t.Helper()
	if err := p.conn.Write(p.ctx, websocket.MessageText, []byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) subscribe(id, query string) {
	p.t.Helper()
	p.send(fmt.Sprintf(`{"id":%q,"type":"subscribe","payload":{"query":%q}}`, id, query))
}

func (p *peer) receive() string {
	p.t.Helper()
	_, text, err := p.conn.Read(p.ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

func (p *peer) want(text string) {
	p.t.Helper()
	if diff := cmp.Diff(strings.ReplaceAll(text, "<head>", p.b.store.FormatPosition(p.b.store.Head())), p.receive()); diff != "" {
		p.t.Fatalf("message (-want +got):\n%s", diff)
	}
}

func (p *peer) wantClose(code websocket.StatusCode, reason string) {
	p.t.Helper()
	for {
		_, _, err := p.conn.Read(p.ctx)
		if err == nil {
			continue
		}
		var closed websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != code || reason != "" && closed.Reason != reason {
			p.t.Fatalf("got %v, want the close code %d, %q", err, code, reason)
		}
		return
	}
}

// TestSocketRefuses pins the close codes of graphql-transport-ws.
func TestSocketRefuses(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{MaxBodyBytes: 4 << 10}, sse.Options{})
	const init = `{"type":"connection_init"}`
	watch := fmt.Sprintf(`{"id":"1","type":"subscribe","payload":{"query":%q}}`, following("latest"))
	long := strings.Repeat("x", transport.MaxOperationID)
	for _, x := range []struct {
		name   string
		send   []string
		code   websocket.StatusCode
		reason string
	}{
		{"no JSON", []string{"hello"}, 4400, "Invalid message: it is not JSON"},
		{"no object", []string{"[]"}, 4400, ""},
		{"no type", []string{"{}"}, 4400, "Invalid message: type must be a string"},
		{"another type", []string{`{"type":"next","id":"1","payload":{}}`}, 4400, "Invalid message: type is not a client message"},
		{"a payload that is no object", []string{`{"type":"ping","payload":1}`}, 4400, "Invalid message: payload must be an object"},
		{"no id", []string{init, `{"type":"subscribe","payload":{"query":"{ revision }"}}`}, 4400, ""},
		{"an empty id", []string{init, `{"id":"","type":"complete"}`}, 4400, ""},
		{"a long id", []string{init, `{"id":"` + long + `x","type":"complete"}`}, 4400, "Invalid message: id is too long"},
		{"no payload", []string{init, `{"id":"1","type":"subscribe"}`}, 4400, ""},
		{"no query", []string{init, `{"id":"1","type":"subscribe","payload":{}}`}, 4400, ""},
		{"a query that is no string", []string{init, `{"id":"1","type":"subscribe","payload":{"query":1}}`}, 4400, "Invalid message: query must be a string"},
		{"too deep", []string{`{"type":"ping","payload":` + strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat(`}`, 65)}, 4400, "Invalid message: it is nested too deeply"},
		{"not initialised", []string{watch}, 4401, "Unauthorized"},
		{"a second init", []string{init, init}, 4429, "Too many initialisation requests"},
		{"an id twice", []string{init, watch, watch}, 4409, "Subscriber for 1 already exists"},
		{"a long id twice", []string{init, strings.Replace(watch, `"1"`, `"`+long+`"`, 1), strings.Replace(watch, `"1"`, `"`+long+`"`, 1)}, 4409, "Subscriber already exists"},
		{"too large", []string{init, `{"type":"ping"` + strings.Repeat(" ", 4<<10-len(`{"type":"ping"}`)+1) + `}`}, websocket.StatusMessageTooBig, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := b.dial(t, server)
			for _, text := range x.send {
				p.send(text)
			}
			p.wantClose(x.code, x.reason)
		})
	}
	t.Run("binary", func(t *testing.T) {
		p := b.dial(t, server)
		if err := p.conn.Write(p.ctx, websocket.MessageBinary, []byte(init)); err != nil {
			t.Fatal(err)
		}
		p.wantClose(4400, "Invalid message: it must be text")
	})
	t.Run("another subprotocol", func(t *testing.T) {
		b.dial(t, server, "graphql-ws").wantClose(4406, "Subprotocol not acceptable")
	})
	t.Run("no WebSocket", func(t *testing.T) {
		b.exchange(t, server, exchange{method: "GET", header: map[string]string{"Upgrade": "websocket"}, status: 426, reply: "*"})
	})
	t.Run("as large as allowed", func(t *testing.T) {
		p := b.connected(t, server)
		p.send(`{"type":"ping"` + strings.Repeat(" ", 4<<10-len(`{"type":"ping"}`)) + `}`)
		p.want(`{"type":"pong"}`)
	})
	t.Run("as long an id as allowed", func(t *testing.T) {
		p := b.connected(t, server)
		p.subscribe(long, `{ revision }`)
		if got := p.receive(); !strings.HasPrefix(got, `{"type":"next","id":"`+long+`"`) {
			t.Errorf("got %s", got)
		}
	})
	b.settle()
}

// TestSocketOperations pins the messages about operations.
func TestSocketOperations(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{}, sse.Options{})
	p := b.connected(t, server)
	const at0 = `"extensions":{"revision":0,"position":"<head>"}`

	p.subscribe("q", `{ revision }`)
	p.want(`{"type":"next","id":"q","payload":{"data":{"revision":0},` + at0 + `}}`)
	p.want(`{"type":"complete","id":"q"}`)
	p.send(`{"id":"\"q\"\n","type":"subscribe","payload":{"query":"query A { revision } query B { a: revision }","operationName":"B","variables":null}}`)
	p.want(`{"type":"next","id":"\"q\"\n","payload":{"data":{"a":0},` + at0 + `}}`)
	p.want(`{"type":"complete","id":"\"q\"\n"}`)

	p.subscribe("partial", `{ revision entity(iri: "x") { iri } }`)
	if got := p.receive(); !strings.Contains(got, `"data":{"revision":0,"entity":null}`) || !strings.Contains(got, `"errors":[`) {
		t.Errorf("part of the data: got %s", got)
	}
	p.want(`{"type":"complete","id":"partial"}`)
	p.subscribe("syntax", `{`)
	p.want(`{"type":"error","id":"syntax","payload":[{"message":"Expected Name, found \u003cEOF\u003e","locations":[{"line":1,"column":2}],"extensions":{"code":"GRAPHQL_PARSE_FAILED"}}]}`)
	p.subscribe("refused", following("tomorrow"))
	if got := p.receive(); !strings.HasPrefix(got, `{"type":"error","id":"refused","payload":[{"message":"the position is not of this log"`) {
		t.Errorf("refused: got %s", got)
	}

	p.send(`{"type":"ping","payload":{"a":1}}`)
	p.want(`{"type":"pong","payload":{"a":1}}`)
	p.send(`{"type":"pong"}`)
	p.send(`{"type":"complete","id":"unknown"}`)

	// The second is stopped, and its id free again, before the change.
	p.subscribe("one", following("latest"))
	p.subscribe("two", following("latest"))
	eventually(t, "both subscriptions are there", func() bool { return b.store.Stats().Watchers == 2 })
	p.send(`{"type":"complete","id":"two"}`)
	eventually(t, "the second subscription has ended", func() bool { return b.store.Stats().Watchers == 1 })
	p.subscribe("two", `{ revision }`)
	p.want(`{"type":"next","id":"two","payload":{"data":{"revision":0},` + at0 + `}}`)
	p.want(`{"type":"complete","id":"two"}`)
	b.update(add(iri("s"), iri("p"), kg.Integer(1)))
	p.want(`{"type":"next","id":"one","payload":{"data":{"e":{"__typename":"StatementChange","op":"add"}},"extensions":{"revision":1,"position":"<head>"}}}`)
	p.send(`{"id":"m","type":"subscribe","payload":{"query":"mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: \"ex:s\"}, predicate: {id: \"ex:p\"}, object: {value: 2}}}]}) { revision } }"}}`)
	seen := map[string]bool{}
	for range 3 {
		var m struct{ Type, ID string }
		if err := json.Unmarshal([]byte(p.receive()), &m); err != nil {
			t.Fatal(err)
		}
		seen[m.Type+" "+m.ID] = true
	}
	if diff := cmp.Diff(map[string]bool{"next one": true, "next m": true, "complete m": true}, seen); diff != "" {
		t.Errorf("after the mutation (-want +got):\n%s", diff)
	}
	if err := p.conn.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
	b.settle()
}

// While nothing matches, a subscription gets the position scanned to.
func TestSocketTellsWhereItIs(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{UpToDateEvery: 5 * time.Millisecond}, sse.Options{})
	p := b.connected(t, server)
	p.subscribe("1", strings.Replace(following("latest"), `"latest"`, `"latest", where: {subject: {eq: "ex:none"}}`, 1))
	eventually(t, "the subscription is there", func() bool { return b.store.Stats().Watchers == 1 })
	b.update(add(iri("s"), iri("p"), kg.Integer(1)))
	p.want(`{"type":"next","id":"1","payload":{"data":{"e":{"__typename":"Progress","revision":1,"position":"<head>"}},"extensions":{"revision":1,"position":"<head>"}}}`)
}

// A connection has a bounded number of operations; one more is an error of its own, and the
// others continue.
func TestSocketLimit(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{MaxOperations: 2}, sse.Options{})
	p := b.connected(t, server)
	p.subscribe("1", following("latest"))
	p.subscribe("2", following("latest"))
	p.subscribe("3", `{ revision }`)
	p.want(`{"type":"error","id":"3","payload":[{"message":"too many operations run on this connection","extensions":{"code":"LIMIT_EXCEEDED","hint":"Complete some of them, or open another connection.","limit":"operations"}}]}`)
	p.send(`{"type":"complete","id":"2"}`)
	p.subscribe("3", `{ revision }`)
	p.want(`{"type":"next","id":"3","payload":{"data":{"revision":0},"extensions":{"revision":0,"position":"<head>"}}}`)
	p.want(`{"type":"complete","id":"3"}`)
	// The place is given back before the client knows that the operation ended.
	for i := range 50 {
		p.subscribe(fmt.Sprint("n", i), `{ revision }`)
		p.receive()
		p.want(fmt.Sprintf(`{"type":"complete","id":"n%d"}`, i))
	}
	p.subscribe("3", following("latest"))
	p.send(`{"type":"ping"}`)
	p.want(`{"type":"pong"}`)
}

func TestSocketInitTimeout(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{InitTimeout: 500 * time.Millisecond}, sse.Options{})
	b.dial(t, server).wantClose(4408, "Connection initialisation timeout")
	p := b.connected(t, server)
	p.subscribe("1", following("latest"))
	eventually(t, "the subscription is there", func() bool { return b.store.Stats().Watchers == 1 })
}

// The payload of connection_init may authenticate; without a credential the socket is
// refused.
func TestSocketConnect(t *testing.T) {
	b := newBench(t, graph.Options{})
	connect := func(_ context.Context, _ func(error), opened caller.Caller, payload json.RawMessage) (caller.Caller, error) {
		var p struct{ Agent kg.AgentID }
		if json.Unmarshal(payload, &p) != nil || p.Agent == "" {
			return opened, errors.New("who are you?")
		}
		return caller.Caller{Principal: kg.Principal{ID: p.Agent, Method: "test"}}, nil
	}
	server := b.serve(t, transport.Options{Connect: connect}, sse.Options{})
	p := b.dial(t, server)
	p.send(`{"type":"connection_init"}`)
	p.wantClose(4403, "Forbidden")
	p = b.dial(t, server)
	p.send(`{"type":"connection_init","payload":{"agent":"agent://smith"}}`)
	p.want(`{"type":"connection_ack"}`)
	p.subscribe("m", `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: 2}}}]}) { revision } }`)
	p.receive()
	p.want(`{"type":"complete","id":"m"}`)
	p.subscribe("q", `{ statements { nodes { assertedBy } } }`)
	p.want(`{"type":"next","id":"q","payload":{"data":{"statements":{"nodes":[{"assertedBy":["agent://smith"]}]}},"extensions":{"revision":1,"position":"<head>"}}}`)
}

// A fault is the error of its operation, and the socket stays open.
func TestSocketFaults(t *testing.T) {
	b := newBench(t, graph.Options{})
	var ends endings
	streams := sse.New(sse.Options{Ended: ends.add})
	deps := b.deps(streams)
	deps.Engine = faulty{b.engine}
	server := b.serveWith(t, transport.NewHandler(deps, transport.Options{}))
	p := b.connected(t, server)
	internal := `{"type":"error","id":"%s","payload":[{"message":"internal error","extensions":{"code":"INTERNAL"}}]}`
	p.send(`{"id":"1","type":"subscribe","payload":{"operationName":"Panic","query":"query Panic { revision }"}}`)
	p.want(fmt.Sprintf(internal, "1"))
	p.send(`{"id":"2","type":"subscribe","payload":{"operationName":"Panic","query":"subscription Panic { statementChanged { __typename } }"}}`)
	p.want(fmt.Sprintf(internal, "2"))
	var failures []sse.End
	for i, name := range []string{"PanicLater", "FailLater"} {
		p.send(fmt.Sprintf(`{"id":%[1]q,"type":"subscribe","payload":{"operationName":%[1]q,"query":"subscription %[1]s { statementChanged { __typename } }"}}`, name))
		eventually(t, "the subscription is there", func() bool { return b.store.Stats().Watchers == 1 })
		b.update(add(iri("s"), iri("p"), kg.Integer(int64(i))))
		p.receive()
		failures = append(failures, sse.End{Transport: "graphql-ws", Reason: "INTERNAL", Method: "statementChanged", Position: b.store.FormatPosition(b.store.Head())})
		p.want(`{"type":"error","id":"` + name + `","payload":[{"message":"internal error","extensions":{"code":"INTERNAL","position":"<head>"}}]}`)
		b.settle()
	}
	p.send(`{"id":"3","type":"subscribe","payload":{"operationName":"EndLater","query":"subscription EndLater { statementChanged { __typename } }"}}`)
	eventually(t, "the subscription is there", func() bool { return b.store.Stats().Watchers == 1 })
	b.update(add(iri("s"), iri("p"), kg.Integer(9)))
	p.receive()
	p.want(`{"type":"complete","id":"3"}`)
	ends.want(t, failures...) // and not of one that is complete
	if got := strings.Count(b.log.String(), "a fault"); got < 4 {
		t.Errorf("%d faults were logged, want all four:\n%s", got, b.log)
	}
	_ = p.conn.CloseNow()
	if err := streams.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// The log is cut before a subscription has read it: Resync, and complete.
func TestSocketResync(t *testing.T) {
	g := newGate()
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.RingCommits, o.Access = 1, g })
	var ends endings
	server := b.serve(t, transport.Options{}, sse.Options{Ended: ends.add})
	for i := range 5 {
		b.update(add(iri("s"), iri("p"), kg.Integer(int64(i))))
	}
	p := b.connected(t, server)
	p.subscribe("1", following("earliest"))
	<-g.reached
	if err := b.store.Maintenance().CutLog(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	close(g.opened)
	got := p.receive()
	if !strings.Contains(got, `"op":"add"`) {
		t.Fatalf("got %s, want the change that was being looked at", got)
	}
	told := toldPosition(got)
	if got := p.receive(); !strings.Contains(got, `"__typename":"Resync"`) {
		t.Fatalf("got %s, want Resync", got)
	}
	p.want(`{"type":"complete","id":"1"}`)
	ends.want(t, sse.End{Transport: "graphql-ws", Reason: "RESYNC", Method: "statementChanged", Position: told})
}

// The server's end closes sockets, and waits for their operations.
func TestSocketShutdown(t *testing.T) {
	b := newBench(t, graph.Options{})
	var ends endings
	streams := sse.New(sse.Options{MaxStreams: 2, Ended: ends.add}) // of the socket and its subscription
	deps := b.deps(streams)
	deps.Engine = faulty{b.engine}
	server := b.serveWith(t, transport.NewHandler(deps, transport.Options{}))
	p := b.connected(t, server)
	p.subscribe("1", following("latest"))
	p.send(`{"id":"2","type":"subscribe","payload":{"operationName":"Block","query":"query Block { revision }"}}`)
	eventually(t, "the subscription is there", func() bool { return b.store.Stats().Watchers == 1 })
	upgrade := map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
	b.exchange(t, server, exchange{method: "GET", header: upgrade, status: 503, reply: refusal("too many streams are open", "TOO_MANY_STREAMS")})
	ended := make(chan error, 1)
	go func() { ended <- streams.Shutdown(context.Background()) }()
	p.wantClose(websocket.StatusGoingAway, "SERVER_SHUTDOWN")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	ends.want(t, sse.End{Transport: "graphql-ws", Reason: "SERVER_SHUTDOWN"})
	b.settle()
	b.exchange(t, server, exchange{method: "GET", header: upgrade, status: 503, reply: refusal("the server is shutting down", "SERVER_SHUTDOWN")})
}

// A client that reads nothing is let go, and nothing of it is left.
func TestSocketSlowClient(t *testing.T) {
	slowtest.Long(t)
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{WriteTimeout: time.Second, Heartbeat: time.Hour}, sse.Options{})
	p := b.connected(t, server)
	p.subscribe("1", `subscription { statementChanged(resume: "earliest") { ... on StatementChange { statement { object { ... on Literal { value } } } } } }`)
	eventually(t, "the subscription is there", func() bool { return b.store.Stats().Watchers == 1 })
	large := kg.String(strings.Repeat("x", 1<<19))
	for i := range 32 {
		b.update(add(iri(fmt.Sprint("s", i)), iri("p"), large))
	}
	b.settle()
	// It was cut off in the middle, or after its last event.
	for {
		_, _, err := p.conn.Read(p.ctx)
		if err == nil {
			continue
		}
		if code := websocket.CloseStatus(err); code != -1 && code != websocket.StatusTryAgainLater {
			t.Errorf("got %v", err)
		}
		break
	}
}

// A client that does not answer pings is disconnected.
func TestSocketHeartbeat(t *testing.T) {
	slowtest.Long(t)
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{WriteTimeout: time.Second, Heartbeat: 10 * time.Millisecond}, sse.Options{})
	alive := b.connected(t, server)
	alive.subscribe("1", following("latest"))
	reading := alive.conn.CloseRead(t.Context()) // answers pings
	silent := b.connected(t, server)
	silent.subscribe("1", following("latest"))
	eventually(t, "both subscriptions are there", func() bool { return b.store.Stats().Watchers == 2 })
	eventually(t, "the one that does not answer has ended", func() bool { return b.store.Stats().Watchers == 1 })
	if reading.Err() != nil {
		t.Error("the one that answers was let go")
	}
}

// A page of another site cannot open a socket.
func TestSocketOrigin(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{}, sse.Options{})
	for origin, want := range map[string]int{"http://evil.example": 403, "null": 403, server.URL: 101} {
		conn, response, err := websocket.Dial(t.Context(), server.URL+"/graphql", &websocket.DialOptions{
			Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: http.Header{"Origin": {origin}}})
		if response == nil || response.StatusCode != want {
			t.Errorf("%s: got %v, %v, want the status %d", origin, response, err, want)
		}
		if conn != nil {
			_ = conn.CloseNow()
		}
	}
}

// A client that goes away without a word leaves nothing behind.
func TestSocketClientGone(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{}, sse.Options{})
	var raw net.Conn
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		var err error
		raw, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return raw, err
	}}}
	conn, _, err := websocket.Dial(t.Context(), server.URL+"/graphql", &websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t, b, conn, t.Context()}
	p.send(`{"type":"connection_init"}`)
	p.want(`{"type":"connection_ack"}`)
	p.subscribe("1", following("latest"))
	eventually(t, "the subscription is there", func() bool { return b.store.Stats().Watchers == 1 })
	raw.Close()
	b.settle()
}

// Sockets and their subscriptions have a place each among the streams, and give it
// back.
func TestSocketPlaces(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{}, sse.Options{MaxStreams: 3})
	p := b.connected(t, server)
	p.subscribe("1", following("latest"))
	p.subscribe("2", following("latest"))
	eventually(t, "both subscriptions are there", func() bool { return b.store.Stats().Watchers == 2 })
	p.subscribe("3", following("latest"))
	p.want(`{"type":"error","id":"3","payload":[{"message":"too many streams are open","extensions":{"code":"TOO_MANY_STREAMS","hint":"Close streams, or try again later.","retryAfterMs":5000}}]}`)
	p.subscribe("4", `{ revision }`) // which is no stream
	p.want(`{"type":"next","id":"4","payload":{"data":{"revision":0},"extensions":{"revision":0,"position":"<head>"}}}`)
	p.want(`{"type":"complete","id":"4"}`)
	p.send(`{"type":"complete","id":"1"}`)
	eventually(t, "one has ended", func() bool { return b.store.Stats().Watchers == 1 })
	eventually(t, "its place is free", func() bool {
		p.subscribe("5", `subscription { statementChanged(resume: "nothing of the kind") { __typename } }`)
		return !strings.Contains(p.receive(), "TOO_MANY_STREAMS")
	})
}

// Sockets that have not sent connection_init have a bound of their own, of which one
// caller may have half, and take no place among the streams.
func TestPendingSockets(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{MaxPendingSockets: 4, InitTimeout: time.Hour}, sse.Options{MaxStreams: 1})
	first := b.dial(t, server)
	b.dial(t, server)
	_, response, err := websocket.Dial(t.Context(), server.URL+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: http.Header{"X-Agent-Id": {"reader"}}})
	if err == nil || response == nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("past the share: got %v, %v", response, err)
	}
	conn, _, err := websocket.Dial(t.Context(), server.URL+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: http.Header{"X-Agent-Id": {"other"}}})
	if err != nil {
		t.Fatalf("another caller: %v", err)
	}
	_ = conn.CloseNow()
	first.send(`{"type":"connection_init"}`)
	first.want(`{"type":"connection_ack"}`)
}

// Before connection_init a message is as long as a credential may be, and no longer.
func TestSocketBytesBeforeInit(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{}, sse.Options{})
	const empty = `{"type":"connection_init","payload":{"a":""}}`
	init := func(size int) string {
		return strings.Replace(empty, `""`, `"`+strings.Repeat("x", size-len(empty))+`"`, 1)
	}
	p := b.dial(t, server)
	p.send(init(transport.MaxInitBytes))
	p.want(`{"type":"connection_ack"}`)
	p.send(`{"type":"ping","payload":{"a":"` + strings.Repeat("x", 4*transport.MaxInitBytes) + `"}}`) // and behind it more
	if got := p.receive(); !strings.HasPrefix(got, `{"type":"pong"`) {
		t.Errorf("got %.100s", got)
	}
	p = b.dial(t, server)
	p.send(init(transport.MaxInitBytes + 1))
	if _, _, err := p.conn.Read(p.ctx); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("past the bound: got %v", err)
	}
}

// begin sends the beginning of a message.
func (p *peer) begin(size int) {
	p.t.Helper()
	w, err := p.conn.Writer(p.ctx, websocket.MessageText)
	if err == nil {
		_, err = w.Write([]byte(strings.Repeat("x", size)))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// A message that was begun has to come to its end.
func TestSocketUnfinishedMessage(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{Intake: throttle.Intake{Grace: 50 * time.Millisecond, BytesPerSecond: 1 << 20}}, sse.Options{})
	p := b.connected(t, server)
	<-time.After(100 * time.Millisecond) // one that says nothing is not late
	p.send(`{"type":"ping"}`)
	p.want(`{"type":"pong"}`)
	p.begin(10_000)
	p.wantClose(websocket.StatusPolicyViolation, "A message did not arrive in time")
	b.settle()
}

// Messages that were received and not answered have a budget, of which one caller may use
// half.
func TestSocketBytesReceived(t *testing.T) {
	b := newBench(t, graph.Options{})
	pool := throttle.NewPool(64 << 10)
	server := b.serve(t, transport.Options{Intake: throttle.Intake{Pool: pool}}, sse.Options{})
	first, second := b.connected(t, server), b.connected(t, server)
	first.begin(20_000)
	eventually(t, "the first is accounted for", func() bool { return pool.InUse() >= 16<<10 })
	second.begin(30_000)
	second.wantClose(websocket.StatusTryAgainLater, "OVERLOADED")
	_ = first.conn.CloseNow()
	eventually(t, "all is given back", func() bool { return pool.InUse() == 0 })
}
