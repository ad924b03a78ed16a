package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"koine/internal/slowtest"
)

// The reader of streams in the unmodified SDK of OpenIntent tells each event of each kind of
// stream, under both spellings of its path, exactly once and in order while the server is
// killed with SIGKILL and started again on its port and directory.
func TestOpenIntentStreamsAcrossServers(t *testing.T) {
	sdk := openIntentSDK(t)
	ctx, cancel := context.WithTimeout(t.Context(), slowtest.Slack(2*time.Minute))
	defer cancel()
	dir := t.TempDir()
	s, url := startServerOn(t, dir)
	made := func(path, body string) string {
		t.Helper()
		var answer struct{ ID string }
		if status, text := ask(t, http.MethodPost, url+"/api/v1"+path, "ann", body); json.Unmarshal([]byte(text), &answer) != nil || answer.ID == "" {
			t.Fatal(status, text)
		}
		return answer.ID
	}
	talking, working := made("/intents", `{"title":"talk"}`), made("/intents", `{"title":"work"}`)
	progress := made("/intents/"+talking+"/channels", `{"name":"progress"}`)
	portfolio := made("/portfolios", `{"name":"all"}`)
	made("/portfolios/"+portfolio+"/intents", `{"intent_id":"`+working+`"}`)
	made("/intents/"+working+"/agents", `{"agent_id":"bob"}`)

	var said, done counted
	var readers []*numberReader
	for _, path := range []string{"/intents/%s/subscribe", "/subscribe/intents/%s"} {
		readers = append(readers, &numberReader{path: fmt.Sprintf(path, talking), kind: "channel_message", want: &said})
	}
	for _, path := range []string{"/channels/%s/subscribe", "/subscribe/channels/%s"} {
		readers = append(readers, &numberReader{path: fmt.Sprintf(path, progress), kind: "channel_message", want: &said})
	}
	for _, path := range []string{"/agents/bob/subscribe", "/subscribe/agents/bob"} {
		readers = append(readers, &numberReader{path: path + "?events=messages", kind: "channel_message", want: &said}, &numberReader{path: path, kind: "STATE_CHANGED", want: &done})
	}
	for _, path := range []string{"/portfolios/%s/subscribe", "/subscribe/portfolios/%s"} {
		readers = append(readers, &numberReader{path: fmt.Sprintf(path, portfolio), kind: "STATE_CHANGED", want: &done})
	}
	stop := make(chan struct{})
	for _, r := range readers {
		if err := r.start(ctx, sdk, url); err != nil {
			t.Fatal(err)
		}
		go func() {
			r.told <- takeNumbers(r.out, &r.first, &r.heard)
			select {
			case <-stop:
			default:
				cancel() // it ends too early
			}
		}()
	}
	writers := make(chan error, 2)
	write := func(last *counted, one func(n int64) error) {
		for n := int64(1); ; n++ {
			select {
			case <-stop:
				writers <- one(0) // the readers end
				return
			default:
			}
			if err := one(n); err != nil {
				writers <- err
				cancel()
				return
			}
			last.Store(n)
		}
	}
	go write(&said, func(n int64) error {
		return sayNumber(ctx, url+"/api/v1/intents/"+talking+"/channels/progress/messages", n)
	})
	version := int64(0)
	go write(&done, func(n int64) error {
		version++
		return setNumber(ctx, url+"/api/v1/intents/"+working+"/state", version, n)
	})
	for range 2 {
		// The readers hear of what is said now before the server is killed, and each server
		// acknowledges some.
		for _, r := range readers {
			r.heard.reach(ctx, r.want.Load()+5)
		}
		if err := s.process.Process.Signal(os.Kill); err != nil {
			t.Fatal(err)
		}
		<-s.ended
		s, _ = startServerOn(t, dir, "--listen", strings.TrimPrefix(url, "http://"))
	}
	said.reach(ctx, said.Load()+5)
	done.reach(ctx, done.Load()+5)
	close(stop)
	for range 2 {
		if err := <-writers; err != nil {
			t.Error(err)
		}
	}
	for _, r := range readers {
		if err := <-r.told; err != nil {
			t.Errorf("%s: %v", r.path, err)
		}
		if err := r.process.Wait(); err != nil {
			t.Errorf("%s: the reader ended with %v\n%s", r.path, err, &r.notes)
		}
		if r.heard.Load() != r.want.Load() {
			t.Errorf("%s: the reader was told of %d of %d events\n%s", r.path, r.heard.Load(), r.want.Load(), &r.notes)
		}
		t.Logf("%s: events %d to %d", r.path, r.first.Load(), r.heard.Load())
	}
}

// numberReader is a process with a stream of the SDK.
type numberReader struct {
	path, kind   string
	want         *counted // the last number that was acknowledged
	process      *exec.Cmd
	out          io.Reader
	notes        growingText
	first, heard counted
	told         chan error
}

func (r *numberReader) start(ctx context.Context, sdk, url string) (err error) {
	r.process = sdkProgram(ctx, sdk, "stream.py", url+"/api/v1"+r.path, "dev-key-001", r.kind)
	r.process.Stderr = writerOf(&r.notes)
	r.told = make(chan error, 1)
	if r.out, err = r.process.StdoutPipe(); err != nil {
		return err
	}
	return r.process.Start()
}

// setNumber writes a number into the state of an intent at a version until it is
// acknowledged. A conflict after an attempt without an answer is the answer.
func setNumber(ctx context.Context, path string, version, n int64) error {
	for unsure := false; ctx.Err() == nil; time.Sleep(again) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(fmt.Sprintf(`{"state":{"n":%d}}`, n)))
		if err != nil {
			return err
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "X-Agent-Id": {"ann"}, "If-Match": {fmt.Sprint(version)}}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			unsure = true
			continue
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		switch {
		case err != nil:
			unsure = true
			continue
		case response.StatusCode == http.StatusServiceUnavailable:
			continue
		case response.StatusCode == http.StatusConflict && unsure:
			return nil
		case response.StatusCode != http.StatusOK:
			return fmt.Errorf("writing %d: %d %s", n, response.StatusCode, text)
		}
		return nil
	}
	return ctx.Err()
}

// takeNumbers reads numbers, each the one behind the last.
func takeNumbers(from io.Reader, first, last *counted) error {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		var n int64
		if _, err := fmt.Sscan(lines.Text(), &n); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		if before := last.Load(); before > 0 && n != before+1 {
			return fmt.Errorf("behind message %d comes message %d", before, n)
		} else if before == 0 {
			first.Store(n)
		}
		last.Store(n)
	}
	return nil
}

// sayNumber sends a message until it is acknowledged.
func sayNumber(ctx context.Context, path string, n int64) error {
	for ; ctx.Err() == nil; time.Sleep(again) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(fmt.Sprintf(`{"sender":"ann","payload":{"n":%d}}`, n)))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-API-Key", "dev-key-001")
		r.Header.Set("X-Agent-ID", "ann")
		r.Header.Set("Idempotency-Key", fmt.Sprint(n))
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode == http.StatusServiceUnavailable {
			continue
		}
		if response.StatusCode != http.StatusCreated {
			return fmt.Errorf("sending message %d: %d %s", n, response.StatusCode, text)
		}
		return nil
	}
	return ctx.Err()
}
