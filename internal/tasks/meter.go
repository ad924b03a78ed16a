package tasks

import (
	"iter"

	"koine/internal/systemgraph"
	"koine/kg"
)

// PartOverhead is counted for each part and message in Options.MaxReadBytes, beside its text: a
// part without content takes as much memory as one with a line of it.
const PartOverhead = 256

// meter counts the stored bytes that are read of tasks, and stops a reader past a limit, so that
// the rest is never in memory.
type meter struct {
	limit   int // 0 for none
	used    int
	refused bool // something was not read
}

// countBytes counts bytes. Its error is CodeLimitExceeded.
func (m *meter) countBytes(n int) error {
	if m.used += n; m.limit == 0 || m.used <= m.limit {
		return nil
	}
	m.refused = true
	e := errTooMuch("id", "the task has more than %d bytes to read", m.limit)
	e.Hint = "Read fewer messages (historyLength), list the task without artifacts, or read its artifacts one by one, as entities, with GraphQL."
	return e
}

// countParts counts the memory of parts beside their text.
func (m *meter) countParts(n int) error { return m.countBytes(n * PartOverhead) }

// counting returns a matcher that spends the objects that it yields.
func (m *meter) counting(match systemgraph.Matcher) systemgraph.Matcher {
	return func(p kg.Pattern) iter.Seq2[kg.Statement, error] {
		return func(yield func(kg.Statement, error) bool) {
			for st, err := range match(p) {
				if err == nil {
					err = m.countBytes(len(st.Object.Value()))
				}
				if !yield(st, err) || err != nil {
					return
				}
			}
		}
	}
}
