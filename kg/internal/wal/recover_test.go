package wal_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"koine/kg/internal/wal"
	"koine/kg/internal/wal/waltest"
)

// A bad frame header makes raft-wal end the log there. After a power cut there is no mark
// either; the later frames must be enough.
func TestBadFrameHeaderInTheMiddle(t *testing.T) {
	const (
		payloadBytes = 64
		batchBytes   = 8 + frameOverhead + payloadBytes + 8 // raft-wal's two headers
		badEntry     = 50
	)
	files, dir := waltest.New(), t.TempDir()
	l := open(t, dir, wal.Options{Files: files, SegmentBytes: 1 << 20})
	for i := uint64(1); i <= 100; i++ {
		if err := l.Append(i, [][]byte{noise(payloadBytes)}); err != nil {
			t.Fatal(err)
		}
	}
	cut := filepath.Join(t.TempDir(), "cut")
	if err := files.PowerCut(dir, cut, 0); err != nil {
		t.Fatal(err)
	}
	segments, err := waltest.Segments(cut)
	if err != nil {
		t.Fatal(err)
	}
	if err := waltest.Flip(segments[0], 32+(badEntry-1)*batchBytes, 0x80); err != nil {
		t.Fatal(err)
	}
	before := contents(t, cut)
	_, err = wal.Open(cut, wal.Options{})
	var damage *wal.DamageError
	if !errors.As(err, &damage) || damage.Index != badEntry {
		t.Fatalf("Open: %v, want damage at entry %d", err, badEntry)
	}
	if contents(t, cut) != before {
		t.Error("a refused Open changed a file")
	}
	r := open(t, cut, wal.Options{ReadOnly: true})
	if r.First() != 1 || r.Last() != badEntry-1 {
		t.Errorf("read-only: %d to %d, want 1 to %d", r.First(), r.Last(), badEntry-1)
	}
}

// raft-wal deletes segments that the metadata does not name.
func TestOldMetadataIsRefused(t *testing.T) {
	dir, old := t.TempDir(), filepath.Join(t.TempDir(), "old")
	l := open(t, dir, wal.Options{SegmentBytes: 2 << 10})
	if err := waltest.Copy(dir, old); err != nil {
		t.Fatal(err)
	}
	fill(t, l, 30)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"meta-a", "meta-b"} {
		replaceFile(t, filepath.Join(dir, name), filepath.Join(old, name))
	}
	if err := os.Remove(filepath.Join(dir, "mark")); err != nil { // which would tell as well
		t.Fatal(err)
	}
	before := contents(t, dir)
	for _, o := range []wal.Options{{}, {ReadOnly: true, Checked: true}} {
		if _, err := wal.Open(dir, o); !errors.Is(err, wal.ErrDamaged) {
			t.Errorf("Open with %+v: %v, want ErrDamaged", o, err)
		}
	}
	if contents(t, dir) != before {
		t.Error("a refused Open changed a file")
	}
}

func replaceFile(t *testing.T, path, by string) {
	t.Helper()
	b, err := os.ReadFile(by)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The marked entry is compared by hash, not only by index.
func TestMarkOfAnotherLog(t *testing.T) {
	dirs := [2]string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		l := open(t, dir, wal.Options{})
		if err := l.Append(1, [][]byte{{byte(i)}}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	replaceFile(t, filepath.Join(dirs[0], "mark"), filepath.Join(dirs[1], "mark"))
	if _, err := wal.Open(dirs[0], wal.Options{}); !errors.Is(err, wal.ErrDamaged) {
		t.Errorf("Open: %v, want ErrDamaged", err)
	}
}

// After a killed process the page cache shows entries that no sync has covered;
// Open makes them durable before it shows them.
func TestOpenSyncsWhatItShows(t *testing.T) {
	files, dir := waltest.New(), t.TempDir()
	l := open(t, dir, wal.Options{Files: files})
	fill(t, l, 5)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files.FailSync(1)
	if _, err := wal.Open(dir, wal.Options{Files: files}); !errors.Is(err, waltest.ErrSync) {
		t.Errorf("Open with a failing sync: %v", err)
	}
}
