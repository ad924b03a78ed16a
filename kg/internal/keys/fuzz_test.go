package keys

import (
	"bytes"
	"testing"
)

// Any bytes are taken for a key: what is accepted is the key that would be
// written.
func FuzzParse(f *testing.F) {
	q := Quad{Numbered(TagIRI, 1), Numbered(TagIRI, 2), FromString("value"), DefaultGraph}
	for _, o := range Orders {
		f.Add(o.Append(nil, q))
		f.Add(o.AppendPast(nil, q, 3, 9))
		f.Add(o.AppendPast(nil, q, 9, 9))
	}
	f.Add(Last(DefaultGraph, q.Subject))
	f.Add(Predicate(DefaultGraph, ID{}))
	f.Add(Number(7))
	f.Add(bytes.Repeat([]byte{0}, QuadKeySize))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, key []byte) {
		for _, o := range Orders {
			if q, ok := o.Parse(key); ok {
				same(t, key, o.Append(nil, q))
			}
			q, ok := o.Past().Parse(key)
			from, to, inOrder := Interval(key)
			if ok && inOrder {
				same(t, key, o.AppendPast(nil, q, from, to))
			}
		}
		if a, b, ok := ParsePair(key); ok {
			same(t, key, pairKey(key[0], a, b))
		}
		if n, ok := ParseNumber(key); ok {
			same(t, key, Number(n))
		}
		if next := Successor(key); next != nil && bytes.Compare(next, append(bytes.Clone(key), bytes.Repeat([]byte{0xff}, 8)...)) <= 0 {
			t.Errorf("%x does not come behind all that begins with %x", next, key)
		}
	})
}

func same(t *testing.T, in, out []byte) {
	t.Helper()
	if !bytes.Equal(in, out) {
		t.Errorf("%x is accepted, and would be written as %x", in, out)
	}
}

// An id is the value it was made from, and sorts like it.
func FuzzID(f *testing.F) {
	for _, v := range []float64{0, -1, 1.5, -1e300} {
		f.Add(int64(v), v, "short", "shorter")
	}
	f.Add(int64(-1<<63), 5e-324, "", "\x00")
	f.Fuzz(func(t *testing.T, n int64, d float64, s, u string) {
		if got := FromInt(TagInteger, n).Int(); got != n {
			t.Errorf("%d comes back as %d", n, got)
		}
		if got := FromDouble(d).Double(); got != d && d == d {
			t.Errorf("%g comes back as %g", d, got)
		}
		if less(FromInt(TagInteger, n), FromInt(TagInteger, 0)) != (n < 0) {
			t.Errorf("%d sorts wrongly beside 0", n)
		}
		if d == d && d != 0 && less(FromDouble(d), FromDouble(0)) != (d < 0) {
			t.Errorf("%g sorts wrongly beside 0", d)
		}
		if len(s) > MaxInlineString || len(u) > MaxInlineString {
			return
		}
		if got, ok := FromString(s).Text(); !ok || got != s {
			t.Errorf("%q comes back as %q, %t", s, got, ok)
		}
		if less(FromString(s), FromString(u)) != (s < u) {
			t.Errorf("%q and %q sort otherwise than their ids", s, u)
		}
	})
}

func less(a, b ID) bool { return bytes.Compare(a[:], b[:]) < 0 }
