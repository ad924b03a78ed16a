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
// one that waits for a place gets it when another is written. The writer is started once, and
// again after it has ended.
func TestQueue(t *testing.T) {
	started := 0
	q := newFrameQueue(func() { started++ })
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
		frame, ok := q.pop()
		if !ok || len(frame) != 1 || frame[0] != byte(i) {
			t.Fatalf("frame %d: %q, %v", i, frame, ok)
		}
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if frame, ok := q.pop(); !ok || string(frame) != "last" {
		t.Errorf("the last: %q, %v", frame, ok)
	}
	if _, ok := q.pop(); ok || started != 1 {
		t.Errorf("an empty queue gave a frame, or its writer was started %d times", started)
	}
	for range MaxQueuedFrames {
		if err := q.push(nil); err != nil {
			t.Fatal(err)
		}
	}
	if started != 2 {
		t.Errorf("the writer was started %d times, want 2", started)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errSilent)
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
