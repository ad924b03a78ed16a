package graph

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"koine/internal/operation"
	"koine/kg"
)

// run is one operation while it is executed: what it reads and under which
// bounds. Its fields may be resolved concurrently.
type run struct {
	engine  *Engine
	request *operation.Request
	ctx     context.Context   // that of the operation; a run lives no longer
	ec      *executionContext // parses arguments; set before execution
	bytes   atomic.Int64      // of what was loaded for the answer
	// snapshot takes one; that of the store, or of the stream that an event is of.
	snapshot func(context.Context, kg.View) (*kg.Snapshot, error)

	// What follows is only for an operation with a budget, whose root fields are
	// answered one after the other.
	budgeted bool
	allowed  allowance
	meter    kg.Meter
	cutter   *cutter // of the root field at which the work is, nil without a budget
	cutters  []*cutter
	given    int // elements, of all its lists
	cuts     []operation.Cut

	mu        sync.Mutex // guards what follows
	snapshots []opened
	pinned    bool        // revision is set
	revision  kg.Revision // that the operation reads where nothing else is asked for
	now       time.Time   // the evaluation time of all its reads
	moments   map[time.Time]kg.Revision
	sources   []kg.AgentID // of what was read from the log
	lowest    *kg.Position
	written   *kg.Position // behind what a mutation made
	noted     []operation.Hint
	came      map[kg.Revision]*Message // of commits that were looked at, nil for none
	madeFor   map[kg.Revision]*Task    // of such too
}

func newRun(e *Engine, req *operation.Request) *run {
	return &run{engine: e, request: req, snapshot: e.deps.Store.View}
}

// opened is a snapshot with the view that was asked for, its revision and
// evaluation time filled in.
type opened struct {
	view     kg.View
	snapshot *kg.Snapshot
}

type runKey struct{}

// context carries the run and the operation to the resolvers.
func (r *run) context(ctx context.Context, opCtx *graphql.OperationContext) context.Context {
	r.ctx = ctx
	r.ec = newExecutionContext(opCtx, r.engine.schema, nil)
	return graphql.WithOperationContext(context.WithValue(ctx, runKey{}, r), opCtx)
}

func runOf(ctx context.Context) *run { return ctx.Value(runKey{}).(*run) }

// open gives the snapshot of a view, the same one for equal views. A view that
// names no revision gets that of the operation.
func (r *run) open(ctx context.Context, view kg.View) (*kg.Snapshot, error) {
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
	if p := s.Position(); r.lowest == nil || p.Compare(*r.lowest) < 0 {
		r.lowest = &p
	}
	r.snapshots = append(r.snapshots, opened{view, s})
	return s, nil
}

// close frees what was read from, and notes in the result what was read: the
// oldest revision, so that following from its position misses nothing.
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
	case r.written != nil:
		result.Position = *r.written
	case r.lowest != nil:
		result.Position = *r.lowest
	default:
		result.Position = r.engine.deps.Store.Head()
	}
}

// noteSources notes who backs what is shown of the log.
func (r *run) noteSources(list []kg.Assertion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range list {
		r.sources = addSources(r.sources, a.Source)
	}
}

// addSources adds agents that are not there, as far as there is room.
func addSources(to []kg.AgentID, agents ...kg.AgentID) []kg.AgentID {
	for _, a := range agents {
		if len(to) < kg.MaxSources && !slices.Contains(to, a) {
			to = append(to, a)
		}
	}
	return to
}

// charge accounts for n bytes that were loaded for the answer.
func (r *run) charge(n int) error {
	if r.bytes.Add(int64(n)) > int64(r.engine.limits.ResultBytes) {
		return r.engine.limits.resultTooLarge()
	}
	return nil
}
