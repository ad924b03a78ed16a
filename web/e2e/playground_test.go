// Package e2e_test opens the playground of a running koine in a real browser.
package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	shutdownTime = 30 * time.Second
	reportTime   = 30 * time.Second // for a walk to say where it was when its time was over
)

// inTime is a context that ends soon enough before the limit of go test for a failure to be
// reported. Nothing else bounds the test: on a busy machine a build alone may take minutes.
func inTime(t *testing.T) (context.Context, context.CancelFunc) {
	limit, ok := t.Deadline()
	if !ok {
		return context.WithCancel(t.Context())
	}
	return context.WithDeadline(t.Context(), limit.Add(-reportTime-shutdownTime))
}

// requireTools fails the test where the browser or the node packages are missing.
func requireTools(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser test; -short leaves it out")
	}
	for _, tool := range []string{"/usr/bin/chromium", "../node_modules/playwright-core/package.json"} {
		if _, err := os.Stat(tool); err != nil {
			t.Fatalf("%v: run scripts/install-test-tools.sh", err)
		}
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Fatalf("%v: run scripts/install-test-tools.sh", err)
	}
}

// walk runs a script in the browser. With the directory KOINE_SCREENSHOTS in the
// environment it leaves pictures of the steps there.
func walk(t *testing.T, script string, arguments ...string) {
	t.Helper()
	ctx, cancel := inTime(t)
	defer cancel()
	arguments = append([]string{script}, arguments...)
	if directory := os.Getenv("KOINE_SCREENSHOTS"); directory != "" {
		arguments = append(arguments, "--screenshots", directory)
	}
	command := exec.CommandContext(ctx, "node", arguments...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = reportTime
	output, err := command.CombinedOutput()
	t.Logf("%s", output)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
}

// readFirst hands requests on with their bodies read. Otherwise a reverse proxy truncates
// an answer now and then: net/http closes the body of a request when its answer is written,
// and a later read of that body to its end closes the connection of the answer
// (golang.org/issue/40747).
func readFirst(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// buildKoine returns the path of the program.
func buildKoine(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "koine")
	ctx, cancel := inTime(t)
	defer cancel()
	if output, err := exec.CommandContext(ctx, "go", "build", "-o", program, "koine/cmd/koine").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return program
}

// startKoine runs the program with the demo graph until the test ends, and returns
// its address.
func startKoine(t *testing.T, program string, flags ...string) *url.URL {
	t.Helper()
	address, _ := startWithKeys(t, program, flags...)
	return address
}

// startWithKeys returns the first administrator's key as well, "" if the server is open.
func startWithKeys(t *testing.T, program string, flags ...string) (address *url.URL, key string) {
	t.Helper()
	keyFile := filepath.Join(t.TempDir(), "admin-key") // a log in JSON holds no secrets
	command := exec.Command(program, append([]string{"serve", "--demo", "--listen", "127.0.0.1:0", "--reserve-mib", "0", "--data", t.TempDir(), "--admin-key-file", keyFile}, flags...)...)
	command.Env = append(os.Environ(), "KOINE_LOG_FORMAT=json")
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	t.Cleanup(func() { stop(t, command, lines) })
	for lines.Scan() {
		var line struct{ Msg, URL string }
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Msg != "listening" {
			t.Log(lines.Text())
			continue
		}
		if text, err := os.ReadFile(keyFile); err == nil {
			key = strings.TrimSpace(string(text))
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if address, err = url.Parse(line.URL); err != nil {
			t.Fatal(err)
		}
		return address, key
	}
	t.Fatal("koine ended before it listened")
	return nil, ""
}

// stop interrupts the program, which must exit with 0, and logs its further output.
func stop(t *testing.T, command *exec.Cmd, lines *bufio.Scanner) {
	killer := time.AfterFunc(shutdownTime, func() { command.Process.Kill() })
	defer killer.Stop()
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	for lines.Scan() {
		t.Log(lines.Text())
	}
	if err := command.Wait(); err != nil {
		t.Errorf("koine: %v", err)
	}
}

// npm runs a script of web/package.json.
func npm(t *testing.T, script string) {
	t.Helper()
	ctx, cancel := inTime(t)
	defer cancel()
	command := exec.CommandContext(ctx, "npm", "run", "--silent", script)
	command.Dir = ".."
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("npm run %s: %v\n%s", script, err, output)
	}
}

// TestBuildIsCurrent proves that the committed build equals a build of the sources.
func TestBuildIsCurrent(t *testing.T) {
	requireTools(t)
	npm(t, "check-build")
}

func TestScripts(t *testing.T) {
	requireTools(t)
	npm(t, "test")
}

func TestPlaygroundInBrowser(t *testing.T) {
	requireTools(t)
	program := buildKoine(t)
	t.Run("at the root", func(t *testing.T) {
		walk(t, "playground.mjs", "--url", startKoine(t, program).String()+"/")
	})
	t.Run("below a prefix", func(t *testing.T) {
		// It leaves the Host as it came: koine compares it with the Origin.
		koine := httputil.NewSingleHostReverseProxy(startKoine(t, program))
		proxy := httptest.NewServer(http.StripPrefix("/some/prefix", readFirst(koine)))
		defer proxy.Close()
		walk(t, "playground.mjs", "--url", proxy.URL+"/some/prefix/")
	})
}

// The page reports in plain words that the server is unreachable.
func TestPlaygroundAcrossRestarts(t *testing.T) {
	requireTools(t)
	walk(t, "restart.mjs", "--koine", buildKoine(t), "--data", filepath.Join(t.TempDir(), "data"))
}

// The page works with a key, and shows refusals. One update a second is few enough for the
// walk to reach that limit.
func TestPlaygroundWithKeys(t *testing.T) {
	requireTools(t)
	koine, key := startWithKeys(t, buildKoine(t), "--auth", "keys", "--principal-updates", "1")
	walk(t, "keys.mjs", "--url", koine.String()+"/", "--admin", key)
}

// Pages of other origins come in where the operator lets them, and nowhere else.
func TestOrigins(t *testing.T) {
	requireTools(t)
	program := buildKoine(t)
	page := func() *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			io.WriteString(w, "<!doctype html><title>another site</title><link rel=icon href=data:,>")
		}))
		t.Cleanup(server.Close)
		return server
	}
	allowed, foreign := page(), page()
	koine, key := startWithKeys(t, program, "--auth", "keys", "--allow-origin", allowed.URL)
	open := startKoine(t, program)
	walk(t, "origins.mjs", "--url", koine.String()+"/", "--open", open.String()+"/", "--admin", key, "--allowed", allowed.URL, "--foreign", foreign.URL)
}
