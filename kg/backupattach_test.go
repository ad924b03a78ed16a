package kg

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"koine/kg/internal/archive"
	"koine/kg/internal/datadir"
)

// attaching attaches files in the order of their paths.
func attaching(files map[string]string) func(AttachFile) error {
	return func(attach AttachFile) error {
		for _, path := range slices.Sorted(maps.Keys(files)) {
			if err := attach(path, strings.NewReader(files[path])); err != nil {
				return err
			}
		}
		return nil
	}
}

func addOne(t *testing.T, s *Store, subject string) {
	t.Helper()
	_, err := s.Update(t.Context(), Meta{Principal: Principal{ID: "agent://a", Method: "local"}}, func(tx *Tx) error {
		return tx.Apply(Patch{Op: Add, Quad: Quad{Subject: IRI(subject), Predicate: IRI("urn:p"), Object: IRI("urn:o")}})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A full backup carries attached files, and a restore creates them; an incremental one carries none.
// Without files a backup has the bytes that it has without Attach.
func TestBackupAttachments(t *testing.T) {
	s, err := Open(t.TempDir(), Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	backup := func(o BackupOptions) ([]byte, BackupInfo) {
		t.Helper()
		var out bytes.Buffer
		info, err := s.Maintenance().Backup(t.Context(), &out, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := VerifyBackup(t.Context(), bytes.NewReader(out.Bytes()), nil); err != nil {
			t.Fatal(err)
		}
		return out.Bytes(), info
	}
	addOne(t, s, "urn:a")
	files := map[string]string{"made/a": "one", "made/deep/b": strings.Repeat("two", backupChunk), "made/empty": "", "other/c": "three"}
	full, info := backup(BackupOptions{Attach: attaching(files)})
	plain, _ := backup(BackupOptions{})
	if none, _ := backup(BackupOptions{Attach: attaching(nil)}); !bytes.Equal(none, plain) {
		t.Error("a backup with no attached file differs from one without Attach")
	}
	addOne(t, s, "urn:b")
	more, _ := backup(BackupOptions{Follows: &info, Attach: attaching(map[string]string{"made/a": "newer"})})

	dir := filepath.Join(t.TempDir(), "restored")
	if _, err := Restore(t.Context(), dir+"/", []io.Reader{bytes.NewReader(full), bytes.NewReader(more)}, RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v, want %d bytes", path, len(got), err, len(want))
		}
	}
	r, err := Open(dir, Options{ReserveBytes: 1, MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Head().Revision != 2 {
		t.Errorf("restored at revision %d, want 2", r.Head().Revision)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}

	small, _ := backup(BackupOptions{Attach: attaching(map[string]string{"made/a": "one", "made/b": "two"})})
	begin := bytes.Index(small, []byte("made/a")) - 2
	endless := bytes.Clone(small)
	copy(endless[begin:], bytes.Repeat([]byte{0xff}, 11)) // a size that is no number
	if _, err := VerifyBackup(t.Context(), bytes.NewReader(endless), nil); CodeOf(err) != CodeLogDamaged {
		t.Errorf("VerifyBackup with a size without an end: %v", err)
	}
	for i := begin; i < len(small); i++ {
		b := bytes.Clone(small)
		b[i] ^= 1 << (i % 8)
		if _, err := VerifyBackup(t.Context(), bytes.NewReader(b), nil); CodeOf(err) != CodeLogDamaged {
			t.Errorf("VerifyBackup with byte %d of %d changed: %v", i, len(b), err)
		}
		dir := filepath.Join(t.TempDir(), "damaged")
		if _, err := Restore(t.Context(), dir, []io.Reader{bytes.NewReader(b)}, RestoreOptions{}); CodeOf(err) != CodeLogDamaged {
			t.Errorf("Restore with byte %d of %d changed: %v", i, len(b), err)
		}
		if datadir.Exists(dir) {
			t.Errorf("Restore with byte %d of %d changed leaves its directory", i, len(b))
		}
		if _, err := VerifyBackup(t.Context(), bytes.NewReader(small[:i]), nil); CodeOf(err) != CodeLogDamaged {
			t.Errorf("VerifyBackup of %d bytes of %d: %v", i, len(small), err)
		}
	}
}

// unattachable are paths that no backup may have: outside of the directory, or the store's own.
var unattachable = []string{"", "a", "koine.json", "../a/b", "a/../log/b", "/a/b", "a//b", "a/", "./a/b", `a\..\b/c`, "a/b\x00", "log/a", "index/a", "checkpoints/a", "secret/a", "erasing/a"}

// A backup attaches no file over those of the store or outside of its directory, and the error of
// an attachment is that of the backup.
func TestBackupAttachmentRefusals(t *testing.T) {
	s, err := Open(t.TempDir(), Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, path := range unattachable {
		if _, err := s.Maintenance().Backup(t.Context(), io.Discard, BackupOptions{Attach: attaching(map[string]string{path: "x"})}); CodeOf(err) != CodeInvalid {
			t.Errorf("Backup with %q: %v, want INVALID", path, err)
		}
	}
	broken := errors.New("broken")
	var out bytes.Buffer
	if _, err := s.Maintenance().Backup(t.Context(), &out, BackupOptions{Attach: func(AttachFile) error { return broken }}); !errors.Is(err, broken) {
		t.Errorf("Backup: %v, want %v", err, broken)
	}
	if _, err := VerifyBackup(t.Context(), &out, nil); CodeOf(err) != CodeLogDamaged {
		t.Errorf("VerifyBackup of a backup that failed: %v", err)
	}
}

// A restore refuses files that no koine attaches, also under a right checksum.
func TestRestoreAttachmentRefusals(t *testing.T) {
	type record struct {
		kind    byte
		content string
	}
	file := func(path string) []record {
		return []record{{archive.BackupAttachment, path}, {archive.BackupPiece, "x"}}
	}
	cases := map[string][]record{
		"no file":    {{archive.BackupPiece, "x"}},
		"twice":      slices.Concat(file("a/b"), file("a/b")),
		"a folder":   slices.Concat(file("a/b/c"), file("a/b")),
		"and a part": slices.Concat(file("a/b"), []record{{'Z', ""}}),
	}
	for _, path := range unattachable {
		cases[path] = file(path)
	}
	encode := func(info BackupInfo, list []record) []byte {
		var out bytes.Buffer
		w := newBackupWriter(&out, info)
		err := w.writeHeader()
		for _, r := range list {
			err = errors.Join(err, w.writeRecord(r.kind, []byte(r.content)))
		}
		if err = errors.Join(err, w.writeEnd(err)); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	empty := BackupInfo{Epoch: Epoch{1}.String(), First: 1, Format: datadir.FormatVersion}
	for name, list := range cases {
		parent := t.TempDir()
		dir := filepath.Join(parent, "restored")
		_, err := Restore(t.Context(), dir, []io.Reader{bytes.NewReader(encode(empty, list))}, RestoreOptions{})
		if left, _ := os.ReadDir(parent); CodeOf(err) != CodeLogDamaged || len(left) != 0 {
			t.Errorf("%q: %v, leaves %v", name, err, left)
		}
	}
	before := empty
	before.To, before.ToHash = 1, strings.Repeat("0", 64)
	incremental := before
	incremental.From, incremental.First = 1, 2
	for _, info := range []BackupInfo{before, incremental} {
		if _, err := VerifyBackup(t.Context(), bytes.NewReader(encode(info, file("a/b"))), nil); CodeOf(err) != CodeLogDamaged || !strings.Contains(err.Error(), "unexpected file") {
			t.Errorf("a file in %+v: %v", info, err)
		}
	}
}
