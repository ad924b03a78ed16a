package channels

import (
	"context"
	"slices"
	"sync"

	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// ScopeReader reads the messages of scopes out of commits, for feeds that tell other things
// of a scope as well. It counts as one of the caller's open streams. Call Close when done.
type ScopeReader struct {
	feed   Feed
	stored kg.Revision // messages up to this revision are read from the store
}

// NewScopeReader returns a reader for the caller.
//
// Errors: CodeLimitExceeded for too many open streams; those of kg.Store.Watch.
func NewScopeReader(ctx context.Context, s *Service, by Caller) (*ScopeReader, error) {
	f, err := s.openFeed(ctx, by, channelSet{}, nil, nil)
	if err != nil {
		return nil, err
	}
	f.release = sync.OnceFunc(f.release)
	return &ScopeReader{feed: *f, stored: s.store.Head().Revision}, nil
}

// Close releases the stream.
func (r *ScopeReader) Close() { r.feed.Close() }

// within makes a scope the one that is read.
func (r *ScopeReader) within(id scope.ID) *Feed {
	r.feed.channels = r.feed.service.channelsWithin(r.feed.by, r.feed.agent, id)
	return &r.feed
}

// Patterns returns patterns that match every message in the channels of a scope, its tasks
// included, and every change after which the patterns, or the caller's access to the scope,
// may be others. The predicate of messages is kg.Sequence, that of such changes another one.
func (r *ScopeReader) Patterns(id scope.ID) []kg.Pattern { return r.within(id).watchFilter().Patterns }

// Messages returns the messages that a commit published in the channels of a scope that the
// caller can read, its tasks included, sorted by channel. It leaves out those that are
// addressed to others.
func (r *ScopeReader) Messages(id scope.ID, c *kg.Commit) ([]*message.Message, error) {
	f := r.within(id)
	list, err := f.messagesIn(c)
	if err != nil {
		return nil, err
	}
	for i, m := range list {
		if c.Revision > r.stored { // else the log may have content that was removed since
			break
		}
		if list[i], err = f.service.journal.Reread(f.ctx, m, f.service.journal.ViewerOf(f.agent)); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(list, func(m *message.Message) bool { return m.Withheld == message.Addressed }), nil
}
