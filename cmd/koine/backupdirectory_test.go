package main

import (
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
