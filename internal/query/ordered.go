package query

import (
	"cmp"
	"time"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// orderedTest compiles a condition on a present value. Lists become sets, so
// the cost of a comparison does not depend on their length. Values that compare
// as equal must have the same key. A nil test always holds.
func orderedTest[T any, K comparable](f *Ordered[T], compare func(a, b T) int, key func(T) K) func(T) bool {
	if f == nil {
		return nil
	}
	if f.Exists != nil && !*f.Exists {
		return func(T) bool { return false }
	}
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
	in, nin := set(f.In), set(f.Nin)
	among := func(keys map[K]struct{}, v T) bool { _, ok := keys[key(v)]; return ok }
	return func(v T) bool {
		return (f.Eq == nil || compare(v, *f.Eq) == 0) && (f.Ne == nil || compare(v, *f.Ne) != 0) &&
			(f.Lt == nil || compare(v, *f.Lt) < 0) && (f.Lte == nil || compare(v, *f.Lte) <= 0) &&
			(f.Gt == nil || compare(v, *f.Gt) > 0) && (f.Gte == nil || compare(v, *f.Gte) >= 0) &&
			(in == nil || among(in, v)) && (nin == nil || !among(nin, v))
	}
}

// present returns the condition on a value that is there.
func (f Ordered[T]) present() *Ordered[T] {
	f.Exists = nil
	return &f
}

func identityKey[T any](v T) T { return v }

// testFloat tests numbers that are never NaN. Exists is not part of it.
func testFloat(f *FloatFilter) func(float64) bool {
	if f == nil {
		return nil
	}
	return orderedTest(Ordered[float64](*f).present(), cmp.Compare, identityKey)
}

func testLong(f *LongFilter) func(int64) bool {
	return orderedTest((*Ordered[int64])(f), cmp.Compare, identityKey)
}

func testTime(f *DateTimeFilter) func(time.Time) bool {
	return orderedTest((*Ordered[time.Time])(f), time.Time.Compare, func(t time.Time) valuespace.Instant { return valuespace.At(t).Instant() })
}

func testRevision(f *RevisionFilter) func(kg.Revision) bool {
	return orderedTest((*Ordered[kg.Revision])(f), cmp.Compare, identityKey)
}
