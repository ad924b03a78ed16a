package transport_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"koine/graph"
	"koine/graph/transport"
	"koine/internal/caller"
	"koine/internal/sse"
	"koine/kg"
)

// The admission of the operations of a socket is checked before each, for the caller of the
// socket; a refusal is that operation's error, and the socket stays open.
func TestOperationsOfASocketAreAdmitted(t *testing.T) {
	b := newBench(t, graph.Options{})
	var asked, inside atomic.Int32
	admit := func(ctx context.Context) (func(), error) {
		if who := caller.From(ctx).Principal.ID; who != "agent://reader" {
			t.Errorf("asked for %s", who)
		}
		if asked.Add(1) == 2 {
			return nil, &kg.Error{Code: kg.CodeRateLimited, Message: "too many requests of this principal", RetryAfter: 250 * time.Millisecond}
		}
		inside.Add(1)
		return func() { inside.Add(-1) }, nil
	}
	server := b.serve(t, transport.Options{Admit: admit}, sse.Options{})
	p := b.connected(t, server)
	p.subscribe("1", "{ __typename }")
	p.want(`{"type":"next","id":"1","payload":{"data":{"__typename":"Query"},"extensions":{"revision":0,"position":"<head>"}}}`)
	p.want(`{"type":"complete","id":"1"}`)
	p.subscribe("2", "{ __typename }")
	p.want(`{"type":"error","id":"2","payload":[{"message":"too many requests of this principal","extensions":{"code":"RATE_LIMITED","retryAfterMs":250}}]}`)
	p.subscribe("3", "subscription { statementChanged { __typename } }")
	eventually(t, "a subscription that is established is let go", func() bool { return asked.Load() == 3 && inside.Load() == 0 })
}

// A stream that its caller may not open is 429 with the time to retry, over every
// transport.
func TestStreamsAreAdmitted(t *testing.T) {
	b := newBench(t, graph.Options{})
	full := func(context.Context) (func(), error) {
		return nil, &kg.Error{Code: kg.CodeRateLimited, Message: "too many streams of this principal", RetryAfter: 4500 * time.Millisecond}
	}
	server := b.serve(t, transport.Options{}, sse.Options{Admit: full})
	refused := func(x exchange) {
		t.Helper()
		x.status, x.headers = 429, map[string]string{"Retry-After": "5"}
		x.reply = refusal("too many streams of this principal", "RATE_LIMITED")
		b.exchange(t, server, x)
	}
	refused(exchange{body: query(following("latest")), header: map[string]string{"Accept": "text/event-stream"}})
	refused(exchange{method: "PUT"})
	refused(exchange{method: "GET", header: map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
	}})
}

// A mutation that the store refuses for now is 429 by HTTP.
func TestAMutationPastTheRate(t *testing.T) {
	b := newBench(t, graph.Options{}, func(o *kg.Options) {
		o.Admit = func(context.Context, kg.Meta) error {
			return &kg.Error{Code: kg.CodeRateLimited, Message: "too many updates of this principal", RetryAfter: 250 * time.Millisecond}
		}
	})
	server := b.serve(t, transport.Options{}, sse.Options{})
	b.exchange(t, server, exchange{
		body:   query(`mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "urn:a"}, predicate: {id: "urn:b"}, object: {id: "urn:c"}}}]}) { revision } }`),
		status: 429, headers: map[string]string{"Retry-After": "1"}, reply: "*",
	})
}
