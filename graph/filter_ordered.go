package graph

import (
	"cmp"
	"slices"
	"time"

	"koine/kg"
)

// ordered is a condition on things of one kind that have an order; what is nil
// holds.
type ordered[T any] struct {
	eq, ne, lt, lte, gt, gte *T
	in, nin                  []T
}

func (f *ordered[T]) holds(compare func(a, b T) int, v T) bool {
	same := func(w T) bool { return compare(v, w) == 0 }
	return (f.eq == nil || compare(v, *f.eq) == 0) && (f.ne == nil || compare(v, *f.ne) != 0) &&
		(f.lt == nil || compare(v, *f.lt) < 0) && (f.lte == nil || compare(v, *f.lte) <= 0) &&
		(f.gt == nil || compare(v, *f.gt) > 0) && (f.gte == nil || compare(v, *f.gte) >= 0) &&
		(f.in == nil || slices.ContainsFunc(f.in, same)) && !slices.ContainsFunc(f.nin, same)
}

func (f *FloatFilter) holds(v float64) bool {
	o := ordered[float64]{f.Eq, f.Ne, f.Lt, f.Lte, f.Gt, f.Gte, f.In, f.Nin}
	return o.holds(cmp.Compare, v)
}

func (f *LongFilter) holds(v int64) bool {
	o := ordered[int64]{f.Eq, f.Ne, f.Lt, f.Lte, f.Gt, f.Gte, f.In, f.Nin}
	return o.holds(cmp.Compare, v)
}

// holds is of a moment that is there, as it always is for what is stored.
func (f *DateTimeFilter) holds(v time.Time) bool {
	o := ordered[time.Time]{f.Eq, f.Ne, f.Lt, f.Lte, f.Gt, f.Gte, f.In, f.Nin}
	return (f.Exists == nil || *f.Exists) && o.holds(time.Time.Compare, v)
}

// holds is of a revision that is there, as it always is for what is stored.
func (f *RevisionFilter) holds(v kg.Revision) bool {
	o := ordered[kg.Revision]{f.Eq, f.Ne, f.Lt, f.Lte, f.Gt, f.Gte, f.In, f.Nin}
	return (f.Exists == nil || *f.Exists) && o.holds(cmp.Compare, v)
}
