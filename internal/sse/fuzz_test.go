package sse_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"koine/internal/sse"
)

// FuzzParse proves that the events of a client depend on the bytes alone and not on their
// packets, and that no input makes it fail.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"data: x\n\n", "id: 1\r\ndata: a\r\n\r\n", "data: a\r\rdata: b\r\n\rdata: c\n\r\n", "\ufeff: \n\nid\ndata\n\n", "data: x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		whole := parse(t, strings.NewReader(body))
		pieces := parse(t, iotest.OneByteReader(strings.NewReader(body)))
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Errorf("(-whole +in pieces)\n%s", diff)
		}
		for _, e := range whole {
			if strings.ContainsAny(e.ID+e.Name, "\r\n") {
				t.Errorf("a line break in %+v", e)
			}
		}
	})
}

// parse reads one connection.
func parse(t *testing.T, body io.Reader) []sse.Event {
	t.Helper()
	events, err := collect(t.Context(), sse.ClientOptions{
		Request:     getRequest,
		MinWait:     1,
		MaxAttempts: 1,
		HTTP: client(func(n int, _ *http.Request) (*http.Response, error) {
			if n > 1 {
				return nil, errRPC
			}
			return answer(http.StatusOK, "", body), nil
		}),
	})
	if !errors.Is(err, errRPC) && !errors.Is(err, sse.ErrEnded) {
		t.Errorf("got %v", err)
	}
	return events
}
