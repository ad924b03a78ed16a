package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestStreamsAcrossServers proves that a follower of a channel receives each message
// exactly once while the server is killed with SIGKILL, or stops gracefully, and is
// restarted: with koine channel tail, and with a client that resumes with its first request
// and a Last-Event-ID, or with a new sinceSequence.
func TestStreamsAcrossServers(t *testing.T) {
	at := newRelay(t)
	dir := t.TempDir()
	s, url := startServerOn(t, dir)
	at.leadTo(url)
	_, made := asAgent(t, at.url()+"/a2a", "ann", `{"jsonrpc":"2.0","id":1,"method":"channels/create","params":{"name":"lab","members":[{"principalId":"bob"}]}}`)
	var channel struct {
		Result struct{ Channel struct{ ID string } }
	}
	if err := json.Unmarshal([]byte(made), &channel); err != nil || channel.Result.Channel.ID == "" {
		t.Fatal(made, err)
	}
	l := &listening{t: t, url: at.url(), channel: channel.Result.Channel.ID}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var readers []*heard
	var all sync.WaitGroup
	follow := func(name string, fn func(*heard) error) {
		h := &heard{name: name}
		readers = append(readers, h)
		all.Go(func() {
			if err := fn(h); err != nil && ctx.Err() == nil {
				t.Error(name, err)
				cancel()
			}
		})
	}
	var tail *exec.Cmd
	notes := new(growingText)
	tailing, tailed := make(chan struct{}), make(chan struct{})
	follow("koine channel tail", func(h *heard) error {
		defer close(tailed)
		tail = exec.CommandContext(ctx, "koine", "channel", "tail", l.channel, "--since", "0", "--json", "--as", "bob", "--url", l.url)
		tail.Stderr = writerOf(notes)
		out, err := tail.StdoutPipe()
		if err == nil {
			err = tail.Start()
		}
		close(tailing)
		if err != nil {
			return err
		}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if err := h.take(lines.Bytes()); err != nil {
				return err
			}
		}
		return tail.Wait()
	})
	follow("Last-Event-ID", func(h *heard) error { return l.follow(ctx, h, true) })
	follow("sinceSequence", func(h *heard) error { return l.follow(ctx, h, false) })

	var said counted
	stop, silent := make(chan struct{}), make(chan struct{})
	all.Go(func() {
		defer close(silent)
		for {
			select {
			case <-stop:
				return
			case <-ctx.Done():
				return
			default:
			}
			next := said.Load() + 1
			if err := l.say(ctx, next); err != nil {
				t.Error(err)
				cancel()
				return
			}
			said.Store(next)
		}
	})
	// A client that has never had an answer gives up; all have one before the first kill.
	for _, h := range readers {
		h.last.reach(ctx, 1)
	}
	for i := range *serverKills {
		said.reach(ctx, said.Load()+10+rand.Int64N(40))
		signal := os.Kill
		if i%2 == 1 {
			signal = os.Interrupt
		}
		s, url = startedAgain(t, s, signal, dir)
		at.leadTo(url)
	}
	said.reach(ctx, said.Load()+10)
	close(stop)
	<-silent // the interrupted message is published
	for _, h := range readers {
		h.last.reach(ctx, said.Load())
	}
	<-tailing
	if tail.Process == nil {
		return // it has said why
	}
	if err := tail.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	select {
	case <-tailed:
	case <-ctx.Done():
	}
	cancel()
	all.Wait()
	for _, h := range readers {
		if h.last.Load() != said.Load() {
			t.Errorf("%s was told %d of %d messages\n%s", h.name, h.last.Load(), said.Load(), notes)
		}
	}
	if want := fmt.Sprintf("Continue with --since %d\n", said.Load()); !strings.HasSuffix(notes.String(), want) {
		t.Errorf("koine channel tail ends with %q, want %q", notes, want)
	}
	t.Logf("%d messages", said.Load())
}

// heard is the messages that a follower of the channel received.
type heard struct {
	name string
	last counted
}

// take receives the next message, whose text is its number.
func (h *heard) take(raw []byte) error {
	var m struct {
		Sequence int64
		Parts    []struct{ Text string }
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("%w: %s", err, raw)
	}
	if last := h.last.Load(); m.Sequence != last+1 || len(m.Parts) != 1 || m.Parts[0].Text != fmt.Sprint("message ", last+1) {
		return fmt.Errorf("behind %d comes %s", last, raw)
	}
	h.last.Store(m.Sequence)
	return nil
}

// listening is a channel of a server that is restarted.
type listening struct {
	t            *testing.T
	url, channel string
}

// again is the pause before a reconnection.
const again = 20 * time.Millisecond

func (l *listening) call(ctx context.Context, method, params string, last *int64) (*http.Response, error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"channelId":%q%s}}`, method, l.channel, params)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/a2a", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Agent-ID", "ann")
	if last != nil {
		r.Header.Set("Last-Event-ID", fmt.Sprint(*last))
	}
	return http.DefaultClient.Do(r)
}

// goingDown is in the answers of a server that ends.
var goingDown = regexp.MustCompile(`"reason":"(SERVER_SHUTDOWN|OUTCOME_UNKNOWN|TIMEOUT)"`)

// say publishes a message until it is published.
func (l *listening) say(ctx context.Context, n int64) error {
	for ; ctx.Err() == nil; time.Sleep(again) {
		response, err := l.call(ctx, "channels/publish", fmt.Sprintf(`,"idempotencyKey":"%d","parts":[{"text":"message %d"}]`, n, n), nil)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode == http.StatusServiceUnavailable || goingDown.MatchString(string(text)) {
			continue
		}
		if want := fmt.Sprintf(`"sequence":%d,`, n); !strings.Contains(string(text), want) {
			return fmt.Errorf("publishing message %d: %s", n, text)
		}
		return nil
	}
	return nil
}

// follow reads the stream, and resumes when it has ended: with its first request and the id
// of the last event, or with a request for later messages.
func (l *listening) follow(ctx context.Context, h *heard, byHeader bool) error {
	for ; ctx.Err() == nil; time.Sleep(again) {
		since, last := h.last.Load(), (*int64)(nil)
		if told := since; byHeader && told > 0 {
			since, last = 0, &told
		}
		response, err := l.call(ctx, "channels/stream", fmt.Sprintf(`,"sinceSequence":%d`, since), last)
		if err != nil {
			continue
		}
		err = l.read(response, h)
		response.Body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads one stream to its end, which is that of the server.
func (l *listening) read(response *http.Response, h *heard) error {
	if response.StatusCode == http.StatusServiceUnavailable {
		return nil // it goes down
	}
	id := ""
	in := bufio.NewReader(response.Body)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil // the event that has no end was not told
		}
		if text, ok := strings.CutPrefix(line, "id: "); ok {
			id = strings.TrimSpace(text)
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		if end, err := in.ReadString('\n'); err != nil || end != "\n" {
			return nil
		}
		var e struct {
			Result struct{ Event json.RawMessage }
			Error  *struct {
				Data struct{ Reason, Position string }
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return err
		}
		if e.Error != nil {
			if !slices.Contains([]string{"SERVER_SHUTDOWN", "SLOW_CONSUMER"}, e.Error.Data.Reason) || e.Error.Data.Position != fmt.Sprint(h.last.Load()) {
				return fmt.Errorf("behind %d the stream ends with %s", h.last.Load(), data)
			}
			continue
		}
		if err := h.take(e.Result.Event); err != nil {
			return err
		}
		if id != fmt.Sprint(h.last.Load()) {
			return fmt.Errorf("message %d has the id %s", h.last.Load(), id)
		}
	}
}

// relay is an address that stays while the servers behind it come and go.
type relay struct {
	listener net.Listener
	server   atomic.Pointer[string]
}

func newRelay(t *testing.T) *relay {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go r.pass(c)
		}
	}()
	return r
}

func (r *relay) url() string { return "http://" + r.listener.Addr().String() }

func (r *relay) leadTo(url string) {
	address := strings.TrimPrefix(url, "http://")
	r.server.Store(&address)
}

// pass passes a connection on, or closes it when there is no server.
func (r *relay) pass(c net.Conn) {
	defer c.Close()
	server, err := net.Dial("tcp", *r.server.Load())
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, c)
		server.Close() // the client is gone
	}()
	_, _ = io.Copy(c, server)
}

// writerOf writes to a text that is read meanwhile.
func writerOf(text *growingText) io.Writer { return textWriter{text} }

type textWriter struct{ *growingText }

func (w textWriter) Write(b []byte) (int, error) {
	w.WriteString(string(b))
	return len(b), nil
}

// startedAgain ends a server by the signal and starts another one on its directory.
func startedAgain(t *testing.T, s *server, signal os.Signal, dir string) (*server, string) {
	t.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if err := <-s.ended; (err != nil) != (signal == os.Kill) {
		t.Errorf("with %v the server ended with %v\n%s", signal, err, s.log)
	}
	return startServerOn(t, dir)
}
