package main

import (
	"context"

	"koine/client"
)

// sayClosed prints the reason for which the channel was closed, if one was given.
func sayClosed(ctx context.Context, t terminal, server *client.Client, id string) {
	if c, err := server.GetChannel(ctx, id); err == nil && c.ClosedReason != "" {
		t.sayf("Reason for closing: %s", singleLine(c.ClosedReason))
	}
}
