package a2a_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/a2a"
	"koine/internal/slowtest"
	"koine/internal/sse"
	"koine/kg"
)

func (s *testServer) post(t *testing.T, body string) string {
	t.Helper()
	return mask(answer(t, s.send(t, []byte(body), nil)))
}

// padded is a request of exactly n bytes.
func padded(n int) string {
	const head, tail = `{"jsonrpc":"2.0","id":1,"method":"`, `"}`
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}

const notFound = `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found","data":[`

func TestBodyBound(t *testing.T) {
	slowtest.Long(t)
	s := newTestServer(t)
	if got := s.post(t, padded(8<<20)); !strings.HasPrefix(got, "200 application/json\n"+notFound) {
		t.Errorf("8 MiB: got %s", got)
	}
	want := "413 application/json\n" + `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Request payload validation error",` +
		`"data":{"reason":"LIMIT_EXCEEDED","domain":"koine","detail":"the body exceeds the limit of 8 MiB","hint":"Split the request; /data accepts RDF of any size."}}}` + "\n"
	for _, n := range []int{8<<20 + 1, 9 << 20} {
		if got := s.post(t, padded(n)); got != want {
			t.Errorf("%d bytes: got %s", n, got)
		}
	}
	// The same with an unknown content length.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, struct{ *strings.Reader }{strings.NewReader(padded(8<<20 + 1))})
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = -1
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := answer(t, resp); got != want {
		t.Errorf("chunked: got %s", got)
	}
}

func TestDepthBound(t *testing.T) {
	s := newTestServer(t)
	nested := func(depth int) string { // the request itself is the first level
		return `{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
	}
	if got := s.post(t, nested(64)); !strings.HasPrefix(got, "200 application/json\n"+notFound) {
		t.Errorf("64 levels: got %s", got)
	}
	want := "200 application/json\n" + `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Request payload validation error",` +
		`"data":{"reason":"LIMIT_EXCEEDED","domain":"koine","detail":"the body is nested too deeply: more than 64 levels"}}}` + "\n"
	if got := s.post(t, nested(65)); got != want {
		t.Errorf("65 levels: got %s", got)
	}
	if got := s.post(t, nested(100_000)); !strings.Contains(got, `"code":-32700`) && got != want {
		t.Errorf("100,000 levels: got %s", got)
	}
}

func TestBatchBound(t *testing.T) {
	s := newTestServer(t)
	batch := func(n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"x"},`, n), ",") + "]"
	}
	if got := s.post(t, batch(100)); strings.Count(got, "-32601") != 100 {
		t.Errorf("100 requests: got %s", got)
	}
	if got, want := s.post(t, batch(101)), "200 application/json\n"+`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Request payload validation error",`+
		`"data":{"reason":"LIMIT_EXCEEDED","domain":"koine","detail":"the batch has 101 requests, more than the limit of 100","hint":"Send several batches."}}}`+"\n"; got != want {
		t.Errorf("101 requests: got %s", got)
	}
}

func TestMutationBound(t *testing.T) {
	s := newTestServer(t)
	update := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":%d}}},`, i)
		}
		return `{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"mutations":[` + strings.TrimSuffix(b.String(), ",") + `]}}`
	}
	if got, want := s.post(t, update(10_001)), "200 application/json\n"+`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid parameters",`+
		`"data":{"reason":"LIMIT_EXCEEDED","domain":"koine","field":"mutations","detail":"10001 patches exceed the limit of 10000"}}}`+"\n"; got != want {
		t.Errorf("10,001 patches: got %s", got)
	}
	if got, want := s.post(t, update(10_000)), "200 application/json\n"+`{"jsonrpc":"2.0","id":1,"result":{"success":true,"statementsAffected":10000,"affectedIds":["urn:s"],`+
		`"verificationStatus":"Verified","revision":1,"position":"<position>","commitId":"<uuid>"}}`+"\n"; got != want {
		t.Errorf("10,000 patches: got %s", got)
	}
}

// Texts beyond the store's limits are refused with the part that is too long.
func TestTextBounds(t *testing.T) {
	s := newTestServer(t)
	patches := `"mutations":[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":1}}}]`
	for _, row := range []struct {
		name, params string
		most         int
	}{
		{"justification", patches + `,"justification":"%s"`, kg.MaxJustificationBytes},
		{"taskId", patches + `,"taskId":"%s"`, kg.MaxReferenceBytes},
		{"sessionId", patches + `,"sessionId":"%s"`, kg.MaxReferenceBytes},
		{"idempotencyKey", patches + `,"metadata":{"koine":{"idempotencyKey":"%s"}}`, kg.MaxIdempotencyKeyBytes},
		{"provenance", `"mutations":[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":1},"provenance":{"a":"%s"}}}]`, kg.MaxProvenanceBytes - len(`{"a":""}`)},
		{"value", `"mutations":[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":"%s"}}}]`, kg.DefaultLiteralBytes},
	} {
		send := func(n int) string {
			return s.post(t, `{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{`+fmt.Sprintf(row.params, strings.Repeat("x", n))+`}}`)
		}
		if got := send(row.most); !strings.Contains(got, `"success":true`) {
			t.Errorf("%s of %d bytes: got %s", row.name, row.most, got)
		}
		if got := send(row.most + 1); !strings.Contains(got, `"code":-32602`) || !strings.Contains(got, `"reason":"LIMIT_EXCEEDED"`) {
			t.Errorf("%s of %d bytes: got %s", row.name, row.most+1, got)
		}
	}
}

// minRevision waits for the revision, up to MaxWait.
func TestMinRevision(t *testing.T) {
	s := newTestServerWith(t, kg.Options{}, sse.Options{}, a2a.Options{MaxWait: 30 * time.Millisecond})
	query := `{"jsonrpc":"2.0","id":1,"method":"knowledge/query","params":{"query":"{ revision }","metadata":{"koine":{"minRevision":1}}}}`
	if got := s.post(t, query); !strings.Contains(got, `"code":-32010`) || !strings.Contains(got, `"reason":"TIMEOUT"`) ||
		!strings.Contains(got, `"message":"revision 1 was not reached within 30ms; the newest is 0"`) || !strings.Contains(got, `"field":"metadata.koine.minRevision"`) {
		t.Errorf("a revision that does not come: got %s", got)
	}
	long := newTestServerWith(t, kg.Options{}, sse.Options{}, a2a.Options{MaxWait: patience})
	answered := make(chan string, 1)
	go func() { answered <- long.post(t, query) }()
	long.set(t, kg.Add, "urn:s", kg.Integer(1), "agent://x")
	if got := <-answered; !strings.Contains(got, `"data":{"revision":1}`) {
		t.Errorf("a revision that comes: got %s", got)
	}
}

// With a full queue of the store the answer is 429 with a retry delay.
func TestOverloaded(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := newTestServerWith(t, kg.Options{QueueLength: 1, QueueTime: 20 * time.Millisecond}, sse.Options{}, a2a.Options{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer once.Do(func() { close(release) })
	wg.Go(func() { // holds the committer
		_, _ = s.store.Update(t.Context(), kg.Meta{}, func(*kg.Tx) error {
			close(entered)
			<-release
			return nil
		})
	})
	<-entered
	update := `{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"mutations":[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":1}}}]}}`
	statuses := make(chan string, 8)
	for range cap(statuses) {
		wg.Go(func() { statuses <- s.post(t, update) })
	}
	refused := ""
	for refused == "" {
		select {
		case got := <-statuses:
			if strings.HasPrefix(got, "429") {
				refused = got
			}
		case <-time.After(patience):
			t.Fatal("nobody was refused")
		}
	}
	if !strings.HasPrefix(refused, "429 application/json ") || !strings.Contains(refused, `"code":-31105`) ||
		!strings.Contains(refused, `"reason":"OVERLOADED"`) || !strings.Contains(refused, `"retryAfterMs":`) {
		t.Errorf("got %s", refused)
	}
	once.Do(func() { close(release) })
}
