package wal

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// countedSyncs counts how often all of a file is made durable.
type countedSyncs struct {
	*os.File
	whole int
	err   error
}

func (f *countedSyncs) Sync() error {
	f.whole++
	return errors.Join(f.err, f.File.Sync())
}

// TestSyncOfSegments proves that a segment is synced whole until that has succeeded
// once, which brings its size and its name, and that errors of later syncs, which are
// of the data, are told.
func TestSyncOfSegments(t *testing.T) {
	open := func() (*countedSyncs, *countedFile) {
		file, err := os.Create(filepath.Join(t.TempDir(), "segment"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		f := &countedSyncs{File: file}
		return f, &countedFile{WritableFile: f, owner: &segmentFiles{used: map[string]int64{}}, name: "segment"}
	}
	f, segment := open()
	f.err = errors.New("no")
	if err := segment.Sync(); err == nil {
		t.Error("an error of the first sync is not told")
	}
	f.err = nil
	for range 3 {
		if _, err := segment.WriteAt([]byte("more"), 0); err != nil {
			t.Fatal(err)
		}
		if err := segment.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	want := 4
	if runtime.GOOS == "linux" {
		want = 2
	}
	if f.whole != want {
		t.Errorf("the whole file was synced %d times, want %d", f.whole, want)
	}
	f.Close()
	if err := segment.Sync(); err == nil {
		t.Error("an error of a later sync is not told")
	}
}
