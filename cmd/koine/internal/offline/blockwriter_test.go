package offline

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// failingFile is a file without room, or one whose file system fails direct writes.
type failingFile struct {
	*os.File
	direct      bool
	refuseFlag  error // if direct writes are asked for
	refuseFrom  int64 // the offset from which it fails direct writes,
	refuseWrite error // with this
	full        bool

	refused, synced int
}

func (f *failingFile) SetDirect(direct bool) error {
	if direct && f.refuseFlag != nil {
		return f.refuseFlag
	}
	f.direct = direct
	return nil
}

func (f *failingFile) WriteAt(b []byte, at int64) (int, error) {
	switch {
	case f.full:
		return 0, syscall.ENOSPC
	case f.direct && (len(b)%blockAlign != 0 || at%blockAlign != 0):
		return 0, errors.New("a direct write is not aligned")
	case f.direct && f.refuseWrite != nil && at >= f.refuseFrom:
		f.refused++
		return 0, &os.PathError{Op: "write", Path: f.Name(), Err: f.refuseWrite}
	}
	return f.File.WriteAt(b, at)
}

func (f *failingFile) Sync() error {
	f.synced++
	return f.File.Sync()
}

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

// TestBlockWriterWithoutDirect proves that a file is written through the page cache, with syncs,
// if its file system refuses direct writes at once, the first of them or a later one.
func TestBlockWriterWithoutDirect(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*failingFile{
		"all direct":      {},
		"no flag":         {refuseFlag: syscall.EINVAL},
		"no first write":  {refuseWrite: syscall.EINVAL},
		"no later write":  {refuseWrite: syscall.EINVAL, refuseFrom: 2 * blockSize},
		"not implemented": {refuseWrite: syscall.EOPNOTSUPP},
	} {
		file, err := os.Create(filepath.Join(t.TempDir(), "a"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		f.File = file
		w := newBlockWriter(f)
		want := bytes.Repeat([]byte("0123456789abcdef 123"), blockSize/4)
		if _, err := w.Write(want); err != nil {
			t.Fatal(name, err)
		}
		if err := w.writeLast(); err != nil {
			t.Fatal(name, err)
		}
		if got, err := os.ReadFile(file.Name()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes differ from those that were written, %v", name, len(got), err)
		}
		if f.direct {
			t.Errorf("%s: writes still bypass the page cache in the end", name)
		}
		refused, synced := 0, 1
		if f.refuseWrite != nil {
			refused = 1
		} else if f.refuseFlag == nil {
			synced = 0
		}
		if f.refused != refused || f.synced != synced {
			t.Errorf("%s: %d refused writes and %d syncs, want %d and %d", name, f.refused, f.synced, refused, synced)
		}
	}
}

// TestBlockWriterFails proves that no error of a block is lost: the volume may report it to no
// later sync.
func TestBlockWriterFails(t *testing.T) {
	t.Parallel()
	piece := make([]byte, blockSize)
	for _, f := range []*failingFile{{full: true}, {full: true, refuseFlag: syscall.EINVAL}} {
		w := newBlockWriter(f)
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
		if err := w.writeLast(); err != syscall.ENOSPC {
			t.Errorf("at the end: %v, not %v", err, syscall.ENOSPC)
		}
		w = newBlockWriter(f)
		if _, err := w.Write(bytes.Repeat(piece, 2)); err != syscall.ENOSPC {
			t.Errorf("at the second block: %v, not %v", err, syscall.ENOSPC)
		}
		w = newBlockWriter(f)
		if _, err := w.Write(piece[1:]); err != nil {
			t.Fatal(err)
		}
		if err := w.writeLast(); err != syscall.ENOSPC {
			t.Errorf("of a last block that is not full: %v, not %v", err, syscall.ENOSPC)
		}
	}
}
