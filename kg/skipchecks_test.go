package kg

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"koine/kg/internal/datadir"
)

// TestBackupVerifiesUncheckedLog proves that Open leaves a large log unread with SkipChecks, and that
// a backup then detects its damage.
func TestBackupVerifiesUncheckedLog(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{ReserveBytes: 1, logSegmentBytes: 4 << 20}) // the last one is read at once
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 3<<18)
	for s.wal.UsedBytes() <= scrubbedFirst+1<<20 {
		_, _ = rand.Read(text) // never fails
		_, err = s.Update(t.Context(), Meta{Principal: Principal{ID: "agent://a", Method: "local"}}, func(tx *Tx) error {
			return tx.Apply(Patch{Op: Add, Quad: Quad{Subject: IRI("urn:s"), Predicate: IRI("urn:p"), Object: String(base64.StdEncoding.EncodeToString(text))}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, datadir.LogName, "*.wal"))
	if err != nil || len(files) == 0 {
		t.Fatalf("log files %v, %v", files, err)
	}
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt([]byte{'!'}, 1<<20) // no letter of base64
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}

	s, err = Open(dir, Options{ReserveBytes: 1, ReadOnly: true, SkipChecks: true, logSegmentBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	<-s.scrubbed
	if err := s.Ready(); CodeOf(err) == CodeLogDamaged {
		t.Errorf("after Open with SkipChecks: %v, want a log that is not read", err)
	}
	if _, err := s.Maintenance().Backup(t.Context(), io.Discard, BackupOptions{}); CodeOf(err) != CodeLogDamaged {
		t.Errorf("Backup: %v, want LOG_DAMAGED", err)
	}
}
