package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/slowtest"
)

// TestTasksAcrossServers proves that a follower of a task receives each chunk and each
// status once and in order while the server is killed with SIGKILL, or stops gracefully,
// and is restarted, in both versions of A2A and over both bindings; and that an agent that opens its mailbox again
// finds every task that it was given.
func TestTasksAcrossServers(t *testing.T) {
	slowtest.Long(t)
	at := newRelay(t)
	dir := t.TempDir()
	s, url := startServerOn(t, dir)
	at.leadTo(url)
	for _, agent := range []string{"bot", "post"} {
		if status, text := ask(t, http.MethodPut, url+"/agents/"+agent, agent, `{"name":"an agent"}`); status != http.StatusCreated {
			t.Fatal(status, text)
		}
	}
	w := &working{url: at.url(), task: taskIn(t, http.StatusOK, sendTo(t, url, "bot", "ann", "go on", atOnce))}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	begin := func(do func() error) {
		all.Go(func() {
			if err := do(); err != nil && ctx.Err() == nil {
				t.Error(err)
				cancel()
			}
		})
	}
	followers := []*taskFollower{{method: "SubscribeToTask"}, {method: "tasks/resubscribe"}, {method: "SubscribeToTask", restless: true},
		{method: "/http/tasks/" + w.task + ":subscribe", restless: true}, {method: "/http/v1/tasks/" + w.task + ":subscribe"}}
	for _, f := range followers {
		f.begun = make(chan struct{})
		begin(func() error { return w.follow(ctx, f) })
	}
	for _, f := range followers {
		select {
		case <-f.begun:
		case <-ctx.Done():
			t.Fatal("a stream does not begin")
		}
	}
	over := make(chan struct{})
	begin(func() error { return w.report(ctx, over) })
	begin(func() error { return w.post(ctx, over) })
	begin(func() error { return w.mail(ctx) })
	for i := range *serverKills {
		w.reported.reach(ctx, w.reported.Load()+5+rand.Int64N(20))
		signal := os.Kill
		if i%3 == 2 {
			signal = os.Interrupt
		}
		s, url = startedAgain(t, s, signal, dir)
		at.leadTo(url)
	}
	w.reported.reach(ctx, w.reported.Load()+5)
	close(over)
	all.Wait()
	for _, f := range followers {
		if f.told != 2*w.reported.Load()+1 || !f.ended {
			t.Errorf("%s told %d events of %d reports and an end", f.method, f.told, w.reported.Load())
		}
	}
	t.Logf("%d reports, %d tasks", w.reported.Load(), w.posted.Load())
}

// working is a task at a server that is restarted.
type working struct {
	url, task string
	reported  counted      // chunks that are there
	posted    atomic.Int64 // tasks that were given to the post
}

// try repeats a request until the server answers it; repeated reports that it was sent
// before with an unknown result.
func (w *working) try(ctx context.Context, who, method, path, body string) (text string, repeated bool, err error) {
	for ; ctx.Err() == nil; time.Sleep(again) {
		response, err := w.ask(ctx, who, method, path, body, "")
		if err != nil {
			repeated = true
			continue
		}
		raw, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode == http.StatusServiceUnavailable || goingDown.Match(raw) || strings.Contains(string(raw), `"CLOSED"`) {
			repeated = true
			continue
		}
		return string(raw), repeated, nil
	}
	return "", repeated, ctx.Err()
}

func (w *working) ask(ctx context.Context, who, method, path, body, last string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Agent-ID", who)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	return http.DefaultClient.Do(r)
}

// perArtifact is how many chunks an artifact has.
const perArtifact = 500

// report reports one chunk behind the other, and the end.
func (w *working) report(ctx context.Context, over chan struct{}) error {
	path := "/agents/bot/mailbox/" + w.task
	for {
		select {
		case <-over:
			text, repeated, err := w.try(ctx, "bot", http.MethodPost, path, `{"state":"TASK_STATE_COMPLETED"}`)
			if err == nil && !strings.Contains(text, "TASK_STATE_COMPLETED") && !repeated {
				err = fmt.Errorf("the end: %s", text)
			}
			return err
		default:
		}
		n := w.reported.Load() + 1
		body := fmt.Sprintf(`{"state":"TASK_STATE_WORKING","message":{"parts":[{"text":"<%d>"}]},"artifacts":[{"artifactId":"%d","parts":[{"text":"<%d>"}],"append":%t}]}`, n, n/perArtifact, n, n > 1 && n%perArtifact != 0)
		for there := false; !there; {
			response, err := w.ask(ctx, "bot", http.MethodPost, path, body, "")
			if err == nil {
				raw, readErr := io.ReadAll(response.Body)
				response.Body.Close()
				// An interrupted request was done, or not.
				if there = readErr == nil && response.StatusCode == http.StatusOK; !there && readErr == nil && response.StatusCode < http.StatusInternalServerError {
					return fmt.Errorf("report %d: %d %s", n, response.StatusCode, raw)
				}
			}
			if !there { // perhaps it was done
				text, _, err := w.try(ctx, "ann", http.MethodPost, "/agents/bot/a2a", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":%q}}`, w.task))
				if err != nil {
					return err
				}
				there = strings.Contains(text, fmt.Sprintf("<%d>", n))
				if !strings.Contains(text, `"TASK_STATE_`) || n > 1 && !strings.Contains(text, fmt.Sprintf("<%d>", n-1)) {
					return fmt.Errorf("behind report %d the task is %s", n-1, text)
				}
			}
		}
		w.reported.Store(n)
	}
}

// theLast is the last letter.
const theLast = "the last"

// post gives the post one task behind the other.
func (w *working) post(ctx context.Context, over chan struct{}) error {
	for n := int64(1); ; n++ {
		says, last := fmt.Sprint("letter ", n), false
		select {
		case <-over:
			says, last = theLast, true
		default:
		}
		text, _, err := w.try(ctx, "ann", http.MethodPost, "/agents/post/a2a", fmt.Sprintf(
			`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"p%d","role":"ROLE_USER","parts":[{"text":%q}]},"configuration":{"returnImmediately":true}}}`, n, says))
		if err == nil && !strings.Contains(text, says) {
			err = fmt.Errorf("%s: %s", says, text)
		}
		if err != nil || last {
			return err
		}
		w.posted.Store(n)
	}
}

// mail reads the letters of the mailbox, which it opens repeatedly: no letter is missing,
// and one that it has reported on does not come again.
func (w *working) mail(ctx context.Context) error {
	for done, over := int64(0), false; !over; time.Sleep(again) {
		response, err := w.ask(ctx, "post", http.MethodGet, "/agents/post/mailbox", "", "")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			continue
		}
		over, err = w.read(ctx, response.Body, &done)
		response.Body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads an open mailbox to its end, or the last letter.
func (w *working) read(ctx context.Context, body io.Reader, done *int64) (over bool, err error) {
	for lines := bufio.NewScanner(body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var letter hubLetter
		if !ok || json.Unmarshal([]byte(data), &letter) != nil || letter.Task.ID == "" {
			continue // the reason of its end, or the interrupted part
		}
		says := letter.Message.Parts[0].Text
		if says != fmt.Sprint("letter ", *done+1) && says != theLast {
			return false, fmt.Errorf("behind letter %d comes %q", *done, says)
		}
		text, repeated, err := w.try(ctx, "post", http.MethodPost, "/agents/post/mailbox/"+letter.Task.ID, `{"state":"TASK_STATE_COMPLETED"}`)
		if err == nil && !strings.Contains(text, "TASK_STATE_COMPLETED") && !(repeated && strings.Contains(text, "TASK_ENDED")) {
			err = fmt.Errorf("%s: %s", says, text)
		}
		if says == theLast && err == nil && *done != w.posted.Load() {
			err = fmt.Errorf("the last comes behind %d of %d letters", *done, w.posted.Load())
		}
		if err != nil || says == theLast {
			return true, err
		}
		*done++
	}
	return false, nil
}

// taskFollower follows the task, and resumes with the id of the last event.
type taskFollower struct {
	method   string        // of JSON-RPC, or a path over HTTP+JSON
	restless bool          // it leaves and comes back, also between two events of one commit
	begun    chan struct{} // closed with the task
	last     string
	told     int64 // events behind the task
	ended    bool
}

func (w *working) follow(ctx context.Context, f *taskFollower) error {
	path, body := "/agents/bot/a2a", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"id":%q}}`, f.method, w.task)
	if f.method[0] == '/' {
		path, body = path+f.method, ""
	}
	for ; ctx.Err() == nil && !f.ended; time.Sleep(again) {
		response, err := w.ask(ctx, "ann", http.MethodPost, path, body, f.last)
		if err != nil {
			continue
		}
		if response.StatusCode != http.StatusServiceUnavailable {
			err = f.read(response.Body)
		}
		response.Body.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", f.method, err)
		}
	}
	return nil
}

// read reads one stream to its end. An incomplete event was not delivered.
func (f *taskFollower) read(body io.Reader) error {
	id, stays := "", f.told+1+rand.Int64N(6)
	for in := bufio.NewReader(body); !f.restless || f.told < stays; {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil
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
		if strings.Contains(data, `"error":`) {
			if !goingDown.MatchString(data) {
				return fmt.Errorf("behind event %d: %s", f.told, data)
			}
			continue
		}
		if err := f.take(id, data); err != nil {
			return err
		}
	}
	return nil
}

// take takes the next event: the task, and then for each report the chunk and the
// status, and the end.
func (f *taskFollower) take(id, data string) error {
	if id == "" || id == f.last {
		return fmt.Errorf("behind the event %s comes %s with the id %q", f.last, data, id)
	}
	of, number := `"artifact":`, fmt.Sprintf(`"<%d>"`, f.told/2+1)
	switch first := f.last == ""; {
	case first && strings.Contains(data, `"history":`):
		close(f.begun)
		f.last = id
		return nil
	case first:
		return fmt.Errorf("the stream begins with %s", data)
	case strings.Contains(data, "TASK_STATE_COMPLETED") || strings.Contains(data, `"completed"`):
		f.ended, number = true, ""
	}
	if f.ended || f.told%2 == 1 {
		of = `"status":`
	}
	if !strings.Contains(data, of) || !strings.Contains(data, number) {
		return fmt.Errorf("event %d is %s, want the %s of %s", f.told+1, data, of, number)
	}
	f.told, f.last = f.told+1, id
	return nil
}
