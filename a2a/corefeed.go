package a2a

import (
	"iter"

	"koine/a2a/internal/base"
	"koine/internal/tasks"
)

// answerFeed is a stream of one message, for a direct answer.
func answerFeed(message any) *feed {
	return &feed{
		results:  func(yield func(result, error) bool) { yield(result{value: message}, nil) },
		position: func() string { return "" }, close: func() {},
	}
}

// taskFeed is a stream of a task, unless it is nil, and its events; closing the feed
// releases the stream.
func (h *Handler) taskFeed(v version, t *tasks.Task, st *tasks.Stream) *feed {
	return &feed{results: h.taskResults(v, t, st), position: func() string { return "" }, close: st.Close}
}

// taskResults yields the events that A2A defines. Each has its position, so that a
// stream can resume after it. The task is not held after it is sent.
func (h *Handler) taskResults(v version, t *tasks.Task, st *tasks.Stream) iter.Seq2[result, error] {
	return func(yield func(result, error) bool) {
		of := st.About()
		about := base.About{Task: of.ID, Context: of.Context}
		if t != nil {
			first := v.Result(v.Task(t))
			t = nil
			if !yield(result{first, h.store.FormatPosition(st.Position())}, nil) {
				return
			}
		}
		for e, err := range st.Events() {
			var value any
			switch {
			case err != nil:
				yield(result{}, err)
				return
			case e.Status != nil:
				value = v.Result(v.Status(&e, about))
			case e.Chunk != nil:
				value = v.Result(v.Chunk(e.Chunk, about))
			default:
				continue // the creator's own messages
			}
			if !yield(result{value, h.store.FormatPosition(e.Position)}, nil) {
				return
			}
			// 0.3 ends a stream when the handler waits; 1.0 does not.
			if v.name == version03.name && e.Status != nil && e.Status.State.Settled() {
				return
			}
		}
	}
}
