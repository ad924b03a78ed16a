package graph

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine"
	"koine/channels"
	"koine/graph/documents"
	"koine/graph/executor"
	"koine/graph/internal/fault"
	"koine/graph/internal/hint"
	"koine/graph/internal/knowledge"
	"koine/graph/limit"
	"koine/internal/agents"
	"koine/internal/audit"
	"koine/internal/intents"
	kgnames "koine/internal/names"
	"koine/internal/operation"
	"koine/internal/policy"
	"koine/internal/presence"
	"koine/internal/provenance"
	"koine/internal/search"
	"koine/internal/shapes"
	"koine/internal/tasks"
	"koine/kg"
)

// Deps are the services that the engine uses. Store is required.
type Deps struct {
	Store    *kg.Store
	Prefixes *kg.Prefixes   // nil: the store's
	Names    *kgnames.Judge // nil: names are judged strictly
	Logger   *slog.Logger   // nil: slog.Default
	// Graphs creates and deletes graphs and knows their policies; nil for a
	// store without policies.
	Graphs *policy.Graphs
	// Shapes are the shapes that Store validates with; nil for none.
	Shapes  *shapes.Set
	Reviews Reviews // nil: no update is held for review
	Rules   Rules   // nil: no query is refused
	// Span, if set, starts a trace span for an operation. end is called once.
	Span func(ctx context.Context, name string) (inner context.Context, end func(error))
	// Finished, if set, is called after each query and mutation. It keeps nothing of the report.
	Finished func(FinishedOperation)
	// Trail records refusals for Query.audit; nil for none.
	Trail *audit.Trail
	// Channels is the channel service; nil disables channels.
	Channels *channels.Service
	// Intents is the service of intents; nil disables them.
	Intents *intents.Service
	// Agents is the directory in which agents register; nil disables
	// registration.
	Agents *agents.Directory
	// Tasks is the task service; nil disables tasks.
	Tasks *tasks.Service
	// Presence tracks the presence of agents; nil disables it.
	Presence *presence.Tracker
	// Search finds by words; nil disables it.
	Search *search.Service
	// Quarantines are the quarantines that Store applies; nil for a store
	// without.
	Quarantines *provenance.Quarantines
}

// FinishedOperation reports an operation. Document has the values of the caller.
type FinishedOperation struct {
	Kind, Document string
	Took           time.Duration
	Failed         bool
	Read           int64           // statements
	Plan           func() []string // of patterns, without their terms
}

// Options of an engine. The zero value works.
type Options struct {
	Limits limit.Limits
	// LabelPredicates are the properties that give an entity its label, in
	// order of preference. Nil means DefaultLabelPredicates.
	LabelPredicates []string
	// CachedDocuments bounds the cache of parsed queries; 0 means
	// DefaultCachedDocuments.
	CachedDocuments int
	// NewNames is the beginning of the IRIs of entities that remember makes, ""
	// for urn:uuid:.
	NewNames string
	// NoMutations refuses all mutations.
	NoMutations bool
	// Trusted are documents that requests may name by id or hash; nil for
	// none.
	Trusted *documents.Trusted
	// OnlyTrusted refuses every other document.
	OnlyTrusted bool
	// PersistedQueries and PersistedBytes bound the cache of automatic
	// persisted queries; 0 means DefaultPersistedQueries and
	// DefaultPersistedBytes.
	PersistedQueries int
	PersistedBytes   int
}

// DefaultLabelPredicates are the label properties of common vocabularies.
var DefaultLabelPredicates = []string{
	kg.RDFSLabel,
	"http://www.w3.org/2004/02/skos/core#prefLabel",
	"https://schema.org/name",
	"http://schema.org/name",
	"http://xmlns.com/foaf/0.1/name",
	"http://purl.org/dc/terms/title",
}

// Engine executes GraphQL operations in-process. It is safe for concurrent use.
type Engine struct {
	deps           Deps
	reader         *knowledge.Reader
	limits         limit.Limits
	options        Options
	schema         atomic.Pointer[servedSchema]
	faults         *fault.Presenter
	mentions       *hint.Finder
	heavy          limit.Gate
	messages       messageSelections
	messageChanges *messageChanges
}

// NewEngine returns an engine over the store.
func NewEngine(deps Deps, options Options) *Engine {
	if deps.Logger == nil {
		deps.Logger = slog.Default()
	}
	if deps.Prefixes == nil {
		deps.Prefixes = deps.Store.Prefixes()
	}
	if deps.Names == nil {
		deps.Names = kgnames.NewJudge(deps.Store, kgnames.Strict)
	}
	if options.LabelPredicates == nil {
		options.LabelPredicates = DefaultLabelPredicates
	}
	e := &Engine{deps: deps, options: options, limits: options.Limits.WithDefaults(), heavy: limit.NewGate(), messages: newMessageSelections(), messageChanges: newMessageChanges()}
	e.faults = fault.NewPresenter(deps.Logger, e.limits, deps.Store.FormatPosition)
	e.mentions = hint.NewFinder(deps.Store, deps.Prefixes)
	var labels []kg.Term
	for _, p := range options.LabelPredicates {
		labels = append(labels, kg.IRI(p))
	}
	e.reader = knowledge.NewReader(knowledge.Reader{
		Store: deps.Store, Prefixes: deps.Prefixes, Names: deps.Names, Limits: e.limits, Labels: labels, Faults: e.faults, Objects: tableObjects{}, Texts: e.textsIn,
		NewRun: func(req *operation.Request) *knowledge.Run { return newRun(e, req).Run },
	})
	persisted := documents.NewPersisted(options.PersistedQueries, options.PersistedBytes)
	tables := tables()
	e.schema.Store(&servedSchema{executableSchema{tables, e}, documents.NewCache(tables.AST, e.limits, e.documentOptions(), persisted)})
	return e
}

// tables is the schema that is generated. Its tables are shared by all engines.
var tables = sync.OnceValue(func() *executor.Schema { return newSchema(contract()) })

// servedSchema is a schema with the documents that are valid in it.
type servedSchema struct {
	executableSchema
	documents *documents.Cache
}

// Schema returns the schema that new operations are executed on. It must not be
// changed.
func (e *Engine) Schema() *executor.Schema { return e.schema.Load().tables }

// SetSchema replaces the schema. Operations and subscriptions that have begun
// finish on the one that they began with.
func (e *Engine) SetSchema(s *executor.Schema) {
	old := e.schema.Load().documents
	e.schema.Store(&servedSchema{executableSchema{s, e}, documents.NewCache(s.AST, e.limits, e.documentOptions(), old.Persisted)})
}

func (e *Engine) documentOptions() *documents.Options {
	return &documents.Options{Cached: e.options.CachedDocuments, Trusted: e.options.Trusted, OnlyTrusted: e.options.OnlyTrusted}
}

// InvalidDocuments returns the trusted documents that are invalid in the
// schema, sorted by id.
func (e *Engine) InvalidDocuments() []documents.Invalid {
	return e.schema.Load().documents.InvalidDocuments()
}

// contract is the schema without @defer, which the parser adds to every schema and
// which the engine does not implement.
func contract() *ast.Schema {
	s := gqlparser.MustLoadSchema(&ast.Source{Name: "schema.graphqls", Input: koine.Schema})
	delete(s.Directives, "defer")
	return s
}

// SDL is the schema in GraphQL's schema definition language.
func (e *Engine) SDL() string { return koine.Schema }

// Execute runs a query or a mutation. It always returns a result: errors are
// in Errors, and Data is nil if nothing could be answered.
func (e *Engine) Execute(ctx context.Context, req operation.Request) (result operation.Result) {
	started := time.Now()
	request := ctx
	ctx, stop := limit.WithDuration(request, e.limits.Duration)
	defer stop()
	r := newRun(e, &req)
	pace := &limit.Pace{Gate: e.heavy}
	defer func() {
		pace.Close()
		r.close(&result)
		e.noteRefusals(ctx, &result)
		result.Duration = time.Since(started)
		if e.deps.Finished != nil && result.Kind != "" {
			e.deps.Finished(FinishedOperation{Kind: string(result.Kind), Document: req.Query, Took: result.Duration, Failed: len(result.Errors) > 0, Read: result.StatementsRead, Plan: r.PlanShapes})
		}
	}()
	opCtx, errs := e.prepareOperation(ctx, r)
	if len(errs) == 0 && opCtx.Operation.Operation == ast.Subscription {
		errs = e.faults.PresentAlone(kg.Errorf(kg.CodeInvalid, "a subscription needs a stream: send Accept: text/event-stream, or use knowledge/subscribe"))
	}
	if len(errs) == 0 {
		wait, err := e.askTime(opCtx)
		if err != nil {
			errs = e.faults.PresentAlone(err)
		}
		if wait > 0 {
			longer, stop := limit.WithDuration(request, wait+e.limits.Duration)
			defer stop()
			ctx = longer
		}
	}
	if len(errs) == 0 {
		var err error
		if ctx, err = e.checkRules(ctx, r, opCtx); err != nil {
			errs = e.faults.PresentAlone(err)
		}
	}
	if len(errs) == 0 && opCtx.Operation.Operation == ast.Query {
		if err := r.asOfNow(opCtx); err != nil {
			errs = e.faults.PresentAlone(err)
		}
	}
	if len(errs) > 0 {
		result.Errors = errs
		return result
	}
	result.Kind = opCtx.Operation.Operation
	if e.deps.Span != nil {
		var end func(error)
		ctx, end = e.deps.Span(ctx, "graphql "+string(result.Kind))
		defer func() { end(firstFailure(&result)) }()
	}
	if result.Kind == ast.Query {
		ctx = r.withMeter(kg.WithPace(ctx, pace.Step))
	}
	response := e.executeOperation(r.withRun(ctx, opCtx))
	result.Data, result.Errors, result.Cuts = response.Data, response.Errors, r.Cuts
	if !slices.ContainsFunc(result.Errors, fault.IsInternal) { // a failure inside would repeat itself
		result.Hints = r.findHints(ctx, opCtx)
	}
	if n := len(result.Data); n > e.limits.ResultBytes {
		result.Data, result.Errors = nil, e.faults.PresentAlone(e.limits.ResultTooLarge())
	}
	return result
}

// executeOperation runs the operation of the context. A panic outside of a field
// becomes an error of the whole operation.
func (e *Engine) executeOperation(ctx context.Context) (response *graphql.Response) {
	defer func() {
		if p := recover(); p != nil {
			err := e.faults.PresentAlone(fault.Recover(ctx, p))
			response = &graphql.Response{Errors: err}
		}
	}()
	if err := runOf(ctx).AwaitRevision(ctx, queryImplementors); err != nil {
		return &graphql.Response{Errors: e.faults.PresentAlone(err)}
	}
	return runOf(ctx).schema.Exec(ctx)(ctx)
}

// rootValue returns the object that has the functions of the root fields as methods.
func rootValue(kind ast.Operation) any {
	if kind == ast.Mutation {
		return &mutationRoot{}
	}
	return &queryRoot{}
}

// executableSchema is the schema with its tables. It is how gqlgen's handlers
// execute operations.
type executableSchema struct {
	tables *executor.Schema
	engine *Engine
}

// Schema returns the schema.
func (s executableSchema) Schema() *ast.Schema { return s.tables.AST }

// Complexity reports false: the engine estimates costs before it executes.
func (executableSchema) Complexity(context.Context, string, string, int, map[string]any) (int, bool) {
	return 0, false
}

// Exec executes the query or the mutation of the context.
func (s executableSchema) Exec(ctx context.Context) graphql.ResponseHandler {
	opCtx, r := graphql.GetOperationContext(ctx), runOf(ctx)
	op := &executor.Operation{Context: opCtx, Coercer: executor.Coercer{Ctx: ctx}}
	root := op.Root(s.tables.Root(opCtx.Operation.Operation), r.broken)
	w := r.NewWriter(ctx)
	r.answer = w
	if r.Budgeted && opCtx.Operation.Operation == ast.Query {
		return graphql.OneShot(r.ExecuteBudgeted(w, root, &queryRoot{}))
	}
	if err := w.Object(root, rootValue(opCtx.Operation.Operation)); err != nil {
		w.B = []byte("null")
	}
	return graphql.OneShot(&graphql.Response{Data: w.B, Errors: w.Errors})
}

// Present converts an error that belongs to no field to its public form, a
// list of one. Internal errors are logged.
func (e *Engine) Present(err error) gqlerror.List { return e.faults.PresentAlone(err) }
