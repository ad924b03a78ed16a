package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"koine/internal/observertest"
)

// startServer runs the program with a data directory of its own.
func startServer(t *testing.T, args ...string) (s *server, url string) {
	t.Helper()
	dir := t.TempDir()
	observertest.Replay(t, dir)
	return startServerOn(t, dir, args...)
}

// startServerOn runs it with this data directory.
func startServerOn(t *testing.T, dir string, args ...string) (s *server, url string) {
	t.Helper()
	cmd := exec.Command("koine", append([]string{"serve", "--listen", "127.0.0.1:0", "--reserve-mib", "0", "--data", dir}, args...)...)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s = &server{process: cmd, log: new(growingText), ended: make(chan error, 1)}
	t.Cleanup(func() {
		cmd.Process.Kill() // an ended one cannot be killed, and need not
		// The comparison of observertest.Replay opens the directory next.
		for end := time.Now().Add(time.Minute); cmd.Process.Signal(syscall.Signal(0)) == nil && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	})
	if url, err = s.listening(out); err != nil {
		t.Fatal(err, s.log)
	}
	return s, url
}

// The first signal gives the streams the reason of their end, and the process exits with 0.
func TestStreamsAreToldWhyTheyEnd(t *testing.T) {
	s, url := startServer(t, "--log-level", "debug")
	if status, text := ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"name":"Bot","description":"waits","version":"1"}`); status != http.StatusCreated {
		t.Fatal(text)
	}
	openMailbox(t, url, "bot", "bot")
	response, err := http.Get(url + "/changes")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := s.process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			last = data
		}
	}
	if !strings.Contains(last, "SERVER_SHUTDOWN") {
		t.Errorf("the last event is %q", last)
	}
	if err := <-s.ended; err != nil {
		t.Errorf("the server ended with %v\n%s", err, s.log)
	}
	for _, transport := range []string{"changes", "mailbox"} {
		if want := `msg="stream ended" transport=` + transport + ` reason=SERVER_SHUTDOWN `; strings.Count(s.log.String(), want) != 1 {
			t.Errorf("no line %s in\n%s", want, s.log)
		}
	}
}

// A request that does not end delays the first signal, and not the second.
func TestASecondSignalEndsAtOnce(t *testing.T) {
	s, url := startServer(t)
	body, feed := io.Pipe()
	defer feed.Close()
	request, err := http.NewRequest(http.MethodPost, url+"/data", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/n-quads")
	request.Header.Set("Expect", "100-continue") // the body is asked for when the handler reads it
	client := http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
	go client.Do(request)
	if _, err := io.WriteString(feed, "# begins\n"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for again := time.NewTicker(50 * time.Millisecond); ; {
		if err := s.process.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		select {
		case err := <-s.ended:
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Exited() {
				t.Errorf("the server ended with %v, want it to end by the signal", err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
			return
		case <-again.C:
		}
	}
}
