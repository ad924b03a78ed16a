package main

import (
	"context"

	"koine/internal/caller"
)

// admitStream counts a stream that is let in as a connection of the agent that it is
// opened for. A socket that has yet to say whose it is counts when it does.
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
