package graph

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"koine/channels"
	"koine/channels/message"
	"koine/channels/receipts"
	"koine/graph/internal/knowledge"
	"koine/graph/limit"
	"koine/internal/query"
	"koine/kg"
)

// messagesAtOnce is the number of messages read before their size is charged.
const messagesAtOnce = 32

// Messages reads messages of the channel.
func (c *Channel) Messages(
	ctx context.Context, sinceSequence *int64, sinceTime *time.Time, sinceMessageID *string, beforeSequence *int64, beforeTime *time.Time, beforeMessageID *string,
	authorIds []string, where *MessageFilter, order query.SortDirection, first *int, after *Cursor, last *int, before *Cursor,
) (*MessageConnection, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	p, err := r.openDomainRange("channel.messages", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, channels.MaxPage, c.record.ID,
		sinceSequence, sinceTime, sinceMessageID, beforeSequence, beforeTime, beforeMessageID, authorIds, where, order)
	if err != nil {
		return nil, err
	}
	q := channels.HistoryQuery{
		SinceSequence: sinceSequence, SinceTime: orZero(sinceTime), SinceMessage: message.ID(deref(sinceMessageID)),
		BeforeSequence: deref(beforeSequence), BeforeTime: orZero(beforeTime), BeforeMessage: message.ID(deref(beforeMessageID)),
		Descending: (order == query.Descending) != p.backward,
	}
	for _, a := range authorIds {
		q.Authors = append(q.Authors, kg.AgentID(a))
	}
	if err := r.applyMessageFilter(&q, where); err != nil {
		return nil, kg.AsError(err).At("where")
	}
	page, err := r.readMessagePage(p, c, func(n int, behind int64) ([]*message.Message, int64, bool, error) {
		q.PageSize, q.Behind = n, behind
		return service.HistoryPage(ctx, by, c.record.ID, q)
	})
	if err == nil {
		page.count = func(ctx context.Context) (int64, bool, error) { return service.CountHistory(ctx, by, c.record.ID, q) }
	}
	return page, err
}

// applyMessageFilter adds the conditions of a filter to the query.
func (r *run) applyMessageFilter(q *channels.HistoryQuery, where *MessageFilter) error {
	if where == nil {
		return nil
	}
	if q.Recipient = kg.AgentID(deref(where.Recipient)); deref(where.ForMe) {
		if where.Recipient != nil {
			return kg.Errorf(kg.CodeInvalid, "recipient and forMe are mutually exclusive").At("forMe")
		}
		q.Recipient = cmp.Or(r.request.Actor, r.request.Principal.ID)
	}
	q.Interaction, q.ContentType = message.Interaction(inDomain(deref(where.MessageType))), message.ContentType(inDomain(deref(where.ContentType)))
	q.Tag, q.Thread, q.Correlation = deref(where.Tag), deref(where.ThreadID), message.ID(deref(where.CorrelationID))
	q.Status = receipts.State(inDomain(deref(where.Status)))
	return nil
}

// readMessagePage reads a page of messages of one channel in small batches.
// channel is nil if it is not loaded. read reads up to n messages behind a
// sequence and returns the one at which it ended.
func (r *run) readMessagePage(p listRange, channel *Channel, read func(n int, behind int64) ([]*message.Message, int64, bool, error)) (*MessageConnection, error) {
	behind, _ := strconv.ParseInt(p.key, 10, 64) // sealed by this list
	var found []*message.Message
	more := true
	for more && len(found) < p.size {
		n := min(p.size-len(found), messagesAtOnce)
		list, end, goesOn, err := read(n, behind)
		if err != nil {
			return nil, knowledge.InDirection(atArgument(err), p.backward)
		}
		for _, m := range list {
			if err := r.chargeBytes(sizeOfMessage(m)); err != nil {
				return nil, err
			}
		}
		found = append(found, list...)
		if behind, more = end, goesOn; len(list) < n {
			break // the batch has reached the bound of messages to scan
		}
	}
	end := ""
	if more {
		end = strconv.FormatInt(behind, 10)
	}
	return newListPage(p, found, more, end, sequenceKey, func(m **message.Message) Message {
		shown := messageOf(*m)
		shown.channel = channel
		return *shown
	}), nil
}

func sequenceKey(m **message.Message) string { return strconv.FormatInt((*m).Sequence, 10) }

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
	p, err := r.openDomainRange("message.replies", knowledge.PageArgs{First: first, After: after}, channels.MaxPage, m.record.ID)
	if err != nil {
		return nil, err
	}
	total := 0
	page, err := r.readMessagePage(p, m.channel, func(n int, behind int64) (list []*message.Message, end int64, more bool, err error) {
		if list, total, more, err = service.RepliesAfter(ctx, by, m.record.ID, n, behind); len(list) > 0 {
			end = list[len(list)-1].Sequence
		}
		return list, end, more, err
	})
	if err == nil {
		page.count = exactly(total)
	}
	return page, err
}

// MessageCounts counts messages by day and author. It is nil if the caller may
// not read the channel.
func (c *Channel) MessageCounts(ctx context.Context, from, to *time.Time, authorIds []string) ([]MessageCount, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	q := channels.CountQuery{From: orZero(from), To: orZero(to)}
	for _, a := range authorIds {
		q.Authors = append(q.Authors, kg.AgentID(a))
	}
	list, err := unlessUnreadable(pointerTo(service.Counts(ctx, by, c.record.ID, q)))
	if err != nil || list == nil {
		return nil, atArgument(err)
	}
	out := make([]MessageCount, len(*list))
	for i, n := range *list {
		out[i] = MessageCount{Day: n.Day.Format(time.DateOnly), Author: agentOf(n.Author), AuthorID: string(n.Author), Count: n.Messages}
		if err := r.chargeBytes(len(n.Author) + sizeOfCount); err != nil {
			return nil, err
		}
	}
	return out, nil
}

const sizeOfCount = 64 // in addition to the agent's name

// Inbox answers Query.inbox. Its cursors are positions, so that a subscription
// can go on behind a page.
func (*queryRoot) Inbox(ctx context.Context, first *int, after *Cursor) (*MessageConnection, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	p, err := r.openDomainRange("inbox", knowledge.PageArgs{First: first}, channels.MaxPage)
	if err != nil {
		return nil, err
	}
	store := r.engine.deps.Store
	var q channels.InboxQuery
	if after != nil {
		if q.After, err = store.ParsePosition(string(*after)); err != nil {
			return nil, kg.AsError(err).At("after")
		}
		q.After = wholeCommit(q.After)
	}
	page := &MessageConnection{begun: after != nil, more: true, list: "inbox"}
	for len(page.nodes) < p.size && page.more {
		q.PageSize = min(p.size-len(page.nodes), messagesAtOnce)
		var found []channels.Delivery
		if found, q.After, page.more, err = service.Inbox(ctx, by, q); err != nil {
			return nil, kg.AsError(err).At("after")
		}
		for _, d := range found {
			if err := r.chargeBytes(sizeOfMessage(d.Message)); err != nil {
				return nil, err
			}
			page.nodes = append(page.nodes, *messageOf(d.Message))
		}
		if len(found) < q.PageSize {
			break // the scan reached its bound
		}
	}
	page.seal = func(k int) Cursor {
		return Cursor(store.FormatPosition(endOf(store, page.nodes[k].record.Revision)))
	}
	page.end = func() Cursor { return Cursor(store.FormatPosition(q.After)) }
	page.count = func(ctx context.Context) (n int64, exact bool, err error) {
		q := channels.InboxQuery{PageSize: channels.MaxPage}
		for range limit.MaxCountedPages {
			found, end, more, err := service.Inbox(ctx, by, q)
			if err != nil {
				return 0, false, err
			}
			if n += int64(len(found)); !more {
				return n, true, nil
			}
			q.After = end
		}
		return n, false, nil
	}
	return page, nil
}
