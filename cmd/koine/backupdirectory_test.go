package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A backup of a directory that was closed in order changes nothing in it. One that was not is
// opened as by any other command, which upgrades it.
func TestBackupOfDirectory(t *testing.T) {
	work := t.TempDir()
	dir, file := filepath.Join(work, "data"), filepath.Join(work, "graph.nt")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "<urn:a> <urn:p> \"x\" .\n")
	runKoine(t, "load", "--quiet", "--data", dir, file)
	format := filepath.Join(dir, "koine.json")
	raw, err := os.ReadFile(format)
	if err != nil {
		t.Fatal(err)
	}
	write(format, strings.Replace(string(raw), `"version":6`, `"version":5`, 1))

	runKoine(t, "backup", "--quiet", "--data", dir, "--output", filepath.Join(work, "closed.koine"))
	if got := formatOf(t, dir); got != 5 {
		t.Errorf("after a backup of a directory that was closed in order its format is %d, want 5", got)
	}
	if err := os.Remove(filepath.Join(dir, "index", "CLEAN")); err != nil {
		t.Fatal(err)
	}
	runKoine(t, "backup", "--quiet", "--data", dir, "--output", filepath.Join(work, "killed.koine"))
	if got := formatOf(t, dir); got != 6 {
		t.Errorf("after a backup of a directory that was not closed in order its format is %d, want 6", got)
	}
	for _, name := range []string{"closed", "killed"} {
		runKoine(t, "restore", "--data", filepath.Join(work, name), filepath.Join(work, name+".koine"))
		if got := formatOf(t, filepath.Join(work, name)); got != 6 {
			t.Errorf("%s: the restored directory has format %d, want 6", name, got)
		}
	}
}

// A backup of a directory in which an erasure was interrupted completes the erasure, and has
// nothing of what was erased.
func TestBackupAfterInterruptedErasure(t *testing.T) {
	work := t.TempDir()
	load := func(dir, statement string) {
		t.Helper()
		file := dir + ".nt"
		if err := os.WriteFile(file, []byte(statement+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		runKoine(t, "load", "--quiet", "--data", dir, file)
	}
	old, erased := filepath.Join(work, "old"), filepath.Join(work, "erased")
	load(old, `<urn:a> <urn:p> "erased" .`)
	load(erased, `<urn:a> <urn:p> "kept" .`)
	names := []string{"log", "index", "secret", "koine.json"}
	if err := os.Mkdir(filepath.Join(old, "erasing"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(erased, name), filepath.Join(old, "erasing", name)); err != nil {
			t.Fatal(err)
		}
	}
	ready, err := json.Marshal(map[string][]string{"names": names})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(old, "erasing.ready"), ready, 0o600); err != nil {
		t.Fatal(err)
	}

	backup, restored := filepath.Join(work, "a.koine"), filepath.Join(work, "restored")
	runKoine(t, "backup", "--quiet", "--data", old, "--output", backup)
	runKoine(t, "restore", "--data", restored, backup)
	if out := runKoine(t, "export", "--data", restored); !strings.Contains(out, `"kept"`) || strings.Contains(out, `"erased"`) {
		t.Errorf("the restored graph is %q, want only what was kept", out)
	}
}
