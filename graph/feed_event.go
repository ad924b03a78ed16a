package graph

import (
	"context"

	"koine/channels"
	"koine/channels/scope"
	"koine/graph/executor"
	"koine/kg"
)

// Subscriptions to the messages of several channels. Events come in the order
// of the log, with ordinary positions.

// InboxMessagePublished establishes Subscription.inboxMessagePublished.
func (*subscriptionRoot) InboxMessagePublished(ctx context.Context, f *executor.Selected, args *subscriptionInboxMessagePublishedArgs) (*Stream, error) {
	return deliverFeed(ctx, f, args.Resume, func(o *subscriptionSetup, from *kg.Position) (*channels.Feed, error) {
		return o.service.StreamInbox(o.streamCtx, o.by, from)
	})
}

// MemberMessagePublished establishes Subscription.memberMessagePublished.
func (*subscriptionRoot) MemberMessagePublished(ctx context.Context, f *executor.Selected, args *subscriptionMemberMessagePublishedArgs) (*Stream, error) {
	return deliverFeed(ctx, f, args.Resume, func(o *subscriptionSetup, from *kg.Position) (*channels.Feed, error) {
		return o.service.StreamAll(o.streamCtx, o.by, from)
	})
}

// ScopeMessagePublished establishes Subscription.scopeMessagePublished.
func (*subscriptionRoot) ScopeMessagePublished(ctx context.Context, f *executor.Selected, args *subscriptionScopeMessagePublishedArgs) (*Stream, error) {
	return deliverFeed(ctx, f, args.Resume, func(o *subscriptionSetup, from *kg.Position) (*channels.Feed, error) {
		return o.service.StreamScope(o.streamCtx, o.by, scope.ID(args.ScopeID), from)
	})
}

func deliverFeed(ctx context.Context, f *executor.Selected, resume *Position, open func(*subscriptionSetup, *kg.Position) (*channels.Feed, error)) (*Stream, error) {
	return subscribeMessages(ctx, f, resume, func(o *subscriptionSetup, s *messageSource) error {
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
