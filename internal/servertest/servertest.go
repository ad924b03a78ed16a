// Package servertest runs the koine binary for tests of its clients.
package servertest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"koine/internal/observertest"
)

// Server is a koine server in a process of its own, behind an address that stays
// when the process ends and another takes its place.
type Server struct {
	URL string

	t        testing.TB
	dir      string
	args     []string
	upstream atomic.Pointer[string]
	process  *exec.Cmd
}

// Start runs "koine serve" with further arguments, on a data directory of its own,
// until the test ends.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), args: args}
	if _, example := t.(*exampleTB); !example {
		observertest.Replay(t, s.dir)
	}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = front.Close() })
	s.URL = "http://" + front.Addr().String()
	go s.forwardConnections(front)
	s.startProcess()
	t.Cleanup(s.Kill)
	return s
}

// forwardConnections forwards connections to the current process until front is closed.
func (s *Server) forwardConnections(front net.Listener) {
	for {
		in, err := front.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			out, err := net.Dial("tcp", *s.upstream.Load())
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				defer out.Close()
				_, _ = io.Copy(out, in)
			}()
			defer out.Close()
			_, _ = io.Copy(in, out)
		}()
	}
}

// Kill ends the process at once, as SIGKILL does. Requests fail until Restart.
func (s *Server) Kill() {
	// Kill fails if the process has ended already.
	if s.process.Process.Kill() == nil {
		_, _ = s.process.Process.Wait()
	}
}

// Restart kills the process and runs another on the same data.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.startProcess()
}

func (s *Server) startProcess() {
	s.t.Helper()
	s.process = exec.Command(buildBinary(s.t), append([]string{"serve", "--listen", "127.0.0.1:0", "--reserve-mib", "0", "--data", s.dir}, s.args...)...)
	said, err := s.process.StderrPipe()
	if err == nil {
		err = s.process.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	var text strings.Builder
	for lines := bufio.NewScanner(said); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if _, after, ok := strings.Cut(lines.Text(), "msg=listening url=http://"); ok {
			address, _, _ := strings.Cut(after, " ")
			s.upstream.Store(&address)
			go func() { _, _ = io.Copy(io.Discard, said) }() // ends with the process
			return
		}
	}
	s.t.Fatalf("the server did not start:\n%s", text.String())
}

var (
	build    sync.Once
	built    string
	buildErr error
)

// Demo is the address of a server with the demo's graph, the same for all examples of a
// package, which have no testing.TB. It runs until Main ends.
var Demo = sync.OnceValue(func() string {
	demoTB = new(exampleTB)
	return Start(demoTB, "--demo").URL
})

// demoTB stands for the test that starts the server of the examples.
var demoTB *exampleTB

type exampleTB struct {
	testing.TB // nil: only the methods below may be called
	cleanups   []func()
}

func (e *exampleTB) Helper()            {}
func (e *exampleTB) Cleanup(end func()) { e.cleanups = append(e.cleanups, end) }
func (e *exampleTB) Fatal(args ...any)  { panic(fmt.Sprint(args...)) }
func (e *exampleTB) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

func (e *exampleTB) TempDir() string {
	dir, err := os.MkdirTemp("", "koine-example-")
	if err != nil {
		panic(err)
	}
	e.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (e *exampleTB) runCleanups() {
	for _, end := range slices.Backward(e.cleanups) {
		end()
	}
}

// Main is the TestMain of packages with servers: it runs the tests, stops the server of
// the examples, and removes the binary.
func Main(m *testing.M) {
	code := m.Run()
	if demoTB != nil {
		demoTB.runCleanups()
	}
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

// buildBinary builds koine, once for all tests of a package.
func buildBinary(t testing.TB) string {
	t.Helper()
	build.Do(func() {
		dir, err := os.MkdirTemp("", "koine-test-")
		if err != nil {
			buildErr = err
			return
		}
		built = filepath.Join(dir, "koine")
		var out []byte
		if out, buildErr = exec.Command("go", "build", "-o", built, "koine/cmd/koine").CombinedOutput(); buildErr != nil {
			buildErr = fmt.Errorf("%w\n%s", buildErr, out)
		}
	})
	if buildErr != nil {
		t.Fatalf("building koine: %v", buildErr)
	}
	return built
}
