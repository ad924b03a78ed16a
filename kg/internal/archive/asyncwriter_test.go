package archive

import (
	"bytes"
	"errors"
	"testing"
)

// errVolumeFull is the error of a limitedWriter.
var errVolumeFull = errors.New("the volume is full")

// limitedWriter takes so many bytes.
type limitedWriter struct {
	bytes.Buffer
	most int
}

func (w *limitedWriter) Write(b []byte) (int, error) {
	if w.Len()+len(b) > w.most {
		return 0, errVolumeFull
	}
	return w.Buffer.Write(b)
}

// An AsyncWriter writes its input in order, in pieces of any size, and all of it is
// written after a Flush.
func TestAsyncWriter(t *testing.T) {
	t.Parallel()
	to := &limitedWriter{most: 1 << 30}
	w := NewAsyncWriter(to)
	defer w.Close()
	var want bytes.Buffer
	for i, size := range []int{0, 1, asyncChunk - 1, asyncChunk, asyncChunk + 1, 3, 10*asyncChunk + 5} {
		piece := bytes.Repeat([]byte{byte(i + 1)}, size)
		want.Write(piece)
		if n, err := w.Write(piece); n != size || err != nil {
			t.Fatal(n, err)
		}
		clear(piece) // it was copied
		if i%2 == 0 {
			if err := w.Flush(); err != nil || !bytes.Equal(to.Bytes(), want.Bytes()) {
				t.Errorf("piece %d: %d bytes are written, want %d, %v", i, to.Len(), want.Len(), err)
			}
		}
	}
}

// Once a write has failed nothing more is written, Flush says so, and Write does before more than
// the waiting pieces were taken: a backup does not read on for nobody.
func TestAsyncWriterFails(t *testing.T) {
	t.Parallel()
	to := &limitedWriter{most: asyncChunk}
	w := NewAsyncWriter(to)
	defer w.Close()
	var failed error
	taken := 0
	for failed == nil && taken <= (asyncChunks+2)*asyncChunk {
		var n int
		n, failed = w.Write(make([]byte, asyncChunk))
		taken += n
	}
	if !errors.Is(failed, errVolumeFull) {
		t.Errorf("%d bytes are taken after a write has failed: %v", taken, failed)
	}
	if err := w.Flush(); !errors.Is(err, errVolumeFull) || to.Len() != asyncChunk {
		t.Errorf("Flush says %v, and %d bytes are written", err, to.Len())
	}
}
