package codec

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	b := binary.AppendUvarint(nil, math.MaxUint64)
	b = binary.AppendVarint(b, math.MinInt64)
	b = AppendBytes(b, []byte{1, 2})
	b = AppendString(b, "three")
	b = AppendFloat(b, -0.25)
	b = append(b, 7)
	b = binary.AppendUvarint(b, 2)
	b = append(b, "rest"...)
	r := NewReader(b)
	if v := r.Uvarint(); v != math.MaxUint64 {
		t.Errorf("Uvarint: %d", v)
	}
	if v := r.Varint(); v != math.MinInt64 {
		t.Errorf("Varint: %d", v)
	}
	if v := r.Bytes(); !bytes.Equal(v, []byte{1, 2}) {
		t.Errorf("Bytes: %x", v)
	}
	if v := r.String(); v != "three" {
		t.Errorf("String: %q", v)
	}
	if v := r.Float(); v != -0.25 {
		t.Errorf("Float: %g", v)
	}
	if v := r.Byte(); v != 7 {
		t.Errorf("Byte: %d", v)
	}
	if v := r.Count(2); v != 2 {
		t.Errorf("Count: %d", v)
	}
	if v := r.Rest(); string(v) != "rest" {
		t.Errorf("Rest: %q", v)
	}
	if err := r.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestLeftOver(t *testing.T) {
	r := NewReader([]byte{1, 2})
	r.Byte()
	if r.Err() != nil || r.Len() != 1 || r.Close() == nil {
		t.Errorf("%d bytes left over: %v", r.Len(), r.Err())
	}
}

// Whatever is asked of whatever bytes: no panic, nothing longer than the input,
// numbers in one form only, and after a failure nothing but zeros.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7}, binary.AppendUvarint(nil, math.MaxUint64))
	f.Add([]byte{0}, []byte{0x80, 0x00})
	f.Add([]byte{1}, []byte{0x80, 0x00})
	f.Add([]byte{0}, bytes.Repeat([]byte{0xff}, 11))
	f.Add([]byte{2, 2}, AppendBytes(nil, []byte("four")))
	f.Add([]byte{3, 3}, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 1})
	f.Add([]byte{4, 7}, AppendFloat(nil, math.NaN()))
	f.Fuzz(func(t *testing.T, ops, b []byte) {
		r := NewReader(b)
		for _, op := range ops {
			failed, before := r.Err() != nil, b[len(b)-r.Len():]
			var zero bool
			var again []byte
			switch op % 8 {
			case 0:
				v := r.Uvarint()
				zero, again = v == 0, binary.AppendUvarint(nil, v)
			case 1:
				v := r.Varint()
				zero, again = v == 0, binary.AppendVarint(nil, v)
			case 2:
				v := r.Bytes()
				zero, again = v == nil, AppendBytes(nil, v)
			case 3:
				n := r.Count(1 + int(op/8))
				if n*(1+int(op/8)) > len(before) {
					t.Fatalf("a count of %d in %d bytes", n, len(before))
				}
				zero, again = n == 0, binary.AppendUvarint(nil, uint64(n))
			case 4:
				v := r.Float()
				zero, again = v == 0, AppendFloat(nil, v)
			case 5:
				v := r.Byte()
				zero, again = v == 0, []byte{v}
			case 6:
				v := r.Take(int(op/8) - 1)
				zero, again = v == nil, v
			case 7:
				v := r.String()
				zero, again = v == "", AppendString(nil, v)
			}
			if failed && (!zero || r.Err() == nil || r.Len() != 0) {
				t.Fatalf("operation %d after a failure gives something", op)
			}
			if r.Err() == nil && !bytes.Equal(before[:len(before)-r.Len()], again) {
				t.Fatalf("operation %d takes %x, which would be written as %x", op, before[:len(before)-r.Len()], again)
			}
		}
	})
}
