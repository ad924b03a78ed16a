package channels

import (
	"context"
	"sort"

	"koine/kg"
)

// NumberAt is the sequence of the last message that a channel had at a revision, 0
// if it had none.
//
// Errors: CodeChannelNotFound.
func (s *Service) NumberAt(ctx context.Context, by Caller, id ChannelID, r kg.Revision) (int64, error) {
	agent, _, err := s.see(by, id)
	if err != nil {
		return 0, err
	}
	snapshot, err := s.store.View(ctx, kg.View{Principal: by.reader(agent), Graphs: []kg.Term{id.MessagesGraph()}})
	if err != nil {
		return 0, err
	}
	defer snapshot.Close()
	high, err := countMessages(snapshot, id)
	if err != nil {
		return 0, err
	}
	later := func(number int64) (bool, error) {
		for row, err := range snapshot.Numbered(id.MessagesGraph(), number) {
			if err != nil {
				return false, err
			}
			st, err := snapshot.Statement(row)
			return err == nil && st.Revision() > r, err
		}
		return true, nil
	}
	var failed error
	n := sort.Search(int(high), func(i int) bool {
		is, err := later(int64(i) + 1)
		if err != nil {
			failed = err
		}
		return is || failed != nil
	})
	return int64(n), failed
}
