package knowledge

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/internal/changefeed"
	"koine/internal/operation"
	"koine/kg"
)

// statementEvent is the content of Subscription.statementChanged.
type statementEvent struct{ change changePlan }

// StatementChanged establishes Subscription.statementChanged.
func (*Subscription) StatementChanged(ctx context.Context, f *executor.Selected, args *SubscriptionStatementChangedArgs) (*Stream, error) {
	return SubscribeTo(ctx, f, args.Resume, args.View, func(p *Planner, field ast.SelectionSet) (EventContent, changefeed.Subject, error) {
		compiler := p.compiler()
		compiler.Ctx = context.WithoutCancel(ctx) // the test runs as long as the stream is open
		match, err := compiler.Changes(args.Where)
		if err != nil {
			return nil, nil, kg.AsError(err).At("where")
		}
		content := &statementEvent{}
		filter := kg.Filter{Patterns: []kg.Pattern{match.Pattern}, Ops: args.Ops, View: p.View, Keep: match.WatchFilter(), Replacements: true}
		return content, changefeed.Statements{Filter: filter}, p.planChange(&content.change, field)
	})
}

func (c *statementEvent) Write(w *writer, t *EventWriter, e *operation.Event) error {
	l, err := t.loaderFor(e, c.change.reads)
	if err != nil {
		return err
	}
	nodes, err := l.loadChanges(&c.change, []operation.Event{*e})
	if err != nil {
		return err
	}
	nodes[0].write(w, l.reader.Store)
	return nil
}
