package wal_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/raft-wal/types"

	"koine/internal/slowtest"
	"koine/kg/internal/wal"
	"koine/kg/internal/wal/waltest"
)

// slowRemoval is a file system in which the removal of a segment waits.
type slowRemoval struct {
	types.VFS
	began, goOn chan string
}

func (f *slowRemoval) Delete(dir, name string) error {
	if strings.HasSuffix(name, ".wal") {
		f.began <- name
		<-f.goOn
	}
	return f.VFS.Delete(dir, name)
}

// The front of the log goes one segment at a time, and appends and reads go on while a segment
// is removed, however long that takes.
func TestTruncationDoesNotHoldAppends(t *testing.T) {
	t.Parallel()
	files := &slowRemoval{waltest.New(), make(chan string), make(chan string)}
	dir := t.TempDir()
	l := open(t, dir, wal.Options{Files: files})
	fill(t, l, 300)
	segments, err := waltest.Segments(dir)
	if err != nil || len(segments) < 4 {
		t.Fatalf("segments %q, %v", segments, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.TruncateFront(300) }()
	removed := 0
	last := uint64(1)
	for running := true; running; {
		select {
		case name := <-files.began:
			removed++
			if l.First() <= last || removed == 1 && l.First() > 200 {
				t.Errorf("at the removal of %s the log begins at %d, before at %d", name, l.First(), last)
			}
			last = l.First()
			appended := make(chan error, 1)
			next := l.Last() + 1
			go func() { appended <- l.Append(next, [][]byte{payload(next)}) }()
			select {
			case err := <-appended:
				if err != nil {
					t.Fatal(err)
				}
			case <-slowtest.Context(t).Done():
				t.Fatal("an append waits for the removal of a segment")
			}
			if _, err := l.Read(next); err != nil {
				t.Error(err)
			}
			files.goOn <- name
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		}
	}
	if removed < 3 {
		t.Errorf("%d removals of %d segments", removed, len(segments))
	}
	expect(t, l, 300, l.Last())
}
