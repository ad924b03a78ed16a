package belief

import (
	"cmp"
	"context"
	"slices"

	"koine/kg"
)

// Bounds on what an Effect counts and shows.
const (
	MaxExamples = 10
	// MaxPreviewed bounds the statements that are looked at for it.
	MaxPreviewed = 5_000_000
)

// Effect is what changes for reads of the present when an agent's assertions no
// longer count, or count again.
type Effect struct {
	Agent kg.AgentID
	// Assertions of the agent count no longer, or again.
	Assertions uint64
	// Statements are there no longer, or again, because no other assertion backs
	// them; Examples are some of these.
	Statements uint64
	Examples   []kg.Quad
	// Complete is false when there were more statements than are looked at.
	Complete bool
	Receipt  kg.Receipt
}

// change tells the effect of other doubts and, unless it is a dry run, makes it.
func change(ctx context.Context, store *kg.Store, m kg.Meta, agent kg.AgentID, now, then kg.Doubts, fn func(*kg.Tx) error) (*Effect, error) {
	e := &Effect{Agent: agent}
	if err := e.preview(ctx, store, m.Principal, now, then); err != nil {
		return nil, err
	}
	var err error
	e.Receipt, err = store.Update(ctx, m, fn)
	return e, err
}

// preview reads all statements that the agent backs.
func (e *Effect) preview(ctx context.Context, store *kg.Store, by kg.Principal, now, then kg.Doubts) error {
	s, err := store.View(ctx, kg.View{Principal: by, Doubted: true})
	if err != nil {
		return err
	}
	defer s.Close()
	n := 0
	for row, err := range s.MatchAsserted(kg.IDPattern{}, nil) {
		if err != nil {
			return err
		}
		if n++; n > MaxPreviewed {
			return nil
		}
		list, err := s.Assertions(row)
		if err != nil {
			return err
		}
		if !e.differs(list, now, then) {
			continue
		}
		if e.Statements++; len(e.Examples) < MaxExamples {
			q, err := s.Quad(row)
			if err != nil {
				return err
			}
			e.Examples = append(e.Examples, q)
		}
	}
	e.Complete = true
	return nil
}

// differs counts the agent's assertions among these whose counting changes, and
// tells whether the statement's does.
func (e *Effect) differs(list []kg.Assertion, now, then kg.Doubts) bool {
	var stands, stood bool
	for i := range list {
		before, after := !now.Hide(&list[i]), !then.Hide(&list[i])
		stood, stands = stood || before, stands || after
		if before != after {
			e.Assertions++
		}
	}
	return stood != stands
}

func sortBy[T any, K cmp.Ordered](list []T, key func(T) K) {
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
