package graph

import (
	"context"
	"time"

	"koine/channels"
	"koine/kg"
)

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
