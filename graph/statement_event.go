package graph

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/changefeed"
	"koine/internal/operation"
	"koine/kg"
)

// statementEvent is the content of Subscription.statementChanged.
type statementEvent struct{ change changePlan }

// followStatements establishes Subscription.statementChanged.
func followStatements(ctx context.Context, where *StatementFilter, ops []kg.Op, resume *Position, view *ViewInput) error {
	return subscribeTo(ctx, resume, view, func(p *planner, field ast.SelectionSet) (eventContent, changefeed.Subject, error) {
		match, err := matchChanges(context.WithoutCancel(ctx), where) // the test runs as long as the stream is open
		if err != nil {
			return nil, nil, kg.AsError(err).At("where")
		}
		content := &statementEvent{}
		filter := kg.Filter{Patterns: []kg.Pattern{match.pattern}, Ops: ops, View: p.view, Keep: match.watchFilter(), Replacements: true}
		return content, changefeed.Statements{Filter: filter}, p.planChange(&content.change, field)
	})
}

func (c *statementEvent) write(t *eventWriter, e *operation.Event) ([]byte, error) {
	l, err := t.loaderFor(e, c.change.reads)
	if err != nil {
		return nil, err
	}
	nodes, err := l.loadChanges(&c.change, []operation.Event{*e})
	if err != nil {
		return nil, err
	}
	return nodes[0].write(nil, l.engine), nil
}

// watchFilter returns the match's test as a filter of a watch, which tests one
// assertion at a time.
func (m statementMatch) watchFilter() func(kg.Statement) bool {
	if m.test == nil {
		return nil
	}
	return func(s kg.Statement) bool {
		ok, err := m.test(newTestedStatement(s))
		return ok && err == nil
	}
}
