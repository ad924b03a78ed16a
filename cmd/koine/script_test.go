package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// exits CODE PROGRAM ARG… runs a program that must end with this exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%v ended with %d, want %d", args[1:], got, want)
	}
}

// sorted FILE sorts a file's lines, for comparing.
func sorted(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		lines := strings.Split(strings.TrimSpace(ts.ReadFile(name)), "\n")
		slices.Sort(lines)
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
}

// private FILE… fails unless only their owner may read the files.
func private(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		st, err := os.Stat(ts.MkAbs(name))
		ts.Check(err)
		if (st.Mode().Perm() == 0o600) == neg {
			ts.Fatalf("%s has mode %v", name, st.Mode())
		}
	}
}

// keyFrom NAME FILE finds an API key in a file and sets $NAME to it, and $NAME_ID
// to its id.
func keyFrom(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keyfrom NAME FILE")
	}
	key := regexp.MustCompile(`ak_(?:live|test)_([0-9A-Za-z]{12})_[0-9A-Za-z]{43}`).FindStringSubmatch(ts.ReadFile(args[1]))
	if key == nil {
		ts.Fatalf("there is no key in %s", args[1])
	}
	ts.Setenv(args[0], key[0])
	ts.Setenv(args[0]+"_ID", key[1])
}

// valueFrom NAME FILE sets $NAME to the content of a file, without the space around it.
func valueFrom(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: valuefrom NAME FILE")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

// jsonLines stdout|stderr PATTERN fails unless each line is a JSON object and one of them
// matches.
func jsonLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: jsonlines stdout|stderr PATTERN")
	}
	found := false
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			ts.Fatalf("not JSON: %s", line)
		}
		found = found || regexp.MustCompile(args[1]).MatchString(line)
	}
	if !found {
		ts.Fatalf("no line matches %s:\n%s", args[1], ts.ReadFile(args[0]))
	}
}

type serversKey struct{}

// servers are those that a script has started.
type servers struct{ running []*server }

// server is a koine serve in the background.
type server struct {
	process *exec.Cmd
	log     *growingText
	ended   chan error
}

// serve ARG… starts a server on a free port, waits until it listens, and sets
// $URL.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command("koine", append([]string{"serve", "--listen", "127.0.0.1:0", "--reserve-mib", "0"}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "TMPDIR="+ts.Getenv("TMPDIR"), "HOME="+ts.MkAbs("."))
	out, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	s := &server{process: cmd, log: new(growingText), ended: make(chan error, 1)}
	all := ts.Value(serversKey{}).(*servers)
	all.running = append(all.running, s)
	url, err := s.listening(out)
	if err != nil {
		ts.Fatalf("the server did not start: %v\n%s", err, s.log)
	}
	ts.Setenv("URL", url)
}

// growingText is read while it is written.
type growingText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (g *growingText) WriteString(s string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.text.WriteString(s)
}

func (g *growingText) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.String()
}

// listening reads the log up to the line with the address, and leaves a
// goroutine that reads the rest and waits for the end.
func (s *server) listening(out io.Reader) (url string, err error) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		s.log.WriteString(lines.Text() + "\n")
		if _, after, ok := strings.Cut(lines.Text(), "msg=listening url="); ok {
			url, _, _ = strings.Cut(after, " ")
			break
		}
	}
	if url == "" {
		err = errors.Join(errors.New("it ended"), s.process.Wait())
		s.ended <- err
		return "", err
	}
	go func() {
		for lines.Scan() {
			s.log.WriteString(lines.Text() + "\n")
		}
		s.ended <- s.process.Wait()
	}()
	return url, nil
}

// signal NAME sends a signal to the newest server and waits for its end; with !
// the end must not be a success. The server's log becomes the file server.log.
func signalServer(ts *testscript.TestScript, neg bool, args []string) {
	all := ts.Value(serversKey{}).(*servers)
	if len(args) != 1 || len(all.running) == 0 {
		ts.Fatalf("usage: signal INT|TERM|KILL, with a server running")
	}
	s := all.running[len(all.running)-1]
	all.running = all.running[:len(all.running)-1]
	ts.Check(s.process.Process.Signal(map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "KILL": os.Kill}[args[0]]))
	err := <-s.ended
	ts.Check(os.WriteFile(ts.MkAbs("server.log"), []byte(s.log.String()), 0o644))
	if (err != nil) != neg {
		ts.Fatalf("the server ended with %v\n%s", err, s.log)
	}
}

func (all *servers) killAll() {
	for _, s := range all.running {
		s.process.Process.Kill()
		<-s.ended
	}
}

func mustAbs(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		panic(err)
	}
	return abs
}
