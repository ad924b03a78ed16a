package sealed

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A file that could not be written is not left: it may fill the volume.
func TestWriteFileFromFails(t *testing.T) {
	dir, full := t.TempDir(), errors.New("no space")
	err := WriteFileFrom(filepath.Join(dir, "file"), func(w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<20))
		return errors.Join(err, full)
	})
	if !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("%d files are left, %v", len(files), err)
	}
}
