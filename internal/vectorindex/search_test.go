package vectorindex

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// model is a plain set of vectors, searched by computing everything.
type model map[Key]embedding

type embedding struct {
	model  string
	vector []float32
}

func (m model) search(r *Request) []Hit {
	best := map[Subject]Hit{}
	for k, e := range m {
		v := e.vector
		if e.model != r.Model || len(v) != len(r.Vector) || !r.Readable(k.Ref.Graph, k.Ref.Predicate) {
			continue
		}
		if shown, _ := r.shows(&k); !shown {
			continue
		}
		var dot, a, b float64
		for i := range v {
			dot += float64(float64(v[i]) * float64(r.Vector[i]))
			a += float64(float64(v[i]) * float64(v[i]))
			b += float64(float64(r.Vector[i]) * float64(r.Vector[i]))
		}
		score := dot
		if r.Metric == Cosine {
			score = cosineOf(dot, math.Sqrt(b)*math.Sqrt(a))
		}
		h := Hit{Place: Place{Score: score, Subject: k.Subject}, Key: k}
		if old, ok := best[k.Subject]; !ok || h.Score > old.Score || h.Score == old.Score && k.Owner < old.Key.Owner {
			best[k.Subject] = h
		}
	}
	var out []Hit
	for _, h := range best {
		if r.After == nil || r.After.ComesBefore(h.Place) {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b Hit) int {
		if a.ComesBefore(b.Place) {
			return -1
		}
		return 1
	})
	return out[:min(len(out), r.First)]
}

func id(n int) (id kg.ID) {
	id[0] = 1
	id[7], id[8] = byte(n>>8), byte(n)
	return id
}

// randomVector returns numbers of the given kind: "uniform", or "few", whose scores are often
// equal.
func randomVector(r *rand.Rand, dimension int, kind string) []float32 {
	v := make([]float32, dimension)
	for i := range v {
		if kind == "few" {
			v[i] = float32(r.IntN(3) - 1)
		} else {
			v[i] = float32(r.NormFloat64())
		}
	}
	return v
}

func randomEmbedding(r *rand.Rand, dimension int, kind string) embedding {
	return embedding{[]string{"a", "a", "b"}[r.IntN(3)], randomVector(r, dimension, kind)}
}

func randomKey(r *rand.Rand, subjects int) Key {
	n := r.IntN(subjects)
	return Key{
		Subject: Subject{Order: uint64(n * 7919 % 101), ID: id(n)}, Owner: uint64(r.IntN(1 << 30)),
		Ref: Ref{Graph: id(r.IntN(4)), Predicate: id(r.IntN(2)), Object: id(r.IntN(5))},
	}
}

// Hits are those of computing every score, whatever the order of changes, with and without
// conditions, on every page, and after a restart.
func TestSearchIsExact(t *testing.T) {
	for _, kind := range []string{"uniform", "few"} {
		for _, dimension := range []int{1, 3, 64, 100, 768} {
			t.Run(fmt.Sprint(kind, dimension), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(uint64(dimension), 1))
				dir := t.TempDir()
				x := mustOpen(t, dir, "")
				want := model{}
				var keys []Key
				for step := range 4 {
					for range slowtest.Size(300, 150) {
						switch n := r.IntN(10); {
						case n < 7 || len(keys) == 0:
							k := randomKey(r, 120)
							keys = append(keys, k)
							want[k] = randomEmbedding(r, dimension, kind)
							x.Put(k, want[k].model, want[k].vector)
						case n < 8: // replaced
							k := keys[r.IntN(len(keys))]
							want[k] = randomEmbedding(r, dimension, kind)
							x.Put(k, want[k].model, want[k].vector)
						default:
							k := keys[r.IntN(len(keys))]
							if _, is := want[k]; x.Remove(k) != is {
								t.Fatalf("removing %v: there %v", k, is)
							}
							delete(want, k)
						}
					}
					if step == 2 {
						gone := id(3)
						x.RemoveIf(func(k *Key) bool { return k.Ref.Graph == gone })
						for k := range want {
							if k.Ref.Graph == gone {
								delete(want, k)
							}
						}
					}
					checkSearches(t, r, x, want, dimension, kind)
					place := fmt.Sprint("place ", step)
					if err := x.Save(place); err != nil {
						t.Fatal(err)
					}
					checkSearches(t, r, x, want, dimension, kind)
					x = mustOpen(t, dir, place)
					checkSearches(t, r, x, want, dimension, kind)
					if x.Len() != len(want) {
						t.Fatalf("index has %d vectors, want %d", x.Len(), len(want))
					}
				}
			})
		}
	}
}

func mustOpen(t *testing.T, dir, place string) *Index {
	t.Helper()
	x, got, unusable, err := Open(dir)
	if err != nil || unusable != nil || got != place {
		t.Fatalf("Open gives %q, %v, %v; want %q", got, unusable, err, place)
	}
	t.Cleanup(x.Clear)
	return x
}

func checkSearches(t *testing.T, r *rand.Rand, x *Index, want model, dimension int, kind string) {
	t.Helper()
	for range slowtest.Size(10, 3) {
		secret, odd := id(r.IntN(4)), r.IntN(2) == 0
		request := &Request{
			Model: "a", Vector: randomVector(r, dimension, kind), Metric: Metric(r.IntN(2)), First: 1 + r.IntN(20),
			Rights: Rights{
				Readable: func(graph, _ kg.ID) bool { return graph != secret },
				Shown:    func(k *Key) (bool, error) { return !odd || k.Owner%50 == 0, nil },
			},
		}
		for page := range 4 {
			got, err := x.Search(context.Background(), request)
			if err != nil {
				t.Fatal(err)
			}
			if w := want.search(request); !slices.Equal(got, w) {
				t.Fatalf("page %d of %d by %d: got %v, want %v", page, request.First, request.Metric, got, w)
			}
			if len(got) < request.First {
				break
			}
			request.After = &got[len(got)-1].Place
		}
	}
}

// Chunks that are full, mapped and given up have what was put.
func TestChunks(t *testing.T) {
	slowtest.WithoutRace(t)
	const dimension = 4096
	r := rand.New(rand.NewPCG(2, 2))
	dir := t.TempDir()
	x := mustOpen(t, dir, "")
	capacity := newChunk(dimension).capacity()
	want := model{}
	var keys []Key
	for range 2*capacity + capacity/2 {
		k := randomKey(r, 1<<15)
		keys, want[k] = append(keys, k), randomEmbedding(r, dimension, "uniform")
		x.Put(k, want[k].model, want[k].vector)
	}
	check := func(chunks int) {
		t.Helper()
		if n := len(x.chunks[dimension]); n != chunks || x.Len() != len(want) {
			t.Fatalf("%d vectors in %d chunks, want %d in %d", x.Len(), n, len(want), chunks)
		}
		checkSearches(t, r, x, want, dimension, "uniform")
	}
	check(3)
	if err := x.Save("1"); err != nil {
		t.Fatal(err)
	}
	if c := x.chunks[dimension][0]; c.unmap == nil {
		t.Error("a full chunk is still in memory after Save")
	}
	check(3)
	x = mustOpen(t, dir, "1")
	for _, k := range keys[:capacity/2] { // half of a chunk
		x.Remove(k)
		delete(want, k)
	}
	check(3)
	x.Put(keys[0], "b", []float32{1}) // the same key in another dimension
	x.Put(keys[capacity], "b", []float32{2})
	delete(want, keys[capacity])
	for _, k := range keys[capacity/2 : capacity/2+2] {
		x.Remove(k)
		delete(want, k)
	}
	want[Key{}], want[Key{Owner: 1}] = embedding{}, embedding{} // for the two of dimension 1
	check(2)
	if err := x.Save("2"); err != nil {
		t.Fatal(err)
	}
	x = mustOpen(t, dir, "2")
	check(2)
}

func TestModels(t *testing.T) {
	x := New()
	for i, name := range []string{"a", "b", "a", "c"} {
		x.Put(Key{Owner: uint64(i), Ref: Ref{Graph: id(i)}}, name, make([]float32, 1+i))
	}
	rights := Rights{
		Readable: func(graph, _ kg.ID) bool { return graph != id(1) },
		Shown:    func(k *Key) (bool, error) { return k.Owner != 3, nil },
	}
	got, err := x.Models(rights)
	if want := []Model{{"a", 1}, {"a", 3}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("models are %v %v, want %v", got, err, want)
	}
}

// The codes never promise less than a vector has: lengths from the smallest to the largest.
func TestBoundsHold(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range slowtest.Size(20_000, 3000) {
		dimension := 1 + r.IntN(70)
		scale := math.Pow(10, float64(r.IntN(82)-45))
		v, q := randomVector(r, dimension, "uniform"), randomVector(r, dimension, []string{"uniform", "few"}[r.IntN(2)])
		for i := range v {
			v[i] *= float32(scale)
		}
		if r.IntN(3) == 0 {
			copy(q, v)
		}
		c := newChunk(dimension)
		c.addVector(Key{}, "a", v)
		for _, metric := range []Metric{Cosine, Dot} {
			s := &searcher{request: &Request{Metric: metric}, query: newQuery(q)}
			var dots [1]int32
			dotRows(s.query.codes, c.codes, dots[:])
			if highest, score := s.highestScore(dots[0], c.boundAt(0)), s.query.exactScore(c.vectorAt(0), metric); highest < score {
				t.Fatalf("score %g is above the bound %g for %v and %v", score, highest, v, q)
			}
		}
	}
}

// The assembly computes what the Go code does, for extreme codes too.
func TestDotRows(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, stride := range []int{64, 128, 768, 4096} {
		limit := min(math.MaxInt16, math.MaxInt32/(maxCode*stride))
		q, rows := make([]int16, stride), make([]byte, 9*stride)
		for i := range q {
			q[i] = int16(limit)
		}
		for i := range rows {
			switch row := i / stride; {
			case row < 2:
				rows[i] = byte(int8(maxCode * (1 - 2*row)))
			default:
				rows[i] = byte(int8(r.IntN(2*maxCode+1) - maxCode))
			}
		}
		var got, want [9]int32
		dotRows(q, rows, got[:])
		dotRowsGo(q, rows, want[:])
		if got != want || cmp.Compare(got[0], 0) <= 0 {
			t.Errorf("stride %d: got %v, want %v", stride, got, want)
		}
	}
}
