// Package recent keeps values that many goroutines need at about the same time, so that the first
// of them makes a value for all.
package recent

import "sync"

// Values has the value that was kept last at each of a fixed number of places. It is safe for
// concurrent use. Numbers that follow each other have places of their own.
type Values[K comparable, V any] struct {
	mu     sync.Mutex // guards places
	places []place[K, V]
}

type place[K comparable, V any] struct {
	used  bool
	key   K
	value V
}

// New returns Values with a number of places.
func New[K comparable, V any](places int) *Values[K, V] {
	return &Values[K, V]{places: make([]place[K, V], places)}
}

func (v *Values[K, V]) placeOf(number uint64) *place[K, V] {
	return &v.places[number%uint64(len(v.places))]
}

// Find returns the value of a key at the place of a number.
func (v *Values[K, V]) Find(number uint64, key K) (value V, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p := v.placeOf(number); p.used && p.key == key {
		return p.value, true
	}
	return value, false
}

// Keep keeps the value of a key at the place of a number, instead of the one that is there.
func (v *Values[K, V]) Keep(number uint64, key K, value V) {
	v.mu.Lock()
	defer v.mu.Unlock()
	*v.placeOf(number) = place[K, V]{true, key, value}
}

// FindOrKeep returns the value of a key at the place of a number, and keeps the given one if there
// is none.
func (v *Values[K, V]) FindOrKeep(number uint64, key K, value V) V {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.placeOf(number)
	if !p.used || p.key != key {
		*p = place[K, V]{true, key, value}
	}
	return p.value
}
