package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/graph/transport"
	"koine/internal/slowtest"
	"koine/internal/sse"
	"koine/internal/throttle"
	"koine/kg"
)

// single is a client of graphql-sse's single connection mode.
type single struct {
	t      *testing.T
	b      *bench
	server *httptest.Server
	token  string
}

// send sends a request with the token and returns its status and body.
func (s *single) send(method, path, body string, header ...string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+"/graphql"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		r.Header.Set(transport.TokenHeader, s.token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := s.server.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func (s *single) want(status int, method, path, body string, header ...string) string {
	s.t.Helper()
	got, text := s.send(method, path, body, header...)
	if got != status {
		s.t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, got, text, status)
	}
	return text
}

// run starts an operation on the stream.
func (s *single) run(status int, id, query string) string {
	s.t.Helper()
	return s.want(status, "POST", "", fmt.Sprintf(`{"query":%q,"extensions":{"operationId":%q}}`, query, id))
}

// open opens the reserved stream.
func (s *single) open() *wire {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	s.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", s.server.URL+"/graphql?token="+s.token, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("got %d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	return &wire{t: s.t, b: s.b, res: res, lines: bufio.NewScanner(res.Body), cancel: cancel}
}

func (b *bench) reserve(t *testing.T, server *httptest.Server) *single {
	t.Helper()
	s := &single{t: t, b: b, server: server}
	s.token = s.want(201, "PUT", "", "", "Accept", "text/plain")
	return s
}

func nextOf(id, payload string) string {
	return "event: next\ndata: {\"id\":\"" + id + "\",\"payload\":" + payload + "}\n\n"
}

func completeOf(id string) string {
	return "event: complete\ndata: {\"id\":\"" + id + "\"}\n\n"
}

// TestSingleConnection pins statuses and events of the single connection mode.
func TestSingleConnection(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{MaxOperations: 2}, sse.Options{})
	nobody := &single{t: t, b: b, server: server}
	nobody.want(404, "DELETE", "?operationId=1", "")
	nobody.token = "nonsense"
	nobody.want(404, "POST", "", `{"query":"{ revision }","extensions":{"operationId":"1"}}`)
	nobody.want(404, "GET", "", "", "Accept", "text/event-stream")
	nobody.want(404, "DELETE", "?operationId=1", "")
	nobody.want(406, "PUT", "", "", "Accept", "application/json")

	s := b.reserve(t, server)
	s.want(409, "PUT", "", "")
	s.want(401, "POST", "", `{"query":"{ revision }","extensions":{"operationId":"1"}}`, "X-Agent-ID", "other")
	s.want(400, "POST", "", `{"query":"{ revision }"}`)
	s.want(400, "POST", "", `{"query":"{ revision }","extensions":{"operationId":""}}`)
	s.want(400, "POST", "", `{"query":"{ revision }","extensions":{"operationId":"`+strings.Repeat("x", transport.MaxOperationID+1)+`"}}`)
	s.want(415, "POST", "", `{"query":"{ revision }"}`, "Content-Type", "text/plain")
	s.want(400, "DELETE", "", "")
	s.want(405, "GET", get("query", `mutation { applyPatches(input: {patches: []}) { success } }`, "extensions", `{"operationId":"1"}`)[len("/graphql"):], "")
	if got := s.run(400, "1", `{ nothing }`); !strings.Contains(got, "GRAPHQL_VALIDATION_FAILED") {
		t.Errorf("validation: got %s", got)
	}
	if got := s.run(400, "1", following("tomorrow")); !strings.Contains(got, "POSITION_GONE") {
		t.Errorf("a subscription that is refused: got %s", got)
	}

	// The results of operations before the stream wait for it.
	ok := `{"data":{"revision":0},"extensions":{"revision":0,"position":"<head>"}}`
	s.run(202, "1", `{ revision }`)
	w := s.open()
	w.want(nextOf("1", ok))
	w.want(completeOf("1"))
	s.want(409, "GET", "", "", "Accept", "text/event-stream")
	s.want(202, "GET", get("query", `{ revision }`, "extensions", `{"operationId":"1"}`)[len("/graphql"):], "")
	w.want(nextOf("1", ok))
	w.want(completeOf("1"))

	longest := strings.Repeat("x", transport.MaxOperationID)
	s.run(202, longest, `{ revision }`)
	w.want(nextOf(longest, ok))
	w.want(completeOf(longest))

	s.run(202, "1", following("latest"))
	s.run(409, "1", `{ revision }`)
	s.run(202, "2", following("latest"))
	if got := s.run(429, "3", `{ revision }`); !strings.Contains(got, `"limit":"operations"`) {
		t.Errorf("a third operation: got %s", got)
	}
	s.want(200, "DELETE", "?operationId=2", "")
	s.want(200, "DELETE", "?operationId=2", "")
	b.update(add(iri("s"), iri("p"), kg.Integer(1)))
	w.want(nextOf("1", `{"data":{"e":{"__typename":"StatementChange","op":"add"}},"extensions":{"revision":1,"position":"<head>"}}`))
	s.run(202, "2", `{ revision }`)
	w.want(nextOf("2", `{"data":{"revision":1},"extensions":{"revision":1,"position":"<head>"}}`))
	w.want(completeOf("2"))

	// The reservation ends with its stream.
	w.cancel()
	b.settle()
	eventually(t, "the token is forgotten", func() bool {
		status, _ := s.send("DELETE", "?operationId=1", "")
		return status == 404
	})
}

// An operation holds the bytes of its request until it ends, though the request is answered before.
func TestSingleConnectionCountsBytes(t *testing.T) {
	b := newBench(t, graph.Options{})
	bytes := throttle.NewPool(4 << 10)
	server := b.serve(t, transport.Options{Intake: throttle.Intake{Pool: bytes}}, sse.Options{})
	s := b.reserve(t, server)
	w := s.open()
	query := following("latest") + strings.Repeat(" ", 1<<10)
	s.run(202, "1", query)
	if n := bytes.InUse(); n < 1<<10 {
		t.Errorf("%d bytes are in use for an operation of %d", n, len(query))
	}
	if got := s.run(429, "2", query+query); !strings.Contains(got, "OVERLOADED") { // past half of the rest
		t.Errorf("got %s", got)
	}
	s.want(200, "DELETE", "?operationId=1", "")
	eventually(t, "the bytes are released", func() bool { return bytes.InUse() == 0 })
	w.cancel()
	b.settle()
}

// A reservation without a stream expires, and its operations end with it.
func TestReservationExpires(t *testing.T) {
	slowtest.Long(t)
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{ReserveTimeout: 500 * time.Millisecond}, sse.Options{MaxStreams: 2})
	s := b.reserve(t, server)
	s.run(202, "1", following("latest"))
	s.run(202, "2", `{ revision }`)
	nobody := &single{t: t, b: b, server: server}
	nobody.want(503, "PUT", "", "") // its place is taken, and that of its subscription
	b.settle()
	eventually(t, "there is a place again", func() bool {
		status, token := nobody.send("PUT", "", "")
		s.token = token
		return status == 201
	})
	// A stream does not expire.
	w := s.open()
	<-time.After(time.Second)
	s.run(202, "1", `{ revision }`)
	w.block()
	w.want(completeOf("1"))
}

func TestReservationsLimit(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{MaxReservations: 4}, sse.Options{}) // of which one caller gets half
	first := b.reserve(t, server)
	b.reserve(t, server)
	nobody := &single{t: t, b: b, server: server}
	if got := nobody.want(503, "PUT", "", ""); !strings.Contains(got, "TOO_MANY_STREAMS") {
		t.Errorf("got %s", got)
	}
	first.open() // and waits for nothing any more
	b.reserve(t, server)
	nobody.want(503, "PUT", "", "")
}

// Faults are errors of their operation; the server's end ends all.
func TestSingleConnectionFaults(t *testing.T) {
	b := newBench(t, graph.Options{})
	streams := sse.New(sse.Options{})
	deps := b.deps(streams)
	deps.Engine = faulty{b.engine}
	server := b.serveWith(t, transport.NewHandler(deps, transport.Options{}))
	s := b.reserve(t, server)
	w := s.open()
	failing := func(status int, name, kind string) {
		t.Helper()
		s.want(status, "POST", "", fmt.Sprintf(`{"operationName":%[1]q,"query":"%[2]s","extensions":{"operationId":%[1]q}}`, name, strings.Replace(kind, "NAME", name, 1)))
	}
	failing(500, "Panic", "query NAME { revision }")
	for i, name := range []string{"PanicLater", "FailLater"} {
		failing(202, name, "subscription NAME { statementChanged { __typename } }")
		b.update(add(iri("s"), iri("p"), kg.Integer(int64(i))))
		w.block()
		w.want(nextOf(name, `{"errors":[{"message":"internal error","extensions":{"code":"INTERNAL"}}],"extensions":{"revision":`+fmt.Sprint(i+1)+`,"position":"<head>"}}`))
		w.want(completeOf(name))
	}
	failing(202, "EndLater", "subscription NAME { statementChanged { __typename } }")
	waiting := b.reserve(t, server)
	waiting.run(202, "1", following("latest"))
	waiting.run(202, "2", `{ revision }`)
	if err := streams.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.block(); got != "" {
		t.Errorf("after the end: got %s", got)
	}
	b.settle()
}

// A result that no event can hold is the error of its operation alone.
func TestSingleConnectionLargeEvent(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(add(iri("s"), iri("p"), kg.String(strings.Repeat("x", 4<<10))))
	server := b.serve(t, transport.Options{}, sse.Options{MaxEventBytes: 4 << 10})
	s := b.reserve(t, server)
	w := s.open()
	s.run(202, "1", `{ entity(iri: "ex:s") { value(predicate: "ex:p") } }`)
	w.want(nextOf("1", `{"errors":[{"message":"an event is too large","extensions":{"code":"LIMIT_EXCEEDED","hint":"Select fewer fields.","limit":"eventBytes"}}]}`))
	w.want(completeOf("1"))
	s.run(202, "1", `{ revision }`)
	w.want(nextOf("1", `{"data":{"revision":1},"extensions":{"revision":1,"position":"<head>"}}`))
	w.want(completeOf("1"))
}
