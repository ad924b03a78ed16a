package graph

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/changefeed"
	"koine/internal/operation"
	"koine/internal/query"
	"koine/kg"
)

// statementEvent is the content of Subscription.statementChanged.
type statementEvent struct{ change changePlan }

// followStatements establishes Subscription.statementChanged.
func followStatements(ctx context.Context, where *query.StatementFilter, ops []kg.Op, resume *Position, view *ViewInput) error {
	return subscribeTo(ctx, resume, view, func(p *planner, field ast.SelectionSet) (eventContent, changefeed.Subject, error) {
		compiler := p.compiler()
		compiler.Ctx = context.WithoutCancel(ctx) // the test runs as long as the stream is open
		match, err := compiler.Changes(where)
		if err != nil {
			return nil, nil, kg.AsError(err).At("where")
		}
		content := &statementEvent{}
		filter := kg.Filter{Patterns: []kg.Pattern{match.Pattern}, Ops: ops, View: p.view, Keep: match.WatchFilter(), Replacements: true}
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
