package a2a

import (
	"iter"

	"koine/a2a/internal/base"
	"koine/internal/tasks"
)

// answerFeed is a stream of one message, which is all that came of it.
func answerFeed(message any) *feed {
	return &feed{
		results:  func(yield func(result, error) bool) { yield(result{value: message}, nil) },
		position: func() string { return "" }, close: func() {},
	}
}

// taskFeed is a task, unless it is nil, and what happens to it; the feed's close gives
// the stream back.
func (h *Handler) taskFeed(v version, t *tasks.Task, st *tasks.Stream) *feed {
	return &feed{results: h.taskResults(v, t, st), position: func() string { return "" }, close: st.Close}
}

// taskResults tells what A2A knows of. Every event has its position, so that a stream
// goes on behind it.
func (h *Handler) taskResults(v version, t *tasks.Task, st *tasks.Stream) iter.Seq2[result, error] {
	return func(yield func(result, error) bool) {
		of := st.About()
		about := base.About{Task: of.ID, Context: of.Context}
		if t != nil && !yield(result{v.Result(v.Task(t)), h.store.FormatPosition(st.Position())}, nil) {
			return
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
				continue // what its creator said, its creator knows
			}
			if !yield(result{value, h.store.FormatPosition(e.Position)}, nil) {
				return
			}
			// 0.3 ends a stream where the handler waits; 1.0 does not.
			if v.name == version03.name && e.Status != nil && e.Status.State.Settled() {
				return
			}
		}
	}
}
