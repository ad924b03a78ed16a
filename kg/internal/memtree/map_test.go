package memtree_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidwall/btree"

	"koine/internal/slowtest"
	"koine/kg/internal/memtree"
)

// TestAgainstModel makes random sequences of all that a map can do, on several maps
// that are copies of one another, and compares them with plain ones.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(slowtest.Size(60, 8)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		keyOf := keysOf(rng, int(seed%4))
		type pair struct {
			tree  *memtree.Map[int]
			model map[string]int
		}
		list := []pair{{new(memtree.Map[int]), map[string]int{}}}
		for i := range 20_000 {
			p := &list[rng.IntN(len(list))]
			key := keyOf()
			// Phases that take more out than they put in make trees sparse.
			takes := i/4000%2 == 1
			switch n := rng.IntN(20); {
			case n < 8 && !takes || n < 3:
				old, had := p.tree.Set(key, i)
				want, wanted := p.model[key]
				if old != want || had != wanted {
					t.Fatalf("seed %d: Set(%q) says %d, %v of %d, %v", seed, key, old, had, want, wanted)
				}
				p.model[key] = i
			case n < 16:
				if near, found := someKey(p.tree, key); takes && found {
					key = near
				}
				old, had := p.tree.Delete(key)
				want, wanted := p.model[key]
				if old != want || had != wanted {
					t.Fatalf("seed %d: Delete(%q) says %d, %v of %d, %v", seed, key, old, had, want, wanted)
				}
				delete(p.model, key)
			case n < 18:
				got, found := p.tree.Get(key)
				want, wanted := p.model[key]
				if got != want || found != wanted {
					t.Fatalf("seed %d: Get(%q) says %d, %v of %d, %v", seed, key, got, found, want, wanted)
				}
			case i%50 == 0 && len(list) < 5:
				list = append(list, pair{p.tree.Copy(), maps.Clone(p.model)})
			case i%50 == 1 && len(list) > 1:
				list = slices.Delete(list, 0, 1)
			}
			if i%997 == 0 {
				for _, p := range list {
					same(t, seed, p.tree, p.model, keyOf())
				}
			}
		}
	}
}

func someKey(m *memtree.Map[int], from string) (string, bool) {
	it := m.Iter()
	if !it.Seek(from) {
		return "", false
	}
	return it.Key(), true
}

// keysOf makes keys of some pattern: anywhere, in runs that go up, that go down, and of
// very different lengths.
func keysOf(rng *rand.Rand, pattern int) func() string {
	var next [40]uint64
	return func() string {
		run := rng.IntN(len(next))
		switch pattern {
		case 0:
			return fmt.Sprint(rng.IntN(4000))
		case 1, 2:
			next[run]++
			n := next[run]
			if pattern == 2 {
				n = 1<<32 - n
			}
			if rng.IntN(3) == 0 {
				n -= uint64(rng.IntN(20)) // one that is there, perhaps
			}
			return quadKey(byte(run%5), uint64(run), n)
		default:
			return string(make([]byte, rng.IntN(14))) + fmt.Sprint(rng.IntN(300))
		}
	}
}

func quadKey(order byte, first, second uint64) string {
	b := append([]byte{0x10 + order}, 1)
	b = binary.BigEndian.AppendUint64(b, first)
	b = append(b, 1)
	b = binary.BigEndian.AppendUint64(b, second)
	b = append(b, make([]byte, 18)...)
	return string(b)
}

// same compares a whole map, and the part from a key on.
func same(t *testing.T, seed uint64, m *memtree.Map[int], model map[string]int, from string) {
	t.Helper()
	if err := m.Check(); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if m.Len() != len(model) {
		t.Fatalf("seed %d: %d keys of %d", seed, m.Len(), len(model))
	}
	sorted := slices.Sorted(maps.Keys(model))
	i := 0
	m.Scan(func(key string, value int) bool {
		if i == len(sorted) || key != sorted[i] || value != model[key] {
			t.Fatalf("seed %d: %q is %d at place %d", seed, key, value, i)
		}
		i++
		return true
	})
	if i != len(sorted) {
		t.Fatalf("seed %d: %d keys came, of %d", seed, i, len(sorted))
	}
	at, _ := slices.BinarySearch(sorted, from)
	m.Ascend(from, func(key string, _ int) bool {
		if key != sorted[at] {
			t.Fatalf("seed %d: from %q on %q came, not %q", seed, from, key, sorted[at])
		}
		at++
		return at < len(sorted) && at%7 != 0
	})
}

// TestComesAndGoes adds and removes keys in a run, as those of a value that is replaced all
// the time, at once and later: the memory of the rest must not grow.
func TestComesAndGoes(t *testing.T) {
	const n = 100_000
	stays := func(i uint64) bool { return i%100 == 0 }
	for _, later := range []bool{false, true} {
		var m memtree.Map[int]
		for i := range uint64(n) {
			m.Set(quadKey(1, 7, i), 1)
			if !later && !stays(i) {
				m.Delete(quadKey(1, 7, i))
			}
		}
		for i := range uint64(n) {
			if later && !stays(i) {
				m.Delete(quadKey(1, 7, i))
			}
		}
		if m.Len() != n/100 {
			t.Fatal(m.Len())
		}
		if leaves := m.Leaves(); leaves > n/100/4 {
			t.Errorf("%d leaves for %d keys", leaves, m.Len())
		}
		for i := range uint64(n) {
			m.Delete(quadKey(1, 7, i))
		}
		if m.Len() != 0 || m.Leaves() != 1 {
			t.Errorf("%d keys and %d leaves are left", m.Len(), m.Leaves())
		}
	}
}

// TestThinsOut has large maps lose most of their keys in long runs, and gain some in the
// gaps, again and again, so that inner nodes lose kids and are joined too.
func TestThinsOut(t *testing.T) {
	for seed := range uint64(slowtest.Size(8, 1)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var m memtree.Map[int]
		model := map[string]int{}
		key := func() string { return fmt.Sprintf("%06d", rng.IntN(200_000)) }
		for _, size := range []int{60_000, 4000, 10_000, 400, 6000, 100, 3000, 0} {
			for len(model) < size {
				k := key()
				m.Set(k, len(model))
				model[k], _ = m.Get(k)
			}
			for len(model) > size {
				var run []string
				long := 1 + rng.IntN(40)
				m.Ascend(key(), func(key string, _ int) bool {
					run = append(run, key)
					return len(run) < long
				})
				for i, k := range run {
					if old, had := m.Delete(k); !had || old != model[k] {
						t.Fatalf("seed %d: with %d keys, Delete(%q) says %d, %v", seed, len(model), k, old, had)
					}
					delete(model, k)
					if i == len(run)-1 && rng.IntN(2) == 0 {
						m.Set(k, 1)
						model[k] = 1
					}
				}
				if len(model) < 50 {
					for k, want := range model {
						if got, had := m.Delete(k); !had || got != want {
							t.Fatalf("seed %d: Delete(%q) says %d, %v", seed, k, got, had)
						}
						delete(model, k)
					}
				}
			}
			same(t, seed, &m, model, key())
			for k, want := range model {
				if got, found := m.Get(k); !found || got != want {
					t.Fatalf("seed %d: with %d keys, Get(%q) says %d, %v", seed, len(model), k, got, found)
				}
			}
		}
	}
}

// BenchmarkMap writes keys as messages make them: 30 for each, in groups, first to a
// map of the group's own and from there to a large one; beside tidwall/btree, in turns.
func BenchmarkMap(b *testing.B) {
	for _, group := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("messages=", group), func(b *testing.B) {
			const messages = 4096
			var stream []string
			for i := range uint64(messages) {
				stream = append(stream, messageKeys(i)...)
			}
			perGroup := group * len(stream) / messages
			for name, empty := range map[string]func() sortedMap{
				"memtree": func() sortedMap { return new(memtree.Map[*int]) },
				"btree":   func() sortedMap { return new(btree.Map[string, *int]) },
			} {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					for range b.N {
						large := empty()
						for at := 0; at < len(stream); at += perGroup {
							small := empty()
							for _, key := range stream[at : at+perGroup] {
								small.Set(key, &value)
							}
							small.Scan(func(key string, v *int) bool {
								large.Set(key, v)
								return true
							})
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*messages), "ns/message")
				})
			}
		})
	}
}

// sortedMap is the common interface of both sides of BenchmarkMap.
type sortedMap interface {
	Set(key string, value *int) (old *int, had bool)
	Scan(fn func(key string, value *int) bool)
}

var value = 1

// messageKeys are about those of message i in one of 16 channels.
func messageKeys(i uint64) []string {
	channel, subject := 100+i%16, 1000+2*i
	keys := []string{fmt.Sprintf("\x01\x00urn:koine:message:%012d", i), fmt.Sprintf("\x01\x01%016x", i*0x9e3779b97f4a7c15), string(binary.BigEndian.AppendUint64([]byte{2}, subject)), string(binary.BigEndian.AppendUint64([]byte{2}, subject+1))}
	for p := range uint64(7) {
		keys = append(keys, quadKey(0, subject, p), quadKey(1, p, subject), quadKey(3, channel, subject<<8|p))
	}
	return append(keys, quadKey(2, 1, subject), quadKey(2, 2, subject), quadKey(2, channel, subject), quadKey(4, channel, i), quadKey(0x10, channel, subject)[:19])
}
