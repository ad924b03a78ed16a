package graph

import (
	"context"

	"koine/channels"
	"koine/graph/internal/knowledge"
	"koine/graph/limit"
	"koine/kg"
)

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
			page.nodes = append(page.nodes, Message{record: d.Message})
		}
		if len(found) < q.PageSize {
			break // the scan reached its bound
		}
	}
	page.seal = func(k int) Cursor {
		return Cursor(store.FormatPosition(endOf(store, page.nodes[k].record.Revision)))
	}
	page.end = Cursor(store.FormatPosition(q.After))
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
