package graph

import (
	"cmp"
	"time"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// ordered is a condition on values of an ordered type. A nil member always
// holds.
type ordered[T any] struct {
	eq, ne, lt, lte, gt, gte *T
	in, nin                  []T
}

// orderedTest compiles a condition. Lists become sets, so the cost of a
// comparison does not depend on their length. Values that compare as equal
// must have the same key.
func orderedTest[T any, K comparable](f ordered[T], compare func(a, b T) int, key func(T) K) func(T) bool {
	set := func(list []T) map[K]struct{} {
		if list == nil {
			return nil
		}
		keys := make(map[K]struct{}, len(list))
		for _, v := range list {
			keys[key(v)] = struct{}{}
		}
		return keys
	}
	in, nin := set(f.in), set(f.nin)
	among := func(keys map[K]struct{}, v T) bool { _, ok := keys[key(v)]; return ok }
	return func(v T) bool {
		return (f.eq == nil || compare(v, *f.eq) == 0) && (f.ne == nil || compare(v, *f.ne) != 0) &&
			(f.lt == nil || compare(v, *f.lt) < 0) && (f.lte == nil || compare(v, *f.lte) <= 0) &&
			(f.gt == nil || compare(v, *f.gt) > 0) && (f.gte == nil || compare(v, *f.gte) >= 0) &&
			(in == nil || among(in, v)) && (nin == nil || !among(nin, v))
	}
}

func identityKey[T any](v T) T { return v }

// compile compiles the condition. A nil test always holds. The numbers are never
// NaN.
func (f *FloatFilter) compile() func(float64) bool {
	if f == nil {
		return nil
	}
	return orderedTest(ordered[float64]{f.Eq, f.Ne, f.Lt, f.Lte, f.Gt, f.Gte, f.In, f.Nin}, cmp.Compare, identityKey)
}

// compile compiles the condition. A nil test always holds.
func (f *LongFilter) compile() func(int64) bool {
	if f == nil {
		return nil
	}
	return orderedTest(ordered[int64]{f.Eq, f.Ne, f.Lt, f.Lte, f.Gt, f.Gte, f.In, f.Nin}, cmp.Compare, identityKey)
}

// compile compiles the condition for a present time, as stored ones are. A nil
// test always holds.
func (f *DateTimeFilter) compile() func(time.Time) bool {
	if f == nil {
		return nil
	}
	if f.Exists != nil && !*f.Exists {
		return func(time.Time) bool { return false }
	}
	return orderedTest(ordered[time.Time]{f.Eq, f.Ne, f.Lt, f.Lte, f.Gt, f.Gte, f.In, f.Nin}, time.Time.Compare, func(t time.Time) valuespace.Instant { return valuespace.At(t).Instant() })
}

// compile compiles the condition for a present revision, as stored ones are. A
// nil test always holds.
func (f *RevisionFilter) compile() func(kg.Revision) bool {
	if f == nil {
		return nil
	}
	if f.Exists != nil && !*f.Exists {
		return func(kg.Revision) bool { return false }
	}
	return orderedTest(ordered[kg.Revision]{f.Eq, f.Ne, f.Lt, f.Lte, f.Gt, f.Gte, f.In, f.Nin}, cmp.Compare, identityKey)
}
