package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/internal/slowtest"
)

// TestPushAcrossKills proves that a web hook gets every chunk and every status of a task,
// in order, while the server is killed with SIGKILL and restarted: the last deliveries are
// repeated, and none is omitted.
func TestPushAcrossKills(t *testing.T) {
	slowtest.Long(t)
	at := newRelay(t)
	dir := t.TempDir()
	s, url := startServerOn(t, dir, "--allow-private-webhooks")
	at.leadTo(url)
	if status, text := ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"name":"Bot"}`); status != http.StatusCreated {
		t.Fatal(status, text)
	}
	events, whole := &pushed{t: t, came: make(chan struct{}, 1)}, &pushed{t: t, came: make(chan struct{}, 1), whole: true}
	one, two := httptest.NewServer(events), httptest.NewServer(whole)
	t.Cleanup(one.Close)
	t.Cleanup(two.Close)
	w := &working{url: at.url(), task: taskIn(t, http.StatusOK, sendTo(t, url, "bot", "ann", "go on", atOnce+`,"taskPushNotificationConfig":{"id":"1","url":"`+one.URL+`","token":"1"}`))}
	_, text := ask(t, http.MethodPost, url+"/agents/bot/a2a", "ann", fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set","params":{"taskId":%q,"pushNotificationConfig":{"id":"2","url":%q}}}`, w.task, two.URL))
	tells(t, text, `"result"`)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		if err := w.report(ctx, over); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}()
	until := func(done func() bool) {
		for !done() && ctx.Err() == nil && !t.Failed() {
			select {
			case <-events.came:
			case <-whole.came:
			case <-time.After(again): // a report
			}
		}
	}
	for range *serverKills {
		more := w.reported.Load() + 3 + rand.Int64N(12)
		until(func() bool { return w.reported.Load() >= more })
		if err := s.process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-s.ended
		events.killed()
		s, url = startServerOn(t, dir, "--allow-private-webhooks")
		at.leadTo(url)
	}
	close(over)
	<-ended
	n := w.reported.Load()
	until(func() bool { return events.ended() && whole.ended() })
	if got := events.last(); got != 2*n+1 {
		t.Errorf("the hook was told %d events of %d reports and an end\n%s", got, n, s.log)
	}
	if got := whole.last(); got != n {
		t.Errorf("the hook of 0.3 was shown %d chunks of %d\n%s", got, n, s.log)
	}
	t.Logf("%d reports, %d calls", n, events.calls)
}

// pushed is a web hook that checks its deliveries.
type pushed struct {
	t     *testing.T
	came  chan struct{}
	whole bool // it is shown the task

	mu    sync.Mutex
	calls int
	kills int
	told  int64 // the last delivery: an event, or a chunk
	most  int64 // the newest that came
	backs int   // number of deliveries out of order
	end   bool
}

func (p *pushed) killed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kills++
}

func (p *pushed) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end
}

func (p *pushed) last() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

func (p *pushed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the server was killed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls++; p.calls == 9 {
		w.WriteHeader(http.StatusServiceUnavailable) // which is tried again
		return
	}
	p.take(string(raw))
	select {
	case p.came <- struct{}{}:
	default:
	}
}

var numberOf = regexp.MustCompile(`"<(\d+)>"`)

// take receives a delivery: the next, or after a kill some of the earlier ones again. A
// task that is shown has many numbers, and an event that of its report.
func (p *pushed) take(body string) {
	n := int64(0)
	for _, found := range numberOf.FindAllStringSubmatch(body, -1) {
		of, _ := strconv.ParseInt(found[1], 10, 64)
		n = max(n, of)
	}
	switch {
	case p.whole:
		p.end = strings.Contains(body, `"state":"completed"`)
		p.most = max(p.most, n)
		return
	case strings.Contains(body, "TASK_STATE_COMPLETED"):
		n, p.end = p.most+1, true
	case strings.Contains(body, `"artifactUpdate"`):
		n = 2*n - 1
	default:
		n = 2 * n
	}
	if n != p.told+1 {
		p.backs++
	}
	if n > p.most+1 || n < 1 || p.backs > 2*p.kills { // one that was under way, and where the next server begins
		p.t.Errorf("behind event %d, the newest being %d, comes %s", p.told, p.most, body)
	}
	p.told, p.most = n, max(p.most, n)
}
