package wal_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/raft-wal/types"

	"koine/kg/internal/wal"
	"koine/kg/internal/wal/waltest"
)

// fullMeta is a file system in which one write of metadata fails as on a full volume.
type fullMeta struct {
	types.VFS
	fail int // counts down to the one that fails
}

func (f *fullMeta) OpenWriter(dir, name string) (types.WritableFile, error) {
	w, err := f.VFS.OpenWriter(dir, name)
	if err != nil || !strings.HasPrefix(name, "meta-") {
		return w, err
	}
	if f.fail--; f.fail == 0 {
		return fullFile{w}, nil
	}
	return w, nil
}

type fullFile struct{ types.WritableFile }

func (fullFile) WriteAt([]byte, int64) (int, error) { return 0, waltest.ErrFull }

// A truncation that stalls when half of its metadata is written may be durable: the log begins where
// its files do, and is not taken for damaged.
func TestStalledTruncation(t *testing.T) {
	files := &fullMeta{VFS: waltest.New()}
	l := open(t, t.TempDir(), wal.Options{Files: files})
	fill(t, l, 300)
	files.fail = 2 // the second of the two files
	if err := l.TruncateFront(200); err == nil {
		t.Fatal("the truncation does not fail")
	}
	if err := l.Append(301, [][]byte{payload(301)}); err != nil {
		t.Fatal(err)
	}
	expect(t, l, l.First(), 301)
	fill(t, l, 310)
	if err := l.TruncateFront(250); err != nil {
		t.Fatal(err)
	}
	expect(t, l, l.First(), 310)
}
