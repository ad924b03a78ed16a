package a2a

import (
	"context"
	"iter"

	"koine/internal/tasks"
)

// LastOfStream returns the last event of a channel's stream that ends with an error at
// a position.
func LastOfStream(h *Handler, err error, position string) *Error {
	return h.endOf(context.Background(), channelStreams, err, position)
}

// FirstOfTask yields the first result of a stream of a task. The stream goes on until end.
func FirstOfTask(h *Handler, t *tasks.Task, st *tasks.Stream) (end func()) {
	next, stop := iter.Pull2(h.taskFeed(version1, t, st).results)
	next()
	return stop
}
