package erasure

import (
	"log/slog"
	"strings"

	"koine/kg/base"
)

// EraseOptions selects the content to erase: everything that matches all set fields. At
// least one must be set.
type EraseOptions struct {
	// Pattern selects statements. Statements in koine's own graphs are erased only if the
	// pattern names the graph, or the journal that it has copies of, or Also reports it.
	// Entries of a journal keep Sequence and Evicted, which count the entries.
	Pattern base.Pattern
	// Also, if not nil, reports the graphs of koine's own in which the rest of the pattern selects
	// statements as in a graph that it names. It may be called concurrently.
	Also func(graph base.Term) bool
	// Text is the lexical form of a literal object, of any datatype and language; ""
	// selects all.
	Text string
	// Source erases only the assertions of this agent. A statement without another
	// assertion is erased as well.
	Source base.AgentID
	// DryRun counts the changes and writes nothing.
	DryRun bool
	// Keep retains the previous files in the directory, under KeptName.
	Keep   bool
	Logger *slog.Logger // discards when nil
	// Progress, if not nil, is called from time to time with the number of log entries
	// rewritten.
	Progress func(done, total uint64)

	// Step is called before each step of the exchange, for fault injection in tests.
	Step func() error
}

// Valid checks the options and normalizes Source. It returns CodeInvalid if nothing is
// selected.
func (o *EraseOptions) Valid() error {
	p := o.Pattern
	if p == (base.Pattern{}) && o.Source == "" && o.Text == "" {
		return base.Errorf(base.CodeInvalid, "nothing is selected: set a part of a statement, a text or a source")
	}
	if o.Source != "" {
		o.Source = base.CanonicalAgent(string(o.Source))
		return o.Source.Valid()
	}
	return nil
}

// matches reports whether the options select a statement.
func (o *EraseOptions) matches(q *base.Quad) bool {
	p := &o.Pattern
	named := !p.Graph.IsZero() && (p.Graph == q.Graph || p.Graph == base.CopiedGraph(q.Graph)) || o.Also != nil && base.IsOwnGraph(q.Graph) && o.Also(q.Graph)
	if base.IsOwnGraph(q.Graph) && (!named || isJournalCounter(q)) || o.Text != "" && (q.Object.Kind() != base.KindLiteral || q.Object.Value() != o.Text) {
		return false
	}
	return (p.Subject.IsZero() || p.Subject == q.Subject) && (p.Predicate.IsZero() || p.Predicate == q.Predicate) &&
		(p.Object.IsZero() || p.Object == q.Object) && (p.Graph.IsZero() || named)
}

// isJournalCounter reports whether a statement counts the entries of a journal: its
// predicate is Sequence or Evicted. It has no other content, and without it a number would
// be assigned twice.
func isJournalCounter(q *base.Quad) bool {
	return strings.HasPrefix(q.Graph.Value(), base.JournalGraphPrefix) && (q.Predicate == base.Sequence || q.Predicate == base.Evicted)
}
