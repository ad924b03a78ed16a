package agentapi

import (
	"iter"

	"github.com/coder/websocket"

	"koine/internal/sse"
	"koine/internal/tasks"
)

// Closing returns the close code of a socket for a cause.
func Closing(cause error) websocket.StatusCode {
	code, _ := closeReason(cause)
	return code
}

// TaskEvents yields the events of a stream of a task.
func (h *Handler) TaskEvents(first *tasks.Task, again bool, st *tasks.Stream) iter.Seq2[sse.Event, error] {
	return h.taskEvents(first, again, st).events
}
