package graph

import (
	"context"

	"koine/channels"
	"koine/kg"
)

// readInbox answers Query.inbox.
func readInbox(ctx context.Context, first *int, after *Position) (*Inbox, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	n, err := r.channelPage(first)
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
	out := &Inbox{Nodes: make([]Message, 0, n), HasNextPage: true}
	for wanted := -1; wanted != 0 && out.HasNextPage; {
		q.PageSize = min(n-len(out.Nodes), messagesAtOnce)
		var page []channels.Delivery
		if page, q.After, out.HasNextPage, err = service.Inbox(ctx, by, q); err != nil {
			return nil, kg.AsError(err).At("after")
		}
		for _, d := range page {
			if err := r.chargeBytes(sizeOfMessage(d.Message)); err != nil {
				return nil, err
			}
			out.Nodes = append(out.Nodes, Message{record: d.Message})
		}
		if wanted = n - len(out.Nodes); len(page) < q.PageSize {
			break // the scan reached its bound
		}
	}
	out.Position = Position(store.FormatPosition(q.After))
	return out, nil
}
