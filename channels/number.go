package channels

import (
	"context"
	"sort"

	"koine/kg"
)

// SequenceAt is the sequence of the last message that a channel had at a revision, 0
// if it had none.
//
// Errors: CodeChannelNotFound.
func (s *Service) SequenceAt(ctx context.Context, by Caller, id ChannelID, r kg.Revision) (int64, error) {
	agent, _, err := s.requireReadable(by, id)
	if err != nil {
		return 0, err
	}
	snapshot, err := s.store.View(ctx, kg.View{Principal: by.readerPrincipal(agent), Graphs: []kg.Term{id.MessagesGraph()}})
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

// publicationOf tells who published the message with a number, when and in which revision;
// nil where the channel has none.
func publicationOf(snapshot *kg.Snapshot, id ChannelID, n int64) (*kg.Assertion, error) {
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

// publishRevision is the revision in which a channel got the message with a number, 0
// where it has none.
func publishRevision(snapshot *kg.Snapshot, id ChannelID, n int64) (kg.Revision, error) {
	a, err := publicationOf(snapshot, id, n)
	if a == nil || err != nil {
		return 0, err
	}
	return a.Revision, nil
}

// firstNumber is the number of the first message of a channel, which has so many, for
// whose publication the test holds, and so for all later ones.
func firstNumber(snapshot *kg.Snapshot, id ChannelID, count int64, test func(*kg.Assertion) bool) (int64, error) {
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

// firstSince is the number of the first message of a channel that came with this
// revision or a later one. The last is looked at first: most channels have nothing
// new.
func firstSince(snapshot *kg.Snapshot, id ChannelID, count int64, r kg.Revision) (int64, error) {
	if r <= 1 || count == 0 {
		return 1, nil
	}
	if last, err := publishRevision(snapshot, id, count); err != nil || last < r {
		return count + 1, err
	}
	return firstNumber(snapshot, id, count, func(a *kg.Assertion) bool { return a.Revision >= r })
}
