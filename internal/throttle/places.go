package throttle

import "sync"

// places are what is open at a time, by who has it. What is closed is forgotten,
// so there are never more rows than open places.
type places[K comparable] struct {
	max int // 0 bounds nothing

	mu    sync.Mutex // guards taken
	taken map[K]int
}

func newPlaces[K comparable](most int) *places[K] {
	return &places[K]{max: most, taken: map[K]int{}}
}

func (p *places[K]) take(key K) bool {
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

func (p *places[K]) give(key K) {
	if p.max <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[key]--; p.taken[key] <= 0 {
		delete(p.taken, key)
	}
}
