package main

import (
	"context"
	"encoding/json"

	"koine/internal/caller"
	"koine/kg"
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
		if who.Principal.Method == caller.MethodNone {
			return release, nil
		}
		leave := t.presence.Connected(who.Acting())
		return func() {
			leave()
			release()
		}, nil
	}
}

// connector says whose the operations of a socket are (httpd.Server.Connect).
type connector func(ctx context.Context, end func(error), opened caller.Caller, payload json.RawMessage) (caller.Caller, error)

// connect counts a socket that says only now whose it is.
func (t *trust) connect(next connector) connector {
	return func(ctx context.Context, end func(error), opened caller.Caller, payload json.RawMessage) (caller.Caller, error) {
		who, err := next(ctx, end, opened, payload)
		if err == nil && who.Acting() != agentOf(opened) {
			context.AfterFunc(ctx, t.presence.Connected(who.Acting()))
		}
		return who, err
	}
}

// agentOf is the agent that a socket was counted for when it was opened, "" for none.
func agentOf(opened caller.Caller) kg.AgentID {
	if opened.Principal.Method == caller.MethodNone {
		return ""
	}
	return opened.Acting()
}
