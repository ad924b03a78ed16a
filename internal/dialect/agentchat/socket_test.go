package agentchat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/dialect/agentchat"
	"koine/internal/presence"
	"koine/kg"
)

// sequencesOf reads n message frames and returns their rooms and sequences.
func (p *peer) sequences(n int) (out []string) {
	p.t.Helper()
	for range n {
		var f struct {
			Message struct {
				Room     string `json:"room_id"`
				Sequence int64
			}
		}
		if err := json.Unmarshal([]byte(p.await(`"type":"message"`)), &f); err != nil {
			p.t.Fatal(err)
		}
		out = append(out, fmt.Sprint(f.Message.Room[:8], " ", f.Message.Sequence))
	}
	return out
}

// A socket that resumes gets what came after the sequences that it names, once and in
// order, and then what comes. Rooms that it does not name continue from now on.
func TestResume(t *testing.T) {
	s := startWith(t, agentchat.Options{Registration: agentchat.RegisterOpen}, channels.Options{Tiers: map[string]channels.Tier{}})
	_, ann := s.register("ann")
	_, bob := s.register("bob")
	room, other := s.room(ann, `{"name":"r"}`), s.room(ann, `{"name":"other"}`)
	for _, id := range []string{room, other} {
		s.must(nil, bob, "POST", "/rooms/"+id+"/join", "")
	}
	say := func(id string, n int) {
		for range n {
			s.must(nil, ann, "POST", "/rooms/"+id+"/messages", `{"content":"x"}`)
		}
	}
	say(room, 250) // more than a page
	say(other, 2)
	p := s.connect(bob, `{"`+room+`":40}`)
	stop := make(chan struct{})
	go func() { // while it resumes
		defer close(stop)
		say(room, 50)
	}()
	want := int64(41)
	for want <= 300 {
		var f struct {
			Message struct {
				Room     string `json:"room_id"`
				Sequence int64
			}
		}
		if err := json.Unmarshal([]byte(p.await(`"type":"message"`)), &f); err != nil {
			t.Fatal(err)
		}
		if f.Message.Room != room || f.Message.Sequence != want {
			t.Fatalf("got %+v, want sequence %d", f.Message, want)
		}
		want++
	}
	<-stop
	say(other, 1)
	if got := p.sequences(1); got[0] != other[:8]+" 3" {
		t.Errorf("the other room continues with %v", got)
	}
	// subscribe repeats what the client asks for.
	p.send(`{"type":"subscribe","room_id":"` + other + `","after":1,"request_id":1}`)
	if frame := p.await(`"request_id":1`); frame != `{"type":"subscribed","request_id":1,"room_id":"`+other+`","after":1}` {
		t.Error(frame)
	}
	say(other, 1)
	if got := strings.Join(p.sequences(3), ","); got != strings.ReplaceAll("o 2,o 3,o 4", "o", other[:8]) {
		t.Errorf("subscribed: %s", got)
	}
	// A sequence that the room has not reached is reported, and the socket goes on.
	q := s.connect(bob, `{"`+room+`":1000}`)
	q.await(`"code":"INVALID"`)
	say(room, 1)
	if got := q.sequences(1); got[0] != room[:8]+" 301" {
		t.Errorf("after a sequence ahead: %v", got)
	}
}

// A client that is silent for too long is closed with 4408 and is offline at once; server
// pings do not count. A frame in time keeps the socket.
func TestSilence(t *testing.T) {
	s := startWith(t, agentchat.Options{Registration: agentchat.RegisterOpen, Silence: 700 * time.Millisecond, PingInterval: 250 * time.Millisecond}, channels.Options{})
	id, ann := s.register("ann")
	// bob, who shares a room with ann, is told that ann is offline.
	_, bob := s.register("bob")
	room := s.room(bob, `{"name":"r"}`)
	if _, err := s.channels.Members().Join(t.Context(), as(id), channel.ID(room), ""); err != nil {
		t.Fatal(err)
	}
	mate := s.connect(bob, "")
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond): // paces the client
				_ = mate.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"ping"}`)) // it may have ended
			}
		}
	}()
	offline := make(chan string, 1)
	go func() { // it reads all the time, because it has to answer the server's pings
		for {
			frame, err := mate.read()
			if err != nil || strings.Contains(frame, `"status":"offline"`) {
				offline <- frame
				return
			}
		}
	}()
	p := s.connect(ann, "")
	began := time.Now()
	for time.Since(began) < 900*time.Millisecond {
		p.send(`{"type":"ping"}`)
		p.await(`"type":"pong"`)
		time.Sleep(50 * time.Millisecond) // paces the client
	}
	if got := s.presence.Get(kg.CanonicalAgent(id)).Status; got != presence.Online {
		t.Errorf("while it pings it is %s", got)
	}
	if code := p.awaitClose(); code != 4408 {
		t.Errorf("closed with %d", code)
	}
	if got, want := <-offline, `{"type":"event","event":"agent.status","data":{"agent_id":"`+id+`","status":"offline"}}`; got != want {
		t.Errorf("its room-mate is told %q, want %q", got, want)
	}
	deadline := time.Now().Add(10 * time.Second)
	for s.presence.Get(kg.CanonicalAgent(id)).Status != presence.Offline {
		if time.Now().After(deadline) {
			t.Fatal("it is not offline")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A client without an auth frame is closed with 4401 after the time for it.
func TestAuthTimeout(t *testing.T) {
	s := startWith(t, agentchat.Options{AuthTimeout: 50 * time.Millisecond}, channels.Options{})
	if code := s.dial("/ws").awaitClose(); code != 4401 {
		t.Errorf("closed with %d", code)
	}
}

// A key that ends closes the sockets that it opened with 4401, after the overlap of a
// rotation, and a server that shuts down closes with 1001.
func TestSocketsEnd(t *testing.T) {
	s := start(t)
	_, ann := s.register("ann")
	byFrame, byQuery := s.connect(ann, ""), s.dial("/ws?token="+ann)
	byQuery.await("auth_ok")
	var made struct {
		Key string `json:"api_key"`
	}
	s.must(&made, ann, "POST", "/agents/me/keys/rotate", `{"overlap_seconds":0}`)
	for _, p := range []*peer{byFrame, byQuery} {
		if code := p.awaitClose(); code != 4401 {
			t.Errorf("closed with %d", code)
		}
	}
	var me struct{ Agent struct{ ID string } }
	s.must(&me, made.Key, "GET", "/me", "")
	// A socket gives its place back after its close frame, and the agent has two places.
	_, bob := s.register("bob")
	p := s.connect(bob, "")
	go func() { _ = s.streams.Shutdown(t.Context()) }()
	if code := p.awaitClose(); code != 1001 {
		t.Errorf("at shutdown: closed with %d", code)
	}
}
