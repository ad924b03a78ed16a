package kg

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// baseOf is a layer with nothing below.
func baseOf(t *memTree) kv { return &overlay{base: noKV{}, written: t} }

// noKV has no keys.
type noKV struct{}

func (noKV) get([]byte, func([]byte) error) (bool, error) { return false, nil }
func (noKV) scan([]byte) cursor                           { return noCursor{} }

type noCursor struct{}

func (noCursor) seek([]byte)                    {}
func (noCursor) move([]byte)                    {}
func (noCursor) valid() bool                    { return false }
func (noCursor) next()                          {}
func (noCursor) key() []byte                    { return nil }
func (noCursor) value(func([]byte) error) error { return nil }
func (noCursor) close()                         {}

// contents are the keys under k with their values.
func contents(t *testing.T, o kv) map[string]string {
	t.Helper()
	out := map[string]string{}
	c := o.scan([]byte("k"))
	defer c.close()
	for ; c.valid(); c.next() {
		if err := c.value(func(v []byte) error { out[string(c.key())] = string(v); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestOverlayReadOrNot makes the same writes, final ones and undone ones, to an overlay
// that is hardly read and to one that is read all the time, over a layer with keys,
// deletions and fresh keys: both say what a map says, and leave the same layer behind.
func TestOverlayReadOrNot(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		key := func() string { return fmt.Sprintf("k%02d", rnd.IntN(24)) }
		bottom, below, model := new(memTree), [2]*memTree{new(memTree), new(memTree)}, map[string]string{}
		for range 12 {
			k := key()
			bottom.Set(k, &memValue{value: []byte("0")})
			model[k] = "0"
		}
		for range 12 {
			k, v := key(), &memValue{value: []byte("1")}
			if rnd.IntN(2) == 0 {
				_, there := bottom.Get(k)
				v.fresh = !there
				model[k] = "1"
			} else {
				v = deletedKey
				delete(model, k)
			}
			below[0].Set(k, v)
			below[1].Set(k, v)
		}
		quiet, busy := newOverlay(layered(baseOf(bottom), below[0])), newOverlay(layered(baseOf(bottom), below[1]))
		for update := range 6 {
			before := maps.Clone(model)
			quiet.mark()
			busy.mark()
			for range rnd.IntN(8) {
				k, v := key(), fmt.Sprint("v", update, rnd.IntN(3))
				_, there := model[k]
				gone := there && rnd.IntN(3) == 0
				for _, o := range [...]*overlay{quiet, busy} {
					switch {
					case gone:
						o.delete(k)
					case there:
						o.put(k, []byte(v))
					default:
						o.putNew(k, []byte(v))
					}
				}
				if model[k] = v; gone {
					delete(model, k)
				}
				if got := contents(t, busy); !maps.Equal(got, model) {
					t.Fatalf("seed %d: the overlay says %v, want %v", seed, got, model)
				}
				if rnd.IntN(8) == 0 && !maps.Equal(contents(t, quiet), model) {
					t.Fatalf("seed %d: read in the middle, the overlay does not say %v", seed, model)
				}
			}
			if rnd.IntN(3) == 0 {
				quiet.rollback()
				busy.rollback()
				model = before
			}
		}
		grown := [2]int{quiet.mergeInto(below[0]), busy.mergeInto(below[1])}
		if grown[0] != grown[1] {
			t.Errorf("seed %d: merged, it takes %d bytes more, and %d where it was read", seed, grown[0], grown[1])
		}
		for i := range below {
			if got := contents(t, layered(baseOf(bottom), below[i])); !maps.Equal(got, model) {
				t.Fatalf("seed %d: the layer below says %v then, want %v", seed, got, model)
			}
		}
		said := func(m *memTree) (out []string) {
			m.Scan(func(k string, v *memValue) bool {
				out = append(out, fmt.Sprint(k, v.value, v.value == nil, v.fresh))
				return true
			})
			return out
		}
		if a, b := fmt.Sprint(said(below[0])), fmt.Sprint(said(below[1])); a != b {
			t.Fatalf("seed %d: the layers below differ:\n%s\n%s", seed, a, b)
		}
	}
}

// TestOverlayWalkGoesOn writes behind an open cursor: it comes to what is new, and not to
// what is gone.
func TestOverlayWalkGoesOn(t *testing.T) {
	o := newOverlay(noKV{})
	for _, k := range []string{"ka", "kd"} {
		o.putNew(k, []byte(k))
	}
	c := o.scan([]byte("k"))
	defer c.close()
	var got []string
	for ; c.valid(); c.next() {
		got = append(got, string(c.key()))
		if len(got) == 1 {
			o.putNew("kb", []byte("new"))
			o.delete("kd")
		}
	}
	if fmt.Sprint(got) != "[ka kb]" {
		t.Errorf("the walk came to %v, want ka and kb", got)
	}
}

// lowestKV is a layer that is not in memory.
type lowestKV struct{ kv }

// TestInMemory has a layer that is being written to Badger and a newest one: what is
// found in memory is what both say over nothing.
func TestInMemory(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		tree := func() *memTree {
			m := new(memTree)
			for range rnd.IntN(12) {
				v := deletedKey
				if rnd.IntN(3) > 0 {
					v = &memValue{value: fmt.Append(nil, rnd.Int())}
				}
				m.Set(fmt.Sprintf("k%02d", rnd.IntN(16)), v)
			}
			return m
		}
		l := layers{frozen: tree(), mem: tree()}
		whole, alone := l.over(lowestKV{baseOf(tree())}, l.mem), l.over(noKV{}, l.mem)
		for i := range 16 {
			var got, want string
			key := fmt.Appendf(nil, "k%02d", i)
			found, err := inMemory{whole}.get(key, func(v []byte) error { got = string(v); return nil })
			is, _ := alone.get(key, func(v []byte) error { want = string(v); return nil })
			if found != is || got != want || err != nil {
				t.Fatalf("seed %d, %s: %v %q %v, want %v %q", seed, key, found, got, err, is, want)
			}
		}
	}
}
