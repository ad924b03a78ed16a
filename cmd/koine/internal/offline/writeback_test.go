package offline

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestWriteBack proves that a file has all that was written in more than one interval.
func TestWriteBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a")
	want := bytes.Repeat([]byte("0123456789"), writeBackInterval/4)
	if err := newPrivateFile(path, func(w io.Writer) error {
		_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{bytes.NewReader(want)}, make([]byte, 1<<20))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes differ from the %d that were written, %v", len(got), len(want), err)
	}
}

// TestWriteBackFails proves that the error of writing back is not lost: the file may report
// it to no later sync.
func TestWriteBackFails(t *testing.T) {
	t.Parallel()
	piece := make([]byte, writeBackInterval)
	for _, lastWrite := range []bool{true, false} {
		f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // cannot be written back
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w := &writeBackWriter{f: f}
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
		if lastWrite {
			err = w.wait()
		} else {
			w.running <- <-w.running // it has ended
			_, err = w.Write(piece)
			_ = w.wait() // the file is closed below
		}
		if err == nil {
			t.Errorf("after the last write %t: the error of writing back is lost", lastWrite)
		}
	}
}
