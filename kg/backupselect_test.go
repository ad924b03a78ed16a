package kg

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A backup that waits for a checkpoint ends at or behind it: what it restores continues.
func TestBackupIsNotOlderThanItsCheckpoint(t *testing.T) {
	s, err := Open(t.TempDir(), Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	update := func(n int) {
		t.Helper()
		if _, err := s.Update(t.Context(), Meta{}, func(tx *Tx) error {
			return tx.Apply(Patch{Op: Replace, Quad: Quad{Subject: IRI("urn:s"), Predicate: IRI("urn:p"), Object: Integer(int64(n)), Graph: DefaultGraph}})
		}); err != nil {
			t.Fatal(err)
		}
	}
	update(0)
	s.checkpointing.Lock() // as a checkpoint that is being written
	type made struct {
		info BackupInfo
		err  error
	}
	done := make(chan made)
	go func() {
		info, err := s.Maintenance().Backup(context.Background(), &bytes.Buffer{}, BackupOptions{})
		done <- made{info, err}
	}()
	for deadline := time.Now().Add(time.Minute); !waitsIn("beginBackup"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the backup does not wait")
		}
	}
	update(1)
	head := s.Head().Revision
	s.checkpointing.Unlock()
	if b := <-done; b.err != nil || b.info.To < head {
		t.Errorf("the backup ends at %d, %v; a checkpoint made meanwhile is of %d", b.info.To, b.err, head)
	}
}

// waitsIn reports whether a goroutine waits for a lock within a function.
func waitsIn(function string) bool {
	stacks := make([]byte, 1<<20)
	for one := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(one, function) && strings.Contains(one, "Mutex.Lock]") {
			return true
		}
	}
	return false
}
