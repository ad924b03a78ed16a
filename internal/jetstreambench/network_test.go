package jetstreambench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// BenchmarkPublishNetwork publishes messages over the network, in turns: to channels of the
// program over HTTP, and to a JetStream that syncs each message. Each server is a process of its
// own, and each publisher has a connection and waits for its answers. The first fifth of a
// round is not counted.
func BenchmarkPublishNetwork(b *testing.B) {
	program := os.Getenv("KOINE_BINARY")
	if program == "" {
		program = filepath.Join(b.TempDir(), "koine")
		build := exec.Command("go", "build", "-o", program, "./cmd/koine")
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	for _, publishers := range []int{16, 128} {
		b.Run(fmt.Sprintf("publishers=%d", publishers), func(b *testing.B) {
			n := 10 * *messages
			var sums [2]spent
			for round := range b.N {
				for i := range sums {
					i = (i + round) % len(sums)
					var s spent
					if i == 0 {
						s = publishOverHTTP(b, program, publishers, n)
					} else {
						s = publishOverNATS(b, publishers, n)
					}
					sums[i].elapsed += s.elapsed
					sums[i].processor += s.processor
				}
			}
			rate := func(i int) float64 { return float64(n*b.N) / sums[i].elapsed.Seconds() }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(rate(0), "messages/s")
			b.ReportMetric(rate(1), "jetstream-messages/s")
			b.ReportMetric(rate(0)/rate(1), "ratio")
			b.ReportMetric(float64(sums[0].processor.Microseconds())/float64(n*b.N), "cpu-µs/message")
			b.ReportMetric(float64(sums[1].processor.Microseconds())/float64(n*b.N), "jetstream-cpu-µs/message")
		})
	}
}

// spendBeside measures work that another process does for clients in this one.
func spendBeside(b *testing.B, process *os.Process, publishers, n int, work func(publisher, i int) error) spent {
	b.Helper()
	run := func(from, to int) {
		var next atomic.Int64
		next.Store(int64(from))
		var all sync.WaitGroup
		for p := range publishers {
			all.Go(func() {
				for i := int(next.Add(1)) - 1; i < to; i = int(next.Add(1)) - 1 {
					if err := work(p, i); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		if b.Failed() {
			b.FailNow()
		}
	}
	run(0, n/5)
	syscall.Sync()
	before, start := processorTimeOf(b, process), time.Now()
	run(n/5, n/5+n)
	return spent{time.Since(start), processorTimeOf(b, process) - before}
}

// processorTimeOf returns the processor time of another process, in clock ticks.
func processorTimeOf(b *testing.B, process *os.Process) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// startBeside starts a command, and returns the first match in its output.
func startBeside(b *testing.B, command *exec.Cmd, ready *regexp.Regexp) (match string, stop func()) {
	b.Helper()
	out, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	stop = func() {
		_ = command.Process.Kill() // one that has ended is as good
		_ = command.Wait()
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := ready.FindStringSubmatch(lines.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }() // it ends with the process
			return found[1], stop
		}
	}
	stop()
	b.Fatal("it ended before it was ready")
	return "", nil
}

func publishOverHTTP(b *testing.B, program string, publishers, n int) spent {
	b.Helper()
	command := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--reserve-mib", "0", "--data", filepath.Join(b.TempDir(), "data"))
	address, stop := startBeside(b, command, regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`))
	defer stop()
	clients := make([]*leanClient, publishers)
	for i := range clients {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		clients[i] = &leanClient{conn: conn, in: bufio.NewReader(conn)}
	}
	body, err := clients[0].post(`{"jsonrpc":"2.0","id":1,"method":"channels/create","params":{"name":"measured"}}`)
	var made struct {
		Result struct{ Channel struct{ ID string } }
	}
	if err == nil {
		err = json.Unmarshal(body, &made)
	}
	id := made.Result.Channel.ID
	if err != nil || id == "" {
		b.Fatalf("%v, %s", err, body)
	}
	return spendBeside(b, command.Process, publishers, n, func(p, i int) error {
		answer, err := clients[p].post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"channels/publish","params":{"channelId":%q,"parts":[%s]}}`, id, parts(i)[0]))
		if err == nil && !bytes.Contains(answer, []byte(`"sequence":`)) {
			err = fmt.Errorf("answer %s", answer)
		}
		return err
	})
}

// leanClient is a connection that does as little as a client can.
type leanClient struct {
	conn          net.Conn
	in            *bufio.Reader
	request, body []byte
}

// post sends a call and returns its answer, which is valid until the next one.
func (c *leanClient) post(call string) ([]byte, error) {
	c.request = fmt.Appendf(c.request[:0], "POST /a2a HTTP/1.1\r\nHost: localhost\r\nX-Agent-ID: ann\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(call), call)
	if _, err := c.conn.Write(c.request); err != nil {
		return nil, err
	}
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); string(name) == "Content-Length" {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return nil, err
			}
		}
	}
	if length < 0 {
		return nil, fmt.Errorf("an answer without a length")
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	_, err := io.ReadFull(c.in, c.body[:length])
	return c.body[:length], err
}

// storeVariable names the variable with the directory of a JetStream that this program is to
// serve, in a process of its own.
const storeVariable = "JETSTREAM_STORE"

// serveJetStream serves a JetStream that syncs each message until the process ends.
func serveJetStream(dir string) {
	s, err := server.NewServer(&server.Options{JetStream: true, StoreDir: dir, SyncAlways: true, Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true})
	if err != nil {
		panic(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		panic("the server is not ready")
	}
	fmt.Fprintf(os.Stderr, "serves %s\n", s.ClientURL())
	select {}
}

func publishOverNATS(b *testing.B, publishers, n int) spent {
	b.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), storeVariable+"="+b.TempDir())
	url, stop := startBeside(b, command, regexp.MustCompile(`serves (nats://\S+)`))
	defer stop()
	clients := make([]nats.JetStreamContext, publishers)
	for i := range clients {
		c, err := nats.Connect(url)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		if clients[i], err = c.JetStream(nats.MaxWait(time.Minute)); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := clients[0].AddStream(&nats.StreamConfig{Name: "channel", Subjects: []string{"channel"}, Storage: nats.FileStorage}); err != nil {
		b.Fatal(err)
	}
	return spendBeside(b, command.Process, publishers, n, func(p, i int) error {
		raw, err := json.Marshal(map[string]any{
			"id": fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", i), "channelId": "channel", "author": "urn:koine:agent:ann",
			"timestamp": time.Now().UnixMilli(), "parts": parts(i), "kind": "messageEvent",
		})
		if err == nil {
			_, err = clients[p].Publish("channel", raw)
		}
		return err
	})
}
