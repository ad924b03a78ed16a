package channels

import (
	"context"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

// StreamInbox is like StreamAll for the messages that are for the caller: those by
// other authors that are addressed to it, to a role that it had then, or to everyone.
// Messages addressed to it or to such a role come from all channels that it can read,
// even if it is not a member.
func (s *Service) StreamInbox(ctx context.Context, by Caller, from *kg.Position) (*Feed, error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, err
	}
	return s.openFeed(ctx, by, s.inboxSet(by, agent), from, s.inboxFilter(agent))
}

// InboxQuery selects a page of an inbox.
type InboxQuery struct {
	After kg.Position // the zero Position means the beginning
	// PageSize is clamped to 1…MaxPage; DefaultPage if 0. A page ends earlier if its
	// content might exceed MaxPageBytes.
	PageSize int
}

// Inbox returns the messages that are for the caller (StreamInbox), one page at a time.
// next is the position at which the next page or a stream continues. more reports that
// there may be further messages now. A page may be short or even empty while more is
// set.
//
// Errors: CodePositionGone for a position of another log.
func (s *Service) Inbox(ctx context.Context, by Caller, q InboxQuery) (page []Delivery, next kg.Position, more bool, err error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, next, false, err
	}
	f, err := s.newFeed(ctx, by, s.inboxSet(by, agent), &q.After, s.inboxFilter(agent))
	if err != nil {
		return nil, next, false, err
	}
	size, bytes := pageSize(q.PageSize), 0
	more, err = f.replayStored(maxLookedAt, func(d Delivery) bool {
		page = append(page, d)
		bytes += d.Size()
		return len(page) < size && bytes <= message.MaxPageBytes-channel.MaxMessageBytes // the next message may have any size
	})
	return page, f.position, more, err
}

// inboxFilter accepts messages that are for the agent. In channels without membership
// these are only the messages that are addressed to it.
func (s *Service) inboxFilter(agent kg.AgentID) func(*message.Message) bool {
	return func(m *message.Message) bool {
		return m.IsFor(agent) && (len(m.Recipients) > 0 || s.table.Get(m.Channel).RoleOf(agent) != "")
	}
}
