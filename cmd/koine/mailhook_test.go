package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"koine/internal/slowtest"
)

// hookedBot is the web hook of an agent behind the hub.
type hookedBot struct {
	*httptest.Server
	mu     sync.Mutex // guards the following fields
	down   bool
	bodies []string
	heads  []http.Header
}

func newHookedBot(t *testing.T) *hookedBot {
	b := new(hookedBot)
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.down {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		b.bodies, b.heads = append(b.bodies, string(body)), append(b.heads, r.Header.Clone())
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *hookedBot) goes(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// came waits for the nth letter.
func (b *hookedBot) came(t *testing.T, n int) (letter hubLetter, head http.Header) {
	t.Helper()
	eventually(t, "the letter comes", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.bodies) > n
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := json.Unmarshal([]byte(b.bodies[n]), &letter); err != nil {
		t.Fatalf("%s: %v", b.bodies[n], err)
	}
	return letter, b.heads[n]
}

// An agent with a web hook gets the letters of its mailbox, answers by calls of its own,
// and finds the letters that came while it and the server were away.
func TestAgentWithAWebHook(t *testing.T) {
	slowtest.Long(t)
	dir, bot := t.TempDir(), newHookedBot(t)
	s, url := startServerOn(t, dir, "--allow-private-webhooks")
	set := `{"url":"` + bot.URL + `/in?secret-address","token":"secret-token","authentication":{"scheme":"Bearer","credentials":"secret-key"}}`
	if status, text := ask(t, http.MethodPut, url+"/agents/bot/webhook", "bot", set); status != http.StatusNotFound || !strings.Contains(text, `"AGENT_NOT_FOUND"`) {
		t.Errorf("before it registers: %d %s", status, text)
	}
	if status, text := ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"webhook":`+set+`}`); status != http.StatusBadRequest || !strings.Contains(text, `"field":"webhook"`) {
		t.Errorf("in its card: %d %s", status, text)
	}
	ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"name":"Bot"}`)
	status, text := ask(t, http.MethodPut, url+"/agents/bot/webhook", "bot", set)
	if status != http.StatusOK || !strings.Contains(text, `{"origin":"`+bot.URL+`","scheme":"Bearer","set":"`) {
		t.Fatalf("set: %d %s", status, text)
	}
	answered := make(chan string, 1)
	go func() { answered <- sendTo(t, url, "bot", "ann", "rain?", "") }()
	letter, head := bot.came(t, 0)
	if letter.From != "agent://ann" || letter.Message.Parts[0].Text != "rain?" || letter.Message.Role != "ROLE_USER" || letter.Task.Status.State != "TASK_STATE_SUBMITTED" {
		t.Errorf("the letter is %+v", letter)
	}
	if id := head.Get("Idempotency-Key"); head.Get("Authorization") != "Bearer secret-key" || head.Get("A2A-Notification-Token") != "secret-token" ||
		id != letter.Task.ID+".1" || !strings.Contains(bot.bodies[0], `{"id":"`+id+`",`) {
		t.Errorf("called with %v and %s", head, bot.bodies[0])
	}
	ask(t, http.MethodPost, url+"/agents/bot/mailbox/"+letter.Task.ID, "bot", `{"state":"TASK_STATE_COMPLETED","message":{"parts":[{"text":"no"}]}}`)
	tells(t, <-answered, `"TASK_STATE_COMPLETED"`, `"text":"no"`)
	// Both are away, and come back.
	bot.goes(true)
	tells(t, sendTo(t, url, "bot", "ann", "snow?", atOnce), `"TASK_STATE_SUBMITTED"`)
	eventually(t, "it is seen to fail", func() bool {
		_, text = ask(t, http.MethodGet, url+"/agents/bot/webhook", "bot", "")
		return strings.Contains(text, `"waiting":1,"failing":{"since":"`) && strings.Contains(text, `"error":"web hook responded with status 502"`)
	})
	for _, path := range []string{"/agents/bot/webhook", "/agents/bot", "/agents/bot/.well-known/agent-card.json", "/data?graph=urn:koine:graph:journal:mailhooks", "/data?graph=urn:koine:graph:agents"} {
		if _, text := ask(t, http.MethodGet, url+path, "bot", ""); strings.Contains(text, "secret") {
			t.Errorf("%s has a secret: %s", path, text)
		}
	}
	if err := s.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	if log := s.log.String(); strings.Contains(log, "secret-") {
		t.Errorf("the log has a secret: %s", log)
	}
	bot.goes(false)
	s, url = startServerOn(t, dir, "--allow-private-webhooks")
	eventually(t, "what waited comes", func() bool { // and perhaps, before it, the first once more: its agent has reported on that
		bot.mu.Lock()
		defer bot.mu.Unlock()
		return strings.Contains(bot.bodies[len(bot.bodies)-1], "snow?")
	})
	// Others have no access to it.
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if status, _ := ask(t, method, url+"/agents/eve/webhook", "eve", ""); status != http.StatusNotFound {
			t.Errorf("%s of none: %d", method, status)
		}
	}
	// It deregisters, and is called no more; without the flag, no local address is.
	if status, _ := ask(t, http.MethodDelete, url+"/agents/bot", "bot", ""); status != http.StatusNoContent {
		t.Errorf("got %d", status)
	}
	if status, _ := ask(t, http.MethodGet, url+"/agents/bot/webhook", "bot", ""); status != http.StatusNotFound {
		t.Errorf("the hook is there: %d", status)
	}
	if err := s.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	_, url = startServerOn(t, dir)
	ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"name":"Bot"}`)
	if status, text := ask(t, http.MethodPut, url+"/agents/bot/webhook", "bot", set); status != http.StatusBadRequest || !strings.Contains(text, `"INVALID"`) || strings.Contains(text, "secret") {
		t.Errorf("a private address: %d %s", status, text)
	}
}
