package fanoutbench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"koine/internal/footprint"
)

var (
	streams  = flag.Int("streams", 1000, "streams of each side")
	doors    = flag.String("doors", "channels,subscribe,graphql", "doors of koine, by commas: channels, subscribe, graphql, messages")
	programs = flag.String("koine", "", "programs by commas, each NAME=PATH; none builds this tree")
	settle   = flag.Duration("settle", 3*time.Second, "time between opening the streams and reading the memory; a server of koine at rest gives memory back within 25s")
	withBare = flag.Bool("bare", true, "measure the bare server beside them")
)

const bareVariable = "KOINE_FANOUT_BARE"

func TestMain(m *testing.M) {
	if os.Getenv(bareVariable) != "" {
		runBare()
	}
	os.Exit(m.Run())
}

// side is a server with its streams.
type side struct {
	name    string
	process *exec.Cmd
	url     string
	door    door
	clients *clients

	resting    int64           // bytes resident before the streams
	opened     int64           // bytes resident with the streams
	used       time.Duration   // processor time of the events
	lasts, all []time.Duration // when the last stream has each event, and when each has it
}

// door is a protocol: the request for a stream, and what makes an event for all of them.
type door struct {
	open    func(i int) string
	publish func(n int) (path, contentType, body string)
}

// BenchmarkFanOut passes events to all streams of each side in turns. An op is one event for
// each side. It reports, for each side, the processor time of its server for a delivery, when the
// last stream has an event and the 99th percentile of all deliveries, with their ratios to the
// bare server, and the resident memory of an open stream.
func BenchmarkFanOut(b *testing.B) {
	if b.N == 1 {
		return // the first call only finds out how long an op takes
	}
	sides := startSides(b)
	limitStreams(b, len(sides))
	for _, s := range sides {
		s.resting = s.residentBytes(b)
		s.clients = openClients(b, strings.TrimPrefix(s.url, "http://"), *streams, s.door.open)
		time.Sleep(*settle) // a measurement: the garbage of opening is collected
		s.opened = s.residentBytes(b)
	}
	const warm = 5
	for n := range warm + b.N {
		for _, s := range sides {
			s.turn(b, n, n >= warm)
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, s := range sides {
		s.report(b, sides[0])
	}
}

// limitStreams lowers -streams to what the limit of open files allows: this process holds the
// client's end of the streams of all sides.
func limitStreams(b *testing.B, sides int) {
	b.Helper()
	const otherFiles = 500
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		b.Fatal(err)
	}
	allowed := int((min(limit.Cur, 1<<30) - min(limit.Cur, otherFiles)) / uint64(sides))
	if allowed == 0 {
		b.Fatalf("a process may open %d files, which is too few for streams: raise the limit (ulimit -n)", limit.Cur)
	}
	if *streams > allowed {
		b.Logf("%d streams of each side instead of %d: a process may open %d files (ulimit -n)", allowed, *streams, limit.Cur)
		*streams = allowed
	}
}

func (s *side) turn(b *testing.B, n int, counts bool) {
	before, began := s.processorTime(b), time.Now()
	published := make(chan error, 1)
	go func() { published <- s.post(s.door.publish(n)) }()
	took, err := s.clients.await(began, time.Minute)
	if err := <-published; err != nil {
		b.Fatal(s.name, err)
	}
	if err != nil {
		b.Fatal(s.name, err)
	}
	if !counts {
		return
	}
	s.used += s.processorTime(b) - before
	slices.Sort(took)
	s.lasts = append(s.lasts, took[len(took)-1])
	s.all = append(s.all, took...)
}

func (s *side) report(b *testing.B, twin *side) {
	delivery := func(s *side) float64 { return float64(s.used.Nanoseconds()) / float64(len(s.all)) / 1000 }
	percentile := func(of []time.Duration, share float64) float64 {
		slices.Sort(of)
		return of[int(share*float64(len(of)-1))].Seconds() * 1000
	}
	b.Logf("%-22s %6.1f µs a delivery (%.2f), last p50 %6.1f ms (%.2f), p99 of all %6.1f ms (%.2f), RSS %5.1f KiB a stream, %5.1f after the events; at rest %d MiB; %d bytes",
		s.name, delivery(s), delivery(s)/delivery(twin),
		percentile(s.lasts, 0.5), percentile(s.lasts, 0.5)/percentile(twin.lasts, 0.5),
		percentile(s.all, 0.99), percentile(s.all, 0.99)/percentile(twin.all, 0.99),
		float64(s.opened-s.resting)/1024/float64(*streams), float64(s.residentBytes(b)-s.resting)/1024/float64(*streams), s.resting>>20, s.clients.streams[0].size)
	b.ReportMetric(delivery(s), s.name+"-µs/delivery")
}

func startSides(b *testing.B) (sides []*side) {
	if *withBare {
		process := exec.Command(os.Args[0])
		process.Env = append(os.Environ(), bareVariable+"=1")
		out, err := process.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		s := &side{name: "bare", process: process, door: bareDoor()}
		s.start(b, out)
		sides = append(sides, s)
	}
	list := *programs
	if list == "" {
		path := filepath.Join(b.TempDir(), "koine")
		if out, err := exec.Command("go", "build", "-o", path, "koine/cmd/koine").CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		list = "koine=" + path
	}
	for program := range strings.SplitSeq(list, ",") {
		name, path, _ := strings.Cut(program, "=")
		for way := range strings.SplitSeq(*doors, ",") {
			process := exec.Command(path, "serve", "--listen", "127.0.0.1:0", "--reserve-mib", "0", "--max-streams", "100000", "--max-connections", "100000", "--data", b.TempDir())
			out, err := process.StderrPipe()
			if err != nil {
				b.Fatal(err)
			}
			s := &side{name: name + "-" + way, process: process}
			s.start(b, out)
			s.door = s.koineDoor(b, way)
			sides = append(sides, s)
		}
	}
	return sides
}

var listening = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)

// start starts the process and waits for its address.
func (s *side) start(b *testing.B, out io.Reader) {
	b.Helper()
	if err := s.process.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		s.process.Process.Kill()
		s.process.Wait()
	})
	for lines := bufio.NewScanner(out); s.url == "" && lines.Scan(); {
		if at := listening.FindString(lines.Text()); at != "" {
			s.url = "http://" + at
		}
	}
	if s.url == "" {
		b.Fatal(s.name, "does not listen")
	}
	go io.Copy(io.Discard, out)
}

// payload is what an event says.
func payload(n int) string {
	return fmt.Sprintf("message %d: %s", n, strings.Repeat("words of it ", 20))
}

// bareDoor sends events as long as those of koine.
func bareDoor() door {
	filler := strings.Repeat("x", 330)
	return door{
		open:    func(int) string { return "GET / HTTP/1.1\r\nHost: x\r\n\r\n" },
		publish: func(n int) (string, string, string) { return "/", "text/plain", payload(n) + filler },
	}
}

const jsonType = "application/json"

func (s *side) koineDoor(b *testing.B, way string) door {
	update := func(n int) (string, string, string) {
		return "/a2a", jsonType, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"mutations":[{"op":"replace","statement":{"subject":{"id":"urn:s:0"},"predicate":{"id":"urn:p"},"object":{"value":%q}}}]}}`, payload(n))
	}
	const selection = `subscription { statementChanged(where: {subject: {eq: \"urn:s:0\"}}) { ... on StatementChange { op statement { subject { iri } object { ... on Literal { value } } } } } }`
	switch way {
	case "messages":
		channel := s.createChannel(b)
		return door{
			open: func(i int) string {
				return post("/graphql", i, "Accept: text/event-stream\r\n", `{"query":"subscription { messagePublished(where: {channelId: \"`+channel+`\"}) { ... on MessagePublished { sequence position message { id text time authorId } } } }"}`)
			},
			publish: publishTo(channel),
		}
	case "channels":
		channel := s.createChannel(b)
		return door{
			open: func(i int) string {
				return post("/a2a", i, "", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"channels/stream","params":{"channelId":%q}}`, channel))
			},
			publish: publishTo(channel),
		}
	case "subscribe":
		return door{
			open: func(i int) string {
				return post("/a2a", i, "", `{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":"`+selection+`"}}`)
			},
			publish: update,
		}
	case "graphql":
		return door{
			open: func(i int) string {
				return post("/graphql", i, "Accept: text/event-stream\r\n", `{"query":"`+selection+`"}`)
			},
			publish: update,
		}
	}
	b.Fatalf("there is no door %q", way)
	return door{}
}

// publishTo publishes messages to a channel.
func publishTo(channel string) func(n int) (path, contentType, body string) {
	return func(n int) (string, string, string) {
		return "/a2a", jsonType, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"channels/publish","params":{"channelId":%q,"parts":[{"text":%q}]}}`, channel, payload(n))
	}
}

// post is a request as agent i.
func post(path string, i int, header, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nX-Agent-ID: reader%d\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", path, i, header, jsonType, len(body), body)
}

func (s *side) createChannel(b *testing.B) string {
	b.Helper()
	answer, err := s.exchange("/a2a", jsonType, `{"jsonrpc":"2.0","id":1,"method":"channels/create","params":{"name":"crowd","visibility":"public"}}`)
	var created struct {
		Result struct{ Channel struct{ ID string } }
	}
	if err == nil {
		err = json.Unmarshal(answer, &created)
	}
	if err != nil || created.Result.Channel.ID == "" {
		b.Fatalf("%v: %s", err, answer)
	}
	return created.Result.Channel.ID
}

func (s *side) post(path, contentType, body string) error {
	answer, err := s.exchange(path, contentType, body)
	if err == nil && bytes.Contains(answer, []byte(`"error"`)) {
		err = fmt.Errorf("%s", answer)
	}
	return err
}

func (s *side) exchange(path, contentType, body string) ([]byte, error) {
	r, err := http.NewRequest(http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Agent-ID", "writer")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

// processorTime is the time that the threads of the server have run.
func (s *side) processorTime(b *testing.B) (sum time.Duration) {
	b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.process.Process.Pid))
	if err != nil || len(files) == 0 {
		b.Fatal(s.name, "has no threads", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		ran, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ran)
	}
	return sum
}

func (s *side) residentBytes(b *testing.B) int64 {
	b.Helper()
	used, err := footprint.Read(s.process.Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	return used.Resident
}
