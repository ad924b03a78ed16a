package throttle

import (
	"container/list"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// buckets are token buckets by key. It keeps the most recently used ones.
type buckets[K comparable] struct {
	limit rate.Limit // tokens per second; 0 means no limit
	burst int
	max   int

	mu    sync.Mutex // guards the following, but not the limiters
	byKey map[K]*list.Element
	order *list.List // of *bucket[K], most recently used first
}

type bucket[K comparable] struct {
	key    K
	tokens *rate.Limiter
}

func newBuckets[K comparable](perSecond float64, burst time.Duration, limit int) *buckets[K] {
	return &buckets[K]{
		limit: rate.Limit(perSecond), burst: max(1, int(math.Ceil(perSecond*burst.Seconds()))), max: limit,
		byKey: map[K]*list.Element{}, order: list.New(),
	}
}

// takeToken takes a token, or returns the time until there is one.
func (b *buckets[K]) takeToken(key K, now time.Time) (wait time.Duration) {
	if b.limit <= 0 {
		return 0
	}
	r := b.bucketFor(key).ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now) // the request is refused, so it consumes no token
	}
	return wait
}

// takeDebt takes a token even if there is none: the key is refused until the debt is
// paid. It does nothing if the debt exceeds most.
func (b *buckets[K]) takeDebt(key K, now time.Time, limit time.Duration) {
	if b.limit <= 0 {
		return
	}
	if r := b.bucketFor(key).ReserveN(now, 1); r.DelayFrom(now) > limit {
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

// slotCounter counts open slots by key. Keys without open slots are removed, so its
// size is bounded by the number of open slots.
type slotCounter[K comparable] struct {
	max int // per key; 0 means no limit

	mu    sync.Mutex // guards taken
	taken map[K]int
}

func newSlotCounter[K comparable](limit int) *slotCounter[K] {
	return &slotCounter[K]{max: limit, taken: map[K]int{}}
}

// tryAcquire takes a slot of the key. It reports false if the key has the maximum
// number of slots.
func (p *slotCounter[K]) tryAcquire(key K) bool {
	if p.max <= 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[key] >= p.max {
		return false
	}
	p.taken[key]++
	return true
}

func (p *slotCounter[K]) releaseSlot(key K) {
	if p.max <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[key]--; p.taken[key] <= 0 {
		delete(p.taken, key)
	}
}
