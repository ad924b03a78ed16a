package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/internal/slowtest"
)

// The documents show real output: their commands are run against a demo server in their
// order, and the text below them is their output, except for times, positions and ids. With
// UPDATE_README=1 the output is written into them.
func TestTours(t *testing.T) {
	slowtest.Long(t)
	for _, c := range []struct {
		name, path string
		commands   int // that it has at least
	}{
		{"README", "../../README.md", 4},
		{"doors", "../../docs/doors.md", 3},
		{"first agent", "../../docs/first-agent.md", 5},
		{"HTTP", "../../docs/reference/http.md", 1},
		{"knowledge", "../../docs/reference/knowledge.md", 9},
		{"changes", "../../docs/reference/changes.md", 2},
		{"GraphQL", "../../docs/reference/graphql.md", 8},
		{"channels", "../../docs/reference/channels.md", 4},
		{"A2A", "../../docs/reference/a2a.md", 3},
		{"hub", "../../docs/reference/hub.md", 2},
		{"REST", "../../docs/reference/rest.md", 4},
		{"RDF over HTTP", "../../docs/reference/rdf-over-http.md", 5},
	} {
		t.Run(c.name, func(t *testing.T) { takeTour(t, c.path, c.commands) })
	}
}

func takeTour(t *testing.T, path string, commands int) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, url := startServer(t, "--demo")
	tour := &tour{t: t, url: url}
	updated := blocks.ReplaceAllStringFunc(string(text), tour.block)
	all := strings.Count(string(text), "```console") - strings.Count(string(text), "```console trust") // those are TestTourOfTrust's
	if tour.commands != all || all < commands {
		t.Errorf("%d of %d commands are run", tour.commands, all)
	}
	updated = tour.shown(updated)
	if os.Getenv("UPDATE_README") != "" {
		if err := os.WriteFile(path, []byte(updated), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(mask(string(text)), mask(updated)); diff != "" {
		t.Errorf("what %s shows is not what happens (-shown +happens); UPDATE_README=1 writes it:\n%s", path, diff)
	}
}

// blocks are a command, which continues in indented lines, and its output. Behind console
// the word follow means that it runs beside the commands after it, and the word error that
// it shows one.
var blocks = regexp.MustCompile("(?s)```console( follow| error)?\n\\$ ([^\n]*(?:\n  [^\n]*)*)\n(.*?)```")

// masks are the parts that differ from run to run: later revisions too, since presence is
// written during the tour.
var masks = regexp.MustCompile(`"revision":1\d\b|\bA[g-v][\w-]{37}\b|[0-9a-f]{8}-[0-9a-f]{4}-[57][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{64}\b|\d{4}-\d\d-\d\dT[\d:.]+Z|"durationMs":[\d.]+|"cursor":"[\w-]{40,}"|"(?:createdAt|joinedAt|timestamp)":\d+|X-Request-Id: [\w-]+|Date: [^\n]+`)

func mask(s string) string { return masks.ReplaceAllString(s, "…") }

// following stands for the final output of the nth following command.
func following(n int) string { return fmt.Sprintf("\x00following %d\x00", n) }

type tour struct {
	t        *testing.T
	url      string
	commands int
	follow   []*bufio.Reader // the output of each following command
}

// block runs the command of a block and returns the block with its output.
func (r *tour) block(block string) string {
	parts := blocks.FindStringSubmatch(block)
	r.commands++
	command := strings.ReplaceAll(parts[2], "http://127.0.0.1:8080", r.url)
	head := "```console" + parts[1] + "\n$ " + parts[2] + "\n"
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	if parts[1] == " follow" {
		cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+command)
		r.start(cmd)
		r.t.Cleanup(func() {
			cancel()
			_ = cmd.Wait() // killed
		})
		return head + following(len(r.follow)-1) + "```"
	}
	defer cancel()
	out, err := exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput()
	if err != nil {
		r.t.Errorf("%s: %v\n%s", parts[2], err, out)
	}
	failed := strings.Contains(string(out), `"errors"`) || strings.Contains(string(out), `"error":`)
	if failed != (parts[1] == " error") {
		r.t.Errorf("%s: does it show an error? %v\n%s", parts[2], failed, out)
	}
	printed := strings.ReplaceAll(strings.ReplaceAll(string(out), r.url, "http://127.0.0.1:8080"), "\r\n", "\n")
	return head + strings.TrimRight(printed, "\n") + "\n```"
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
	r.follow = append(r.follow, bufio.NewReader(out))
	streams := fmt.Sprintf("\nkoine_streams %d\n", len(r.follow))
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(r.metrics(), streams); {
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

// shown puts the first event of each following command into its place.
func (r *tour) shown(text string) string {
	for n, out := range r.follow {
		text = strings.ReplaceAll(text, following(n), r.event(out))
	}
	return text
}

// event is the first block that has data.
func (r *tour) event(out *bufio.Reader) string {
	var block strings.Builder
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			r.t.Fatal(err)
		}
		switch {
		case line != "\n":
			block.WriteString(line)
		case strings.Contains("\n"+block.String(), "\ndata:"):
			return block.String()
		default:
			block.Reset()
		}
	}
}

// The README names the binary as its build leaves it. The other documents leave the
// directory out, and their index explains it.
func TestDocumentsNameTheBinary(t *testing.T) {
	readme := strings.ReplaceAll(document(t, "README.md"), "\nkoine is ", "\n")
	if said := regexp.MustCompile("(?m)(`|^|\\$ )koine [a-z]+( |`|$)").FindString(readme); said != "" {
		t.Errorf("README.md says %q, and its build leaves ./koine", said)
	}
	for _, file := range documentFiles(t, "docs") {
		if regexp.MustCompile(`(^|[^.])\./koine `).MatchString(document(t, file)) {
			t.Errorf("%s names the binary with its directory", file)
		}
	}
	if !strings.Contains(document(t, "docs/README.md"), "`koine` stands for the binary that `go build -o koine ./cmd/koine` makes") {
		t.Error("docs/README.md does not explain the binary")
	}
}
