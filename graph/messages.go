package graph

import (
	"cmp"
	"context"
	"time"

	"koine/channels"
	"koine/channels/message"
	"koine/channels/receipts"
	"koine/internal/query"
	"koine/kg"
)

// messagesAtOnce is the number of messages read before their size is charged.
const messagesAtOnce = 32

// Messages reads messages of the channel.
func (c *Channel) Messages(
	ctx context.Context, sinceSequence *int64, sinceTime *time.Time, sinceMessageID *string, beforeSequence *int64, beforeTime *time.Time, beforeMessageID *string,
	authorIds []string, where *MessageFilter, order query.SortDirection, first *int, after *Cursor,
) (*MessageConnection, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	q := channels.HistoryQuery{
		SinceSequence: sinceSequence, SinceTime: orZero(sinceTime), SinceMessage: message.ID(deref(sinceMessageID)),
		BeforeSequence: deref(beforeSequence), BeforeTime: orZero(beforeTime), BeforeMessage: message.ID(deref(beforeMessageID)),
		Descending: order == query.Descending,
	}
	for _, a := range authorIds {
		q.Authors = append(q.Authors, kg.AgentID(a))
	}
	if err := r.applyMessageFilter(&q, where); err != nil {
		return nil, err
	}
	return r.readMessagePage(first, after, c, func(n int, token string) ([]*message.Message, string, error) {
		q.PageSize, q.PageToken = n, token
		return service.History(ctx, by, c.record.ID, q)
	})
}

// applyMessageFilter adds the conditions of a filter to the query.
func (r *run) applyMessageFilter(q *channels.HistoryQuery, where *MessageFilter) error {
	if where == nil {
		return nil
	}
	if q.Recipient = kg.AgentID(deref(where.Recipient)); deref(where.ForMe) {
		if where.Recipient != nil {
			return kg.Errorf(kg.CodeInvalid, "recipient and forMe are mutually exclusive").At("forMe").At("where")
		}
		q.Recipient = cmp.Or(r.request.Actor, r.request.Principal.ID)
	}
	q.Interaction, q.ContentType = message.Interaction(inDomain(deref(where.MessageType))), message.ContentType(inDomain(deref(where.ContentType)))
	q.Tag, q.Thread, q.Correlation = deref(where.Tag), deref(where.ThreadID), message.ID(deref(where.CorrelationID))
	q.Status = receipts.State(inDomain(deref(where.Status)))
	return nil
}

// readMessagePage reads a page of messages in small batches. channel is the channel
// of all of them, nil if unknown.
func (r *run) readMessagePage(first *int, after *Cursor, channel *Channel, read func(n int, token string) ([]*message.Message, string, error)) (*MessageConnection, error) {
	n, err := r.channelPage(first)
	if err != nil {
		return nil, err
	}
	out := &MessageConnection{Nodes: make([]Message, 0, n)}
	token := string(deref(after))
	for {
		list, next, err := read(min(n-len(out.Nodes), messagesAtOnce), token)
		if err != nil {
			return nil, atArgument(err)
		}
		for _, m := range list {
			if err := r.chargeBytes(sizeOfMessage(m)); err != nil {
				return nil, err
			}
			out.Nodes = append(out.Nodes, Message{record: m, channel: channel})
		}
		// A batch shorter than requested has reached the bound of messages to
		// scan.
		if token = next; token == "" || len(out.Nodes) == n || len(list) < min(n, messagesAtOnce) {
			break
		}
	}
	out.PageInfo = tokenPage(after, token)
	return out, nil
}

func sizeOfMessage(m *message.Message) int {
	n := len(m.Metadata)
	for _, p := range m.Parts {
		n += len(p)
	}
	return n
}

// Replies reads the messages that reply to this one.
func (m *Message) Replies(ctx context.Context, first *int, after *Cursor) (*MessageConnection, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	return r.readMessagePage(first, after, m.channel, func(n int, token string) ([]*message.Message, string, error) {
		return service.Replies(ctx, by, m.record.ID, n, token)
	})
}
