package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"koine/internal/slowtest"
)

// The reader of streams in the unmodified SDK of OpenIntent tells each message of an intent
// exactly once and in order while the server is killed with SIGKILL and started again on
// its port and directory.
func TestOpenIntentStreamAcrossServers(t *testing.T) {
	sdk := openIntentSDK(t)
	ctx, cancel := context.WithTimeout(t.Context(), slowtest.Slack(time.Minute))
	defer cancel()
	dir := t.TempDir()
	s, url := startServerOn(t, dir)
	var intent struct{ ID string }
	if status, text := ask(t, http.MethodPost, url+"/api/v1/intents", "ann", `{"title":"Q1"}`); json.Unmarshal([]byte(text), &intent) != nil || intent.ID == "" {
		t.Fatal(status, text)
	}
	reader := sdkProgram(ctx, sdk, "stream.py", url, "dev-key-001", intent.ID)
	notes := new(growingText)
	reader.Stderr = writerOf(notes)
	out, err := reader.StdoutPipe()
	if err == nil {
		err = reader.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var first, heard counted
	told := make(chan error, 1)
	stop, silent := make(chan struct{}), make(chan error, 1)
	go func() {
		told <- takeNumbers(out, &first, &heard)
		select {
		case <-stop:
		default:
			cancel() // it ends too early
		}
	}()

	var said counted
	path := url + "/api/v1/intents/" + intent.ID + "/channels/progress/messages"
	go func() {
		for n := int64(1); ; n++ {
			select {
			case <-stop:
				silent <- sayNumber(ctx, path, 0) // the reader ends
				return
			default:
			}
			if err := sayNumber(ctx, path, n); err != nil {
				silent <- err
				cancel()
				return
			}
			said.Store(n)
		}
	}()
	for range 2 {
		// The reader hears of what is said now before the server is killed, and each
		// server acknowledges some.
		heard.reach(ctx, said.Load()+20)
		if err := s.process.Process.Signal(os.Kill); err != nil {
			t.Fatal(err)
		}
		<-s.ended
		s, _ = startServerOn(t, dir, "--listen", strings.TrimPrefix(url, "http://"))
	}
	said.reach(ctx, said.Load()+20)
	close(stop)
	if err := <-silent; err != nil {
		t.Error(err)
	}
	if err := <-told; err != nil {
		t.Error(err)
	}
	if err := reader.Wait(); err != nil {
		t.Errorf("the reader ended with %v\n%s", err, notes)
	}
	if heard.Load() != said.Load() {
		t.Errorf("the reader was told of %d of %d messages\n%s", heard.Load(), said.Load(), notes)
	}
	t.Logf("messages %d to %d", first.Load(), heard.Load())
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
