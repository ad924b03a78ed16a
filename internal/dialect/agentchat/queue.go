package agentchat

import (
	"context"
	"sync"

	"koine/internal/jobs"
	"koine/internal/sse"
)

// frameQueue holds the frames of a socket that wait to be written. A writer runs only while
// there are some: most sockets are idle.
type frameQueue struct {
	startWriter func() // calls pop until it returns false
	freed       chan struct{}

	mu      sync.Mutex // guards the following
	frames  [][]byte
	writing bool // the writer runs
}

func newFrameQueue(startWriter func()) *frameQueue {
	return &frameQueue{startWriter: startWriter, freed: make(chan struct{}, 1)}
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
	if !q.writing {
		q.writing = true
		q.startWriter()
	}
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

// pop removes the first frame. If there is none the writer must end.
func (q *frameQueue) pop() (frame []byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.frames) == 0 {
		q.frames, q.writing = nil, false
		return nil, false
	}
	frame = q.frames[0]
	q.frames[0] = nil
	q.frames = q.frames[1:]
	jobs.Wake(q.freed)
	return frame, true
}
