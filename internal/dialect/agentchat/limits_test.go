package agentchat_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"koine/channels"
	"koine/internal/dialect/agentchat"
	"koine/kg"
)

// The free tier has 60 messages a minute, 2 connections and 10 rooms, and not one more.
func TestTierIsExact(t *testing.T) {
	s := start(t)
	_, ann := s.register("ann")
	room := s.room(ann, `{"name":"r1"}`)
	for i := range 61 {
		status, answer := s.ask(ann, "POST", "/rooms/"+room+"/messages", fmt.Sprintf(`{"content":"%d"}`, i+1))
		if i < 60 {
			if status != http.StatusCreated {
				t.Fatalf("message %d: %d %s", i+1, status, answer)
			}
			continue
		}
		var refused struct {
			Code  string
			After int `json:"retry_after_ms"`
		}
		if err := json.Unmarshal([]byte(answer), &refused); err != nil || status != http.StatusTooManyRequests || refused.Code != "RATE_LIMITED" || refused.After <= 0 || refused.After > 60_000 {
			t.Errorf("message 61: %d %s", status, answer)
		}
	}
	for i := 2; i <= 11; i++ {
		status, answer := s.ask(ann, "POST", "/rooms", fmt.Sprintf(`{"name":"r%d"}`, i))
		if want := i == 11; (status == http.StatusForbidden && strings.Contains(answer, `"code":"LIMIT_EXCEEDED"`)) != want {
			t.Errorf("room %d: %d %s", i, status, answer)
		}
	}
	_, bob := s.register("bob")
	open := s.room(bob, `{"name":"one more"}`)
	if status, answer := s.ask(ann, "POST", "/rooms/"+open+"/join", ""); status != http.StatusForbidden || !strings.Contains(answer, `"code":"LIMIT_EXCEEDED"`) {
		t.Errorf("joining an eleventh room: %d %s", status, answer)
	}
	first, second := s.connect(ann, ""), s.connect(ann, "")
	third := s.dial("/ws")
	third.send(`{"type":"auth","token":"` + ann + `"}`)
	if frame, err := third.read(); err != nil || !strings.Contains(frame, `"code":"LIMIT_EXCEEDED"`) {
		t.Errorf("the third connection: %s, %v", frame, err)
	}
	if code := third.awaitClose(); code != 4429 {
		t.Errorf("the third connection is closed with %d", code)
	}
	for _, p := range []*peer{first, second} {
		p.send(`{"type":"ping"}`)
		p.await(`"type":"pong"`)
	}
	// The rate holds on the socket too.
	first.send(`{"type":"message","room_id":"` + room + `","content":"x","request_id":1}`)
	if frame := first.await(`"request_id":1`); !strings.Contains(frame, `"code":"RATE_LIMITED"`) || !strings.Contains(frame, `"retry_after_ms":`) {
		t.Errorf("over the socket: %s", frame)
	}
}

// Each bound holds at its value and refuses one more, over REST and the socket.
func TestBounds(t *testing.T) {
	s := start(t)
	_, ann := s.register("ann")
	room := s.room(ann, `{"name":"`+strings.Repeat("ż", 128)+`"}`)
	p := s.connect(ann, "")
	content := func(n int) string { return `"content":"` + strings.Repeat("x", n) + `"` }
	for _, row := range []struct {
		what, method, path, body string
		status                   int
	}{
		{"an agent's name", "POST", "/agents/register", `{"name":"` + strings.Repeat("ż", agentchat.MaxAgentNameRunes) + `"}`, 201},
		{"a longer one", "POST", "/agents/register", `{"name":"` + strings.Repeat("ż", agentchat.MaxAgentNameRunes+1) + `"}`, 413},
		{"an owner", "POST", "/agents/register", `{"name":"x","owner":"` + strings.Repeat("x", agentchat.MaxOwnerBytes) + `"}`, 201},
		{"a longer one", "POST", "/agents/register", `{"name":"x","owner":"` + strings.Repeat("x", agentchat.MaxOwnerBytes+1) + `"}`, 413},
		{"an agent's metadata", "POST", "/agents/register", `{"name":"x","metadata":{"k":"` + strings.Repeat("x", agentchat.MaxMetadataBytes-len(`{"k":""}`)) + `"}}`, 201},
		{"more", "POST", "/agents/register", `{"name":"x","metadata":{"k":"` + strings.Repeat("x", agentchat.MaxMetadataBytes-len(`{"k":""}`)+1) + `"}}`, 413},
		{"a longer name of a room", "POST", "/rooms", `{"name":"` + strings.Repeat("ż", 129) + `"}`, 413},
		{"a room's metadata", "POST", "/rooms", `{"name":"x","metadata":{"k":"` + strings.Repeat("x", agentchat.MaxMetadataBytes-len(`{"k":""}`)) + `"}}`, 201},
		{"more", "POST", "/rooms", `{"name":"x","metadata":{"k":"` + strings.Repeat("x", agentchat.MaxMetadataBytes-len(`{"k":""}`)+1) + `"}}`, 413},
		{"content", "POST", "/rooms/" + room + "/messages", `{` + content(agentchat.MaxContentBytes) + `}`, 201},
		{"a byte more", "POST", "/rooms/" + room + "/messages", `{` + content(agentchat.MaxContentBytes+1) + `}`, 413},
		{"65 KiB", "POST", "/rooms/" + room + "/messages", `{` + content(65<<10) + `}`, 413},
		{"a message's metadata", "POST", "/rooms/" + room + "/messages", `{"content":"x","metadata":{"k":"` + strings.Repeat("x", agentchat.MaxMetadataBytes-len(`{"k":""}`)) + `"}}`, 201},
		{"more", "POST", "/rooms/" + room + "/messages", `{"content":"x","metadata":{"k":"` + strings.Repeat("x", agentchat.MaxMetadataBytes-len(`{"k":""}`)+1) + `"}}`, 413},
		{"a reason", "POST", "/rooms/" + room + "/mute", `{"agent_id":"x","reason":"` + strings.Repeat("ż", channels.MaxReasonRunes) + `"}`, 204},
		{"a longer one", "POST", "/rooms/" + room + "/mute", `{"agent_id":"x","reason":"` + strings.Repeat("ż", channels.MaxReasonRunes+1) + `"}`, 413},
		{"a page", "GET", "/rooms/" + room + "/messages?limit=200", "", 200},
		{"more", "GET", "/rooms/" + room + "/messages?limit=201", "", 400},
		{"a page of agents", "GET", "/agents?limit=100", "", 200},
		{"more", "GET", "/agents?limit=101", "", 400},
	} {
		if status, answer := s.ask(ann, row.method, row.path, row.body); status != row.status {
			t.Errorf("%s: %d %.200s, want %d", row.what, status, answer, row.status)
		}
	}
	p.send(`{"type":"message","request_id":1,"room_id":"` + room + `",` + content(agentchat.MaxContentBytes) + `}`)
	if frame := p.await(`"request_id":1`); !strings.Contains(frame, `"type":"ack"`) {
		t.Errorf("content over the socket: %.200s", frame)
	}
	p.send(`{"type":"message","request_id":2,"room_id":"` + room + `",` + content(agentchat.MaxContentBytes+1) + `}`)
	if frame := p.await(`"request_id":2`); !strings.Contains(frame, `"code":"TOO_LARGE"`) {
		t.Errorf("a byte more: %.200s", frame)
	}
	resume := map[string]int{}
	for i := range agentchat.MaxResumedRooms + 1 {
		resume[fmt.Sprint("r", i)] = 0
	}
	raw, err := json.Marshal(resume)
	if err != nil {
		t.Fatal(err)
	}
	q := s.dial("/ws")
	q.send(`{"type":"auth","token":"` + ann + `","resume":` + string(raw) + `}`)
	if frame, err := q.read(); err != nil || !strings.Contains(frame, `"code":"TOO_LARGE"`) {
		t.Errorf("too many resumed rooms: %.200s, %v", frame, err)
	}
	p.send(`{"type":"ping","padding":"` + strings.Repeat("x", agentchat.MaxFrameBytes) + `"}`)
	if code := p.awaitClose(); code != 1009 {
		t.Errorf("a frame that is too large is closed with %d", code)
	}
}

// The reason of a ban or mute, in a room and everywhere, is the justification of its commit.
func TestReasonsAreKept(t *testing.T) {
	s := start(t)
	_, ann := s.register("ann")
	room := s.room(ann, `{"name":"r"}`)
	for _, row := range []struct{ key, path, body string }{
		{ann, "/rooms/" + room + "/ban", `{"agent_id":"bob","reason":"noise"}`},
		{ann, "/rooms/" + room + "/unban", `{"agent_id":"bob","reason":"sorry"}`},
		{ann, "/rooms/" + room + "/mute", `{"agent_id":"bob","reason":"shouting"}`},
		{s.keyWith("root", kg.RoleAdmin), "/admin/agents/bob/ban", `{"reason":"spam"}`},
	} {
		s.must(nil, row.key, "POST", row.path, row.body)
		c, err := s.store.Commit(t.Context(), kg.SystemPrincipal(), s.store.Head().Revision)
		if err != nil || !strings.Contains(row.body, `"reason":"`+c.Justification+`"`) || c.Justification == "" {
			t.Errorf("%s: the commit says %q, %v", row.path, c.Justification, err)
		}
	}
}

// A private room and a direct one answer outsiders, on all paths of rooms and over the
// socket, with the bytes of a room that does not exist.
func TestOutsidersOfRooms(t *testing.T) {
	s := start(t)
	annID, ann := s.register("ann")
	bobID, bob := s.register("bob")
	_, eve := s.register("eve")
	secret := s.room(ann, `{"name":"secret","type":"private"}`)
	direct := s.room(ann, `{"type":"direct","members":["`+bobID+`"]}`)
	var said struct{ ID string }
	s.must(&said, ann, "POST", "/rooms/"+secret+"/messages", `{"content":"x"}`)
	s.must(nil, bob, "POST", "/rooms/"+direct+"/messages", `{"content":"x"}`)
	p := s.connect(eve, "")
	none := "01a2f6a0-0000-7000-8000-000000000000"
	for _, row := range []struct{ method, path, body string }{
		{"GET", "", ""},
		{"PATCH", "", `{"topic":"x"}`},
		{"PATCH", "", `{"topic":"x","version":1}`},
		{"DELETE", "", ""},
		{"POST", "/join", "{}"},
		{"POST", "/leave", ""},
		{"POST", "/invite", `{"agent_id":"x"}`},
		{"DELETE", "/members/" + annID, ""},
		{"GET", "/messages", ""},
		{"GET", "/messages?after=0", ""},
		{"GET", "/messages?before=" + said.ID, ""},
		{"GET", "/messages?q=x", ""},
		{"POST", "/messages", `{"content":"x"}`},
		{"POST", "/messages", `{"content":"x","metadata":{"in_reply_to":"` + said.ID + `"}}`},
		{"DELETE", "/messages/" + said.ID, ""},
		{"GET", "/analytics", ""},
		{"POST", "/ban", `{"agent_id":"` + annID + `"}`},
		{"POST", "/mute", `{"agent_id":"` + annID + `"}`},
		{"POST", "/unban", `{"agent_id":"` + annID + `"}`},
		{"POST", "/unmute", `{"agent_id":"` + annID + `"}`},
	} {
		wantStatus, want := s.ask(eve, row.method, "/rooms/"+none+row.path, row.body)
		for _, room := range []string{secret, direct} {
			if status, got := s.ask(eve, row.method, "/rooms/"+room+row.path, row.body); status != wantStatus || got != want {
				t.Errorf("%s %s of %s: got %d %s, want %d %s", row.method, row.path, room, status, got, wantStatus, want)
			}
		}
		if wantStatus < 400 || !strings.Contains(row.path, "q=") && wantStatus != http.StatusNotFound {
			t.Errorf("%s %s of none: %d %s", row.method, row.path, wantStatus, want)
		}
	}
	for _, frame := range []string{
		`{"type":"join","room_id":"%s"}`, `{"type":"leave","room_id":"%s"}`, `{"type":"message","room_id":"%s","content":"x"}`, `{"type":"typing","room_id":"%s"}`,
		`{"type":"reaction","room_id":"%s","message_id":"` + said.ID + `","emoji":"x"}`, `{"type":"subscribe","room_id":"%s","after":0}`,
	} {
		var answers []string
		for _, room := range []string{none, secret, direct} {
			p.send(fmt.Sprintf(frame, room))
			answer, err := p.read()
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, answer)
		}
		if answers[1] != answers[0] || answers[2] != answers[0] || !strings.Contains(answers[0], `"NOT_FOUND"`) {
			t.Errorf("%s: %q", frame, answers)
		}
	}
	// They are in no list either.
	for _, path := range []string{"/rooms", "/rooms?type=private", "/rooms?type=direct", "/rooms?q=secret"} {
		if _, got := s.ask(eve, "GET", path, ""); got != `{"rooms":[],"next_cursor":null}` {
			t.Errorf("%s: %s", path, got)
		}
	}
	// A resumption says the same of both.
	q := s.dial("/ws")
	q.send(`{"type":"auth","token":"` + eve + `","resume":{"` + secret + `":0,"` + direct + `":0,"` + none + `":0}}`)
	q.await(`"type":"auth_ok"`)
	var answers []string
	for range 3 {
		answer, err := q.read()
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, answer)
	}
	if answers[0] != answers[1] || answers[1] != answers[2] || !strings.Contains(answers[0], `"NOT_FOUND"`) {
		t.Errorf("resumed: %q", answers)
	}
}
