package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"koine/internal/footprint"
	"koine/internal/slowtest"
)

// A check keeps within --memory, whatever the size of the store is: it sorts in files, gives pages
// of the index back, and collects garbage in time. Without the limit this check takes twice the
// bound.
func TestCheckKeepsWithinMemory(t *testing.T) {
	slowtest.Long(t)
	slowtest.WithoutRace(t) // the program is not built with it
	const statements, limit = "300000", 160 << 20
	binary, dir := program(t), t.TempDir()
	file, data := filepath.Join(dir, "graph.nq"), filepath.Join(dir, "data")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	run := func(to io.Writer, args ...string) (peak int64) {
		t.Helper()
		cmd := exec.Command(binary, args...)
		cmd.Stdout = to
		peak, err := runForPeak(cmd)
		if err != nil {
			t.Fatal(args, err)
		}
		return peak
	}
	run(out, "bench", "generate", "--statements", statements)
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	run(nil, "load", "--quiet", "--reserve-mib", "0", "--data", data, file)
	peak := run(nil, "check", "--quiet", "--data", data, "--memory", "160M")
	if t.Logf("%d MiB", peak>>20); peak > limit {
		t.Errorf("a check with --memory 160M takes %d MiB", peak>>20)
	}
}

// runForPeak runs a command and returns its largest resident memory. What wait4 tells includes the
// memory of the process that started it.
func runForPeak(cmd *exec.Cmd) (peak int64, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for look := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case err := <-ended:
			look.Stop()
			return peak, err
		case <-look.C:
			if used, err := footprint.Read(cmd.Process.Pid); err == nil { // it may have ended
				peak = max(peak, used.Peak)
			}
		}
	}
}
