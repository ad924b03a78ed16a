package sse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/internal/sse"
)

// roundTripper answers without a socket.
type roundTripper func(n int, r *http.Request) (*http.Response, error)

// client returns a client that asks rt, telling it the number of the request.
func client(rt roundTripper) *http.Client {
	n := 0
	return &http.Client{Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
		n++
		return rt(n, r)
	})}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer is a response; without a kind it is a stream.
func answer(status int, kind string, body io.Reader) *http.Response {
	if kind == "" {
		kind = "text/event-stream"
	}
	return &http.Response{
		StatusCode: status,
		Header:     http.Header{"Content-Type": {kind}},
		Body:       io.NopCloser(body),
	}
}

var getRequest = sse.NewRequest(http.MethodGet, "http://127.0.0.1/", nil, nil)

// collect reads a subscription until it ends by itself.
func collect(ctx context.Context, options sse.ClientOptions) (events []sse.Event, err error) {
	for e, err := range sse.Subscribe(ctx, options) {
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}

func TestParse(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name, body string
		cut        error // how the body ends; nil: in order
		want       []sse.Event
	}{
		{"plain", "data: x\n\n", nil, []sse.Event{{Data: []byte("x")}}},
		{"all fields", "id: 1\nevent: next\ndata: a\ndata: b\n\n", nil, []sse.Event{{ID: "1", Name: "next", Data: []byte("a\nb")}}},
		{"empty line in the data", "data: a\ndata: \ndata: b\ndata: \n\n", nil, []sse.Event{{Data: []byte("a\n\nb\n")}}},
		{"CRLF", "data: a\r\ndata: b\r\n\r\nid: 2\r\ndata: c\r\n\r\n", nil, []sse.Event{{Data: []byte("a\nb")}, {ID: "2", Data: []byte("c")}}},
		{"CR", "data: a\rdata: b\r\rdata: c\r\r", nil, []sse.Event{{Data: []byte("a\nb")}, {Data: []byte("c")}}},
		{"byte order mark", "\ufeffdata: a\n\n", nil, []sse.Event{{Data: []byte("a")}}},
		{"no space", "data:a\n\n", nil, []sse.Event{{Data: []byte("a")}}},
		{"empty lines between", "\n\n\ndata: a\n\n\n\ndata: b\n\n", nil, []sse.Event{{Data: []byte("a")}, {Data: []byte("b")}}},
		{"name only", "event: complete\ndata: \n\n", nil, []sse.Event{{Name: "complete", Data: []byte{}}}},
		{"heartbeats", ": \n\nid: 1\ndata: a\n\n: \n\n:\n\n", nil, []sse.Event{{ID: "1", Data: []byte("a")}}},
		{"positions", "id: 1\n\nid: 1\n\nid: 2\n\n", nil, []sse.Event{{ID: "1"}, {ID: "2"}}},
		{"the last id holds", "id: 1\ndata: a\n\ndata: b\n\n", nil, []sse.Event{{ID: "1", Data: []byte("a")}, {ID: "1", Data: []byte("b")}}},
		{"half a block at the end", "id: 1\ndata: a\n\nid: 2\ndata: {\"half", nil, []sse.Event{{ID: "1", Data: []byte("a")}}},
		{"half a block, broken", "id: 1\ndata: a\n\nid: 2\ndata: b\n", broken, []sse.Event{{ID: "1", Data: []byte("a")}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var body io.Reader = strings.NewReader(tt.body)
			if tt.cut != nil {
				body = io.MultiReader(body, failing{tt.cut})
			}
			var resumed string
			events, err := collect(t.Context(), sse.ClientOptions{
				Request: getRequest,
				MinWait: 1,
				HTTP: client(func(n int, r *http.Request) (*http.Response, error) {
					if n == 1 {
						return answer(http.StatusOK, "", body), nil
					}
					resumed = r.Header.Get("Last-Event-ID")
					return answer(http.StatusGone, "text/plain", strings.NewReader("enough")), nil
				}),
			})
			var refused *sse.ResponseError
			if !errors.As(err, &refused) || refused.Status != http.StatusGone || string(refused.Body) != "enough" {
				t.Errorf("ended with %v", err)
			}
			if diff := cmp.Diff(tt.want, events, cmp.Transformer("string", func(b []byte) string { return string(b) })); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if want := tt.want[len(tt.want)-1].ID; resumed != want {
				t.Errorf("resumed after %q, want %q", resumed, want)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

var errRPC = errors.New("a JSON-RPC error")

// Final answers, and how they are reported.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		status int
		kind   string
		final  bool
	}{
		{http.StatusOK, "application/json", true},
		{http.StatusOK, "", false}, // a stream that ends at once
		{http.StatusNoContent, "text/event-stream", true},
		{http.StatusFound, "text/html", true}, // without a Location
		{http.StatusBadRequest, "application/json", true},
		{http.StatusUnauthorized, "application/json", true},
		{http.StatusTooManyRequests, "application/json", false},
		{http.StatusInternalServerError, "text/plain", false},
		{http.StatusNotImplemented, "application/json", true},
		{http.StatusServiceUnavailable, "application/json", false},
	} {
		t.Run(fmt.Sprintf("%d %s", tt.status, tt.kind), func(t *testing.T) {
			requests := 0
			_, err := collect(t.Context(), sse.ClientOptions{
				Request:     getRequest,
				MinWait:     1,
				MaxWait:     1,
				MaxAttempts: 3,
				HTTP: client(func(n int, r *http.Request) (*http.Response, error) {
					requests = n
					return answer(tt.status, tt.kind, strings.NewReader("{}")), nil
				}),
				Refused: func(response *http.Response, body []byte) error {
					if string(body) != "{}" {
						t.Errorf("body %q", body)
					}
					return fmt.Errorf("%w with %d", errRPC, response.StatusCode)
				},
			})
			if want := map[bool]int{true: 1, false: 3}[tt.final]; requests != want {
				t.Errorf("%d requests, want %d", requests, want)
			}
			if tt.kind == "" {
				if !errors.Is(err, sse.ErrEnded) {
					t.Errorf("got %v, want %v", err, sse.ErrEnded)
				}
				return
			}
			var refused *sse.ResponseError
			if !errors.Is(err, errRPC) || !errors.As(err, &refused) || refused.Status != tt.status {
				t.Errorf("got %#v, want what the dialect made of it", err)
			}
		})
	}
}

// With FailFirst nothing is retried before the first stream, and everything after it.
func TestFailFirst(t *testing.T) {
	ended := func() (*http.Response, error) { return answer(http.StatusOK, "", strings.NewReader("")), nil }
	unready := func() (*http.Response, error) {
		return answer(http.StatusServiceUnavailable, "application/json", strings.NewReader("{}")), nil
	}
	nobody := func() (*http.Response, error) { return nil, errRPC }
	for _, c := range []struct {
		name     string
		answers  []func() (*http.Response, error) // the last one again and again
		requests int
	}{
		{"nobody there", []func() (*http.Response, error){nobody}, 1},
		{"not ready", []func() (*http.Response, error){unready}, 1},
		{"a stream, then nobody", []func() (*http.Response, error){ended, nobody}, 4},
		{"a stream, then not ready", []func() (*http.Response, error){ended, unready}, 4},
	} {
		requests := 0
		_, err := collect(t.Context(), sse.ClientOptions{
			Request: getRequest, FailFirst: true, MaxAttempts: 4, MinWait: 1,
			HTTP: client(func(n int, _ *http.Request) (*http.Response, error) {
				requests = n
				return c.answers[min(n, len(c.answers))-1]()
			}),
		})
		if err == nil || requests != c.requests {
			t.Errorf("%s: %d requests and %v, want %d", c.name, requests, err, c.requests)
		}
	}
}

// With Once there is one request, whatever comes of it.
func TestOnce(t *testing.T) {
	for name, body := range map[string]string{"no event": "", "an event": "data: x\n\n", "half an event": "data: x\n\ndata: y"} {
		requests := 0
		_, err := collect(t.Context(), sse.ClientOptions{Request: getRequest, Once: true, HTTP: client(func(n int, _ *http.Request) (*http.Response, error) {
			requests = n
			return answer(http.StatusOK, "", strings.NewReader(body)), nil
		})})
		if requests != 1 || !errors.Is(err, sse.ErrEnded) {
			t.Errorf("%s: %d requests, %v", name, requests, err)
		}
	}
}

func TestRequestError(t *testing.T) {
	_, err := collect(t.Context(), sse.ClientOptions{
		Request: func(context.Context, string) (*http.Request, error) { return nil, errRPC },
	})
	if !errors.Is(err, errRPC) {
		t.Errorf("got %v, want %v", err, errRPC)
	}
}

// The waits double up to their bound, half of each is random, an event starts
// them afresh, and the attempts in vain are counted from the last event.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		const fruitful = 4
		_, err := collect(t.Context(), sse.ClientOptions{
			Request: getRequest,
			MinWait: time.Second,
			MaxWait: 10 * time.Second,
			HTTP: client(func(n int, r *http.Request) (*http.Response, error) {
				if n == fruitful {
					return answer(http.StatusOK, "", strings.NewReader("data: x\n\n")), nil
				}
				return nil, errRPC
			}),
			Retrying: func(_ error, wait time.Duration) { waits = append(waits, wait) },
		})
		if !errors.Is(err, errRPC) {
			t.Errorf("got %v, want %v", err, errRPC)
		}
		want := []time.Duration{1, 2, 4, 1, 1, 2, 4, 8, 10, 10, 10, 10, 10}
		if len(waits) != len(want) {
			t.Fatalf("%d waits, want %d: %v", len(waits), len(want), waits)
		}
		for i, wait := range waits {
			if limit := want[i] * time.Second; wait < limit/2 || wait > limit {
				t.Errorf("wait %d is %v, want %v to %v", i, wait, limit/2, limit)
			}
		}
	})
}

// A server's hint is followed, but not beyond MaxWait.
func TestRetryAfter(t *testing.T) {
	for hint, want := range map[string]time.Duration{"7": 7 * time.Second, "3000": sse.DefaultMaxWait, "-1": 0, "x": 0} {
		synctest.Test(t, func(t *testing.T) {
			var waited time.Duration
			_, _ = collect(t.Context(), sse.ClientOptions{
				Request: getRequest,
				HTTP: client(func(n int, r *http.Request) (*http.Response, error) {
					if n > 1 {
						return answer(http.StatusGone, "", strings.NewReader("")), nil
					}
					response := answer(http.StatusServiceUnavailable, "text/plain", strings.NewReader(""))
					response.Header.Set("Retry-After", hint)
					return response, nil
				}),
				Retrying: func(_ error, wait time.Duration) { waited = wait },
			})
			if waited < want || waited > max(want, sse.DefaultMinWait) {
				t.Errorf("Retry-After %s: waited %v, want %v", hint, waited, want)
			}
		})
	}
}

// The context ends a wait and a read at once.
func TestClientContext(t *testing.T) {
	for _, reading := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			_, err := collect(ctx, sse.ClientOptions{
				Request: getRequest,
				MinWait: time.Hour,
				MaxWait: time.Hour,
				HTTP: client(func(n int, r *http.Request) (*http.Response, error) {
					if !reading {
						return nil, errRPC
					}
					return answer(http.StatusOK, "", pending{r.Context()}), nil
				}),
			})
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
				t.Errorf("reading %v: got %v after %v", reading, err, time.Since(began))
			}
		})
	}
}

// pending is a body on which nothing comes.
type pending struct{ ctx context.Context }

func (p pending) Read([]byte) (int, error) {
	<-p.ctx.Done()
	return 0, p.ctx.Err()
}

// A connection on which nothing comes is given up, one with heartbeats is not.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := collect(t.Context(), sse.ClientOptions{
			Request:     getRequest,
			IdleTimeout: 10 * time.Second,
			MaxAttempts: 1,
			HTTP: client(func(_ int, r *http.Request) (*http.Response, error) {
				beats := 0
				return answer(http.StatusOK, "", readFunc(func(p []byte) (int, error) {
					if beats++; beats > 5 {
						return pending{r.Context()}.Read(p)
					}
					time.Sleep(9 * time.Second)
					return copy(p, ": \n\n"), nil
				})), nil
			}),
		})
		if took, want := time.Since(began), 5*9*time.Second+10*time.Second; !errors.Is(err, sse.ErrIdle) || took != want {
			t.Errorf("got %v after %v, want %v after %v", err, took, sse.ErrIdle, want)
		}
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// The bound on events, also where it is far beyond the library's 64 KiB.
func TestClientMaxEventBytes(t *testing.T) {
	for _, limit := range []int{100, 64 << 10, 64<<10 + 1, 1 << 20} {
		for _, past := range []int{0, 1} {
			data := strings.Repeat("x", limit+past-len("data: \n\n"))
			events, err := collect(t.Context(), sse.ClientOptions{
				Request:       getRequest,
				MaxEventBytes: limit,
				MaxAttempts:   1,
				MinWait:       1,
				HTTP: client(func(n int, _ *http.Request) (*http.Response, error) {
					if n > 1 {
						return nil, errRPC
					}
					return answer(http.StatusOK, "", strings.NewReader("data: "+data+"\n\n")), nil
				}),
			})
			if past == 0 && (len(events) != 1 || string(events[0].Data) != data || !errors.Is(err, errRPC)) {
				t.Errorf("%d bytes: got %d events and %v", limit, len(events), err)
			}
			if past == 1 && (len(events) != 0 || !errors.Is(err, sse.ErrEventTooLarge)) {
				t.Errorf("%d bytes past %d: got %d events and %v", past, limit, len(events), err)
			}
		}
	}
}
