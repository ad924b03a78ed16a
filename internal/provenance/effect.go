package provenance

import (
	"context"

	"koine/kg"
)

// Limits of the contents of an Effect.
const (
	MaxExamples = 10
	// MaxPreviewed bounds the statements that are read to compute an Effect.
	MaxPreviewed = 5_000_000
)

// Effect is the change that readers see when an agent's assertions stop counting, or
// count again.
type Effect struct {
	Agent kg.AgentID
	// Assertions is the number of the agent's assertions that stop or resume counting.
	Assertions uint64
	// Statements is the number of statements that disappear or come back because no
	// other assertion supports them. Examples are some of these.
	Statements uint64
	Examples   []kg.Quad
	// Complete is false when more than MaxPreviewed statements exist.
	Complete bool
	Receipt  kg.Receipt
}

// applyDoubts computes the effect of replacing the doubts now by then and, unless it is a
// dry run, writes the change.
func applyDoubts(ctx context.Context, store *kg.Store, m kg.Meta, agent kg.AgentID, now, then kg.Doubts, fn func(*kg.Tx) error) (*Effect, error) {
	e := &Effect{Agent: agent}
	if err := e.computeEffect(ctx, store, m.Principal, now, then); err != nil {
		return nil, err
	}
	var err error
	e.Receipt, err = store.Update(ctx, m, fn)
	return e, err
}

// computeEffect reads all asserted statements and counts the effect.
func (e *Effect) computeEffect(ctx context.Context, store *kg.Store, by kg.Principal, now, then kg.Doubts) error {
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
		if !e.countChanged(list, now, then) {
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

// countChanged counts the assertions that stop or resume counting, and reports whether the
// statement as a whole does.
func (e *Effect) countChanged(list []kg.Assertion, now, then kg.Doubts) bool {
	var visibleAfter, visibleBefore bool
	for i := range list {
		before, after := !now.Excludes(&list[i]), !then.Excludes(&list[i])
		visibleBefore, visibleAfter = visibleBefore || before, visibleAfter || after
		if before != after {
			e.Assertions++
		}
	}
	return visibleBefore != visibleAfter
}
