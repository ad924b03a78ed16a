package a2a

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"koine/channels"
	"koine/internal/caller"
	"koine/internal/delivery/push"
	"koine/internal/names"
	"koine/internal/operation"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// Querier executes GraphQL operations (graph.Engine). Subscribe's error is an
// *operation.InvalidError, or a *kg.Error.
type Querier interface {
	Execute(context.Context, operation.Request) operation.Result
	Subscribe(context.Context, operation.Request) (operation.Subscription, error)
}

// Deps are the dependencies of the handlers. All are required except Channels, Tasks
// and Push: without them there are no channels/* methods, no methods of base A2A, or no
// push notifications.
type Deps struct {
	Store    *kg.Store
	Querier  Querier
	Channels *channels.Service
	Tasks    *tasks.Service
	Push     *push.Service
	Streams  *sse.Server
	Prefixes *kg.Prefixes
	Names    *names.Judge // nil: strict
}

// Defaults of the Options.
const (
	DefaultMaxBodyBytes = 8 << 20 // room for a literal of kg.DefaultLiteralBytes with its escapes
	DefaultMaxDepth     = 64
	DefaultMaxBatch     = 100
	DefaultMaxWait      = 10 * time.Second
	DefaultMaxSendWait  = 30 * time.Second
)

// Options configures the handlers. Zero values select defaults.
type Options struct {
	MaxBodyBytes int64
	// MaxDepth limits the nesting of a body.
	MaxDepth int
	// MaxBatch limits the requests of one batch.
	MaxBatch int
	// MaxWait limits how long a query waits for its minRevision.
	MaxWait time.Duration
	// MaxSendWait limits how long sending a message waits for the task to settle; after
	// that the answer is the task in its present state.
	MaxSendWait time.Duration
	// Card configures the extended agent card of koine; nil for none. Other agents have
	// none.
	Card *CardOptions
	// Recall makes koine answer plain words by the query recall of the Querier, which finds
	// by words; otherwise it reads all statements.
	Recall bool
	// RefuseQueryMutations makes knowledge/query refuse mutations.
	RefuseQueryMutations bool
	Logger               *slog.Logger
	// Admit, if set, is called before each request of a batch but the first, which the
	// HTTP request accounts for, and before each such part of a message to koine. Its error
	// is that request's answer, and fails the task of the message.
	Admit func(context.Context) error
	// AdmitHistory, if set, is called before channels/history. Its error is the answer.
	AdmitHistory func(context.Context) error
	// Span, if set, starts a tracing span for a method. The caller calls end once.
	Span func(ctx context.Context, name string) (inner context.Context, end func(error))
	// Refused, if set, is called with each error outside GraphQL, for the audit trail.
	Refused func(context.Context, kg.Code)
	// Narrow, if set, restricts a caller's rights to the further credential in
	// metadata.securityToken (auth.Gate). It calls end if that credential becomes
	// invalid before release is called. Without Narrow the token is ignored.
	Narrow func(ctx context.Context, c caller.Caller, credential string, end func(error)) (narrow caller.Caller, release func(), err error)
	// Observe, if set, is called with each call that has ended: a stream that could not
	// be established ends at once, an established one when it closes. code is 0 or that
	// of the error, for a stream that of its last event; an unknown method has the name "unknown".
	Observe func(method string, code int, took time.Duration)
}

func (o Options) withDefaults() Options {
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, DefaultMaxBodyBytes)
	o.MaxDepth = cmp.Or(o.MaxDepth, DefaultMaxDepth)
	o.MaxBatch = cmp.Or(o.MaxBatch, DefaultMaxBatch)
	o.MaxWait = cmp.Or(o.MaxWait, DefaultMaxWait)
	o.MaxSendWait = cmp.Or(o.MaxSendWait, DefaultMaxSendWait)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Admit == nil {
		o.Admit = func(context.Context) error { return nil }
	}
	if o.AdmitHistory == nil {
		o.AdmitHistory = func(context.Context) error { return nil }
	}
	if o.Span == nil {
		o.Span = func(ctx context.Context, _ string) (context.Context, func(error)) { return ctx, func(error) {} }
	}
	if o.Refused == nil {
		o.Refused = func(context.Context, kg.Code) {}
	}
	if o.Observe == nil {
		o.Observe = func(string, int, time.Duration) {}
	}
	return o
}
