package wal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestFrames prepares entries of all sizes in one buffer, append after append: each equals
// the result of Prepare, and stays so until its append is done.
func TestFrames(t *testing.T) {
	var frames Frames
	for round := range uint64(40) {
		rnd := rand.New(rand.NewPCG(round, 1))
		frames.Clear()
		var got, want []Prepared
		for range rnd.IntN(200) {
			payload := bytes.Repeat(fmt.Append(nil, rnd.Uint64()), rnd.IntN(300))
			if rnd.IntN(10) == 0 {
				payload = payload[:min(len(payload), rnd.IntN(3))]
			}
			p, err := frames.Prepare(payload)
			if err != nil {
				t.Fatal(err)
			}
			w, err := Prepare(payload)
			if err != nil {
				t.Fatal(err)
			}
			got, want = append(got, p), append(want, w)
		}
		var a, b [32]byte
		for i := range got {
			a, b = got[i].seal(uint64(i), 1, a), want[i].seal(uint64(i), 1, b)
			if a != b || !bytes.Equal(got[i].frame, want[i].frame) {
				t.Fatalf("round %d: entry %d of %d bytes is another frame", round, i, len(want[i].frame))
			}
		}
	}
}

// TestFramesBound prepares the largest entries that go to the place, in a new one and
// until that is as large as it becomes.
func TestFramesBound(t *testing.T) {
	var frames Frames
	payload := bytes.Repeat([]byte("x"), CompressFromBytes-1)
	for range 1000 {
		p, err := frames.Prepare(payload)
		if err != nil || p.Bytes() != headerBytes+len(payload) {
			t.Fatal(p.Bytes(), err)
		}
	}
	if cap(frames.room) != maxFrames {
		t.Errorf("a place of %d bytes, want %d", cap(frames.room), maxFrames)
	}
}
