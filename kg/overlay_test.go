package kg

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"koine/kg/internal/index"
)

// baseOf is a layer with nothing below.
func baseOf(t *index.MemTree) index.KV { return &index.Overlay{Base: noKV{}, Written: t} }

// noKV has no keys.
type noKV struct{}

func (noKV) Get([]byte, func([]byte) error) (bool, error) { return false, nil }
func (noKV) Scan([]byte) index.Cursor                     { return noCursor{} }
func (noKV) Walk([]byte, func([]byte) bool) error         { return nil }

type noCursor struct{}

func (noCursor) Seek([]byte)                    {}
func (noCursor) Move([]byte)                    {}
func (noCursor) Valid() bool                    { return false }
func (noCursor) Next()                          {}
func (noCursor) Key() []byte                    { return nil }
func (noCursor) Value(func([]byte) error) error { return nil }
func (noCursor) Close()                         {}

// contents are the keys under k with their values.
func contents(t *testing.T, o index.KV) map[string]string {
	t.Helper()
	out := map[string]string{}
	c := o.Scan([]byte("k"))
	defer c.Close()
	for ; c.Valid(); c.Next() {
		if err := c.Value(func(v []byte) error { out[string(c.Key())] = string(v); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	var walked []string
	if err := o.Walk([]byte("k"), func(key []byte) bool { walked = append(walked, string(key)); return true }); err != nil {
		t.Fatal(err)
	}
	if want := slices.Sorted(maps.Keys(out)); !slices.Equal(walked, want) {
		t.Fatalf("Walk came to %v, want %v", walked, want)
	}
	return out
}

// TestOverlayReadOrNot makes the same writes, final ones and undone ones, to an overlay
// that is hardly read and to one that is read all the time, over a layer with keys,
// deletions and fresh keys: both equal a map, and leave the same layer behind.
func TestOverlayReadOrNot(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		key := func() string { return fmt.Sprintf("k%02d", rnd.IntN(24)) }
		bottom, below, model := new(index.MemTree), [2]*index.MemTree{new(index.MemTree), new(index.MemTree)}, map[string]string{}
		for range 12 {
			k := key()
			bottom.Set(k, &index.MemValue{Value: []byte("0")})
			model[k] = "0"
		}
		for range 12 {
			k, v := key(), &index.MemValue{Value: []byte("1")}
			if rnd.IntN(2) == 0 {
				_, there := bottom.Get(k)
				v.Fresh = !there
				model[k] = "1"
			} else {
				v = index.DeletedKey
				delete(model, k)
			}
			below[0].Set(k, v)
			below[1].Set(k, v)
		}
		quiet, busy := index.NewOverlay(index.LayerOver(baseOf(bottom), below[0])), index.NewOverlay(index.LayerOver(baseOf(bottom), below[1]))
		for update := range 6 {
			before := maps.Clone(model)
			quiet.Mark()
			busy.Mark()
			for range rnd.IntN(8) {
				k, v := key(), fmt.Sprint("v", update, rnd.IntN(3))
				_, there := model[k]
				gone := there && rnd.IntN(3) == 0
				for _, o := range [...]*index.Overlay{quiet, busy} {
					switch {
					case gone:
						o.Delete(k)
					case there:
						o.Put(k, []byte(v))
					default:
						o.PutNew(k, []byte(v))
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
				quiet.Rollback()
				busy.Rollback()
				model = before
			}
		}
		grown := [2]int{quiet.MergeInto(below[0]), busy.MergeInto(below[1])}
		if grown[0] != grown[1] {
			t.Errorf("seed %d: merged, it takes %d bytes more, and %d where it was read", seed, grown[0], grown[1])
		}
		for i := range below {
			if got := contents(t, index.LayerOver(baseOf(bottom), below[i])); !maps.Equal(got, model) {
				t.Fatalf("seed %d: the layer below says %v then, want %v", seed, got, model)
			}
		}
		said := func(m *index.MemTree) (out []string) {
			m.Scan(func(k string, v *index.MemValue) bool {
				out = append(out, fmt.Sprint(k, v.Value, v.Value == nil, v.Fresh))
				return true
			})
			return out
		}
		if a, b := fmt.Sprint(said(below[0])), fmt.Sprint(said(below[1])); a != b {
			t.Fatalf("seed %d: the layers below differ:\n%s\n%s", seed, a, b)
		}
	}
}

// TestOverlayWalkGoesOn writes behind an open cursor: it reaches new keys, and no removed
// ones.
func TestOverlayWalkGoesOn(t *testing.T) {
	o := index.NewOverlay(noKV{})
	for _, k := range []string{"ka", "kd"} {
		o.PutNew(k, []byte(k))
	}
	c := o.Scan([]byte("k"))
	defer c.Close()
	var got []string
	for ; c.Valid(); c.Next() {
		got = append(got, string(c.Key()))
		if len(got) == 1 {
			o.PutNew("kb", []byte("new"))
			o.Delete("kd")
		}
	}
	if fmt.Sprint(got) != "[ka kb]" {
		t.Errorf("the walk came to %v, want ka and kb", got)
	}
}

// lowestKV is a layer that is not in memory.
type lowestKV struct{ index.KV }

// TestInMemory has a layer that is being written to Badger and a newest one: reads in
// memory equal those of both layers over nothing.
func TestInMemory(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		tree := func() *index.MemTree {
			m := new(index.MemTree)
			for range rnd.IntN(12) {
				v := index.DeletedKey
				if rnd.IntN(3) > 0 {
					v = &index.MemValue{Value: fmt.Append(nil, rnd.Int())}
				}
				m.Set(fmt.Sprintf("k%02d", rnd.IntN(16)), v)
			}
			return m
		}
		l := layers{frozen: tree(), mem: tree()}
		whole, alone := l.newKV(lowestKV{baseOf(tree())}, l.mem), l.newKV(noKV{}, l.mem)
		for i := range 16 {
			var got, want string
			key := fmt.Appendf(nil, "k%02d", i)
			found, err := index.InMemory{KV: whole}.Get(key, func(v []byte) error { got = string(v); return nil })
			is, _ := alone.Get(key, func(v []byte) error { want = string(v); return nil })
			if found != is || got != want || err != nil {
				t.Fatalf("seed %d, %s: %v %q %v, want %v %q", seed, key, found, got, err, is, want)
			}
		}
	}
}
