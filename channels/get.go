package channels

import (
	"context"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/journal"
	"koine/channels/message"
	"koine/kg"
)

// Get returns a channel that the caller can find, or CodeChannelNotFound. Without read
// access the result is an outline: no members, metadata or messages.
func (s *Service) Get(ctx context.Context, by Caller, id channel.ID) (*channel.Channel, error) {
	agent, e, err := s.table.RequireDiscoverable(by, id)
	if err != nil {
		return nil, err
	}
	if access.CanOversee(e, agent) {
		if _, e, err = s.table.OpenReadable(ctx, by, id); err != nil {
			return nil, err
		}
	}
	if !access.IsReadable(e, agent) {
		return e.Outline(), nil
	}
	snapshot, err := s.journal.SystemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	c, err := s.readChannelState(snapshot, id)
	if kg.CodeOf(err) == kg.CodeChannelNotFound && e.CreatedAt.IsZero() { // a direct channel before its first message
		return &e.Channel, nil
	}
	return c, err
}

// readChannelState reads a channel with its message count and last message time.
func (s *Service) readChannelState(snapshot *kg.Snapshot, id channel.ID) (*channel.Channel, error) {
	c, err := channel.ReadRecord(snapshot.Match, id)
	if err != nil {
		return nil, err
	}
	if c == nil || c.Deleted {
		return nil, channel.ErrNotFound()
	}
	defer func() { c.MarkClosedIfDue(s.options.Clock()) }()
	if c.Messages, err = journal.Count(snapshot, id); err != nil || c.Messages == 0 {
		return c, err
	}
	last, err := journal.Read(snapshot, id, c.Messages, 1, message.Viewer{})
	if err == nil && len(last) == 1 {
		c.LastMessageAt = last[0].Time
	}
	return c, err
}

// List returns the channels that the caller is a member of or invited to and those that
// everyone can find, or the channels of one scope, in order of creation, one page at a
// time. It returns no direct channels, except to overseers, which find all channels of
// others: as outlines until they have read them. next is "" after the last page.
//
// Errors: CodeCursorForeign for a page token of another query or caller.
func (s *Service) List(ctx context.Context, by Caller, l channel.ListQuery) (page []*channel.Channel, next string, err error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, "", err
	}
	if l.Member != "" {
		l.Member = kg.CanonicalAgent(string(l.Member))
	}
	token := pageToken{store: s.store, bound: boundTo("channels/list", agent, l.Kind, l.Visibility, l.Member, l.Invited, l.Scope)}
	after, err := token.open(l.PageToken)
	if err != nil {
		return nil, "", err
	}
	l.Behind = channel.ID(after)
	page, end, more, err := s.ListPage(ctx, by, l)
	if err == nil && more {
		next = token.seal(string(end))
	}
	return page, next, err
}

// MaxCounted bounds the channels and scopes that a count looks at.
const MaxCounted = 100_000

// CountChannels counts the channels of List, on all pages. exact is false if there are
// more than MaxCounted.
func (s *Service) CountChannels(by Caller, l channel.ListQuery) (n int, exact bool, err error) {
	l.PageSize, l.Behind = MaxCounted, ""
	found, more, err := s.findChannels(by, l, MaxCounted)
	return len(found), !more, err
}

// findChannels returns up to n channels of a list.
func (s *Service) findChannels(by Caller, l channel.ListQuery, n int) (found []*access.Entry, more bool, err error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, false, err
	}
	if l.Member != "" {
		l.Member = kg.CanonicalAgent(string(l.Member))
	}
	if l.Visibility != "" && l.Visibility != channel.Private && l.Visibility != channel.Public {
		return nil, false, kg.Errorf(kg.CodeInvalid, "visibility must be private or public, not %.60q", l.Visibility).At("visibility")
	}
	if l.Scope != "" {
		if _, _, err := s.table.RequireScope(by, l.Scope); err != nil {
			return nil, false, err
		}
	}
	if l.Kind == channel.Direct && !s.table.IsOverseer(by.ReaderPrincipal(agent)) {
		return nil, false, nil
	}
	found, more = s.table.ListChannels(by.ReaderPrincipal(agent), l.Scope, l.Behind, l.Backward, n, func(e *access.Entry) bool {
		if e.Kind == channel.Direct && e.CanRead(agent) {
			return false
		}
		if l.Kind != "" && e.Kind != l.Kind {
			return false
		}
		return (!by.IgnoreInvitations || e.SeenBy(by).CanDiscover(agent) || access.CanOversee(e, agent)) && (l.Visibility == "" || e.Visibility == l.Visibility) && (!l.Invited || e.IsInvited(agent)) &&
			(l.Member == "" || access.IsReadable(e, agent) && e.RoleOf(l.Member) != "")
	})
	return found, more, nil
}

// ListPage is List for callers that have cursors of their own: the page begins behind
// the channel ListQuery.Behind, and end is the id behind which the next page begins if
// there are more.
func (s *Service) ListPage(ctx context.Context, by Caller, l channel.ListQuery) (page []*channel.Channel, end channel.ID, more bool, err error) {
	agent, err := by.ActingAgent()
	if err != nil {
		return nil, "", false, err
	}
	found, more, err := s.findChannels(by, l, pageSize(l.PageSize))
	if err != nil {
		return nil, "", false, err
	}
	snapshot, err := s.journal.SystemView(ctx)
	if err != nil {
		return nil, "", false, err
	}
	defer snapshot.Close()
	for _, e := range found {
		if !access.IsReadable(e, agent) {
			page = append(page, e.Outline())
			continue
		}
		c, err := s.readChannelState(snapshot, e.ID)
		if kg.CodeOf(err) == kg.CodeChannelNotFound {
			continue // created or deleted concurrently
		}
		if err != nil {
			return nil, "", false, err
		}
		page = append(page, c)
	}
	if len(found) > 0 {
		end = found[len(found)-1].ID
	}
	return page, end, more, nil
}
