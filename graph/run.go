package graph

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/fault"
	"koine/graph/internal/views"
	"koine/graph/limit"
	"koine/internal/agents"
	"koine/internal/operation"
	"koine/kg"
)

// writer writes an answer.
type writer = executor.Writer

// run is the state of one operation during its execution.
type run struct {
	engine  *Engine
	schema  *servedSchema // for the whole operation
	request *operation.Request
	ctx     context.Context  // the operation's context; a run does not outlive it
	mutates bool             // the operation is a mutation
	life    context.Context  // of a subscription's stream. It does not retain the parsed operation
	broken  map[string]error // errors of root fields that use null as a value, by alias
	bytes   atomic.Int64     // loaded for the answer
	answer  *executor.Writer // of a query or mutation; the fields of a mutation are written one after the other
	// snapshot takes a snapshot of the store, or of the stream that an event
	// belongs to.
	snapshot func(context.Context, kg.View) (*kg.Snapshot, error)

	// The fields below are used only with a budget, where root fields are
	// answered one after the other.
	budgeted      bool
	allowed       limit.Allowance
	meter         kg.Meter
	cutter        *cutter // of the root field being answered; nil without a budget
	cutters       []*cutter
	givenElements int // elements given in all lists
	cuts          []operation.Cut

	mu              sync.Mutex // guards the fields below
	snapshots       []viewSnapshot
	pinned          bool        // revision is set
	revision        kg.Revision // revision read unless a view names another one
	now             time.Time   // evaluation time of all reads
	moments         map[time.Time]kg.Revision
	sources         []kg.AgentID // of changes read from the log
	lowestPosition  *kg.Position
	writtenPosition *kg.Position // position after the commit of a mutation
	notedHints      []operation.Hint
	commitMessages  map[kg.Revision]*Message      // messages of commits, nil for none
	commitTasks     map[kg.Revision]*Task         // tasks of commits, nil for none
	agentRecords    map[kg.AgentID]*agents.Record // records of agents, nil for none
	agentsReadAt    kg.Position                   // of a mutation: the head when they were read
}

func newRun(e *Engine, req *operation.Request) *run {
	return &run{engine: e, schema: e.schema.Load(), request: req, snapshot: e.deps.Store.View}
}

// viewSnapshot is a snapshot with its view, in which revision and evaluation time
// are set.
type viewSnapshot struct {
	view     kg.View
	snapshot *kg.Snapshot
}

type runKey struct{}

// withRun carries the run and the operation to the resolvers.
func (r *run) withRun(ctx context.Context, opCtx *graphql.OperationContext) context.Context {
	r.ctx, r.mutates = ctx, opCtx.Operation.Operation == ast.Mutation
	return graphql.WithOperationContext(context.WithValue(ctx, runKey{}, r), opCtx)
}

// newWriter returns a Writer of a part of the answer.
func (r *run) newWriter(ctx context.Context) *executor.Writer {
	return &executor.Writer{Ctx: ctx, Present: r.engine.faults.PresentAt, Recover: fault.Recover}
}

func runOf(ctx context.Context) *run { return ctx.Value(runKey{}).(*run) }

// openSnapshot returns the snapshot of a view, the same one for equal views. A view
// without a revision gets that of the operation.
func (r *run) openSnapshot(ctx context.Context, view kg.View) (*kg.Snapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := view.At != 0
	if !asked && r.pinned {
		view.At = r.revision
	}
	if view.Now.IsZero() {
		view.Now = r.now
	}
	for _, o := range r.snapshots {
		if reflect.DeepEqual(o.view, view) {
			return o.snapshot, nil
		}
	}
	s, err := r.snapshot(ctx, view)
	if err != nil {
		return nil, err
	}
	if r.budgeted {
		s.Measure(&r.meter)
	}
	if !asked && !r.pinned {
		r.pinned, r.revision = true, s.Revision()
		view.At = r.revision
	}
	if r.now.IsZero() {
		r.now = s.View().Now
		view.Now = r.now
	}
	if p := s.Position(); r.lowestPosition == nil || p.Compare(*r.lowestPosition) < 0 {
		r.lowestPosition = &p
	}
	r.snapshots = append(r.snapshots, viewSnapshot{view, s})
	return s, nil
}

// close closes the snapshots and records in the result what was read. The
// result's position is that of the oldest revision read, so that following
// from it misses nothing.
func (r *run) close(result *operation.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.snapshots {
		s := o.snapshot
		result.StatementsRead += s.StatementsRead()
		result.Scans += s.Scans()
		result.Sources = addSources(result.Sources, s.Sources()...)
		s.Close()
	}
	result.Sources = addSources(result.Sources, r.sources...)
	slices.Sort(result.Sources)
	r.snapshots = nil
	switch {
	case r.writtenPosition != nil:
		result.Position = *r.writtenPosition
	case r.lowestPosition != nil:
		result.Position = *r.lowestPosition
	default:
		result.Position = r.engine.deps.Store.Head()
	}
}

// noteSources notes the sources of assertions read from the log.
func (r *run) noteSources(list []kg.Assertion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range list {
		r.sources = addSources(r.sources, a.Source)
	}
}

// addSources adds agents that are missing, up to kg.MaxSources.
func addSources(to []kg.AgentID, agents ...kg.AgentID) []kg.AgentID {
	for _, a := range agents {
		if len(to) < kg.MaxSources && !slices.Contains(to, a) {
			to = append(to, a)
		}
	}
	return to
}

// chargeBytes accounts for n bytes loaded for the answer.
func (r *run) chargeBytes(n int) error {
	if r.bytes.Add(int64(n)) > int64(r.engine.limits.ResultBytes) {
		return r.engine.limits.ResultTooLarge()
	}
	return nil
}

// findHints returns the hints of the operation. A panic costs the hints, not the
// answer.
func (r *run) findHints(ctx context.Context, opCtx *graphql.OperationContext) (out []operation.Hint) {
	defer func() {
		if p := recover(); p != nil {
			r.engine.faults.PresentAlone(fault.Recover(ctx, p)) // present logs it
			out = nil
		}
	}()
	var read *kg.Snapshot
	switch {
	case len(r.snapshots) > 0:
		read = r.snapshots[0].snapshot
	case opCtx.Operation.Operation == ast.Query:
		return nil // nothing was read
	}
	return r.engine.mentions.Find(ctx, r.request.Principal, read, opCtx.Operation.SelectionSet, opCtx.Variables, r.notedHints)
}

// fieldView returns the view of a field: the request's view, narrowed by the
// field's own argument.
func (r *run) fieldView(v *views.ViewInput) (kg.View, error) {
	view := r.request.View
	view.Principal = r.request.Principal
	return views.Narrow(view, v, r.resolveReadable)
}
