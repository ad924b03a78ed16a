package kg_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/kg"
	"koine/kg/internal/wal"
)

// A store that was closed can be opened again although another process, forked
// meanwhile, has not let go of its files yet.
func TestClosingLetsTheDirectoryGo(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, smallOptions())
	closeShared, err := s.ShareLock()
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	mustClose(t, openStore(t, dir, smallOptions()))
	if err := closeShared(); err != nil {
		t.Error(err)
	}
}

// A second store on a directory is refused at once, and the first continues.
func TestDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, smallOptions())
	began := time.Now()
	if _, err := kg.Open(dir, smallOptions()); kg.CodeOf(err) != kg.CodeDataDirInUse || !strings.Contains(err.Error(), dir) {
		t.Fatalf("a second store: %v, want DATA_DIR_IN_USE and the directory's name", err)
	}
	if took := time.Since(began); took > patience/4 {
		t.Errorf("it took %v to say so", took)
	}
	newWorker(13, "w").work(t, s, 3)
	mustClose(t, s)
	s = openStore(t, dir, smallOptions())
	if s.Head().Revision != 3 {
		t.Errorf("at revision %d, want 3", s.Head().Revision)
	}
}

// A directory that another program or a newer koine has written is refused with
// FORMAT_UNKNOWN and the fault, and left unchanged.
func TestUnknownFormat(t *testing.T) {
	dir, _ := small(t)
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, dir string)
		says  string
	}{
		{"newer directory", swap("koine.json", `"version":6`, `"version":7`), "format 7"},
		{"not JSON", func(t *testing.T, dir string) { write(t, dir, "koine.json", "\x00\x01") }, "koine.json is damaged"},
		{"of something else", swap("koine.json", `"koine"`, `"other"`), "not the directory of a koine store"},
		{"no epoch", swap("koine.json", `"epoch":"`, `"epoch":"xyz`), "epoch"},
		{"short secret", func(t *testing.T, dir string) { write(t, dir, "secret", "short") }, "secret"},
		{"without koine.json", func(t *testing.T, dir string) { remove(t, dir, "koine.json") }, "not the directory of a koine store"},
		{"somebody's files", func(t *testing.T, dir string) {
			remove(t, dir, "koine.json", "secret", "log", "index")
			write(t, dir, "thesis.txt", "chapter one")
		}, "thesis.txt"},
		{"newer frame", newerFrame, "newer koine"},
		{"newer entry", newerEntry, "version 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spoiled := filepath.Join(t.TempDir(), "spoiled")
			copyTree(t, dir, spoiled, nil)
			c.spoil(t, spoiled)
			for range 2 {
				s, err := kg.Open(spoiled, tinyLog())
				if err == nil {
					_ = s.Close()
				}
				if kg.CodeOf(err) != kg.CodeFormatUnknown || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("Open: %v, want FORMAT_UNKNOWN with %q", err, c.says)
				}
			}
		})
	}
}

// Without a store, commands that must not create one write nothing: not the directory, not
// a lock. Commands that create one leave the files of other programs alone, too.
func TestNoStore(t *testing.T) {
	whole, _ := small(t)
	must := smallOptions()
	must.MustExist = true
	open := func(o kg.Options) func(string) error {
		return func(dir string) error {
			s, err := kg.Open(dir, o)
			if err == nil {
				err = s.Close()
			}
			return err
		}
	}
	ways := map[string]func(dir string) error{
		"MustExist": open(must),
		"making":    open(smallOptions()),
		"Repair": func(dir string) error {
			_, err := kg.Repair(t.Context(), dir, smallOptions(), kg.CheckOptions{})
			return err
		},
		"Erase": func(dir string) error {
			_, err := kg.Erase(t.Context(), dir, kg.EraseOptions{Source: "agent://x"})
			return err
		},
	}
	for name, c := range map[string]struct {
		make func(dir string)
		says string
		made bool // by commands that may create one
	}{
		"absent":          {func(string) {}, "not there", true},
		"empty":           {func(dir string) { mkdir(t, dir) }, "no koine.json", true},
		"with a lock":     {func(dir string) { mkdir(t, dir); write(t, dir, "LOCK", "") }, "no koine.json", true},
		"somebody's":      {func(dir string) { mkdir(t, dir); mkdir(t, dir+"/erasing"); write(t, dir, "thesis.txt", "one") }, "it holds erasing", false},
		"with an old one": {func(dir string) { mkdir(t, dir); mkdir(t, dir+"/erasing"); write(t, dir, "LOCK", "") }, "it holds erasing", false},
	} {
		for how, way := range ways {
			if how == "making" && c.made {
				continue
			}
			t.Run(name+"/"+how, func(t *testing.T) {
				at := t.TempDir()
				dir := filepath.Join(at, "dir")
				c.make(dir)
				before := namesIn(t, at)
				err := way(dir)
				if !errors.Is(err, kg.ErrNoStore) || kg.CodeOf(err) != kg.CodeFormatUnknown || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want ErrNoStore and %q", err, c.says)
				}
				if after := namesIn(t, at); !slices.Equal(before, after) {
					t.Errorf("there is %q now, and was %q", after, before)
				}
			})
		}
	}
	t.Run("a store", func(t *testing.T) {
		if err := ways["MustExist"](whole); err != nil {
			t.Error(err)
		}
	})
	t.Run("a file", func(t *testing.T) {
		write(t, whole, "file", "")
		if err := ways["MustExist"](filepath.Join(whole, "file")); !errors.Is(err, kg.ErrNoStore) {
			t.Errorf("%v, want ErrNoStore", err)
		}
	})
	// A store without its koine.json is damaged, not foreign.
	t.Run("a damaged store", func(t *testing.T) {
		remove(t, whole, "koine.json")
		if err := ways["MustExist"](whole); kg.CodeOf(err) != kg.CodeFormatUnknown || errors.Is(err, kg.ErrNoStore) || kg.AsError(err).Hint == "" {
			t.Errorf("%v, want FORMAT_UNKNOWN with a hint", err)
		}
	})
	// It belongs to the process that is creating it.
	t.Run("a locked one", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "busy")
		defer mustClose(t, openStore(t, dir, smallOptions()))
		remove(t, dir, "koine.json")
		if err := ways["MustExist"](dir); kg.CodeOf(err) != kg.CodeDataDirInUse {
			t.Errorf("%v, want DATA_DIR_IN_USE", err)
		}
	})
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

// namesIn is everything below a directory.
func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func swap(name, old, new string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(b, []byte(old)) {
			t.Fatalf("%s: %q, %v", name, b, err)
		}
		write(t, dir, name, strings.Replace(string(b), old, new, 1))
	}
}

// newerEntry adds an entry to the log that has another version.
func newerEntry(t *testing.T, dir string) {
	t.Helper()
	l, err := wal.Open(filepath.Join(dir, "log"), wal.Options{SegmentBytes: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Append(l.Last()+1, [][]byte{{9, 1, 2, 3}}), l.Close()); err != nil {
		t.Fatal(err)
	}
}

// newerFrame gives the log's last frame another version. The checksum of the batch around
// it must still be right, so that it is no damage.
func newerFrame(t *testing.T, dir string) {
	t.Helper()
	newerEntry(t, dir)
	paths := filesOf(t, filepath.Join(dir, "log", "*.wal"))
	path := paths[len(paths)-1]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// raft-wal: type 1 and length, the frame padded to 8 bytes, then type 3 and
	// the checksum of all that since the last one of these.
	const rawHeader, fileHeader = 8, 32
	at := bytes.LastIndex(b, []byte{0xb5, 0x4b, wal.FormatVersion})
	frame := b[at : at+int(binary.LittleEndian.Uint32(b[at-4:]))]
	frame[2] = 9
	sum := crc32.Update(crc32.Checksum(frame[:4], castagnoli), castagnoli, frame[8:])
	binary.BigEndian.PutUint32(frame[4:], sum)
	from, to := at-rawHeader, at+(len(frame)+7)&^7
	if from == fileHeader {
		from = 0
	}
	if b[to] != 3 {
		t.Fatalf("the last entry is not the last in its batch: %x", b[to:to+rawHeader])
	}
	binary.LittleEndian.PutUint32(b[to+4:], crc32.Checksum(b[from:to], castagnoli))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// An index of another layout is no fault: it is rebuilt.
func TestIndexOfAnotherLayout(t *testing.T) {
	dir, want := small(t)
	s := openStore(t, dir, tinyLog())
	if err := s.SpoilMarker(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	s = openStore(t, dir, tinyLog())
	if got := s.Stats().ReplayedOpen; got != uint64(want.head) {
		t.Errorf("%d commits were applied anew, want %d", got, want.head)
	}
	want.restored(t, s)
}
