package channels

import (
	"context"
	"sort"

	"koine/channels/channel"
	"koine/kg"
)

// SequenceAt returns the sequence of the channel's last message at a revision, or 0.
//
// Errors: CodeChannelNotFound.
func (s *Service) SequenceAt(ctx context.Context, by Caller, id channel.ID, r kg.Revision) (int64, error) {
	agent, _, err := s.table.RequireReadable(by, id)
	if err != nil {
		return 0, err
	}
	snapshot, err := s.store.View(ctx, kg.View{Principal: by.ReaderPrincipal(agent), Graphs: []kg.Term{id.MessagesGraph()}})
	if err != nil {
		return 0, err
	}
	defer snapshot.Close()
	count, err := countMessages(snapshot, id)
	if err != nil {
		return 0, err
	}
	next, err := firstSince(snapshot, id, count, r+1)
	return next - 1, err
}

// publicationOf returns the assertion of the message with a sequence (its source, time,
// and revision), or nil.
func publicationOf(snapshot *kg.Snapshot, id channel.ID, n int64) (*kg.Assertion, error) {
	for row, err := range snapshot.Numbered(id.MessagesGraph(), n) {
		if err != nil {
			return nil, err
		}
		list, err := snapshot.Assertions(row)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		return &list[0], nil
	}
	return nil, nil
}

// publishRevision returns the revision that published the message with a sequence, or
// 0.
func publishRevision(snapshot *kg.Snapshot, id channel.ID, n int64) (kg.Revision, error) {
	a, err := publicationOf(snapshot, id, n)
	if a == nil || err != nil {
		return 0, err
	}
	return a.Revision, nil
}

// firstNumber returns the sequence of the first of count messages whose publication
// satisfies test. test must be monotonic: once true, true for all later messages.
func firstNumber(snapshot *kg.Snapshot, id channel.ID, count int64, test func(*kg.Assertion) bool) (int64, error) {
	var failed error
	n := sort.Search(int(count), func(i int) bool {
		if failed != nil {
			return true
		}
		a, err := publicationOf(snapshot, id, int64(i)+1)
		failed = err
		return a == nil || test(a)
	})
	return int64(n) + 1, failed
}

// firstSince returns the sequence of the first message published at revision r or
// later. It checks the last message first, because most channels have no new ones.
func firstSince(snapshot *kg.Snapshot, id channel.ID, count int64, r kg.Revision) (int64, error) {
	if r <= 1 || count == 0 {
		return 1, nil
	}
	if last, err := publishRevision(snapshot, id, count); err != nil || last < r {
		return count + 1, err
	}
	return firstNumber(snapshot, id, count, func(a *kg.Assertion) bool { return a.Revision >= r })
}
