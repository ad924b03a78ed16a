package throttle

import "sync"

// slotCounter counts open slots by key. Keys without open slots are removed, so its
// size is bounded by the number of open slots.
type slotCounter[K comparable] struct {
	max int // per key; 0 means no limit

	mu    sync.Mutex // guards taken
	taken map[K]int
}

func newSlotCounter[K comparable](most int) *slotCounter[K] {
	return &slotCounter[K]{max: most, taken: map[K]int{}}
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
