package transport_test

import (
	"context"
	"errors"
	"iter"

	"koine/graph"
	"koine/graph/transport"
	"koine/internal/operation"
	"koine/kg"
)

// faulty is an engine some of whose operations fail in ways that no request can cause, by
// their names.
type faulty struct{ *graph.Engine }

func (f faulty) Execute(ctx context.Context, req operation.Request) operation.Result {
	switch req.OperationName {
	case "Panic":
		panic("a fault")
	case "Block":
		<-ctx.Done()
	}
	return f.Engine.Execute(ctx, req)
}

func (f faulty) Subscribe(ctx context.Context, req operation.Request) (operation.Subscription, error) {
	switch req.OperationName {
	case "Panic":
		panic("a fault")
	case "Overloaded":
		return nil, &kg.Error{Code: kg.CodeOverloaded, Message: "too many watchers", RetryAfter: 1}
	}
	s, err := f.Engine.Subscribe(ctx, req)
	if err != nil {
		return nil, err
	}
	return failing{s.(transport.Subscription), req.OperationName}, nil
}

// failing ends after one event, in the way of its name.
type failing struct {
	transport.Subscription
	name string
}

func (f failing) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		for e, err := range f.Subscription.Events() {
			if !yield(e, err) {
				return
			}
			switch f.name {
			case "PanicLater":
				panic("a fault")
			case "FailLater":
				yield(operation.Event{}, errors.New("a fault"))
				return
			case "EndLater":
				return
			}
		}
	}
}
