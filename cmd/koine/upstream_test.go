package main

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"koine/internal/slowtest"
)

// counter is an agent that delivers one part for each value that comes.
type counter struct{ next chan string }

func (c counter) Execute(ctx context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		first := a2a.NewArtifactEvent(x, a2a.NewTextPart("0"))
		for _, e := range []a2a.Event{a2a.NewSubmittedTask(x, x.Message), a2a.NewStatusUpdateEvent(x, a2a.TaskStateWorking, nil), first} {
			if !yield(e, nil) {
				return
			}
		}
		for text := range c.next {
			if !yield(a2a.NewArtifactUpdateEvent(x, first.Artifact.ID, a2a.NewTextPart(text)), nil) {
				return
			}
		}
		yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCompleted, nil), nil)
	}
}

func (counter) Cancel(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCanceled, nil), nil)
	}
}

// TestUpstreamAcrossAKill proves that the answer of an A2A server behind the hub is complete
// and without duplicates, though koine is killed with SIGKILL while it comes.
func TestUpstreamAcrossAKill(t *testing.T) {
	slowtest.Long(t)
	work := counter{make(chan string)}
	bot := httptest.NewServer(a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(work)))
	t.Cleanup(func() {
		bot.CloseClientConnections()
		bot.Close()
	})
	dir := t.TempDir()
	s, url := startServerOn(t, dir, "--allow-private-webhooks")
	ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"name":"Bot"}`)
	set := `{"url":"` + bot.URL + `/?secret-address","authentication":{"scheme":"Bearer","credentials":"secret-key"}}`
	if status, text := ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"upstream":`+set+`}`); status != http.StatusBadRequest || !strings.Contains(text, `"field":"upstream"`) {
		t.Errorf("in its card: %d %s", status, text)
	}
	status, text := ask(t, http.MethodPut, url+"/agents/bot/upstream", "bot", set)
	if status != http.StatusOK || !strings.Contains(text, `{"origin":"`+bot.URL+`","binding":"JSONRPC","protocolVersion":"1.0","streaming":true,"authentication":{"scheme":"Bearer","credentials":true},"set":"`) {
		t.Fatalf("set: %d %s", status, text)
	}
	task := taskIn(t, http.StatusOK, sendTo(t, url, "bot", "ann", "count", atOnce))
	get := func() string {
		_, text := ask(t, http.MethodGet, url+"/agents/bot/a2a/http/tasks/"+task, "ann", "")
		return text
	}
	for _, text := range []string{"1", "2", "3"} {
		work.next <- text
		if text != "2" {
			continue
		}
		eventually(t, "it came", func() bool { return strings.Contains(get(), `{"text":"1"}`) })
		if err := s.process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-s.ended
		if log := s.log.String(); strings.Contains(log, "secret-") {
			t.Errorf("the log has a secret: %s", log)
		}
	}
	s, url = startServerOn(t, dir, "--allow-private-webhooks")
	work.next <- "4"
	close(work.next)
	eventually(t, "it is completed", func() bool { return strings.Contains(get(), `"TASK_STATE_COMPLETED"`) })
	tells(t, get(), `"parts":[{"text":"0"},{"text":"1"},{"text":"2"},{"text":"3"},{"text":"4"}]`)
	for _, path := range []string{"/agents/bot/upstream", "/agents/bot", "/agents/bot/.well-known/agent-card.json", "/data?graph=urn:koine:graph:journal:upstreams"} {
		if _, text := ask(t, http.MethodGet, url+path, "bot", ""); strings.Contains(text, "secret") {
			t.Errorf("%s has a secret: %s", path, text)
		}
	}
	if log := s.log.String(); strings.Contains(log, "secret-") {
		t.Errorf("the log has a secret: %s", log)
	}
}
