package kg

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"koine/kg/internal/archive"
	"koine/kg/internal/datadir"
)

func readFormatFile(t *testing.T, dir string) (f datadir.FormatFile) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, datadir.FormatName))
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// olderDirectory makes a closed store with a commit and marks it as one of the oldest format.
func olderDirectory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(dir, Options{ReserveBytes: 1})
	if err == nil {
		err = errors.Join(addStatement(t, s, "urn:older"), s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	f := readFormatFile(t, dir)
	f.Version, f.Requires = datadir.OldestFormat, ""
	raw, err := json.Marshal(f)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, datadir.FormatName), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// addStatement commits one statement.
func addStatement(t *testing.T, s *Store, subject string) error {
	_, err := s.Update(t.Context(), Meta{Principal: Principal{ID: "agent://a", Method: "local"}}, func(tx *Tx) error {
		return tx.Apply(Patch{Op: Add, Quad: Quad{Subject: IRI(subject), Predicate: IRI("urn:p"), Object: IRI("urn:o")}})
	})
	return err
}

// withUpgradeStep adds a step for the length of the test.
func withUpgradeStep(t *testing.T, run func(*Store) error) {
	t.Helper()
	kept := upgradeSteps
	t.Cleanup(func() { upgradeSteps = kept })
	upgradeSteps = append(slices.Clone(kept), struct {
		from int
		run  func(*Store) error
	}{datadir.OldestFormat, run})
}

// An upgrade that breaks off is begun again at the next open, and in between the
// directory already has the new number: an older koine sees none of it.
func TestUpgradeBreaksOff(t *testing.T) {
	dir := olderDirectory(t)
	runs, fail := 0, errors.New("broken off")
	withUpgradeStep(t, func(*Store) error { runs++; return fail })

	if _, err := Open(dir, Options{ReserveBytes: 1}); !errors.Is(err, fail) {
		t.Fatalf("Open: %v, want %v", err, fail)
	}
	if f := readFormatFile(t, dir); f.Version != datadir.FormatVersion || f.UpgradingFrom != datadir.OldestFormat || f.Requires != datadir.FormatRequires {
		t.Errorf("after the failure koine.json is %+v, want format %d upgrading from %d", f, datadir.FormatVersion, datadir.OldestFormat)
	}
	fail = nil
	for range 2 {
		s, err := Open(dir, Options{ReserveBytes: 1})
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if f := readFormatFile(t, dir); f.UpgradingFrom != 0 {
			t.Errorf("koine.json is %+v, want no upgrade under way", f)
		}
	}
	if runs != 2 {
		t.Errorf("the step ran %d times, want 2: once in vain and once for good", runs)
	}
}

// A store without room for updates is read by its older format, and backed up in it.
func TestUpgradeWaitsForRoom(t *testing.T) {
	dir := olderDirectory(t)
	withUpgradeStep(t, func(s *Store) error { return addStatement(t, s, "urn:s") })
	room := uint64(1)
	o := Options{ReserveBytes: 1 << 30, FreeBytes: func(string) (uint64, error) { return room, nil }}
	for _, want := range []int{datadir.OldestFormat, datadir.FormatVersion} {
		s, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		var backup bytes.Buffer
		attached := false
		attach := func(AttachFile) error { attached = true; return nil }
		if _, err := s.Maintenance().Backup(t.Context(), &backup, BackupOptions{Attach: attach}); err != nil || attached != (want >= datadir.AttachmentsFormat) || int(backup.Bytes()[len(archive.BackupMagic)]) != want {
			t.Errorf("with %d bytes free: Backup has format %d, %v, want %d", room, backup.Bytes()[len(archive.BackupMagic)], err, want)
		}
		if _, err := VerifyBackup(t.Context(), &backup, nil); err != nil {
			t.Errorf("the backup of format %d: %v", want, err)
		}
		if f := readFormatFile(t, dir); (f.Version == datadir.OldestFormat || f.UpgradingFrom != 0) != (want == datadir.OldestFormat) {
			t.Errorf("with %d bytes free: koine.json is %+v", room, f)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		room = 1 << 40
	}
}

// A backup has the format of its directory: one of an older format is upgraded
// where it is restored, and one of a newer format is refused with the version that
// reads it.
func TestBackupHasFormat(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	var backup bytes.Buffer
	_, err = s.Maintenance().Backup(t.Context(), &backup, BackupOptions{})
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	raw := backup.Bytes()
	if raw[len(archive.BackupMagic)] != datadir.FormatVersion {
		t.Fatalf("the backup has format %d, want %d", raw[len(archive.BackupMagic)], datadir.FormatVersion)
	}
	raw[len(archive.BackupMagic)] = datadir.FormatVersion + 1
	_, err = VerifyBackup(t.Context(), bytes.NewReader(raw), nil)
	if e := AsError(err); e == nil || e.Code != CodeFormatUnknown || !strings.Contains(e.Hint, datadir.FormatRequires) {
		t.Errorf("a backup of a newer koine: %v, want FORMAT_UNKNOWN that names %s", err, datadir.FormatRequires)
	}

	// The checksum is over the format too.
	older := encodeBackup(t, datadir.OldestFormat)
	to := filepath.Join(t.TempDir(), "restored")
	if _, err := Restore(t.Context(), to, []io.Reader{bytes.NewReader(older)}, RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if f := readFormatFile(t, to); f.UpgradingFrom != datadir.OldestFormat {
		t.Errorf("koine.json is %+v, want an upgrade from format %d", f, datadir.OldestFormat)
	}
}

// encodeBackup writes a backup of an empty store.
func encodeBackup(t *testing.T, format int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := newBackupWriter(&out, BackupInfo{Epoch: Epoch{1}.String(), First: 1, Format: format})
	err := w.writeHeader()
	if err == nil {
		err = w.writeRecord(archive.BackupPrefixes, []byte("{}"))
	}
	if err = errors.Join(err, w.writeEnd(err)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestNewerDirectoryNamesVersion(t *testing.T) {
	_, err := datadir.ReadFormat([]byte(`{"format":"koine","version":7,"requires":"v9.1.0"}`))
	if e := AsError(err); e == nil || e.Code != CodeFormatUnknown || !strings.Contains(e.Hint, "v9.1.0") || !strings.Contains(e.Message, "format 7") {
		t.Errorf("readFormat: %v, want FORMAT_UNKNOWN that names v9.1.0", err)
	}
}
