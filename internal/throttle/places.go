package throttle

import "sync"

// slotCounter are what is open at a time, by who has it. What is closed is forgotten,
// so there are never more rows than open places.
type slotCounter[K comparable] struct {
	max int // 0 bounds nothing

	mu    sync.Mutex // guards taken
	taken map[K]int
}

func newSlotCounter[K comparable](most int) *slotCounter[K] {
	return &slotCounter[K]{max: most, taken: map[K]int{}}
}

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
