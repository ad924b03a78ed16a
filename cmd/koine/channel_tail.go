package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"koine/internal/sse"
)

// tailChannel prints what is said, as it is said.
type tailChannel struct {
	Channel string `arg:"" optional:"" help:"The channel, by its id or name; not with --to."`
	onServer
	channelPlace
	Since *int64 `help:"Begin with what came after this sequence; 0 is all." placeholder:"N"`
	Count int    `help:"End after so many messages." placeholder:"N"`
	JSON  bool   `help:"Print each message as JSON on a line."`
}

// Help is shown by --help.
func (tailChannel) Help() string {
	return `When a connection is lost that worked, it is made again and goes on where it was: no message is missed or seen twice. End it with Ctrl-C; the last line tells where to go on with --since.

Examples:
  koine channel tail lab
  koine channel tail lab --since 0 --json`
}

// Run prints messages until it is interrupted or has seen enough.
func (c *tailChannel) Run(ctx context.Context, t terminal) error {
	id, err := c.findIn(ctx, c.channelPlace, c.Channel)
	if err != nil {
		return err
	}
	last, err := c.begin(ctx, id)
	if err != nil {
		return err
	}
	options, err := c.follow(t, "channels/stream", map[string]any{"channelId": id, "sinceSequence": last})
	if err != nil {
		return err
	}
	seen := 0
	for event, err := range sse.Subscribe(ctx, options) {
		if err != nil {
			return c.ended(ctx, t, last, err)
		}
		if len(event.Data) == 0 {
			continue
		}
		result, err := rpcResult(event.Data)
		var refused *rpcError
		if errors.As(err, &refused) && (passing(refused.Data.Reason) || refused.Data.Reason == "RESYNC") {
			t.sayf("%s; going on", refused.Message)
			continue
		}
		if err != nil {
			return c.ended(ctx, t, last, err)
		}
		var envelope struct {
			Kind  string          `json:"kind"`
			Event json.RawMessage `json:"event"`
		}
		if err := json.Unmarshal(result, &envelope); err != nil {
			return fmt.Errorf("the server's event: %w", err)
		}
		if envelope.Kind != "messageEvent" { // of a newer server
			continue
		}
		if last, err = c.printMessage(ctx, t, envelope.Event, c.JSON); err != nil {
			return err
		}
		if seen++; c.Count > 0 && seen >= c.Count {
			return nil
		}
	}
	return nil
}

func (c *tailChannel) ended(ctx context.Context, t terminal, last int64, err error) error {
	t.sayf("Go on with --since %d", last)
	if ctx.Err() != nil {
		return nil // Ctrl-C is how one ends it
	}
	return c.lost(err)
}

// begin is the sequence behind which it begins. Without one that was said it asks
// for the newest: were the connection lost before anything was said, it would not
// know where it was.
func (c *tailChannel) begin(ctx context.Context, id string) (int64, error) {
	if c.Since != nil {
		if *c.Since < 0 {
			return 0, usageError{errors.New("--since is not negative")}
		}
		return *c.Since, nil
	}
	var newest struct{ Events []message }
	if _, err := c.ask(ctx, "channels/history", map[string]any{"channelId": id, "order": "desc", "pageSize": 1}, &newest); err != nil || len(newest.Events) == 0 {
		return 0, err
	}
	return newest.Events[0].Sequence, nil
}
