package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// side is one of the two binaries.
type side struct {
	name   string
	binary string
	dir    string // parent of its data directories
	out    *os.File
}

// writeResult writes one result in benchmark format.
func (s *side) writeResult(row string, ops int, cpu time.Duration) error {
	_, err := fmt.Fprintf(s.out, "Benchmark%s %d %.0f cpu-ns/op\n", row, ops, float64(cpu.Nanoseconds())/float64(ops))
	return err
}

// measureRound loads the graph, serves it, and runs all rows once.
func (s *side) measureRound(ctx context.Context, graph string, scale float64) error {
	dir := filepath.Join(s.dir, "data")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	load := exec.CommandContext(ctx, s.binary, "load", "--data", dir, graph)
	if out, err := load.CombinedOutput(); err != nil {
		return fmt.Errorf("load: %w\n%s", err, out)
	}
	server, err := s.startServer(ctx, dir)
	if err != nil {
		return err
	}
	defer server.stop()
	if err := server.awaitIndex(ctx); err != nil {
		return err
	}
	// The index of texts is built at the first start after a load.
	started, err := server.cpuTime()
	if err != nil {
		return err
	}
	if err := s.writeResult("LoadIndexed", graphStatements, load.ProcessState.UserTime()+load.ProcessState.SystemTime()+started); err != nil {
		return err
	}
	for _, r := range rows {
		if err := server.runRow(ctx, s, r, scale); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	if err := server.stop(); err != nil {
		return err
	}
	return s.measureStart(ctx, dir)
}

// measureStart measures a start on the data that the rows left, until the server answers.
func (s *side) measureStart(ctx context.Context, dir string) error {
	server, err := s.startServer(ctx, dir)
	if err != nil {
		return err
	}
	used, err := server.cpuTime()
	return errors.Join(err, s.writeResult("Start", 1, used), server.stop())
}

// server is a running koine.
type server struct {
	cmd    *exec.Cmd
	url    string
	http   *http.Client
	output *strings.Builder
	ended  bool
}

func (s *side) startServer(ctx context.Context, dir string) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	v := &server{url: "http://" + address, output: new(strings.Builder)}
	v.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: time.Minute}
	v.cmd = exec.CommandContext(ctx, s.binary, "serve", "--data", dir, "--listen", address, "--log-level", "error")
	v.cmd.Stdout, v.cmd.Stderr = io.Discard, v.output
	v.cmd.Cancel = func() error { return v.cmd.Process.Signal(syscall.SIGTERM) }
	if err := v.cmd.Start(); err != nil {
		return nil, err
	}
	if err := v.awaitReady(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w\n%s", err, v.output), v.stop())
	}
	return v, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

const readyTimeout = time.Minute

func (v *server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+"/readyz", nil)
		if err != nil {
			return err
		}
		if resp, err := v.http.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func (v *server) stop() error {
	if v.ended {
		return nil
	}
	v.ended = true
	v.http.CloseIdleConnections()
	if err := v.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return v.cmd.Wait()
}

// cpuTime returns the processor time of the server, with the resolution of a clock tick.
func (v *server) cpuTime() (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", v.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may contain anything; utime and stime are fields 14 and 15.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat has %d fields", len(fields))
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	const tick = 10 * time.Millisecond // USER_HZ is 100 on Linux
	return time.Duration(user+system) * tick, errors.Join(err, err2)
}
