package kg_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
	"golang.org/x/sys/unix"

	"koine/kg"
)

// fullFiles is a file system on which no segment of the log finds room.
type fullFiles struct{ *fs.FS }

func (fullFiles) Create(dir, name string, _ uint64) (types.WritableFile, error) {
	// Some file systems leave the file.
	err := os.WriteFile(filepath.Join(dir, name), nil, 0o600)
	if err == nil {
		err = &os.PathError{Op: "fallocate", Path: name, Err: unix.ENOSPC}
	}
	return nil, err
}

// A failed creation of a store leaves nothing behind: not the directories made for it, and
// in an existing one only its former files. The error has the required space.
func TestStoreThatCannotBeMade(t *testing.T) {
	for name, prepare := range map[string]func(dir string){
		"absent":        func(string) {},
		"empty":         func(dir string) { mkdir(t, dir) },
		"with a lock":   func(dir string) { mkdir(t, dir); write(t, dir, "LOCK", "") },
		"foreign files": func(dir string) { mkdir(t, dir); write(t, dir, "thesis.tmp", "chapter one") },
	} {
		t.Run(name, func(t *testing.T) {
			at := t.TempDir()
			dir := filepath.Join(at, "deep", "dir")
			prepare(dir)
			before := namesIn(t, at)
			s, err := kg.Open(dir, smallOptions().WithFaults(kg.Faults{LogFiles: fullFiles{fs.New()}}))
			if err == nil {
				mustClose(t, s)
			}
			if kg.CodeOf(err) != kg.CodeDiskFull || !strings.Contains(err.Error(), "at least 65 MiB") || kg.AsError(err).Hint == "" {
				t.Errorf("Open: %v, want DISK_FULL with the room that is needed and a hint", err)
			}
			if after := namesIn(t, at); !slices.Equal(before, after) {
				t.Errorf("there is %q now, and was %q", after, before)
			}
			// With room the same directory takes a store.
			mustClose(t, openStore(t, dir, smallOptions()))
		})
	}
}

// A failure of another kind, here when log and index exist, leaves nothing either.
func TestStoreThatFailsToBeMade(t *testing.T) {
	dir := t.TempDir()
	before := namesIn(t, dir)
	o := smallOptions()
	o.FreeBytes = func(string) (uint64, error) { return 0, unix.EIO }
	s, err := kg.Open(dir, o)
	if err == nil {
		mustClose(t, s)
		t.Fatal("Open succeeds without knowing the free space")
	}
	if after := namesIn(t, dir); !slices.Equal(before, after) {
		t.Errorf("there is %q now, and was %q", after, before)
	}
}

// A failure in an existing store leaves it in place.
func TestFailureKeepsStore(t *testing.T) {
	dir, _ := small(t)
	before := namesIn(t, dir)
	o := smallOptions()
	o.FreeBytes = func(string) (uint64, error) { return 0, unix.EIO }
	if s, err := kg.Open(dir, o); err == nil {
		mustClose(t, s)
		t.Fatal("Open succeeds without knowing the free space")
	}
	for _, name := range before {
		if _, err := os.Stat(name); err != nil && !strings.Contains(name, "index") {
			t.Errorf("after a failed start: %v", err)
		}
	}
	mustCheck(t, openStore(t, dir, smallOptions()))
}
