package erasure

import (
	"log/slog"
	"strings"

	"koine/kg/internal/base"
)

// EraseOptions says what is erased: what fits all that is set. Something must be.
type EraseOptions struct {
	// Pattern is of the statements. Those in graphs of koine's own are erased only
	// if the graph is named. Entries of a journal keep their numbers (Sequence), and
	// that they are Evicted: by these entries are counted.
	Pattern base.Pattern
	// Text is that of a literal object, of any datatype and language; "" for any.
	Text string
	// Source leaves the statements and erases what this agent asserted of them; a
	// statement that nobody else backed goes with it.
	Source base.AgentID
	// DryRun counts and changes nothing.
	DryRun bool
	// Keep leaves the files of before in the directory, under KeptName.
	Keep   bool
	Logger *slog.Logger // discards when nil
	// Progress is called now and then with how many log entries have been
	// rewritten; may be nil.
	Progress func(done, total uint64)

	// Step is called before each step of the exchange; for fault tests.
	Step func() error
}

func (o *EraseOptions) Valid() error {
	p := o.Pattern
	if p == (base.Pattern{}) && o.Source == "" && o.Text == "" {
		return base.Errorf(base.CodeInvalid, "say what is to be erased: a part of a statement, or a source")
	}
	if o.Source != "" {
		o.Source = base.CanonicalAgent(string(o.Source))
		return o.Source.Valid()
	}
	return nil
}

// matches tells whether a statement is one of those that are asked for.
func (o *EraseOptions) matches(q *base.Quad) bool {
	p := &o.Pattern
	if base.IsOwnGraph(q.Graph) && (p.Graph != q.Graph || isJournalCounter(q)) || o.Text != "" && (q.Object.Kind() != base.KindLiteral || q.Object.Value() != o.Text) {
		return false
	}
	return (p.Subject.IsZero() || p.Subject == q.Subject) && (p.Predicate.IsZero() || p.Predicate == q.Predicate) &&
		(p.Object.IsZero() || p.Object == q.Object) && (p.Graph.IsZero() || p.Graph == q.Graph)
}

// isJournalCounter tells whether statements of a journal are counted by which this is: the
// number of an entry, and that it is no longer kept. They say nothing else, and
// without one of them numbers would be given twice.
func isJournalCounter(q *base.Quad) bool {
	return strings.HasPrefix(q.Graph.Value(), base.JournalGraphPrefix) && (q.Predicate == base.Sequence || q.Predicate == base.Evicted)
}
