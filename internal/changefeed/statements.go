package changefeed

import (
	"context"
	"iter"
	"slices"

	"koine/internal/operation"
	"koine/kg"
)

// Statements is a Subject: the statements that a filter selects, one event for each
// change.
type Statements struct{ Filter kg.Filter }

// View returns the view of the filter.
func (s Statements) View() kg.View { return s.Filter.View }

// Begin returns the filter.
func (s Statements) Begin(context.Context, *kg.Store, kg.Position) (kg.Filter, error) {
	return s.Filter, nil
}

// Changes yields each change.
func (s Statements) Changes(_ context.Context, _ *kg.Store, w *kg.Watcher) iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		for change, err := range w.SharedEvents() {
			if err != nil {
				yield(operation.Event{}, err)
				return
			}
			if !yield(operation.Event{Changes: change, Position: change[0].Position}, nil) {
				return
			}
		}
	}
}

// Current yields the statements that the filter selects.
func (s Statements) Current(_ context.Context, snapshot *kg.Snapshot) iter.Seq2[operation.Event, error] {
	at := snapshot.Position()
	return func(yield func(operation.Event, error) bool) {
		err := MarkLast(s.scanStatements(snapshot), func(statement kg.Statement, last bool) bool {
			event := kg.Event{Op: kg.Add, Statement: statement, Position: at}
			return yield(operation.Event{Snapshot: true, SnapshotEnd: last, Changes: []kg.Event{event}}, nil)
		})
		if err != nil {
			yield(operation.Event{}, err)
		}
	}
}

func (s Statements) scanStatements(snapshot *kg.Snapshot) iter.Seq2[kg.Statement, error] {
	return func(yield func(kg.Statement, error) bool) {
		if s.Filter.Ops != nil && !slices.Contains(s.Filter.Ops, kg.Add) {
			return
		}
		patterns := s.Filter.Patterns
		if patterns == nil {
			patterns = []kg.Pattern{{}}
		}
		for i, p := range patterns {
			fitsEarlier := func(s kg.Statement) bool {
				return slices.ContainsFunc(patterns[:i], func(p kg.Pattern) bool { return p.Matches(s.Quad) })
			}
			for statement, err := range snapshot.Match(p) {
				if err == nil && (fitsEarlier(statement) || s.Filter.Keep != nil && !s.Filter.Keep(statement)) {
					continue
				}
				if !yield(statement, err) || err != nil {
					return
				}
			}
		}
	}
}

// Commits yields the changes of each commit together, as Changes of a Subject with a
// constant filter.
func Commits(w *kg.Watcher) iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		for changes, err := range w.Commits() {
			if err != nil {
				yield(operation.Event{}, err)
				return
			}
			if !yield(commitEvent(changes), nil) {
				return
			}
		}
	}
}

// commitEvent returns the event of a commit, with the position after it, or the event
// of the replacement of a graph.
func commitEvent(changes []kg.Event) operation.Event {
	at := changes[0].Position
	if changes[0].Replaced == nil { // its position is before the end of the commit
		at.Index = kg.EndOfCommit
	}
	return operation.Event{Changes: changes, Position: at}
}
