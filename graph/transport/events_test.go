package transport_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/graph"
	"koine/graph/transport"
	"koine/internal/operation"
	"koine/internal/sse"
	"koine/kg"
)

// wire is an open event stream, read block by block.
type wire struct {
	t      *testing.T
	b      *bench
	res    *http.Response
	lines  *bufio.Scanner
	cancel context.CancelFunc
}

func (b *bench) stream(t *testing.T, url, operation string, header map[string]string) *wire {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/graphql", strings.NewReader(query(operation)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	for k, v := range header {
		req.Header[k] = []string{v}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		res.Body.Close()
	})
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	return &wire{t: t, b: b, res: res, lines: bufio.NewScanner(res.Body), cancel: cancel}
}

// block is the next block that is no heartbeat, "" at the end of the stream.
func (w *wire) block() string {
	var b strings.Builder
	for w.lines.Scan() {
		line := w.lines.Text()
		b.WriteString(line + "\n")
		if line != "" {
			continue
		}
		if block := b.String(); !strings.HasPrefix(block, ":") {
			return block
		}
		b.Reset()
	}
	return b.String()
}

func (w *wire) want(block string) {
	w.t.Helper()
	block = strings.ReplaceAll(block, "<head>", w.b.store.FormatPosition(w.b.store.Head()))
	if diff := cmp.Diff(block, w.block()); diff != "" {
		w.t.Fatalf("block (-want +got):\n%s", diff)
	}
}

const follow = `subscription { e: statementChanged(resume: "RESUME") { __typename ... on StatementChange { op } ... on Progress { revision position } ... on Resync { reason oldest } } }`

func following(resume string) string { return strings.Replace(follow, "RESUME", resume, 1) }

const (
	changed   = "event: next\ndata: {\"data\":{\"e\":{\"__typename\":\"StatementChange\",\"op\":\"add\"}},\"extensions\":{\"revision\":1,\"position\":\"<head>\"}}\n\n"
	completed = "event: complete\ndata: \n\n"
)

// TestStreams pins the bytes of graphql-sse, distinct connections mode.
func TestStreams(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{}, sse.Options{})
	t.Run("query", func(t *testing.T) {
		w := b.stream(t, server.URL, `{ revision }`, nil)
		w.want("event: next\ndata: {\"data\":{\"revision\":0},\"extensions\":{\"revision\":0,\"position\":\"<head>\"}}\n\n")
		w.want(completed)
		w.want("")
	})
	latest := b.stream(t, server.URL, following("latest"), nil)
	withIDs := b.stream(t, server.URL, following("latest"), map[string]string{"Last-Event-Id": ""})
	b.update(add(iri("s"), iri("p"), kg.Integer(1)))
	t.Run("subscription", func(t *testing.T) { latest.want(changed) })
	t.Run("with ids", func(t *testing.T) { withIDs.want("id: <head>\n" + changed) })
	t.Run("empty snapshot", func(t *testing.T) {
		w := b.stream(t, server.URL, strings.Replace(following("snapshot"), `"snapshot"`, `"snapshot", where: {subject: {eq: "ex:none"}}`, 1), nil)
		w.want("event: next\ndata: {\"data\":{\"e\":{\"__typename\":\"Progress\",\"revision\":1,\"position\":\"<head>\"}},\"extensions\":{\"revision\":1,\"position\":\"<head>\"}}\n\n")
	})
	b.update(add(iri("s"), iri("p"), kg.Integer(2)))
	t.Run("last event id", func(t *testing.T) {
		first := b.stream(t, server.URL, following("earliest"), map[string]string{"Last-Event-Id": ""})
		id, _, _ := strings.Cut(first.block(), "\n")
		w := b.stream(t, server.URL, following("earliest"), map[string]string{"Last-Event-Id": strings.TrimPrefix(id, "id: ")})
		w.want("id: <head>\n" + strings.Replace(changed, `"revision":1`, `"revision":2`, 1))
	})
}

// While nothing matches, the position scanned to is sent.
func TestStreamsTellWhereTheyAre(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{UpToDateEvery: 5 * time.Millisecond}, sse.Options{})
	w := b.stream(t, server.URL, strings.Replace(following("latest"), `"latest"`, `"latest", where: {subject: {eq: "ex:none"}}`, 1), nil)
	b.update(add(iri("s"), iri("p"), kg.Integer(1)))
	w.want("event: next\ndata: {\"data\":{\"e\":{\"__typename\":\"Progress\",\"revision\":1,\"position\":\"<head>\"}},\"extensions\":{\"revision\":1,\"position\":\"<head>\"}}\n\n")
	b.update(add(iri("none"), iri("p"), kg.Integer(1)))
	w.want(strings.Replace(changed, `"revision":1`, `"revision":2`, 1))
}

// The handler returns while a stream is open, which keeps its subscription until its end.
func TestStreamsOutliveTheirHandlers(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{}, sse.Options{})
	w := b.stream(t, server.URL, following("latest"), nil)
	eventually(t, "the handler returns", func() bool { return b.returned.Load() == 1 })
	if n := b.store.Stats().Watchers; n != 1 {
		t.Fatalf("%d watchers after the return of the handler, want 1", n)
	}
	b.update(add(iri("s"), iri("p"), kg.Integer(1)))
	w.want(changed)
	w.cancel()
	b.settle()
}

// An open stream does not hold the body of its request: the bytes are counted only until the
// handler returns.
func TestStreamsForgetTheirRequests(t *testing.T) {
	const streams, each = 6, 4 << 20
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{}, sse.Options{})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // pools are emptied by the second
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range streams {
		document, err := json.Marshal(following("latest"))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", server.Listener.Addr().String()) // a client of net/http keeps the body
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		body := fmt.Sprintf(`{"query":%s,"extensions":{"x":%q}}`, document, strings.Repeat("x", each))
		fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: test\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	eventually(t, "the handlers return", func() bool { return b.returned.Load() == streams })
	eventually(t, "the requests are forgotten", func() bool { return heap() < before+streams*each/2 })
}

// An event is encoded once for the streams that show the same of it, and never for a stream that
// shows something else, however often they change places.
func TestStreamsShareEvents(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{UpToDateEvery: time.Hour}, sse.Options{})
	with := func(selection string) string {
		return `subscription { e: statementChanged(resume: "latest") { ... on StatementChange { ` + selection + ` } } }`
	}
	var same, other []*wire
	for range 3 {
		same = append(same, b.stream(t, server.URL, with("op statement { object { ... on Literal { value } } }"), map[string]string{"Last-Event-Id": ""}))
		other = append(other, b.stream(t, server.URL, with("op statement { subject { iri } }"), nil))
	}
	for i := range 200 {
		at := b.update(add(iri("s"), iri("p"), kg.Integer(int64(i))))
		extensions := fmt.Sprintf(`"extensions":{"revision":%d,"position":"%s"}`, at.Revision, b.store.FormatPosition(at.Position))
		for _, w := range same {
			w.want(fmt.Sprintf("id: <head>\nevent: next\ndata: {\"data\":{\"e\":{\"op\":\"add\",\"statement\":{\"object\":{\"value\":%d}}}},%s}\n\n", i, extensions))
		}
		for _, w := range other {
			w.want(fmt.Sprintf("event: next\ndata: {\"data\":{\"e\":{\"op\":\"add\",\"statement\":{\"subject\":{\"iri\":\"%ss\"}}}},%s}\n\n", ex, extensions))
		}
	}
}

// gate is an access policy that stops the reader at its first look, until it
// is opened.
type gate struct {
	once            *sync.Once
	reached, opened chan struct{}
}

func newGate() gate { return gate{&sync.Once{}, make(chan struct{}), make(chan struct{})} }

func (g gate) Allowed(p kg.Principal, _ kg.Term, _ kg.Right) bool {
	if p.ID == reader.ID {
		g.once.Do(func() { close(g.reached) })
		<-g.opened
	}
	return true
}

// When the log is cut before a subscription has read it, its last event is
// Resync, and it is complete.
func TestStreamsResync(t *testing.T) {
	g := newGate()
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.RingCommits, o.Access = 1, g })
	var ends endings
	server := b.serve(t, transport.Options{}, sse.Options{Ended: ends.add})
	for i := range 5 {
		b.update(add(iri("s"), iri("p"), kg.Integer(int64(i))))
	}
	w := b.stream(t, server.URL, following("earliest"), map[string]string{"X-Agent-Id": "reader"})
	<-g.reached
	if err := b.store.Maintenance().CutLog(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	close(g.opened)
	got := w.block()
	if !strings.Contains(got, `"op":"add"`) {
		t.Fatalf("got %s, want the change that was being looked at", got)
	}
	told := toldPosition(got)
	oldest := b.store.FormatPosition(b.store.Oldest())
	w.want(`event: next
data: {"data":{"e":{"__typename":"Resync","reason":"the log no longer holds what comes next","oldest":"` + oldest + `"}},"extensions":{}}

`)
	w.want(completed)
	w.want("")
	ends.want(t, sse.End{Transport: "graphql-sse", Reason: "RESYNC", Method: "statementChanged", Position: told})
}

// toldPosition returns the position in extensions.
func toldPosition(result string) string {
	_, rest, _ := strings.Cut(result, `"position":"`)
	at, _, _ := strings.Cut(rest, `"`)
	return at
}

// endings collects the ends of streams.
type endings struct {
	mu   sync.Mutex
	list []sse.End
}

func (e *endings) add(_ context.Context, end sse.End) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, end)
}

// want waits for all of these, in any order of equal ones.
func (e *endings) want(t *testing.T, want ...sse.End) {
	t.Helper()
	eventually(t, "the ends are reported", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.list) >= len(want)
	})
	if diff := cmp.Diff(want, e.list); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
}

// losing is an engine whose subscriptions lose their position.
type losing struct {
	*graph.Engine
	lost *atomic.Bool
}

func (l losing) Subscribe(ctx context.Context, req operation.Request) (operation.Subscription, error) {
	s, err := l.Engine.Subscribe(ctx, req)
	return losingStream{s.(transport.Subscription), l.lost}, err
}

type losingStream struct {
	transport.Subscription
	lost *atomic.Bool
}

func (l losingStream) Position() kg.Position {
	if l.lost.Load() {
		panic("the secret")
	}
	return l.Subscription.Position()
}

// An internal error outside of the operation is logged once, completely, and the client is told
// where to resume.
func TestStreamsFail(t *testing.T) {
	b := newBench(t, graph.Options{})
	var ends endings
	streams := sse.New(sse.Options{Heartbeat: 10 * time.Millisecond, Ended: ends.add})
	deps := b.deps(streams)
	lost := new(atomic.Bool)
	deps.Engine = losing{b.engine, lost}
	server := b.serveWith(t, transport.NewHandler(deps, transport.Options{}))
	w := b.stream(t, server.URL, following("latest"), map[string]string{"Last-Event-Id": ""})
	b.update(add(iri("s"), iri("p"), kg.Integer(1)))
	got := w.block()
	for strings.HasPrefix(got, "id: ") && !strings.Contains(got, "event: ") { // a heartbeat during the update
		got = w.block()
	}
	if !strings.Contains(got, changed[:20]) {
		t.Fatalf("got %s, want a change", got)
	}
	lost.Store(true) // a heartbeat asks for it
	w.want("event: next\ndata: {\"errors\":[{\"message\":\"internal error\",\"extensions\":{\"code\":\"INTERNAL\",\"position\":\"<head>\"}}]}\n\n")
	w.want("")
	ends.want(t, sse.End{Transport: "graphql-sse", Reason: "INTERNAL", Method: "statementChanged", Position: b.store.FormatPosition(b.store.Head())})
	if log := b.log.String(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "the secret") || !strings.Contains(log, "losingStream.Position") {
		t.Errorf("not logged once with its stack: %s", log)
	}
	if err := streams.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The server's end is an event, with the position to resume from.
func TestStreamsShutdown(t *testing.T) {
	b := newBench(t, graph.Options{})
	var ends endings
	streams := sse.New(sse.Options{Ended: ends.add})
	server := b.serveWith(t, transport.NewHandler(b.deps(streams), transport.Options{}))
	w := b.stream(t, server.URL, following("latest"), nil)
	b.update(add(iri("s"), iri("p"), kg.Integer(1)))
	w.want(changed)
	silent := b.stream(t, server.URL, following("latest"), nil) // it ends at the position at which it began
	snapshot := b.stream(t, server.URL, following("snapshot"), nil)
	snapshot.block()
	if err := streams.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	const last = "event: next\ndata: {\"errors\":[{\"message\":\"the server is shutting down\",\"extensions\":{\"code\":\"SERVER_SHUTDOWN\",\"position\":\"<head>\"}}]}\n\n"
	silent.want(last)
	silent.want("")
	snapshot.want(last)
	at := b.store.FormatPosition(b.store.Head())
	end := sse.End{Transport: "graphql-sse", Reason: "SERVER_SHUTDOWN", Method: "statementChanged", Position: at}
	ends.want(t, end, end, end)
	w.want("event: next\ndata: {\"errors\":[{\"message\":\"the server is shutting down\",\"extensions\":{\"code\":\"SERVER_SHUTDOWN\",\"position\":\"<head>\"}}]}\n\n")
	w.want("")
	b.exchange(t, server, exchange{
		body: query(following("latest")), header: map[string]string{"Accept": "text/event-stream"}, status: 503,
		reply: refusal("the server is shutting down", "SERVER_SHUTDOWN"), headers: map[string]string{"Content-Type": asJSON, "Retry-After": "5"},
	})
}

// Refusals of GraphQL are events of a stream; a missing place for a stream is an ordinary
// answer.
func TestStreamsRefused(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{}, sse.Options{MaxStreams: 1})
	events := map[string]string{"Accept": "text/event-stream"}
	next := func(data string) string { return "event: next\ndata: " + data + "\n\n" + completed }
	for _, x := range []exchange{
		{name: "syntax", body: query(`subscription {`),
			reply: next(`{"errors":[{"message":"Expected Name, found \u003cEOF\u003e","locations":[{"line":1,"column":15}],"extensions":{"code":"GRAPHQL_PARSE_FAILED"}}],"extensions":{<at>}}`)},
		{name: "two fields", body: query(`subscription { a: statementChanged { __typename } b: statementChanged { __typename } }`),
			reply: next(`{"errors":[{"message":"a subscription must have exactly one root field","extensions":{"code":"INVALID"}}],"extensions":{}}`)},
		{name: "no position", body: query(following("tomorrow")),
			reply: next(`{"errors":[{"message":"the position is not of this log","extensions":{"code":"POSITION_GONE","field":"resume","hint":"start from a snapshot, or from the oldest position","oldest":"<oldest>"}}],"extensions":{}}`)},
		{name: "a limit", body: query(strings.Repeat("{ a ", 41) + strings.Repeat("}", 41)), reply: "*"},
		{name: "nothing asked for", body: query(`query ($x: Boolean = true) { revision @skip(if: $x) }`), reply: next(`{"data":{},"extensions":{"revision":0,"position":"<head>"}}`)},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.header, x.status, x.headers = events, 200, map[string]string{"Content-Type": "text/event-stream"}
			x.reply = strings.ReplaceAll(x.reply, "<oldest>", b.store.FormatPosition(b.store.Oldest()))
			x.reply = strings.ReplaceAll(x.reply, "<at>", `"revision":0,"position":"<head>"`)
			b.exchange(t, server, x)
		})
	}
	b.exchange(t, server, exchange{body: query(following("latest")), header: map[string]string{"Accept": "text/event-stream", "Last-Event-ID": "tomorrow"}, status: 200, reply: "*"})
	w := b.stream(t, server.URL, following("latest"), nil)
	b.exchange(t, server, exchange{
		body: query(following("latest")), header: events, status: 503,
		reply: refusal("too many streams are open", "TOO_MANY_STREAMS"), headers: map[string]string{"Retry-After": "5"},
	})
	w.cancel()
}

// turning is an access policy whose answers change at a revision.
type turning struct{ at *atomic.Uint64 }

func (turning) Allowed(kg.Principal, kg.Term, kg.Right) bool { return true }

func (a turning) ReadChanged(_ kg.Principal, after kg.Revision) (bool, kg.Revision) {
	at := kg.Revision(a.at.Load())
	return at > after, max(at, after)
}

// When the access of the subscriber changes, its last event is Resync.
func TestStreamsEndWhenAccessChanges(t *testing.T) {
	access := turning{new(atomic.Uint64)}
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = access })
	server := b.serve(t, transport.Options{}, sse.Options{})
	w := b.stream(t, server.URL, following("latest"), nil)
	b.update(add(iri("s"), iri("p"), kg.Integer(1)))
	w.want(changed)
	access.at.Store(2)
	b.update(add(iri("s"), iri("p"), kg.Integer(2)))
	oldest := b.store.FormatPosition(b.store.Oldest())
	w.want(`event: next
data: {"data":{"e":{"__typename":"Resync","reason":"ACCESS_CHANGED","oldest":"` + oldest + `"}},"extensions":{}}

`)
	w.want(completed)
	w.want("")
}
