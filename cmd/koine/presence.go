package main

import (
	"context"

	"koine/internal/caller"
)

// admitStream wraps admit so that an admitted stream counts as a connection of its agent. A
// WebSocket that authenticates later is counted by its handler.
func (t *trust) admitStream(admit func(context.Context) (func(), error)) func(context.Context) (func(), error) {
	return func(ctx context.Context) (func(), error) {
		release, err := admit(ctx)
		if err != nil {
			return nil, err
		}
		who := caller.From(ctx)
		if who.Principal.Method == caller.MethodNone || who.Principal.CheckWrite() != nil {
			return release, nil
		}
		leave := t.presence.Connect(who.Acting())
		return func() {
			leave()
			release()
		}, nil
	}
}
