package agentchat

import (
	"context"
	"errors"
	"testing"

	"github.com/coder/websocket"

	"koine/internal/sse"
	"koine/kg"
)

// A client has MaxQueuedFrames waiting, and not one more; frames are written in order, and
// one that waits for a place gets it when another is written.
func TestQueue(t *testing.T) {
	q := newFrameQueue()
	for i := range MaxQueuedFrames {
		if err := q.push([]byte{byte(i)}); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := q.push([]byte("x")); !errors.Is(err, sse.ErrSlowConsumer) {
		t.Errorf("one too many: %v", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- q.pushWaiting(t.Context(), []byte("last")) }()
	for i := range MaxQueuedFrames {
		frame, err := q.pop(t.Context())
		if err != nil || len(frame) != 1 || frame[0] != byte(i) {
			t.Fatalf("frame %d: %q, %v", i, frame, err)
		}
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if frame, err := q.pop(t.Context()); err != nil || string(frame) != "last" {
		t.Errorf("the last: %q, %v", frame, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errSilent)
	if _, err := q.pop(ctx); err == nil {
		t.Error("an empty queue of an ended socket gave a frame")
	}
	for range MaxQueuedFrames {
		if err := q.push(nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.pushWaiting(ctx, nil); !errors.Is(err, errSilent) {
		t.Errorf("a full queue of an ended socket: %v", err)
	}
}

func TestCloseCodes(t *testing.T) {
	for _, row := range []struct {
		cause error
		want  websocket.StatusCode
	}{
		{sse.ErrClientGone, websocket.StatusNormalClosure},
		{sse.ErrShutdown, websocket.StatusGoingAway},
		{kg.Errorf(kg.CodeClosed, "x"), websocket.StatusGoingAway},
		{sse.ErrSlowConsumer, websocket.StatusTryAgainLater},
		{kg.Errorf(kg.CodeResync, "x"), websocket.StatusTryAgainLater},
		{kg.Errorf(kg.CodeOverloaded, "x"), websocket.StatusTryAgainLater},
		{kg.Errorf(kg.CodeRateLimited, "x"), websocket.StatusTryAgainLater},
		{kg.Errorf(kg.CodeAccessChanged, "x"), websocket.StatusTryAgainLater},
		{kg.Errorf(kg.CodeTimeout, "x"), websocket.StatusPolicyViolation},
		{kg.Errorf(kg.CodeChannelNotFound, "x"), websocket.StatusPolicyViolation},
		{kg.Errorf(kg.CodeUnauthenticated, "x"), 4401},
		{kg.Errorf(kg.CodePermissionDenied, "x"), 4403},
		{kg.Errorf(kg.CodeSourceForbidden, "x"), 4403},
		{errSilent, 4408},
		{&kg.Error{Code: kg.CodeLimitExceeded, Limit: "streams"}, 4429},
		{kg.Errorf(kg.CodeLimitExceeded, "x"), websocket.StatusPolicyViolation},
		{errors.New("x"), websocket.StatusInternalError},
	} {
		if got, _ := closeReason(row.cause); got != row.want {
			t.Errorf("%v: closed with %d, want %d", row.cause, got, row.want)
		}
	}
}
