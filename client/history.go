package client

import (
	"context"
	"errors"
	"iter"
)

// HistoryFilter selects the messages of a channel to read. Zero fields select all.
type HistoryFilter struct {
	Since   int64 // only messages after this sequence
	Before  int64 // only messages before this sequence; 0 is no bound
	Authors []string
	// Newest reverses the order: the newest message comes first.
	Newest bool
	// PageSize is the number of messages per request. 0 is the server's default.
	PageSize int
}

// History returns the messages of a channel. It fetches pages as the iteration proceeds.
// An error ends the iteration.
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

// StreamOptions select the beginning of a stream of messages.
type StreamOptions struct {
	// Since is the sequence to begin after. 0 begins with the oldest message.
	Since int64
	// New ignores Since and begins after the newest message.
	New bool
}

// Stream returns the messages of a channel in order, and then new ones as they are
// published. It ends with an error, or when the caller stops or the context is done. It
// reconnects by itself and resumes after the last sequence, without gaps or duplicates. If
// retention has removed the next message, it ends with PositionGone, and OldestSequence
// is the oldest message that is left.
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
		for failed, established := 0, false; ; established = true {
			stopped, err := c.streamMessages(ctx, channel, &last, established, func(m *Message) bool {
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

// streamMessages reads one stream after the sequence last, and advances last.
func (c *Client) streamMessages(ctx context.Context, channel string, last *int64, established bool, deliver func(*Message) bool) (stopped bool, err error) {
	for e, err := range c.streamRPC(ctx, "channels/stream", map[string]any{"channelId": channel, "sinceSequence": *last}, "", established) {
		if err != nil {
			return false, err
		}
		if e.result == nil {
			continue
		}
		var item struct {
			Kind  string
			Event *Message
		}
		if err := decodeAnswer(e.result, &item); err != nil {
			return false, err
		}
		// Other kinds come from a newer server.
		if item.Kind != "messageEvent" || item.Event == nil || item.Event.Sequence <= *last {
			continue
		}
		*last = item.Event.Sequence
		if !deliver(item.Event) {
			return true, nil
		}
	}
	return true, nil // not reached: a stream ends with an error or because the caller stops
}

// newestSequence returns the sequence of the newest message, or 0 if there is none.
func (c *Client) newestSequence(ctx context.Context, channel string) (int64, error) {
	for m, err := range c.History(ctx, channel, HistoryFilter{Newest: true, PageSize: 1}) {
		if err != nil {
			return 0, err
		}
		return m.Sequence, nil
	}
	return 0, nil
}
