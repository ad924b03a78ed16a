package graph

import (
	"context"

	"koine/channels"
	"koine/channels/scope"
	"koine/kg"
)

// Subscriptions to the messages of several channels. Events come in the order
// of the log, with ordinary positions.

// followInbox establishes Subscription.inboxMessagePublished.
func followInbox(ctx context.Context, resume *Position) error {
	return deliverFeed(ctx, resume, func(o *subscriptionSetup, from *kg.Position) (*channels.Feed, error) {
		return o.service.StreamInbox(o.streamCtx, o.by, from)
	})
}

// followMemberMessages establishes Subscription.memberMessagePublished.
func followMemberMessages(ctx context.Context, resume *Position) error {
	return deliverFeed(ctx, resume, func(o *subscriptionSetup, from *kg.Position) (*channels.Feed, error) {
		return o.service.StreamAll(o.streamCtx, o.by, from)
	})
}

// followScopeMessages establishes Subscription.scopeMessagePublished.
func followScopeMessages(ctx context.Context, id string, resume *Position) error {
	return deliverFeed(ctx, resume, func(o *subscriptionSetup, from *kg.Position) (*channels.Feed, error) {
		return o.service.StreamScope(o.streamCtx, o.by, scope.ID(id), from)
	})
}

func deliverFeed(ctx context.Context, resume *Position, open func(*subscriptionSetup, *kg.Position) (*channels.Feed, error)) error {
	return subscribeMessages(ctx, resume, func(o *subscriptionSetup, s *messageSource) error {
		from, told := o.startPosition()
		from = wholeCommit(from)
		feed, err := open(o, &from)
		if err != nil {
			return err
		}
		s.closeStream, s.deliveries = feed.Close, feed.Messages()
		s.sentPosition.Store(told)
		return nil
	})
}

// wholeCommit moves a position within a commit to the beginning of the commit.
// A commit publishes at most one message, so readers of messages stand between
// commits.
func wholeCommit(p kg.Position) kg.Position {
	if p.Index == kg.EndOfCommit || p.Revision == 0 {
		return p
	}
	return kg.Position{Epoch: p.Epoch, Revision: p.Revision - 1, Index: kg.EndOfCommit}
}
