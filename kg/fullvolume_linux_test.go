package kg_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"koine/internal/slowtest"
	"koine/kg"
)

// smallVolume mounts a tmpfs of this size. It skips the test if the process may not mount.
func smallVolume(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("NOT TESTED: this process may not mount a volume: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// fillVolume takes all of a volume.
func fillVolume(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 20, 1} {
		block := make([]byte, size)
		for err = nil; err == nil; {
			_, err = f.Write(block)
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
}

// A load without space for its index is DISK_FULL, and so are later calls of the store.
// When there is space again the index is written without a restart.
func TestLoadWithoutRoomForItsIndex(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	for _, readers := range []bool{false, true} {
		t.Run(fmt.Sprintf("readers=%t", readers), func(t *testing.T) {
			volume := smallVolume(t, 120)
			dir, junk := filepath.Join(volume, "data"), filepath.Join(volume, "junk")
			o := smallOptions()
			o.ReserveBytes = 1
			s := openStore(t, dir, o)
			if readers { // open readers: the index is written while they read
				snap, err := s.View(t.Context(), kg.View{Principal: tester, AllGraphs: true})
				if err != nil {
					t.Fatal(err)
				}
				defer snap.Close()
			}
			n := map[bool]int{false: 200_000, true: 400_000}[readers] // more than memtables hold
			filled := false
			_, err := s.Load(within(t), kg.Meta{Principal: kg.SystemPrincipal()}, integers(n), kg.LoadOptions{Progress: func(read uint64) {
				if read == uint64(n) {
					fillVolume(t, junk)
					filled = true
				}
			}})
			if !filled || kg.CodeOf(err) != kg.CodeDiskFull {
				t.Fatalf("Load: %v, want DISK_FULL; the volume is full: %t; %v", err, filled, kg.AsError(err).Err)
			}
			if err := s.Ready(); kg.CodeOf(err) != kg.CodeDiskFull {
				t.Errorf("Ready: %v, want DISK_FULL", err)
			}
			meta, patches := newWorker(31, "w").update()
			if _, err := s.Update(within(t), meta, apply(patches)); kg.CodeOf(err) != kg.CodeDiskFull {
				t.Errorf("Update: %v, want DISK_FULL", err)
			}
			view := kg.View{Principal: tester, AllGraphs: true}
			if snap, err := s.View(t.Context(), view); err != nil {
				t.Errorf("View: %v", err)
			} else {
				snap.Close()
			}
			if err := os.Remove(junk); err != nil {
				t.Fatal(err)
			}
			for began := time.Now(); s.Ready() != nil; time.Sleep(10 * time.Millisecond) {
				if time.Since(began) > time.Minute {
					t.Fatalf("with room again, not within a minute: %v", s.Ready())
				}
			}
			if got := len(statements(t, s, 0)); got < n {
				t.Errorf("%d statements are there, want %d", got, n)
			}
			if _, err := s.Update(within(t), meta, apply(patches)); err != nil {
				t.Errorf("Update with room again: %v", err)
			}
			mustCheck(t, s)
		})
	}
}

// A store whose index has to be rebuilt on a full volume is opened for reading, with the
// index in the system's directory for temporary files. If that is full too, one line of
// error names the remedy. The directory stays intact.
func TestRebuildWithoutRoom(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	volume := smallVolume(t, 120)
	dir, junk := filepath.Join(volume, "data"), filepath.Join(volume, "junk")
	o := smallOptions()
	s := openStore(t, dir, o)
	if _, err := s.Load(within(t), kg.Meta{Principal: kg.SystemPrincipal()}, integers(400_000), kg.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	newWorker(32, "w").work(t, s, 10)
	want := statements(t, s, 0)
	mustClose(t, s)
	for _, path := range filesOf(t, filepath.Join(dir, "index", "*.sst")) {
		write(t, path, "", "ruins")
	}
	fillVolume(t, junk)

	elsewhere := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(volume, "tmp"))
	if s, err := kg.Open(dir, o); err == nil {
		mustClose(t, s)
		t.Error("Open without room anywhere succeeds")
	} else if kg.CodeOf(err) != kg.CodeDiskFull || strings.Contains(err.Error(), "\n") || kg.AsError(err).Hint == "" {
		t.Errorf("Open without room anywhere: %v, want DISK_FULL in one line with a hint", err)
	}
	t.Setenv("TMPDIR", elsewhere)
	s = openStore(t, dir, o)
	if got := statements(t, s, 0); len(got) != len(want) {
		t.Errorf("%d statements are read, want %d", len(got), len(want))
	}
	if err := s.Ready(); kg.CodeOf(err) != kg.CodeDiskFull {
		t.Errorf("Ready: %v, want DISK_FULL", err)
	}
	if err := s.Maintenance().Sound(); err != nil {
		t.Errorf("Sound: %v, want nil: the store is whole", err)
	}
	meta, patches := newWorker(33, "v").update()
	if _, err := s.Update(within(t), meta, apply(patches)); kg.CodeOf(err) != kg.CodeDiskFull {
		t.Errorf("Update: %v, want DISK_FULL", err)
	}
	mustClose(t, s)
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}

	if err := os.Remove(junk); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, o)
	if got := statements(t, s, 0); len(got) != len(want) {
		t.Errorf("with room again: %d statements are there, want %d", len(got), len(want))
	}
	if _, err := s.Update(within(t), meta, apply(patches)); err != nil {
		t.Errorf("Update with room again: %v", err)
	}
	mustCheck(t, s)
}

// A store that was killed on a full volume, with more in its log than the index's memtables
// hold, is opened for reading. The missing part of the index stays in memory and is written
// when there is space, without a restart.
func TestReplayWithoutRoom(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	o := smallOptions()
	const replayedCommits = 40  // of a few MiB of keys each
	o.MemTableBytes = 512 << 20 // so that nothing of it reaches a table
	live := t.TempDir()
	s := openStore(t, live, o)
	n := 0
	for range replayedCommits {
		var patches []kg.Patch
		for range kg.MaxPatches {
			patches = append(patches, kg.Patch{Op: kg.Add, Quad: integer(n)})
			n++
		}
		if _, err := s.Update(within(t), kg.Meta{Principal: tester}, apply(patches)); err != nil {
			t.Fatal(err)
		}
	}
	volume := smallVolume(t, 120)
	dir, junk := filepath.Join(volume, "data"), filepath.Join(volume, "junk")
	copyTree(t, live, dir, nil)
	want := len(statements(t, s, 0))
	mustClose(t, s)
	fillVolume(t, junk)

	o = smallOptions()
	s = openStore(t, dir, o)
	if s.Stats().ReplayedOpen < replayedCommits {
		t.Fatalf("%d commits were applied from the log, want %d", s.Stats().ReplayedOpen, replayedCommits)
	}
	if got := len(statements(t, s, 0)); got != want {
		t.Errorf("%d statements are read, want %d", got, want)
	}
	meta, patches := newWorker(34, "w").update()
	if _, err := s.Update(within(t), meta, apply(patches)); kg.CodeOf(err) != kg.CodeDiskFull {
		t.Errorf("Update: %v, want DISK_FULL", err)
	}
	mustClose(t, s)
	s = openStore(t, dir, o) // it stays so
	if err := os.Remove(junk); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		_, err := s.Update(within(t), meta, apply(patches))
		if err == nil {
			break
		}
		if kg.CodeOf(err) != kg.CodeDiskFull || time.Since(began) > time.Minute {
			t.Fatalf("Update with room again, after %v: %v", time.Since(began), err)
		}
	}
	mustClose(t, s)
	s = openStore(t, dir, o)
	if got := len(statements(t, s, 0)); got < want {
		t.Errorf("after a restart with room: %d statements are read, want %d", got, want)
	}
	mustCheck(t, s)
}

// On a volume smaller than a store no store is created, and none is left.
func TestStoreOnSmallVolume(t *testing.T) {
	mount := smallVolume(t, 40)
	before := namesIn(t, mount)
	dir := filepath.Join(mount, "data")
	for _, fill := range []func() error{
		func() error {
			s, err := kg.Open(dir, kg.Options{})
			if err == nil {
				mustClose(t, s)
			}
			return err
		},
		func() error {
			_, err := kg.Restore(within(t), dir, []io.Reader{strings.NewReader("")}, kg.RestoreOptions{})
			return err
		},
	} {
		err := fill()
		if kg.CodeOf(err) != kg.CodeDiskFull || !strings.Contains(err.Error(), "at least 65 MiB of free space, and 39 MiB are free") {
			t.Errorf("%v, want DISK_FULL with the room that is needed", err)
		}
		if after := namesIn(t, mount); !slices.Equal(before, after) {
			t.Errorf("there is %q now, and was %q", after, before)
		}
	}
}
