package channels

import (
	"context"

	"koine/kg"
)

// StreamInbox is StreamAll of the messages that are for the caller: those that it
// did not write, and that are addressed to it, to a role that it had then, or to
// everybody. What is addressed to it or to such a role is there from every channel
// that it reads, member or not.
func (s *Service) StreamInbox(ctx context.Context, by Caller, from *kg.Position) (*Feed, error) {
	agent, err := by.actingAgent()
	if err != nil {
		return nil, err
	}
	return s.openFeed(ctx, by, s.inboxSet(by, agent), from, s.inboxFilter(agent))
}

// InboxQuery says what of an inbox is read.
type InboxQuery struct {
	After kg.Position // the zero Position is before everything
	// PageSize is clamped to 1…MaxPage; DefaultPage when 0. A page ends earlier where
	// its content might be more than MaxPageBytes.
	PageSize int
}

// Inbox reads the messages that are for the caller (StreamInbox), a page at a time.
// next is up to where was looked, and where the next page or a stream goes on; more
// tells that there may be others now. A page can be short, and even empty, with more
// behind it.
//
// Errors: CodePositionGone for a position of another log.
func (s *Service) Inbox(ctx context.Context, by Caller, q InboxQuery) (page []Delivery, next kg.Position, more bool, err error) {
	agent, err := by.actingAgent()
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
		bytes += d.size()
		return len(page) < size && bytes <= MaxPageBytes-MaxMessageBytes // the next may be of any size
	})
	return page, f.position, more, err
}

// inboxFilter keeps what is for the agent: of a channel that it is no member of, what is
// addressed to it.
func (s *Service) inboxFilter(agent kg.AgentID) func(*Message) bool {
	return func(m *Message) bool {
		return m.isFor(agent) && (len(m.Recipients) > 0 || s.table.get(m.Channel).roles[agent] != "")
	}
}
