package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// The messages of a round of BenchmarkDialects: costClients send costMessages each at every
// door.
const (
	costClients  = 8
	costMessages = 50
	dearest      = 1.15 // a message over a dialect, beside its twin
)

// BenchmarkDialects measures the processor time of the program for a message over each
// dialect, beside channels/publish to a channel of the same kind. All doors take their turns
// in a round, the clients are bare connections, and each has a channel of its own at each
// door. A socket is told of its own messages: its twin is a sender that follows its channel. An op is a
// round, after five that are not counted.
//
// It fails above the aim, 15 % more in all rounds together and in most of them.
//
//	go test ./cmd/koine -run '^$' -bench Dialects -benchtime 100x
func BenchmarkDialects(b *testing.B) {
	s, url := startProgram(b, serveCommandLine(program(b), "")...)
	crowd := &chatCrowd{b: b, url: url, address: strings.TrimPrefix(url, "http://")}
	intent := crowd.made("c0", "/api/v1/intents", `{"title":"measure"}`)
	room := func(as string) string { return crowd.room([]string{as}) }
	channel := func(as string) string {
		return crowd.made("c0", "/api/v1/intents/"+intent+"/channels", fmt.Sprintf(`{"name":%q,"members":["c0",%q]}`, as, as))
	}
	text := strings.Repeat("I found 3 relevant papers. ", 8)
	publish := func(id string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"channels/publish","params":{"channelId":%q,"parts":[{"text":%q}]}}`, id, text)
	}
	doors := []*dialectDoor{
		{name: "channels/publish to a room", make: room, path: "/a2a", body: publish},
		{name: "AgentChat REST", make: room, twin: 0, path: "/agentchat/rooms/%s/messages", body: func(string) string { return fmt.Sprintf(`{"content":%q}`, text) }},
		{name: "AgentChat socket", make: room, twin: 5, body: func(id string) string {
			return fmt.Sprintf(`{"type":"message","room_id":%q,"request_id":1,"content":%q}`, id, text)
		}},
		{name: "channels/publish to a channel of an intent", make: channel, twin: 3, path: "/a2a", body: publish},
		{name: "OpenIntent", make: channel, twin: 3, path: "/api/v1/channels/%s/messages"},
		{name: "channels/publish, followed by its sender", make: room, twin: 5, path: "/a2a", body: publish, follow: true},
	}
	for n, d := range doors {
		for i := range costClients {
			as := fmt.Sprint("c", n*costClients+i)
			body := d.body
			if body == nil {
				body = func(string) string { return fmt.Sprintf(`{"sender":%q,"payload":{"text":%q}}`, as, text) }
			}
			id := d.make(as)
			d.clients = append(d.clients, crowd.client(d, as, id, body))
			if d.follow {
				crowd.openStream(as, id)
			}
		}
	}
	// Some of the work of a message is done after its answer, so the order of doors is another
	// one in each round.
	dice := rand.New(rand.NewPCG(1, 2))
	round := func() {
		for _, i := range dice.Perm(len(doors)) {
			before := cpuTime(b, s)
			doors[i].sendAll(b)
			doors[i].spent = append(doors[i].spent, cpuTime(b, s)-before)
		}
	}
	for range 5 {
		round()
	}
	for _, d := range doors {
		d.spent = nil
	}
	for b.Loop() {
		round()
	}
	b.ReportMetric(0, "ns/op")
	for _, d := range doors {
		twin := doors[d.twin]
		var ratios []float64
		for i := range d.spent {
			ratios = append(ratios, float64(d.spent[i])/float64(twin.spent[i]))
		}
		slices.Sort(ratios)
		each := float64(total(d.spent).Microseconds()) / float64(len(d.spent)*costClients*costMessages)
		// A collection of garbage falls on any of the doors, so the medians count too.
		ratio, median := float64(total(d.spent))/float64(total(twin.spent)), ratios[len(ratios)/2]
		if ratio > dearest && median > dearest {
			b.Errorf("%s costs %.3f times its twin, want at most %.2f", d.name, ratio, dearest)
		}
		b.Logf("%-42s %6.1f µs a message, %.3f of its twin (median %.3f, %.3f to %.3f)", d.name, each, ratio, median, ratios[0], ratios[len(ratios)-1])
	}
}

// dialectDoor is a way to send a message.
type dialectDoor struct {
	name    string
	make    func(as string) string // a channel
	twin    int                    // the door that it is compared with
	path    string                 // "" for a socket
	body    func(id string) string
	follow  bool // the sender has a channels/stream, too
	clients []*dialectClient
	spent   []time.Duration
}

type dialectClient struct {
	conn    net.Conn
	in      *bufio.Reader
	request string
	answer  func(c *dialectClient) error
}

// client connects a client to its door.
func (c *chatCrowd) client(d *dialectDoor, as, id string, body func(string) string) *dialectClient {
	c.b.Helper()
	text := body(id)
	if d.path == "" {
		conn := c.dial(socketRequest(as))
		out := &dialectClient{conn: conn, in: bufio.NewReader(conn), request: string(maskedFrame(1, []byte(text))), answer: (*dialectClient).awaitAck}
		c.readHead(as, out.in, "HTTP/1.1 101")
		if _, hello, err := readFrame(out.in, nil); err != nil || !strings.HasPrefix(string(hello), `{"type":"auth_ok"`) {
			c.b.Fatal(string(hello), err)
		}
		return out
	}
	path := d.path
	if strings.Contains(path, "%s") {
		path = fmt.Sprintf(path, id)
	}
	request := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nX-Agent-ID: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, as, len(text), text)
	conn := c.dial("")
	return &dialectClient{conn: conn, in: bufio.NewReader(conn), request: request, answer: (*dialectClient).awaitAnswer}
}

// awaitAnswer reads a response of a success.
func (c *dialectClient) awaitAnswer() error {
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode >= 300 || strings.Contains(string(text), `"error"`)) {
		err = fmt.Errorf("%s %.300s", resp.Status, text)
	}
	return err
}

// awaitAck reads the acknowledgement and the message itself, in either order, and answers
// pings.
func (c *dialectClient) awaitAck() error {
	for left := 2; left > 0; {
		opcode, got, err := readFrame(c.in, nil)
		switch {
		case err != nil:
			return err
		case opcode == 9:
			if _, err := c.conn.Write(maskedFrame(10, got)); err != nil {
				return err
			}
		case strings.HasPrefix(string(got), `{"type":"ack"`), strings.HasPrefix(string(got), `{"type":"message"`):
			left--
		case strings.HasPrefix(string(got), `{"type":"event"`):
		default:
			return fmt.Errorf("got %.300s", got)
		}
	}
	return nil
}

// sendAll sends the messages of a round, one after the other at each client.
func (d *dialectDoor) sendAll(b *testing.B) {
	b.Helper()
	var all sync.WaitGroup
	for _, c := range d.clients {
		all.Go(func() {
			for range costMessages {
				_, err := io.WriteString(c.conn, c.request)
				if err == nil {
					err = c.answer(c)
				}
				if err != nil {
					b.Errorf("%s: %v", d.name, err)
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

// made sends a request that makes something, and returns its id.
func (c *chatCrowd) made(as, path, body string) string {
	c.b.Helper()
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(c.post(as, path, body)), &made); err != nil || made.ID == "" {
		c.b.Fatal("no id", err)
	}
	return made.ID
}

// cpuTime returns the processor time of the server, more exactly than processorTime.
func cpuTime(b *testing.B, s *server) time.Duration {
	b.Helper()
	const schedClock = 2 // CPUCLOCK_SCHED, of a process: see clock_getcpuclockid
	clock := ^s.process.Process.Pid<<3 | schedClock
	var at syscall.Timespec
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&at)), 0); err != 0 {
		b.Fatal(err)
	}
	return time.Duration(at.Nano())
}
