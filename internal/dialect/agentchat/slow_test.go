//go:build unix

package agentchat_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"koine/channels"
	"koine/internal/dialect/agentchat"
	"koine/internal/slowtest"
)

// dialSlow opens a socket whose kernel buffers hold little.
func (s *server) dialSlow(key string) *peer {
	s.t.Helper()
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		controlErr := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
		if err == nil {
			err = controlErr
		}
		return err
	}}
	conn, _, err := websocket.Dial(s.t.Context(), s.URL+"/ws", &websocket.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}})
	if err != nil {
		s.t.Fatal(err)
	}
	conn.SetReadLimit(1 << 20)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	p := &peer{s.t, conn}
	p.send(`{"type":"auth","token":"` + key + `"}`)
	p.await(`"type":"auth_ok"`)
	return p
}

// messagesUntil reads messages up to a sequence or the end of the socket, and returns the
// last sequence. They have no gap after the sequence from.
func (p *peer) messagesUntil(from, last int64) (int64, error) {
	for from < last {
		raw, err := p.read()
		if err != nil {
			return from, err
		}
		var f struct {
			Type    string
			Message struct{ Sequence int64 }
		}
		if err := json.Unmarshal([]byte(raw), &f); err != nil {
			return from, err
		}
		if f.Type != "message" {
			continue
		}
		if f.Message.Sequence != from+1 {
			return from, fmt.Errorf("sequence %d follows %d", f.Message.Sequence, from)
		}
		from++
	}
	return from, nil
}

// A client that does not read is closed with 1013 when more than MaxQueuedFrames wait, and gets
// the rest without a gap when it resumes. Others in its room notice nothing.
func TestSlowSocket(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	s := startWith(t, agentchat.Options{Registration: agentchat.RegisterOpen, WriteTimeout: time.Minute}, channels.Options{Tiers: map[string]channels.Tier{}})
	_, ann := s.register("ann")
	_, bob := s.register("bob")
	_, eve := s.register("eve")
	room := s.room(ann, `{"name":"r"}`)
	for _, key := range []string{bob, eve} {
		s.must(nil, key, "POST", "/rooms/"+room+"/join", "")
	}
	slow, quick := s.dialSlow(bob), s.connect(eve, "")
	// The kernel holds 64 KiB of the server's and 4 of the client's, each perhaps twice.
	const size, said = 8 << 10, agentchat.MaxQueuedFrames + 64
	quickGot := make(chan error, 1)
	go func() {
		_, err := quick.messagesUntil(0, said)
		quickGot <- err
	}()
	body := `{"content":"` + strings.Repeat("x", size) + `"}`
	for range said {
		s.must(nil, ann, "POST", "/rooms/"+room+"/messages", body)
	}
	if err := <-quickGot; err != nil {
		t.Errorf("the client that reads: %v", err)
	}
	got, err := slow.messagesUntil(0, said)
	if websocket.CloseStatus(err) != websocket.StatusTryAgainLater || got == 0 {
		t.Fatalf("the client that does not read ends after %d messages with %v, want a close with 1013", got, err)
	}
	t.Logf("the slow client has %d of %d messages", got, said)
	resumed := s.connect(bob, fmt.Sprintf(`{%q:%d}`, room, got))
	if last, err := resumed.messagesUntil(got, said); err != nil {
		t.Errorf("resumed after %d, it ends after %d with %v", got, last, err)
	}
	s.must(nil, ann, "POST", "/rooms/"+room+"/messages", `{"content":"to all"}`)
	for _, p := range []*peer{quick, resumed} {
		p.await("to all")
	}
}
