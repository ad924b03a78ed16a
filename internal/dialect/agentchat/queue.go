package agentchat

import (
	"context"
	"sync"

	"koine/internal/jobs"
	"koine/internal/sse"
)

// frameQueue holds the frames of a socket that wait to be written.
type frameQueue struct {
	filled, freed chan struct{}

	mu     sync.Mutex
	frames [][]byte
}

func newFrameQueue() *frameQueue {
	return &frameQueue{filled: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
}

// push adds a frame. A client with MaxQueuedFrames waiting reads too slowly.
//
// Errors: sse.ErrSlowConsumer.
func (q *frameQueue) push(frame []byte) error {
	if !q.tryPush(frame) {
		return sse.ErrSlowConsumer
	}
	return nil
}

func (q *frameQueue) tryPush(frame []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.frames) >= MaxQueuedFrames {
		return false
	}
	q.frames = append(q.frames, frame)
	jobs.Wake(q.filled)
	return true
}

// pushWaiting adds a frame and waits for a place. It returns the context's cause.
func (q *frameQueue) pushWaiting(ctx context.Context, frame []byte) error {
	for !q.tryPush(frame) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-q.freed:
		}
	}
	return nil
}

// pop removes the first frame and waits for one. It returns the context's error.
func (q *frameQueue) pop(ctx context.Context) ([]byte, error) {
	for {
		q.mu.Lock()
		if len(q.frames) > 0 {
			frame := q.frames[0]
			q.frames[0] = nil
			if q.frames = q.frames[1:]; len(q.frames) == 0 {
				q.frames = nil // free it: most sockets are idle
			}
			q.mu.Unlock()
			jobs.Wake(q.freed)
			return frame, nil
		}
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-q.filled:
		}
	}
}
