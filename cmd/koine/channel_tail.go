package main

import (
	"context"
	"errors"

	"koine/client"
	"koine/kg"
)

// tailChannel prints the messages of a channel as they are published.
type tailChannel struct {
	Channel string `arg:"" optional:"" help:"Id or name of the channel; not with --to."`
	serverFlags
	channelReference
	Since *int64 `help:"Start after this sequence; 0 prints all messages (default: the newest)." placeholder:"N"`
	Count int    `help:"Exit after this number of messages." placeholder:"N"`
	outputFlags
}

// Help is shown by --help.
func (tailChannel) Help() string {
	return `Prints messages in the form of koine channel history. A lost connection is re-established and resumes where it was: no message is missed or repeated. The command exits when the channel is closed, or on Ctrl-C; the last line prints the sequence to continue from with --since.

Examples:
  koine channel tail lab
  koine channel tail lab --since 0 --json`
}

// Run prints messages until it is interrupted or has printed --count messages.
func (c *tailChannel) Run(ctx context.Context, t terminal) error {
	if c.Since != nil && *c.Since < 0 {
		return usageError{errors.New("--since must not be negative")}
	}
	server, err := c.openStream(ctx, t)
	if err != nil {
		return err
	}
	id, err := c.resolveChannel(ctx, server, c.Channel)
	if err != nil {
		return err
	}
	last, err := c.startSequence(ctx, server, id)
	if err != nil {
		return err
	}
	if err := c.beginMessages(t); err != nil {
		return err
	}
	seen := 0
	for m, err := range server.Stream(ctx, id, client.StreamOptions{Since: last}) {
		if err != nil {
			return c.endOfTail(ctx, t, last, err)
		}
		if err := printMessage(ctx, t, server, m, c.outputFlags); err != nil {
			return err
		}
		last = m.Sequence
		if seen++; c.Count > 0 && seen >= c.Count {
			t.sayf("Continue with --since %d", last)
			return nil
		}
	}
	return nil
}

func (c *tailChannel) endOfTail(ctx context.Context, t terminal, last int64, err error) error {
	if errors.Is(err, client.Reason(kg.CodeChannelClosed)) {
		t.sayf("The channel is closed and takes no new messages.")
		return nil
	}
	if since, ok := resumeSequence(last, err); ok {
		t.sayf("Continue with --since %d", since)
	}
	if ctx.Err() != nil {
		return nil // Ctrl-C is the normal end
	}
	return c.streamError(err)
}

// resumeSequence returns the sequence after which the caller can resume, given the error
// that ended the stream. It returns false if there is none: the server rejected the
// sequence.
func resumeSequence(last int64, err error) (since int64, ok bool) {
	var refused *client.Error
	switch {
	case errors.Is(err, client.Invalid):
		return 0, false // the sequence is beyond the newest, which the error names
	case errors.As(err, &refused) && refused.Reason == client.PositionGone && refused.OldestSequence > 0:
		return refused.OldestSequence - 1, true
	}
	return last, true
}

// startSequence returns the sequence after which the stream starts: --since, or the
// newest. The newest is read first so that the last line can name a sequence even if no
// message arrives.
func (c *tailChannel) startSequence(ctx context.Context, server *client.Client, id string) (int64, error) {
	if c.Since != nil {
		return *c.Since, nil
	}
	for m, err := range server.History(ctx, id, client.HistoryFilter{Newest: true, PageSize: 1}) {
		if err != nil {
			return 0, err
		}
		return m.Sequence, nil
	}
	return 0, nil
}
