// Package e2e_test opens the playground in a real browser.
package e2e_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"koine/web"
)

// Bounds for a busy machine.
const (
	browserTime = 3 * time.Minute // a whole walk through the page
	buildTime   = 3 * time.Minute
)

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

// walkPlayground runs playground.mjs against the page at address. With the directory
// KOINE_SCREENSHOTS in the environment it leaves pictures of the steps there.
func walkPlayground(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), browserTime)
	defer cancel()
	arguments := []string{"playground.mjs", "--url", address}
	if directory := os.Getenv("KOINE_SCREENSHOTS"); directory != "" {
		arguments = append(arguments, "--screenshots", directory)
	}
	output, err := exec.CommandContext(ctx, "node", arguments...).CombinedOutput()
	t.Logf("%s", output)
	if err != nil {
		t.Fatalf("playground.mjs: %v", err)
	}
}

// startToy starts the GraphQL server of toy.mjs, which ends with the test, and
// returns its address.
func startToy(t *testing.T) *url.URL {
	t.Helper()
	command := exec.Command("node", "toy.mjs")
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		input.Close() // it ends with its input
		command.Wait()
	})
	port, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("toy.mjs names no port: %v", err)
	}
	return &url.URL{Scheme: "http", Host: "127.0.0.1:" + strings.TrimSpace(port)}
}

// npm runs a script of web/package.json.
func npm(t *testing.T, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildTime)
	defer cancel()
	command := exec.CommandContext(ctx, "npm", "run", "--silent", script)
	command.Dir = ".."
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("npm run %s: %v\n%s", script, err, output)
	}
}

// TestBuildIsCurrent proves that the committed build is what the sources make.
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
	mux := http.NewServeMux()
	mux.Handle("/graphql", httputil.NewSingleHostReverseProxy(startToy(t)))
	mux.Handle("/", web.Handler())

	t.Run("at the root", func(t *testing.T) {
		server := httptest.NewServer(mux)
		defer server.Close()
		walkPlayground(t, server.URL+"/playground")
	})
	t.Run("below a prefix", func(t *testing.T) {
		server := httptest.NewServer(http.StripPrefix("/some/prefix", mux))
		defer server.Close()
		walkPlayground(t, server.URL+"/some/prefix/playground")
	})
}
