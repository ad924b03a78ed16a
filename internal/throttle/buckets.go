package throttle

import (
	"container/list"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// buckets are token buckets by who has them. Those used last are kept.
type buckets[K comparable] struct {
	limit rate.Limit // tokens a second; 0 bounds nothing
	burst int
	max   int

	mu    sync.Mutex // guards what follows, not the buckets themselves
	byKey map[K]*list.Element
	order *list.List // of *bucket[K], the one used last in front
}

type bucket[K comparable] struct {
	key    K
	tokens *rate.Limiter
}

func newBuckets[K comparable](perSecond float64, burst time.Duration, most int) *buckets[K] {
	return &buckets[K]{
		limit: rate.Limit(perSecond), burst: max(1, int(math.Ceil(perSecond*burst.Seconds()))), max: most,
		byKey: map[K]*list.Element{}, order: list.New(),
	}
}

// takeToken takes a token, or says how long it will be until there is one.
func (b *buckets[K]) takeToken(key K, now time.Time) (wait time.Duration) {
	if b.limit <= 0 {
		return 0
	}
	r := b.bucketFor(key).ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now) // refused, not made to wait: the token stays
	}
	return wait
}

// takeDebt takes a token that need not be there yet: who took more than it had is
// refused until that is made up for. Past most of waiting no more is owed.
func (b *buckets[K]) takeDebt(key K, now time.Time, most time.Duration) {
	if b.limit <= 0 {
		return
	}
	if r := b.bucketFor(key).ReserveN(now, 1); r.DelayFrom(now) > most {
		r.CancelAt(now)
	}
}

func (b *buckets[K]) bucketFor(key K) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.byKey[key]; e != nil {
		b.order.MoveToFront(e)
		return e.Value.(*bucket[K]).tokens
	}
	if b.order.Len() >= b.max {
		last := b.order.Back()
		delete(b.byKey, b.order.Remove(last).(*bucket[K]).key)
	}
	fresh := &bucket[K]{key, rate.NewLimiter(b.limit, b.burst)}
	b.byKey[key] = b.order.PushFront(fresh)
	return fresh.tokens
}

// len is how many are remembered.
func (b *buckets[K]) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.order.Len()
}
