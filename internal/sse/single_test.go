package sse_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"koine/internal/sse"
)

func TestWriteSingle(t *testing.T) {
	for _, c := range []struct {
		event sse.Event
		want  string
	}{
		{sse.Event{Data: []byte("x")}, "data: x\n\n"},
		{sse.Event{ID: "7", Name: "end", Data: []byte("a\nb")}, "id: 7\nevent: end\ndata: a\ndata: b\n\n"},
	} {
		w := httptest.NewRecorder()
		if err := sse.WriteSingle(w, c.event); err != nil || w.Code != http.StatusOK || w.Body.String() != c.want {
			t.Errorf("%+v: %d %q, %v, want %q", c.event, w.Code, w.Body, err, c.want)
		}
		if kind := w.Header().Get("Content-Type"); kind != "text/event-stream" {
			t.Errorf("%+v is %s", c.event, kind)
		}
	}
	w := httptest.NewRecorder()
	if err := sse.WriteSingle(w, sse.Event{Data: []byte("a\rb")}); !errors.Is(err, sse.ErrMalformed) || w.Body.Len() > 0 {
		t.Errorf("a carriage return: %q, %v", w.Body, err)
	}
}
