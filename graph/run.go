package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/fault"
	"koine/graph/internal/knowledge"
	"koine/graph/internal/views"
	"koine/internal/agents"
	"koine/internal/operation"
	"koine/kg"
)

// writer writes an answer.
type writer = executor.Writer

// run is the state of one operation during its execution: that of its reads, and the
// state that fields of domain packages need besides.
type run struct {
	*knowledge.Run
	engine          *Engine
	schema          *servedSchema // for the whole operation
	request         *operation.Request
	broken          map[string]error              // errors of root fields that use null as a value, by alias
	answer          *executor.Writer              // of a query or mutation; the fields of a mutation are written one after the other
	writtenPosition *kg.Position                  // position after the commit of a mutation
	commitMessages  map[kg.Revision]*Message      // messages of commits, nil for none
	commitTasks     map[kg.Revision]*Task         // tasks of commits, nil for none
	mutates         bool                          // the operation is a mutation
	agentRecords    map[kg.AgentID]*agents.Record // records of agents, nil for none
	agentsReadAt    kg.Position                   // of a mutation: the head when they were read
}

func newRun(e *Engine, req *operation.Request) *run {
	r := &run{engine: e, schema: e.schema.Load(), request: req}
	r.Run = knowledge.NewRun(e.reader, req, r.schema.Schema(), r)
	return r
}

// withRun carries the run and the operation to the resolvers.
func (r *run) withRun(ctx context.Context, opCtx *graphql.OperationContext) context.Context {
	r.mutates = opCtx.Operation.Operation == ast.Mutation
	return graphql.WithOperationContext(r.Begin(ctx), opCtx)
}

func runOf(ctx context.Context) *run { return knowledge.RunOf(ctx).Owner.(*run) }

// close closes the snapshots and records the reads in the result, and the position
// after a mutation.
func (r *run) close(result *operation.Result) {
	r.Run.Close(result)
	if r.writtenPosition != nil {
		result.Position = *r.writtenPosition
	}
}

// openSnapshot returns the snapshot of a view, the same one for equal views.
func (r *run) openSnapshot(ctx context.Context, view kg.View) (*kg.Snapshot, error) {
	return r.Run.OpenSnapshot(ctx, view)
}

// chargeBytes accounts for n bytes loaded for the answer.
func (r *run) chargeBytes(n int) error { return r.Run.ChargeBytes(n) }

// fieldView returns the view of a field: the request's view, narrowed by the
// field's own argument.
func (r *run) fieldView(v *views.ViewInput) (kg.View, error) { return r.Run.FieldView(v) }

// findHints returns the hints of the operation. A panic costs the hints, not the
// answer.
func (r *run) findHints(ctx context.Context, opCtx *graphql.OperationContext) (out []operation.Hint) {
	defer func() {
		if p := recover(); p != nil {
			r.engine.faults.PresentAlone(fault.Recover(ctx, p)) // present logs it
			out = nil
		}
	}()
	read := r.FirstSnapshot()
	if read == nil && opCtx.Operation.Operation == ast.Query {
		return nil // nothing was read
	}
	return r.engine.mentions.Find(ctx, r.request.Principal, read, opCtx.Operation.SelectionSet, opCtx.Variables, r.NotedHints)
}
