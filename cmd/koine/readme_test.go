package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The README's tour is what happens: its commands are run against a demo server
// in their order, and what it shows is what they print, but for times, positions
// and ids. With UPDATE_README=1 what they print is written into it.
func TestReadmeTour(t *testing.T) {
	const path = "../../README.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, url := startServer(t, "--demo")
	tour := &tour{t: t, url: url}
	updated := blocks.ReplaceAllStringFunc(string(text), tour.block)
	tour.finish()
	if tour.commands < 5 {
		t.Errorf("found %d commands", tour.commands)
	}
	updated = tour.shown(updated)
	if os.Getenv("UPDATE_README") != "" {
		if err := os.WriteFile(path, []byte(updated), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(mask(string(text)), mask(updated)); diff != "" {
		t.Errorf("what the README shows is not what happens (-shown +happens); UPDATE_README=1 writes it:\n%s", diff)
	}
}

// blocks are a command and what it prints. The word follow behind console says
// that it goes on beside the commands after it.
var blocks = regexp.MustCompile("(?s)```console( follow)?\n\\$ ([^\n]*)\n(.*?)```")

// masks are what differs from run to run.
var masks = regexp.MustCompile(`AQAA[\w-]{20,}|[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z|"durationMs":[\d.]+`)

func mask(s string) string { return masks.ReplaceAllString(s, "…") }

// following stands for what a following command has printed in the end.
const following = "\x00following\x00"

type tour struct {
	t        *testing.T
	url      string
	commands int
	follow   *exec.Cmd
	events   *bufio.Reader
	seen     string
}

// block runs the command of a block and gives the block with what it printed.
func (r *tour) block(block string) string {
	parts := blocks.FindStringSubmatch(block)
	r.commands++
	command := strings.ReplaceAll(parts[2], "http://127.0.0.1:8080", r.url)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	if parts[1] != "" {
		r.t.Cleanup(cancel)
		r.start(exec.CommandContext(ctx, "sh", "-c", "exec "+command))
		return "```console follow\n$ " + parts[2] + "\n" + following + "```"
	}
	defer cancel()
	out, err := exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput()
	if err != nil {
		r.t.Errorf("%s: %v\n%s", parts[2], err, out)
	}
	if strings.Contains(string(out), `"errors"`) || strings.Contains(string(out), `"error":`) {
		r.t.Errorf("%s: it shows an error\n%s", parts[2], out)
	}
	printed := strings.ReplaceAll(string(out), r.url, "http://127.0.0.1:8080")
	return "```console\n$ " + parts[2] + "\n" + strings.TrimRight(printed, "\n") + "\n```"
}

// start starts a following command and waits until the server streams to it.
func (r *tour) start(cmd *exec.Cmd) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.follow, r.events = cmd, bufio.NewReader(out)
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(r.metrics(), "\nkoine_streams 1\n"); {
		if time.Now().After(deadline) {
			r.t.Fatal("the stream was not opened")
		}
	}
}

func (r *tour) metrics() string {
	response, err := http.Get(r.url + "/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// finish takes the first event of the following command and ends it.
func (r *tour) finish() {
	if r.follow == nil {
		return
	}
	for r.seen == "" {
		line, err := r.events.ReadString('\n')
		if err != nil {
			r.t.Fatal(err)
		}
		if strings.HasPrefix(line, "data:") {
			r.seen = line
		}
	}
	_ = r.follow.Process.Kill()
	_ = r.follow.Wait() // killed
}

func (r *tour) shown(text string) string { return strings.ReplaceAll(text, following, r.seen) }
