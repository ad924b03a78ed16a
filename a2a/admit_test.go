package a2a_test

import (
	"context"
	"testing"
	"time"

	"koine/a2a"
	"koine/internal/sse"
	"koine/kg"
)

// limited is the error of an exceeded limit.
func limited(what string) error {
	return &kg.Error{Code: kg.CodeRateLimited, Message: "too many " + what + " of this principal", Hint: "Wait.", RetryAfter: 1500 * time.Millisecond}
}

// Each request of a batch counts, the first with the HTTP request. A refused one gets
// an error in its place, without an HTTP status of its own.
func TestRequestsOfABatchAreAdmitted(t *testing.T) {
	asked := 0
	s := newTestServerWith(t, kg.Options{}, sse.Options{}, a2a.Options{Admit: func(context.Context) error {
		if asked++; asked == 2 {
			return limited("requests")
		}
		return nil
	}})
	request := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"knowledge/query","params":{"query":"{ __typename }"}}`
	}
	got := s.post(t, "["+request("1")+","+request("2")+","+request("3")+"]")
	answer := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"result":{"data":{"__typename":"Query"},"queryMetadata":{"revision":0,"position":"<position>","durationMs":<ms>,"statementsRead":<n>,"sources":[]}}}`
	}
	want := "200 application/json\n[" + answer("1") + "," + answer("2") + "," +
		`{"jsonrpc":"2.0","id":3,"error":{"code":-31105,"message":"too many requests of this principal",` +
		`"data":{"reason":"RATE_LIMITED","domain":"koine","hint":"Wait.","retryAfterMs":1500}}}` + "]\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s.post(t, request("1")); asked != 2 {
		t.Errorf("asked %d times, want not for a request that stands alone", asked)
	}
}

// An update above the rate is refused with 429 and the request's id.
func TestAnUpdatePastTheRate(t *testing.T) {
	s := newTestServerWith(t, kg.Options{Governor: kg.Governor{Admit: func(_ context.Context, m kg.Meta) error {
		if m.Principal.ID != kg.Anonymous {
			t.Errorf("asked about %s", m.Principal.ID)
		}
		return limited("updates")
	}}}, sse.Options{}, a2a.Options{})
	const mutations = `[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":1}}}]`
	for _, request := range []string{
		`{"jsonrpc":"2.0","id":"u","method":"knowledge/update","params":{"mutations":` + mutations + `}}`,
		`{"jsonrpc":"2.0","id":"u","method":"knowledge/update","params":{"mutations":` + mutations + `,"metadata":{"koine":{"dryRun":true}}}}`,
		`{"jsonrpc":"2.0","id":"u","method":"knowledge/query","params":{"query":"mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: \"urn:a\"}, predicate: {id: \"urn:b\"}, object: {id: \"urn:c\"}}}]}) { revision } }"}}`,
	} {
		got := answer(t, s.send(t, []byte(request), nil))
		want := "429 application/json 2\n" + `{"jsonrpc":"2.0","id":"u","error":{"code":-31105,"message":"too many updates of this principal",` +
			`"data":{"reason":"RATE_LIMITED","domain":"koine","hint":"Wait.","retryAfterMs":1500}}}` + "\n"
		if got != want {
			t.Errorf("%s: got  %swant %s", request, got, want)
		}
	}
	if r := s.store.Stats().Revision; r != 0 {
		t.Errorf("something was written: revision %d", r)
	}
}

// A stream above the caller's limit is refused with 429 before it is established;
// closed streams do not count.
func TestAStreamPastTheNumber(t *testing.T) {
	open := 0
	s := newTestServerWith(t, kg.Options{}, sse.Options{Admit: func(context.Context) (func(), error) {
		if open == 1 {
			return nil, limited("streams")
		}
		open++
		return func() { open-- }, nil
	}}, a2a.Options{})
	s.subscribe(t, `{}`)
	const request = `{"jsonrpc":"2.0","id":7,"method":"knowledge/subscribe","params":{"subscriptionQuery":"subscription { statementChanged { __typename } }"}}`
	want := "429 application/json 2\n" + `{"jsonrpc":"2.0","id":7,"error":{"code":-31105,"message":"too many streams of this principal",` +
		`"data":{"reason":"RATE_LIMITED","domain":"koine","hint":"Wait.","retryAfterMs":1500}}}` + "\n"
	if got := answer(t, s.send(t, []byte(request), nil)); got != want {
		t.Errorf("got %swant %s", got, want)
	}
	if n := s.store.Stats().Watchers - s.own; n != 1 {
		t.Errorf("%d watchers for one stream", n)
	}
}
