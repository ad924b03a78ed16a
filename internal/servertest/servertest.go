// Package servertest runs the program as it is, for tests of what talks to it.
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
)

// Server is a koine server in a process of its own, behind an address that stays
// when the process ends and another takes its place.
type Server struct {
	URL string

	t       testing.TB
	dir     string
	args    []string
	at      atomic.Pointer[string]
	process *exec.Cmd
}

// Start runs "koine serve" with further arguments, on a data directory of its own,
// until the test ends.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), args: args}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = front.Close() })
	s.URL = "http://" + front.Addr().String()
	go s.relay(front)
	s.run()
	t.Cleanup(s.Kill)
	return s
}

// relay leads connections to where the server is now, until the listener is closed.
func (s *Server) relay(front net.Listener) {
	for {
		in, err := front.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			out, err := net.Dial("tcp", *s.at.Load())
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
	// One that has ended cannot be killed, and need not.
	if s.process.Process.Kill() == nil {
		_, _ = s.process.Process.Wait()
	}
}

// Restart kills the process and runs another on the same data.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.run()
}

func (s *Server) run() {
	s.t.Helper()
	s.process = exec.Command(program(s.t), append([]string{"serve", "--listen", "127.0.0.1:0", "--reserve-mib", "0", "--data", s.dir}, s.args...)...)
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
			s.at.Store(&address)
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
	demo = new(example)
	return Start(demo, "--demo").URL
})

// demo stands for the test that starts the server of the examples.
var demo *example

type example struct {
	testing.TB // for what is not below: nil
	ends       []func()
}

func (e *example) Helper()            {}
func (e *example) Cleanup(end func()) { e.ends = append(e.ends, end) }
func (e *example) Fatal(args ...any)  { panic(fmt.Sprint(args...)) }
func (e *example) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

func (e *example) TempDir() string {
	dir, err := os.MkdirTemp("", "koine-example-")
	if err != nil {
		panic(err)
	}
	e.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (e *example) end() {
	for _, end := range slices.Backward(e.ends) {
		end()
	}
}

// Main is the TestMain of a package whose tests start servers: it takes away behind
// them what was built, and ends the server of its examples.
func Main(m *testing.M) {
	code := m.Run()
	if demo != nil {
		demo.end()
	}
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

// program builds koine, once for all tests of a package.
func program(t testing.TB) string {
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
