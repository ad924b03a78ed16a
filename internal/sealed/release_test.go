package sealed

import (
	"bytes"
	"path/filepath"
	"sync"
	"testing"
)

// Mapped files are read as before while their pages are given back and others are unmapped.
func TestReleasePages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	want := bytes.Repeat([]byte("content "), 10_000)
	if err := WriteFile(path, want); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 50 {
				content, unmap, err := MapFile(path)
				if err != nil {
					t.Error(err)
					return
				}
				ReleasePages()
				if !bytes.Equal(content, want) {
					t.Error("the content differs")
				}
				unmap()
			}
		})
	}
	readers.Wait()
	if n := len(mapped.contents); n != 0 {
		t.Errorf("%d files are still mapped", n)
	}
}
