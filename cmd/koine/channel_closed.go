package main

import (
	"context"

	"koine/client"
)

// sayClosed says why the channel was closed, where that was said.
func sayClosed(ctx context.Context, t terminal, server *client.Client, id string) {
	if c, err := server.GetChannel(ctx, id); err == nil && c.ClosedReason != "" {
		t.sayf("Why it was closed: %s", onLine(c.ClosedReason))
	}
}
