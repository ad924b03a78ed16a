package pattern

import (
	"context"

	"koine/kg"
)

// ParsePlace tells whether the bytes are a place, and gives them as they would
// be written.
func ParsePlace(b []byte) ([]byte, error) {
	p, err := parseCursor(b)
	return p.appendTo(nil), err
}

// EvaluateIn plans with join orders that choose gives, for so many elements.
func (p *Pattern) EvaluateIn(ctx context.Context, s *kg.Snapshot, q Query, choose func(n int) []int) (*Evaluation, error) {
	return p.planQuery(ctx, q, &planner{
		builder: &builder{snapshot: s, limits: p.limits, next: p.slotCount()}, estimator: newEstimator(s),
		choose: func(elements []element, _ slots) ([]int, error) { return choose(len(elements)), nil },
	})
}
