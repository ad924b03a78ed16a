package knowledge

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/fault"
	"koine/graph/internal/views"
	"koine/graph/limit"
	kgnames "koine/internal/names"
	"koine/internal/operation"
	"koine/internal/query"
	"koine/internal/query/pattern"
	"koine/kg"
)

// writer writes an answer.
type writer = executor.Writer

// Reader has the store and the options that all operations read with. It is safe for
// concurrent use.
type Reader struct {
	Store         *kg.Store
	Prefixes      *kg.Prefixes
	Names         *kgnames.Judge
	Limits        limit.Limits
	Labels        []kg.Term // properties that give an entity its label
	missingLabels missCache
	plans         *sharedPlans
	Faults        *fault.Presenter
	Objects       Objects
	// Texts returns the sources of texts in patterns for a view, whose revision is set if it is of
	// the past.
	Texts func(kg.View) query.TextSources
	// NewRun begins the run in which one event of a subscription is written.
	NewRun func(req *operation.Request) *Run
}

// NewReader returns a reader with empty caches.
func NewReader(r Reader) *Reader {
	r.missingLabels, r.plans = newMissCache(r.Labels), newSharedPlans()
	return &r
}

// Run is the state of reading in one operation. It reads one revision. It is
// used by one goroutine.
type Run struct {
	Reader  *Reader
	Owner   any         // the state of the operation's other fields
	schema  *ast.Schema // for the whole operation
	request *operation.Request
	ctx     context.Context // the operation's context; a run does not outlive it
	Life    context.Context // of a subscription's stream. It does not retain the parsed operation
	bytes   int             // loaded for the answer
	Derived *sync.Map       // that of the document (documents.Document); nil: plans are not kept
	// snapshot takes a snapshot of the store, or of the stream that an event
	// belongs to.
	snapshot func(context.Context, kg.View) (*kg.Snapshot, error)

	// The fields below are used only with a budget, where root fields are
	// answered one after the other.
	Budgeted      bool
	Allowed       limit.Allowance
	Meter         kg.Meter
	cutter        *cutter // of the root field being answered; nil without a budget
	cutters       []*cutter
	givenElements int // elements given in all lists
	Cuts          []operation.Cut

	snapshots      []viewSnapshot
	pinned         bool        // revision is set
	revision       kg.Revision // revision read unless a view names another one
	now            time.Time   // evaluation time of all reads
	moments        map[time.Time]kg.Revision
	sources        []kg.AgentID // of changes read from the log
	lowestPosition *kg.Position
	NotedHints     []operation.Hint
	evaluations    []*pattern.Evaluation // of patterns, up to maxPlans
}

// maxPlans is the number of plans that a run keeps for PlanShapes.
const maxPlans = 4

// notePlan keeps an evaluation for PlanShapes.
func (r *Run) notePlan(e *pattern.Evaluation) {
	if len(r.evaluations) < maxPlans {
		r.evaluations = append(r.evaluations, e)
	}
}

// PlanShapes returns the plans of the patterns that the run evaluated, without their terms. The
// run is over.
func (r *Run) PlanShapes() (lines []string) {
	for _, e := range r.evaluations {
		lines = append(lines, e.Shape()...)
	}
	return lines
}

// NewRun returns the run of a request. owner is found from it again.
func NewRun(r *Reader, req *operation.Request, schema *ast.Schema, owner any) *Run {
	return &Run{Reader: r, Owner: owner, schema: schema, request: req, snapshot: r.Store.View}
}

// viewSnapshot is a snapshot with its view, in which revision and evaluation time
// are set.
type viewSnapshot struct {
	view     kg.View
	snapshot *kg.Snapshot
}

type readRunKey struct{}

// Begin begins the execution: it carries the run to the fields.
func (r *Run) Begin(ctx context.Context) context.Context {
	r.ctx = ctx
	return r.with(ctx)
}

func (r *Run) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, readRunKey{}, r)
}

// NewWriter returns a Writer of a part of the answer.
func (r *Run) NewWriter(ctx context.Context) *executor.Writer {
	return &executor.Writer{Ctx: ctx, Present: r.Reader.Faults.PresentAt, Recover: fault.Recover}
}

// RunOf returns the run of an operation.
func RunOf(ctx context.Context) *Run { return ctx.Value(readRunKey{}).(*Run) }

// OpenSnapshot returns the snapshot of a view, the same one for equal views. A view
// without a revision gets that of the operation.
func (r *Run) OpenSnapshot(ctx context.Context, view kg.View) (*kg.Snapshot, error) {
	asked := view.At != 0 || view.AtStart
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
	if r.Budgeted {
		s.Measure(&r.Meter)
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

// Close closes the snapshots and records the reads in the result. The
// result's position is that of the oldest revision read, so that following
// from it misses nothing.
func (r *Run) Close(result *operation.Result) {
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
	if r.lowestPosition != nil {
		result.Position = *r.lowestPosition
	} else {
		result.Position = r.Reader.Store.Head()
	}
}

// noteSources notes the sources of assertions read from the log.
func (r *Run) noteSources(list []kg.Assertion) {
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

// ChargeBytes accounts for n bytes loaded for the answer.
func (r *Run) ChargeBytes(n int) error {
	if r.bytes += n; r.bytes > r.Reader.Limits.ResultBytes {
		return r.Reader.Limits.ResultTooLarge()
	}
	return nil
}

// FirstSnapshot returns the snapshot that was opened first, nil if none was.
func (r *Run) FirstSnapshot() *kg.Snapshot {
	if len(r.snapshots) == 0 {
		return nil
	}
	return r.snapshots[0].snapshot
}

// NoteUncounted adds a hint that a list was not counted to its end.
func (r *Run) NoteUncounted(list string) {
	h := operation.Hint{Message: "totalCount is null: the list has more elements than are counted for one answer; narrow the list to have it counted"}
	for name := range strings.SplitSeq(list+".totalCount", ".") {
		h.Path = append(h.Path, ast.PathName(name))
	}
	if len(r.NotedHints) < operation.MaxHints {
		r.NotedHints = append(r.NotedHints, h)
	}
}

// FieldView returns the view of a field: the request's view, narrowed by the
// field's own argument.
func (r *Run) FieldView(v *views.ViewInput) (kg.View, error) {
	view := r.request.View
	view.Principal = r.request.Principal
	return views.Narrow(view, v, r.resolveReadable)
}
