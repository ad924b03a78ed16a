package offline

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// writerAtFunc is a file that fails as the test says.
type writerAtFunc func(b []byte, at int64) (int, error)

func (f writerAtFunc) WriteAt(b []byte, at int64) (int, error) { return f(b, at) }

// TestNewPrivateFile proves that a file has all that was written, in pieces that end
// before, at and after the ends of its blocks.
func TestNewPrivateFile(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, blockSize - 1, blockSize, blockSize + 1, 3*blockSize + blockAlign + 7} {
		for _, piece := range []int{64<<10 + 1, 1 << 20, 2*blockSize + 1} {
			path := filepath.Join(t.TempDir(), "a")
			want := make([]byte, size)
			for i := range want {
				want[i] = byte(i * 2654435761 >> 13)
			}
			if err := newPrivateFile(path, func(w io.Writer) error {
				_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{bytes.NewReader(want)}, make([]byte, piece))
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes in pieces of %d: %d bytes differ from those that were written, %v", size, piece, len(got), err)
			}
		}
	}
}

// TestBlockWriterWithoutDirect proves that a file is written through the page cache if its file
// system refuses the first direct write, or a later one.
func TestBlockWriterWithoutDirect(t *testing.T) {
	t.Parallel()
	for accepted := range int64(3) {
		f, err := os.Create(filepath.Join(t.TempDir(), "a"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		refusals := 0
		w := newBlockWriter(f, writerAtFunc(func(b []byte, at int64) (int, error) {
			if at >= accepted*blockSize {
				refusals++
				return 0, &os.PathError{Op: "write", Path: f.Name(), Err: syscall.EINVAL}
			}
			return f.WriteAt(b, at)
		}))
		want := bytes.Repeat([]byte("0123456789"), blockSize/2)
		if _, err := w.Write(want); err != nil {
			t.Fatal(err)
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(got, want) || refusals != 1 {
			t.Errorf("%d direct writes and %d refused ones: %d bytes differ from those that were written, %v", accepted, refusals, len(got), err)
		}
	}
}

// TestBlockWriterFails proves that no error of a block is lost: the volume may report it to no
// later sync.
func TestBlockWriterFails(t *testing.T) {
	t.Parallel()
	full := writerAtFunc(func([]byte, int64) (int, error) { return 0, syscall.ENOSPC })
	piece := make([]byte, blockSize)
	for _, direct := range []io.WriterAt{nil, full} {
		w := newBlockWriter(full, direct)
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
		if err := w.close(); err != syscall.ENOSPC {
			t.Errorf("at the end: %v, not %v", err, syscall.ENOSPC)
		}
		w = newBlockWriter(full, direct)
		if _, err := w.Write(bytes.Repeat(piece, 2)); err != syscall.ENOSPC {
			t.Errorf("at the second block: %v, not %v", err, syscall.ENOSPC)
		}
		w = newBlockWriter(full, direct)
		if _, err := w.Write(piece[1:]); err != nil {
			t.Fatal(err)
		}
		if err := w.close(); err != syscall.ENOSPC {
			t.Errorf("of a last block that is not full: %v, not %v", err, syscall.ENOSPC)
		}
	}
}
