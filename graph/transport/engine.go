package transport

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/operation"
	"koine/internal/sse"
	"koine/kg"
)

// Engine executes operations (graph.Engine). It must be safe for concurrent
// use.
type Engine interface {
	// Execute runs a query or a mutation. A result without Data was refused
	// before execution, or has no data at all.
	Execute(context.Context, operation.Request) operation.Result
	// Subscribe establishes a subscription, which must be a Subscription. Its
	// error is an *operation.InvalidError or a *kg.Error.
	Subscribe(context.Context, operation.Request) (operation.Subscription, error)
	// Kind returns the type of the operation, "" for an invalid request.
	// Execute then returns the errors of the request.
	Kind(*operation.Request) ast.Operation
	// Present converts an error to its public form and logs internal errors.
	Present(error) gqlerror.List
	// SDL returns the schema in GraphQL's schema definition language.
	SDL() string
}

// Subscription is the subscription returned by the Engine. It also encodes its
// position and its end in the form of the operation.
type Subscription interface {
	operation.Subscription
	// UpToDate returns an event with the position scanned to.
	UpToDate() operation.Event
	// Resync returns the result that reports that the log no longer has the
	// subscription's position.
	Resync(*kg.Error) operation.Result
	// Field returns the name of the root field.
	Field() string
}

// Positions encodes and parses position tokens (kg.Store).
type Positions interface {
	FormatPosition(kg.Position) string
	ParsePosition(string) (kg.Position, error)
}

// Deps are the services that a Handler uses. All are required.
type Deps struct {
	Engine    Engine
	Positions Positions
	// Streams counts the open streams and ends them when the server shuts
	// down.
	Streams *sse.Server
}
