package main

import (
	"context"

	"koine/client"
)

// sayClosed says why the channel was closed, where that was said.
func sayClosed(ctx context.Context, t terminal, server *client.Client, id string) {
	var answer struct {
		Channel *struct{ ClosedReason string }
	}
	const query = `query($id: ID!) { channel(id: $id) { closedReason } }`
	if err := server.GraphQL(ctx, query, map[string]any{"id": id}, &answer); err == nil && answer.Channel != nil && answer.Channel.ClosedReason != "" {
		t.sayf("Why it was closed: %s", onLine(answer.Channel.ClosedReason))
	}
}
