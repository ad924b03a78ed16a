package client

import (
	"context"
	"errors"
	"iter"
)

// HistoryFilter says what of a channel's messages to read.
type HistoryFilter struct {
	Since   int64 // only those after this sequence
	Before  int64 // only those before this one; 0 bounds nothing
	Authors []string
	// Newest begins with the newest one.
	Newest bool
	// PageSize is how many are asked for at once; 0 leaves it to the server.
	PageSize int
}

// History reads what was said, page by page as it is taken. An error is the last that
// it gives.
func (c *Client) History(ctx context.Context, channel string, f HistoryFilter) iter.Seq2[*Message, error] {
	p := map[string]any{"channelId": channel}
	setNonZero(p, "sinceSequence", f.Since)
	setNonZero(p, "beforeSequence", f.Before)
	setNonZero(p, "pageSize", f.PageSize)
	if len(f.Authors) > 0 {
		p["authorIds"] = f.Authors
	}
	if f.Newest {
		p["order"] = "desc"
	}
	return listPages(ctx, c, "channels/history", p, func(page *messagePage) []*Message { return page.Events })
}

// StreamOptions say where a stream of messages begins.
type StreamOptions struct {
	// Since is the sequence that it begins behind: 0 is all that was ever said.
	Since int64
	// New leaves Since out of account and begins with what comes.
	New bool
}

// Stream tells the messages of a channel, in their order, until the caller stops, the
// context ends, or there is an error, which is the last thing told. It connects again
// by itself and goes on behind the last sequence: nothing is left out or told twice.
// Where the channel no longer keeps what comes next it ends with PositionGone and
// OldestSequence.
func (c *Client) Stream(ctx context.Context, channel string, o StreamOptions) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		if err := c.requireCapability(Channels); err != nil {
			yield(nil, err)
			return
		}
		last := o.Since
		if o.New {
			var err error
			if last, err = c.newestSequence(ctx, channel); err != nil {
				yield(nil, err)
				return
			}
		}
		for failed, before := 0, false; ; before = true {
			stopped, err := c.streamMessages(ctx, channel, &last, before, func(m *Message) bool {
				failed = 0
				return yield(m, nil)
			})
			if stopped {
				return
			}
			if failed++; errors.Is(err, resync) && failed != c.retry.Attempts {
				err = c.retry.waitBackoff(ctx, err, failed)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// streamMessages reads one stream from behind last, which it keeps up to date.
func (c *Client) streamMessages(ctx context.Context, channel string, last *int64, before bool, tell func(*Message) bool) (stopped bool, err error) {
	for e, err := range c.streamRPC(ctx, "channels/stream", map[string]any{"channelId": channel, "sinceSequence": *last}, "", before) {
		if err != nil {
			return false, err
		}
		if e.result == nil {
			continue
		}
		var told struct {
			Kind  string
			Event *Message
		}
		if err := decodeAnswer(e.result, &told); err != nil {
			return false, err
		}
		// Other kinds are of a newer server.
		if told.Kind != "messageEvent" || told.Event == nil || told.Event.Sequence <= *last {
			continue
		}
		*last = told.Event.Sequence
		if !tell(told.Event) {
			return true, nil
		}
	}
	return true, nil // not reached: a stream ends with an error or because the caller stops
}

// newestSequence is the sequence of the newest message, 0 if there is none.
func (c *Client) newestSequence(ctx context.Context, channel string) (int64, error) {
	for m, err := range c.History(ctx, channel, HistoryFilter{Newest: true, PageSize: 1}) {
		if err != nil {
			return 0, err
		}
		return m.Sequence, nil
	}
	return 0, nil
}
