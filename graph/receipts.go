package graph

import (
	"context"
	"math"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/receipts"
	"koine/graph/internal/knowledge"
	"koine/graph/limit"
	"koine/kg"
)

// ReadMarker is the sequence number up to which the caller has read the
// channel, nil if it may not read it.
func (c *Channel) ReadMarker(ctx context.Context) (*int64, error) {
	service, by, err := runOf(ctx).channelService()
	if err != nil {
		return nil, err
	}
	n, err := service.Receipts().ReadMarker(ctx, by, c.record.ID)
	return unlessUnreadable(&n, err)
}

// Unread counts the caller's unread messages. It is nil if the caller may not
// read the channel.
func (c *Channel) Unread(ctx context.Context) (*UnreadCount, error) {
	service, by, err := runOf(ctx).channelService()
	if err != nil {
		return nil, err
	}
	n, err := service.Receipts().Unread(ctx, by, c.record.ID)
	return unlessUnreadable(&UnreadCount{Count: n.Count, HasMore: n.More}, err)
}

// unlessUnreadable turns the errors of a caller that may not read the channel into nil.
func unlessUnreadable[T any](v *T, err error) (*T, error) {
	if kg.CodeOf(err) == kg.CodePermissionDenied {
		return nil, nil
	}
	return unlessGone(v, err)
}

// ReceiptStatus is the message's receipt at the caller, nil if the message is
// not addressed to it.
func (m *Message) ReceiptStatus(ctx context.Context) (*ReceiptStatus, error) {
	service, by, err := runOf(ctx).channelService()
	if err != nil {
		return nil, err
	}
	state, err := service.Receipts().Own(ctx, by, m.record.Channel, m.record.ID)
	return unlessGone(enumOrNil[ReceiptStatus](state), err)
}

// Receipts are the message's receipts at its recipients, nil if the message is
// gone.
func (m *Message) Receipts(ctx context.Context, first *int, after *Cursor, last *int, before *Cursor) (*MessageReceiptConnection, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	p, err := r.openRange("message.receipts", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, limit.DefaultListSize, math.MaxInt, m.record.ID)
	if err != nil {
		return nil, err
	}
	list, err := unlessGone(pointerTo(service.Receipts().List(ctx, by, m.record.Channel, m.record.ID)))
	if err != nil || list == nil {
		return nil, err
	}
	page := pageOfSlice(p, *list, func(r *receipts.Receipt) string { return string(r.Agent) }, func(r *receipts.Receipt) MessageReceipt {
		return MessageReceipt{Agent: agentOf(r.Agent), AgentID: string(r.Agent), Status: ReceiptStatus(inSchema(r.State)), ReadAt: timeOrNil(r.ReadAt)}
	})
	return page, chargeAll(r, page.nodes, func(n *MessageReceipt) int { return len(n.AgentID) + sizeOfReceipt })
}

const sizeOfReceipt = 80 // in addition to the agent's name

func pointerTo[T any](v T, err error) (*T, error) { return &v, err }

// AcknowledgeMessages answers Mutation.acknowledgeMessages.
func (*mutationRoot) AcknowledgeMessages(ctx context.Context, input AcknowledgeMessagesInput) (*ChannelPayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	a := receipts.Acknowledgement{Channel: channel.ID(input.ChannelID), State: receipts.State(inDomain(input.Status))}
	if n := input.UpToSequence; n != nil {
		if a.UpTo = *n; *n == 0 {
			return nil, kg.Errorf(kg.CodeInvalid, "upToSequence must be at least 1").At("upToSequence").At("input")
		}
	}
	for _, id := range input.MessageIds {
		a.Messages = append(a.Messages, message.ID(id))
	}
	if err := service.Receipts().Acknowledge(ctx, by, a); err != nil {
		return nil, inInput(err)
	}
	return r.changedChannel(service.Get(ctx, by, a.Channel))
}
