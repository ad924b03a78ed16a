package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"koine/cmd/koine/internal/cli"
)

// An interrupted benchmark removes its data, too.
func TestInterruptedBenchmarkCleansUp(t *testing.T) {
	_, url := startServer(t)
	changes, err := http.Get(url + "/changes?graph=urn:koine:bench")
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Body.Close()
	var said strings.Builder
	bench := exec.Command("koine", "bench", "update", "--clients", "4", "--time", "1m", "--url", url)
	bench.Stderr = &said
	if err := bench.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bench.Process.Kill() }) // an ended one cannot be killed, and need not
	seen := 0
	for lines := bufio.NewScanner(changes.Body); seen < 100 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") {
			seen++
		}
	}
	if err := bench.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	bench.Wait()
	if code := bench.ProcessState.ExitCode(); seen != 100 || code != cli.ExitInterrupted || !strings.Contains(said.String(), "Removed ") {
		t.Errorf("%d changes seen; it ended with %d and said %s", seen, code, said.String())
	}
	left, err := http.Get(url + "/data?graph=urn:koine:bench")
	if err != nil {
		t.Fatal(err)
	}
	defer left.Body.Close()
	if text, _ := io.ReadAll(left.Body); left.StatusCode != http.StatusNotFound {
		t.Errorf("what is left: %d %.500s", left.StatusCode, text)
	}
}
