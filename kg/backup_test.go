package kg_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"koine/internal/slowtest"
	"koine/kg"
)

func backupOf(t testing.TB, s *kg.Store, o kg.BackupOptions) ([]byte, kg.BackupInfo) {
	t.Helper()
	var out bytes.Buffer
	info, err := s.Maintenance().Backup(within(t), &out, o)
	if err != nil {
		t.Fatalf("Backup: %v", err)
	}
	seen, err := kg.VerifyBackup(within(t), bytes.NewReader(out.Bytes()), nil)
	if err != nil || seen != info {
		t.Fatalf("VerifyBackup: %+v, %v; want %+v", seen, err, info)
	}
	return out.Bytes(), info
}

func restoreInto(t testing.TB, dir string, parts ...[]byte) (kg.BackupInfo, error) {
	t.Helper()
	var readers []io.Reader
	for _, p := range parts {
		readers = append(readers, bytes.NewReader(p))
	}
	return kg.Restore(within(t), dir, readers, kg.RestoreOptions{})
}

// A full backup and two that follow on it make the same store again: statements
// with their assertions at every revision, commits, counts, answers that are
// remembered, prefixes; under another epoch, with a secret of its own.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]bool{"whole log": false, "cut log": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir, tinyLog())
			if err := keepPrefixes(s, map[string]string{"ex": "https://example.org/"}); err != nil {
				t.Fatal(err)
			}
			w := newWorker(21, "w")
			w.owns = true
			w.work(t, s, 19)
			if cut {
				if err := s.Maintenance().CutLog(within(t), 15); err != nil {
					t.Fatal(err)
				}
			}
			full, first := backupOf(t, s, kg.BackupOptions{})
			if first.To != 20 || (first.Checkpoint > 0) != cut {
				t.Fatalf("it is %+v", first)
			}
			w.work(t, s, 7)
			second, info := backupOf(t, s, kg.BackupOptions{Follows: &first})
			w.work(t, s, 5)
			third, _ := backupOf(t, s, kg.BackupOptions{Since: info.To})
			token := s.FormatPosition(s.Head())
			want, rows := recordOf(t, s), imageOf(t, s, nil).rows
			mustClose(t, s)

			again := filepath.Join(t.TempDir(), "again")
			got, err := restoreInto(t, again, full, second, third)
			if err != nil || got.To != 32 {
				t.Fatalf("Restore: %+v, %v", got, err)
			}
			r := openStore(t, again, tinyLog())
			if r.Epoch() == s.Epoch() {
				t.Error("the epoch is the old one")
			}
			if _, err := r.ParsePosition(token); kg.CodeOf(err) != kg.CodePositionGone {
				t.Errorf("a position of the old store: %v, want POSITION_GONE", err)
			}
			if !bytes.Equal(secretOf(t, again), secretOf(t, again)) || bytes.Equal(secretOf(t, again), secretOf(t, dir)) {
				t.Error("the secret is the old one")
			}
			if !maps.Equal(r.KeptPrefixes(), map[string]string{"ex": "https://example.org/"}) {
				t.Errorf("prefixes %v", r.KeptPrefixes())
			}
			equalLines(t, "the index", rows, imageOf(t, r, nil).rows)
			want.restored(t, r)

			// A backup of the original follows on the restored store, too.
			tail, _ := backupOf(t, r, kg.BackupOptions{Since: 32})
			mustClose(t, r)
			if _, err := restoreInto(t, filepath.Join(t.TempDir(), "x"), full, second, third, tail); kg.CodeOf(err) != kg.CodeInvalid {
				t.Errorf("a backup of the restored store behind those of the old one: %v, want INVALID", err)
			}
		})
	}
}

func secretOf(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// An empty store is backed up and restored too.
func TestBackupOfNothing(t *testing.T) {
	s := openStore(t, t.TempDir(), tinyLog())
	full, _ := backupOf(t, s, kg.BackupOptions{})
	newWorker(1, "w").work(t, s, 2)
	dir := t.TempDir()
	if _, err := restoreInto(t, dir, full); err != nil {
		t.Fatal(err)
	}
	r := openStore(t, dir, tinyLog())
	mustCheck(t, r)
	if r.Head().Revision != 0 {
		t.Errorf("at revision %d", r.Head().Revision)
	}
}

// Updates continue while a backup is written, none of them is in it, and the log is not cut
// meanwhile.
func TestBackupBesideUpdates(t *testing.T) {
	s := openStore(t, t.TempDir(), tinyLog())
	w := newWorker(22, "w")
	w.work(t, s, 20)
	want := recordOf(t, s)
	var out bytes.Buffer
	written := 0
	info, err := s.Maintenance().Backup(within(t), writerFunc(func(b []byte) (int, error) {
		if written++; written%10 == 1 {
			w.work(t, s, 2)
			if err := s.Maintenance().CutLog(within(t), s.Head().Revision); err != nil {
				t.Error(err)
			}
		}
		return out.Write(b)
	}), kg.BackupOptions{})
	if err != nil || info.To != 20 {
		t.Fatalf("Backup: %+v, %v", info, err)
	}
	if s.Head().Revision == 20 {
		t.Fatal("nothing was written meanwhile")
	}
	if got := s.Oldest().Revision; got != 0 {
		t.Errorf("the log begins behind %d under a backup", got)
	}
	if err := s.Maintenance().CutLog(within(t), s.Head().Revision); err != nil || s.Oldest().Revision == 0 {
		t.Errorf("CutLog afterwards: %v, the oldest is %d", err, s.Oldest().Revision)
	}
	dir := filepath.Join(t.TempDir(), "again")
	if _, err := restoreInto(t, dir, out.Bytes()); err != nil {
		t.Fatal(err)
	}
	want.restored(t, openStore(t, dir, tinyLog()))
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Refusals of backups and restores; nothing is left behind.
func TestBackupRefusals(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	s := openStore(t, t.TempDir(), tinyLog())
	w := newWorker(23, "w")
	w.work(t, s, 6)
	full, first := backupOf(t, s, kg.BackupOptions{})
	w.work(t, s, 4)
	second, info := backupOf(t, s, kg.BackupOptions{Follows: &first})
	w.work(t, s, 4)
	third, _ := backupOf(t, s, kg.BackupOptions{Follows: &info})
	fullAgain, _ := backupOf(t, s, kg.BackupOptions{})

	other := openStore(t, t.TempDir(), tinyLog())
	newWorker(24, "o").work(t, other, 8)
	foreign, _ := backupOf(t, other, kg.BackupOptions{Since: 6})
	if _, err := other.Maintenance().Backup(within(t), io.Discard, kg.BackupOptions{Follows: &first}); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("following on another store's: %v, want INVALID", err)
	}
	if _, err := other.Maintenance().Backup(within(t), io.Discard, kg.BackupOptions{Since: 9}); kg.CodeOf(err) != kg.CodeRevisionAhead {
		t.Errorf("following on what is not there: %v, want REVISION_AHEAD", err)
	}
	if err := other.Maintenance().CutLog(within(t), 5); err != nil {
		t.Fatal(err)
	}
	_, err := other.Maintenance().Backup(within(t), io.Discard, kg.BackupOptions{Since: 3})
	if e := kg.AsError(err); e.Code != kg.CodeRevisionGone || e.Oldest == nil || e.Hint == "" {
		t.Errorf("following on what is gone: %+v, want REVISION_GONE", e)
	}
	ctx, stop := context.WithCancel(within(t))
	stop()
	if _, err := s.Maintenance().Backup(ctx, io.Discard, kg.BackupOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}

	changed := func(at int) []byte {
		b := bytes.Clone(full)
		b[(at+len(b))%len(b)] ^= 1
		return b
	}
	newer := bytes.Clone(full)
	newer[len("koine backup\n")]++ // the format
	for name, row := range map[string]struct {
		parts [][]byte
		code  kg.Code
	}{
		"none":                  {nil, kg.CodeInvalid},
		"no full one":           {[][]byte{second}, kg.CodeInvalid},
		"one left out":          {[][]byte{full, third}, kg.CodeInvalid},
		"twice the same":        {[][]byte{full, second, second}, kg.CodeInvalid},
		"two full ones":         {[][]byte{full, fullAgain}, kg.CodeInvalid},
		"of another store":      {[][]byte{full, foreign}, kg.CodeInvalid},
		"cut short":             {[][]byte{full[:len(full)-1]}, kg.CodeLogDamaged},
		"cut short before":      {[][]byte{full[:len(full)/2]}, kg.CodeLogDamaged},
		"longer":                {[][]byte{append(bytes.Clone(full), 0)}, kg.CodeLogDamaged},
		"another checksum":      {[][]byte{changed(-1)}, kg.CodeLogDamaged},
		"a byte in the middle":  {[][]byte{changed(len(full) / 2)}, kg.CodeLogDamaged},
		"no backup":             {[][]byte{[]byte("<urn:s> <urn:p> <urn:o> .")}, kg.CodeFormatUnknown},
		"nothing":               {[][]byte{{}}, kg.CodeFormatUnknown},
		"of a newer koine":      {[][]byte{newer}, kg.CodeFormatUnknown},
		"the second is damaged": {[][]byte{full, second[:len(second)-40]}, kg.CodeLogDamaged},
	} {
		dir := filepath.Join(t.TempDir(), "again")
		if _, err := restoreInto(t, dir, row.parts...); kg.CodeOf(err) != row.code {
			t.Errorf("%s: %v, want %s", name, err, row.code)
		}
		if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
			t.Errorf("%s: it leaves %v", name, left)
		}
	}
	dir := t.TempDir()
	write(t, dir, "notes.txt", "mine")
	if _, err := restoreInto(t, dir, full); kg.CodeOf(err) != kg.CodeInvalid || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a directory with something in it: %v, want INVALID", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "notes.txt")); err != nil || string(b) != "mine" {
		t.Errorf("what was there is %q, %v", b, err)
	}
}

// A store with a damaged log is not backed up: the backup would pass for complete.
func TestBackupOfDamagedStore(t *testing.T) {
	dir, _ := small(t)
	remove(t, dir, "log")
	s := openStore(t, dir, tinyLog())
	if _, err := s.Maintenance().Backup(within(t), io.Discard, kg.BackupOptions{}); kg.CodeOf(err) != kg.CodeLogDamaged {
		t.Errorf("Backup: %v, want LOG_DAMAGED", err)
	}
}

// The chain of entries in a backup ends with the hash in its header.
func TestBackupEndsWithTheNewestEntry(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir(), tinyLog())
	newWorker(26, "w").work(t, s, 6)
	_, info := backupOf(t, s, kg.BackupOptions{})
	if err := s.BackupUpTo(within(t), info.ToHash); err != nil {
		t.Fatal(err)
	}
	if err := s.BackupUpTo(within(t), info.FromHash); kg.CodeOf(err) != kg.CodeLogDamaged {
		t.Errorf("with another hash: %v, want LOG_DAMAGED", err)
	}
}

// A restore detects every corrupted byte of a backup.
func TestFlippedByteOfBackup(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir(), tinyLog())
	newWorker(25, "w").work(t, s, 6)
	if err := s.Maintenance().CutLog(within(t), 5); err != nil {
		t.Fatal(err)
	}
	full, _ := backupOf(t, s, kg.BackupOptions{})
	for i := range full {
		b := bytes.Clone(full)
		b[i] ^= 1 << (i % 8)
		if _, err := kg.VerifyBackup(within(t), bytes.NewReader(b), nil); err == nil {
			t.Fatalf("byte %d of %d is bad and nobody notices", i, len(b))
		}
	}
}

// A restore detects an entry that is whole and is not the one of the log: the checksum of the
// backup does not have the entries.
func TestReplacedEntryOfBackup(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir(), tinyLog())
	newWorker(25, "w").work(t, s, 6)
	full, _ := backupOf(t, s, kg.BackupOptions{})
	const header = 64
	magic, castagnoli := []byte{0xb5, 0x4b, 1}, crc32.MakeTable(crc32.Castagnoli)
	entries := 0
	for at := bytes.Index(full, magic); at >= 0; entries++ {
		b := bytes.Clone(full)
		size := header + int(binary.BigEndian.Uint32(b[at+60:]))
		frame := b[at : at+size]
		frame[size-1] ^= 1
		binary.BigEndian.PutUint32(frame[4:], crc32.Update(crc32.Checksum(frame[:4], castagnoli), castagnoli, frame[8:]))
		if _, err := kg.VerifyBackup(within(t), bytes.NewReader(b), nil); kg.CodeOf(err) != kg.CodeLogDamaged {
			t.Errorf("with another entry at byte %d of %d: %v, want LOG_DAMAGED", at, len(b), err)
		}
		next := bytes.Index(full[at+size:], magic)
		if next < 0 {
			break
		}
		at += size + next
	}
	if entries < 5 {
		t.Errorf("replaced %d entries", entries)
	}
}

// VerifyBackup returns the error of a writer to which the backup is copied on the way.
func TestVerifyBackupWhileCopied(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir(), tinyLog())
	newWorker(27, "w").work(t, s, 6)
	full, want := backupOf(t, s, kg.BackupOptions{})
	var copied bytes.Buffer
	info, err := kg.VerifyBackup(within(t), io.TeeReader(bytes.NewReader(full), &copied), nil)
	if err != nil || info != want || !bytes.Equal(copied.Bytes(), full) {
		t.Errorf("got %+v, %v and %d bytes, want %+v and %d", info, err, copied.Len(), want, len(full))
	}
	closed, to := io.Pipe()
	closed.CloseWithError(io.ErrShortWrite)
	if _, err := kg.VerifyBackup(within(t), io.TeeReader(bytes.NewReader(full), to), nil); !errors.Is(err, io.ErrShortWrite) || kg.CodeOf(err) == kg.CodeLogDamaged {
		t.Errorf("to a writer that fails: %v, want %v", err, io.ErrShortWrite)
	}
}

// A store that is closed ends the backup under way.
func TestBackupEndsWithStore(t *testing.T) {
	s := openStore(t, t.TempDir(), tinyLog())
	newWorker(26, "w").work(t, s, 10)
	began, goOn := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		first := true
		_, err := s.Maintenance().Backup(context.Background(), writerFunc(func(b []byte) (int, error) {
			if first {
				first = false
				close(began)
				<-goOn
			}
			return len(b), nil
		}), kg.BackupOptions{})
		ended <- err
	}()
	<-began
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	for ctx := within(t); kg.CodeOf(s.Ready()) != kg.CodeClosed; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("it does not close")
		}
	}
	close(goOn)
	// It may have been at its last entry before the store noticed.
	if err := <-ended; err != nil && kg.CodeOf(err) != kg.CodeClosed {
		t.Errorf("the backup: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}

// A restore that was cut short leaves no directory that passes for a store.
func TestRestoreCutShort(t *testing.T) {
	s := openStore(t, t.TempDir(), tinyLog())
	newWorker(27, "w").work(t, s, 5)
	full, _ := backupOf(t, s, kg.BackupOptions{})
	dir := filepath.Join(t.TempDir(), "again")
	if _, err := restoreInto(t, dir, full); err != nil {
		t.Fatal(err)
	}
	remove(t, dir, "koine.json") // which is written last
	if _, err := kg.Open(dir, tinyLog()); kg.CodeOf(err) != kg.CodeFormatUnknown {
		t.Errorf("Open: %v, want FORMAT_UNKNOWN", err)
	}
	if _, err := restoreInto(t, dir, full); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("Restore: %v, want INVALID", err)
	}
}

// pieceCounter counts the writes that a backup consists of.
type pieceCounter struct{ writes, bytes int }

func (c *pieceCounter) Write(b []byte) (int, error) {
	c.writes++
	c.bytes += len(b)
	return len(b), nil
}

// A backup of many small commits is written in large pieces: each write is a system call, or
// wakes a reader.
func TestBackupIsWrittenInPieces(t *testing.T) {
	t.Parallel()
	const commits, leastPiece = 2000, 64 << 10
	s := openStore(t, t.TempDir(), kg.Options{})
	for i := range commits {
		if err := addOne(s, within(t), kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(i))}); err != nil {
			t.Fatal(err)
		}
	}
	var to pieceCounter
	if _, err := s.Maintenance().Backup(within(t), &to, kg.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	if most := to.bytes/leastPiece + 3; to.writes > most {
		t.Errorf("%d writes for %d bytes of %d commits, want at most %d", to.writes, to.bytes, commits, most)
	}
}
