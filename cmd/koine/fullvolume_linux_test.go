package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"koine/internal/slowtest"
)

// defaultFullRounds is the number of times that TestFullVolume fills each volume, unless
// the environment variable KOINE_FULL_VOLUMES is set.
const defaultFullRounds = 3

const fullVolumeMiB = 320

// TestFullVolume fills the volume of a server to its last byte during writes, on ext4 and
// on tmpfs, repeatedly. It proves: the process lives; reads continue, and so do streams;
// updates are answered or DISK_FULL, and nothing else; a killed server starts on the full
// volume, reports in one line why it accepts no updates, and is readable; with free space,
// updates continue without a restart; and no acknowledged update is lost.
func TestFullVolume(t *testing.T) {
	slowtest.Long(t)
	rounds := defaultFullRounds
	if n, err := strconv.Atoi(os.Getenv("KOINE_FULL_VOLUMES")); err == nil && n > 0 {
		rounds = n
	}
	for _, kind := range []string{"ext4", "tmpfs"} {
		t.Run(kind, func(t *testing.T) {
			v := &fullVolume{t: t, told: make(map[string]bool)}
			v.mountVolume(kind)
			for i := range rounds {
				v.round(i)
			}
			v.end()
		})
	}
}

// mountVolume mounts a small volume. It skips the test if the process may not mount.
func (v *fullVolume) mountVolume(kind string) {
	t, dir := v.t, v.t.TempDir()
	mount := filepath.Join(dir, "volume")
	if err := os.Mkdir(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	var commands [][]string
	if kind == "tmpfs" {
		commands = [][]string{{"mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", fullVolumeMiB), "none", mount}}
	} else {
		image := filepath.Join(dir, "image")
		commands = [][]string{
			{"truncate", "-s", fmt.Sprintf("%dM", fullVolumeMiB), image},
			{"mkfs.ext4", "-qF", "-m", "0", image},
			{"mount", "-o", "loop", image, mount},
		}
	}
	for _, c := range commands {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Skipf("NOT TESTED: this process may not mount a volume of %s: %v: %s", kind, err, bytes.TrimSpace(out))
		}
	}
	t.Cleanup(func() {
		v.kill()
		if err := unix.Unmount(mount, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	v.mount = mount
}

// fullVolume is a server on a small volume, and its acknowledged updates.
type fullVolume struct {
	t     *testing.T
	mount string

	server *server // nil before the first
	url    string

	mu      sync.Mutex      // guards the following fields
	told    map[string]bool // subjects of the updates that were acknowledged
	refused int             // updates
	strange []string        // answers
}

func (v *fullVolume) start(reserve string) {
	v.t.Helper()
	cmd := exec.Command("koine", "serve", "--listen", "127.0.0.1:0", "--reserve-mib", reserve, "--data", filepath.Join(v.mount, "data"),
		"--principal-requests", "0", "--principal-updates", "0")
	out, err := cmd.StderrPipe()
	if err != nil {
		v.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	v.server = &server{process: cmd, log: new(growingText), ended: make(chan error, 1)}
	if v.url, err = v.server.listening(out); err != nil {
		v.t.Fatal(err, v.server.log)
	}
}

// kill kills the server, if there is one.
func (v *fullVolume) kill() {
	if v.server != nil {
		_ = v.server.process.Process.Kill() // it may have ended
		<-v.server.ended
		v.server = nil
	}
}

// update adds statements about a new subject, and returns the status of the answer.
func (v *fullVolume) update(subject string) int {
	var doc strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doc, "<%s> <urn:p%d> \"%d %x\" .\n", subject, i, i, rand.Uint64())
	}
	request, err := http.NewRequest(http.MethodPost, v.url+"/data?default", strings.NewReader(doc.String()))
	if err != nil {
		v.t.Error(err)
		return 0
	}
	request.Header.Set("Content-Type", "text/turtle")
	// A caller has a share of the imports, so each writer is one of its own.
	request.Header.Set("X-Agent-ID", "writer-"+path.Base(path.Dir(strings.ReplaceAll(subject, ":", "/"))))
	answer, err := http.DefaultClient.Do(request)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		v.strange = append(v.strange, err.Error())
		return 0
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	switch {
	case answer.StatusCode == http.StatusOK:
		v.told[subject] = true
	case answer.StatusCode == http.StatusInsufficientStorage && bytes.Contains(text, []byte("DISK_FULL")):
		v.refused++
	default:
		v.strange = append(v.strange, fmt.Sprint(answer.StatusCode, " ", string(text)))
	}
	return answer.StatusCode
}

// read fails the test unless all acknowledged updates are there.
func (v *fullVolume) read(when string) {
	v.t.Helper()
	request, _ := http.NewRequest(http.MethodGet, v.url+"/data", nil)
	request.Header.Set("Accept", "application/n-triples")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		v.t.Fatalf("%s: %v\n%s", when, err, v.server.log)
	}
	defer answer.Body.Close()
	there := make(map[string]int)
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		subject, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "<"), ">")
		there[subject]++
	}
	if err := lines.Err(); err != nil || answer.StatusCode != http.StatusOK {
		v.t.Fatalf("%s: status %d, %v", when, answer.StatusCode, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for subject := range v.told {
		if there[subject] != 40 {
			v.t.Fatalf("%s: %d of 40 statements about %s are there, which was acknowledged", when, there[subject], subject)
		}
	}
}

// fill takes all of the volume, to the last byte that a file can have.
func (v *fullVolume) fill(name string) {
	v.t.Helper()
	f, err := os.Create(filepath.Join(v.mount, name))
	if err != nil {
		v.t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 20, 4 << 10, 1} {
		block := make([]byte, size)
		for err = nil; err == nil; {
			_, err = f.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			v.t.Fatal(err)
		}
	}
}

func (v *fullVolume) round(n int) {
	v.t.Helper()
	reserve := []string{"0", "16"}[n/2%2]
	if v.server == nil {
		v.start(reserve)
	}
	// A stream of all changes, which must continue through all of it.
	ctx, cancel := context.WithCancel(v.t.Context())
	defer cancel()
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, v.url+"/changes", nil)
	stream, err := http.DefaultClient.Do(request)
	if err != nil {
		v.t.Fatal(err)
	}
	defer stream.Body.Close()
	after := fmt.Sprintf("urn:round%d:after", n)
	seen := make(chan error, 1)
	go func() {
		lines := bufio.NewReader(stream.Body)
		for {
			line, err := lines.ReadString('\n')
			if strings.Contains(line, after) || err != nil {
				seen <- err
				return
			}
		}
	}()

	var writers sync.WaitGroup
	stop := make(chan struct{})
	for w := range 3 { // four imports run at a time
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if v.update(fmt.Sprintf("urn:round%d:%d:%d", n, w, i)) != http.StatusOK {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	await := func(what string, done func() bool) {
		v.t.Helper()
		for began := time.Now(); !done(); time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > time.Minute {
				v.t.Fatalf("round %d: %s: not within a minute\n%s", n, what, v.server.log)
			}
		}
	}
	count := func() (told, refused int) {
		v.mu.Lock()
		defer v.mu.Unlock()
		return len(v.told), v.refused
	}
	before, _ := count()
	await("updates", func() bool { told, _ := count(); return told >= before+20+n%7*10 })
	v.fill("junk")
	_, refused := count()
	await("refusals", func() bool { _, now := count(); return now > refused })
	v.fill("more") // statements that the server removed meanwhile
	v.read(fmt.Sprintf("round %d, full", n))
	_, refused = count()
	await("refusals that go on", func() bool { _, now := count(); return now > refused+20 })
	v.read(fmt.Sprintf("round %d, full for a while", n))
	if n%2 == 1 {
		close(stop)
		writers.Wait()
		v.kill()
		v.fill("rest")
		v.start("16")
		if lines := strings.Count(v.server.log.String(), "is full: updates are refused, reads go on"); lines != 1 {
			v.t.Errorf("round %d: the start says in %d lines that the volume is full:\n%s", n, lines, v.server.log)
		}
		v.read(fmt.Sprintf("round %d, started on the full volume", n))
		if status := v.update(fmt.Sprintf("urn:round%d:full", n)); status != http.StatusInsufficientStorage {
			v.t.Errorf("round %d: an update on the full volume is answered with %d", n, status)
		}
	}
	for _, name := range []string{"junk", "more", "rest"} {
		_ = os.Remove(filepath.Join(v.mount, name))
	}
	await("updates with room again", func() bool { return v.update(after) == http.StatusOK })
	if n%2 == 0 {
		select {
		case err := <-seen:
			if err != nil {
				v.t.Errorf("round %d: the stream: %v", n, err)
			}
		case <-time.After(time.Minute):
			v.t.Errorf("round %d: the stream does not tell of an update after there is room", n)
		}
		close(stop)
		writers.Wait()
	}
	v.read(fmt.Sprintf("round %d, with room", n))
	if len(v.strange) > 0 {
		v.t.Fatalf("round %d: an update is answered with %s, of %d\n%s", n, v.strange[0], len(v.strange), v.server.log)
	}
}

// end closes the server gracefully, and checks its directory.
func (v *fullVolume) end() {
	v.t.Helper()
	s := v.server
	v.server = nil
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		v.t.Fatal(err)
	}
	if err := <-s.ended; err != nil {
		v.t.Fatalf("the server ends with %v\n%s", err, s.log)
	}
	if out, err := exec.Command("koine", "check", "--data", filepath.Join(v.mount, "data")).CombinedOutput(); err != nil {
		v.t.Fatalf("koine check: %v\n%s", err, out)
	}
	v.t.Logf("%d updates were acknowledged, %d refused", len(v.told), v.refused)
}
