package provenance

import (
	"context"
	"slices"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Limits of the history that Why returns.
const (
	DefaultSteps = 10
	MaxSteps     = 100
)

// Explanation explains why a statement is in the graph.
type Explanation struct {
	Statement kg.Statement
	// Backing holds the commit of each assertion of the statement, in the same order;
	// nil if the log no longer has the commit.
	Backing []*kg.Commit
	// History lists the changes of the statement, the newest first.
	History []Step
	// More reports that older changes exist or that the log no longer has them.
	More bool
}

// Step is a change of a statement, as a view shows it.
type Step struct {
	Op kg.Op
	// Assertion is the assertion that was made or withdrawn.
	Assertion kg.Assertion
	// Previous, on a Replace, are the replaced statements.
	Previous []kg.Statement
	// ReplacedBy, on a Remove, is the quad that replaced the statement; the zero Quad
	// for none.
	ReplacedBy kg.Quad
	// Remains, on a Remove, reports that other sources still asserted the statement.
	Remains bool
	Commit  *kg.Commit
}

// Log is the part of a store that Why reads in addition to a snapshot.
type Log interface {
	Commit(ctx context.Context, p kg.Principal, r kg.Revision) (*kg.Commit, error)
	ReadLog(ctx context.Context, f kg.Filter, part kg.LogRange) (*kg.LogReader, error)
}

// Why explains why a statement is in the graph. It returns nil if the snapshot does not
// show the statement. steps bounds the history (at most MaxSteps). The history follows
// the snapshot's view except for its age limit, which does not apply to the past.
func Why(ctx context.Context, log Log, s *kg.Snapshot, q kg.Quad, steps int) (*Explanation, error) {
	st, found, err := systemgraph.First(s.Match, kg.Pattern(q))
	if !found || err != nil {
		return nil, err
	}
	a := &Explanation{Statement: st, Backing: make([]*kg.Commit, len(st.Assertions))}
	w := &explainer{ctx: ctx, log: log, s: s, quad: st.Quad, commits: map[kg.Revision]*kg.Commit{}}
	for i, assertion := range st.Assertions {
		if a.Backing[i], err = w.commit(assertion.Revision); err != nil {
			return nil, err
		}
	}
	a.History, a.More, err = w.readHistory(min(steps, MaxSteps))
	return a, err
}

// explainer collects the explanation of one statement.
type explainer struct {
	ctx     context.Context
	log     Log
	s       *kg.Snapshot
	quad    kg.Quad
	commits map[kg.Revision]*kg.Commit
}

// commit returns the part of a commit that the caller may see; nil if the log no longer
// has the commit.
func (w *explainer) commit(r kg.Revision) (*kg.Commit, error) {
	if c, ok := w.commits[r]; ok {
		return c, nil
	}
	c, err := w.log.Commit(w.ctx, w.s.View().Principal, r)
	switch kg.CodeOf(err) {
	case kg.CodeRevisionGone, kg.CodeNotFound:
		c, err = nil, nil
	}
	w.commits[r] = c
	return c, err
}

// readHistory reads the newest steps, and reports whether there are more.
func (w *explainer) readHistory(limit int) (steps []Step, more bool, err error) {
	revisions, err := w.changedIn(limit + 1)
	if err != nil {
		return nil, false, err
	}
	for _, r := range revisions {
		if len(steps) >= limit {
			return steps[:limit], true, nil
		}
		found, err := w.stepsIn(r)
		switch kg.CodeOf(err) {
		case kg.CodePositionGone, kg.CodeRevisionGone:
			return steps, true, nil // the log begins later
		}
		if err != nil {
			return nil, false, err
		}
		steps = append(steps, found...)
	}
	if len(steps) > limit {
		return steps[:limit], true, nil
	}
	return steps, false, nil
}

// changedIn lists the newest revisions in which the statement changed, the newest
// first.
func (w *explainer) changedIn(limit int) ([]kg.Revision, error) {
	pattern, known, err := w.s.PatternIDs(kg.Pattern(w.quad))
	if !known || err != nil {
		return nil, err
	}
	var list []kg.Revision
	for v, err := range w.s.Versions(pattern, nil) {
		if err != nil {
			return nil, err
		}
		if n := len(list); n == 0 || list[n-1] != v.From {
			list = append(list, v.From)
		}
		if v.To != 0 {
			list = append(list, v.To)
		}
		if len(list) > 4*limit { // keep the newest only
			list = append(list[:0], list[len(list)-limit:]...)
		}
	}
	slices.Reverse(list)
	return list[:min(limit, len(list))], nil
}

// stepsIn lists the changes of the statement in a commit, the last first.
func (w *explainer) stepsIn(r kg.Revision) ([]Step, error) {
	view := w.s.View()
	view.At, view.MaxAge = 0, 0
	view.Graphs = []kg.Term{w.quad.Graph}
	// Include other statements with the same subject and predicate: one may have
	// replaced the other.
	around := kg.Pattern{Subject: w.quad.Subject, Predicate: w.quad.Predicate, Graph: w.quad.Graph}
	epoch := w.s.Position().Epoch
	reader, err := w.log.ReadLog(w.ctx, kg.Filter{Patterns: []kg.Pattern{around}, View: view}, kg.LogRange{
		After:    kg.Position{Epoch: epoch, Revision: r - 1, Index: kg.EndOfCommit},
		Until:    kg.Position{Epoch: epoch, Revision: r, Index: kg.EndOfCommit},
		Backward: true,
	})
	if err != nil {
		return nil, err
	}
	var list []Step
	for e, err := range reader.Events() {
		if err != nil {
			return nil, err
		}
		step, ok := w.stepOf(&e)
		if !ok {
			continue
		}
		if step.Commit, err = w.commit(r); err != nil {
			return nil, err
		}
		list = append(list, step)
	}
	return list, nil
}

// stepOf converts an event to a change of the statement. It reports false if the event
// did not change it.
func (w *explainer) stepOf(e *kg.Event) (Step, bool) {
	if e.Statement.Quad == w.quad {
		return Step{Op: e.Op, Assertion: e.Statement.Assertions[0], Previous: e.Previous, Remains: e.StatementRemains}, true
	}
	for _, gone := range e.Previous {
		if gone.Quad == w.quad {
			return Step{Op: kg.Remove, Assertion: gone.Assertions[0], ReplacedBy: e.Statement.Quad}, true
		}
	}
	return Step{}, false
}
