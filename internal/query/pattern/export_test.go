package pattern

import (
	"context"

	"koine/kg"
)

// ParsePlace decodes a cursor and encodes it again.
func ParsePlace(b []byte) ([]byte, error) {
	p, err := parseCursor(b)
	return p.appendTo(nil), err
}

// EvaluateIn plans with the join orders that choose returns for a number of elements.
func (p *Pattern) EvaluateIn(ctx context.Context, s *kg.Snapshot, q Query, choose func(n int) []int) (*Evaluation, error) {
	return p.planQuery(ctx, q, &planner{
		builder: &builder{snapshot: s, limits: p.limits, next: p.slotCount()}, estimator: newEstimator(s),
		choose: func(elements []element, _ slots) ([]int, error) { return choose(len(elements)), nil },
	})
}
