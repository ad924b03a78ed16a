package transport

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/operation"
	"koine/internal/sse"
	"koine/kg"
)

// Engine executes the operations (graph.Engine). It is called from many
// goroutines at a time.
type Engine interface {
	// Execute runs a query or a mutation. A result without Data was refused
	// before anything was executed, or could not be given at all.
	Execute(context.Context, operation.Request) operation.Result
	// Subscribe establishes a subscription, which must be a Subscription. Its
	// error is an *operation.InvalidError or a *kg.Error.
	Subscribe(context.Context, operation.Request) (operation.Subscription, error)
	// Kind tells what the request asks for; "" when it is not valid, which
	// Execute then says in full.
	Kind(*operation.Request) ast.Operation
	// Present gives an error its form for the outside, and logs what is not
	// meant for there.
	Present(error) gqlerror.List
	// SDL is the schema in GraphQL's schema definition language.
	SDL() string
}

// Subscription is what the Engine's Subscribe gives: it can also say in the
// operation's own terms where it is, and why it cannot go on.
type Subscription interface {
	operation.Subscription
	// UpToDate is an event that tells the position scanned to.
	UpToDate() operation.Event
	// Resync is the result that tells that the log behind the subscription is
	// gone.
	Resync(*kg.Error) operation.Result
}

// Positions writes and reads the tokens of positions (kg.Store).
type Positions interface {
	FormatPosition(kg.Position) string
	ParsePosition(string) (kg.Position, error)
}

// Deps are what a Handler works with. All are required.
type Deps struct {
	Engine    Engine
	Positions Positions
	// Streams counts what stays open, and ends it when the server shuts down.
	Streams *sse.Server
}
