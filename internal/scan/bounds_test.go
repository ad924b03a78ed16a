package scan

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/delivery"
	"koine/kg"
)

// scanned is a message to judge.
func scanned(text string) *channels.ScannedMessage {
	parts := []json.RawMessage{fmt.Appendf(nil, `{"type":"text","text":%q}`, text)}
	return &channels.ScannedMessage{JudgedMessage: channels.JudgedMessage{Message: &message.Message{ID: "m", Author: "agent://bob", Parts: parts}, Channel: &channel.Channel{ID: "c"}}}
}

func hookAt(t *testing.T, o HookOptions, answer http.HandlerFunc) *Hook {
	t.Helper()
	at := httptest.NewServer(answer)
	t.Cleanup(at.Close)
	o.Target, o.AllowPrivate = delivery.Target{URL: at.URL}, true
	h, err := NewHook(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// accepts answers each call.
func accepts(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"verdict":"accept"}`)
}

// As many calls as MaxCalls are under way at once and no more: the others wait for their
// turn, and are judged.
func TestCallsUnderWay(t *testing.T) {
	const most, messages = 3, 12
	var now, top atomic.Int64
	together := make(chan struct{})
	h := hookAt(t, HookOptions{MaxCalls: most, Timeout: MaxTimeout}, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for old := top.Load(); n > old && !top.CompareAndSwap(old, n); old = top.Load() {
		}
		if n == most {
			select {
			case <-together:
			default:
				close(together)
			}
		}
		select {
		case <-together: // each call waits until all places are taken once
			accepts(w, r)
		case <-r.Context().Done():
		}
	})
	var wg sync.WaitGroup
	for range messages {
		wg.Go(func() {
			if r, err := h.judge(t.Context(), scanned("x")); err != nil || r.Outcome != kg.Accepted || r.Transient {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if top.Load() != most {
		t.Errorf("%d calls under way, want %d", top.Load(), most)
	}
}

// A message that finds no place in its time is not judged. That is no failure of the hook:
// with a place it is called at once.
func TestNoPlaceForACall(t *testing.T) {
	var calls atomic.Int64
	h := hookAt(t, HookOptions{MaxCalls: 2, Timeout: 20 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) { calls.Add(1); accepts(w, r) })
	var release func()
	for range 2 {
		var err error
		if release, err = h.sender.Acquire(t.Context(), kg.System); err != nil {
			t.Fatal(err)
		}
	}
	for range breakAfter + 1 {
		r, err := h.judge(t.Context(), scanned("x"))
		if err != nil || r.Outcome != kg.Rejected || !r.Transient || !strings.Contains(r.Details, "too many messages are being judged") {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.judge(ctx, scanned("x")); kg.CodeOf(err) != kg.CodeTimeout {
		t.Errorf("a caller that is gone: %v", err)
	}
	if calls.Load() != 0 {
		t.Errorf("%d calls without a place", calls.Load())
	}
	release()
	h.options.Timeout = MaxTimeout
	if r, err := h.judge(t.Context(), scanned("x")); err != nil || r.Outcome != kg.Accepted || calls.Load() != 1 {
		t.Errorf("with a place: %+v, %v, %d calls", r, err, calls.Load())
	}
}

// A call of MaxBytes and an answer of MaxResponseBytes are the largest.
func TestBytesOfACall(t *testing.T) {
	body, err := encodeCall(scanned("x"))
	if err != nil {
		t.Fatal(err)
	}
	var answer string
	h := hookAt(t, HookOptions{MaxBytes: len(body)}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
	const verdict = `{"verdict":"reject"}`
	judged := func(text string, length int) bool {
		t.Helper()
		answer = verdict + strings.Repeat(" ", length-len(verdict))
		r, err := h.judge(t.Context(), scanned(text))
		if err != nil || r.Outcome != kg.Rejected {
			t.Fatalf("%+v, %v", r, err)
		}
		return !r.Transient
	}
	for _, row := range []struct {
		text   string
		length int
		want   bool
	}{{"x", len(verdict), true}, {"x", MaxResponseBytes, true}, {"x", MaxResponseBytes + 1, false}, {"xx", len(verdict), false}} {
		if got := judged(row.text, row.length); got != row.want {
			t.Errorf("%q with an answer of %d bytes: judged %v", row.text, row.length, got)
		}
	}
}

// The members of an answer have bounds.
func TestBoundsOfAnswers(t *testing.T) {
	tags := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint("t", i))
		}
		return out
	}
	for _, row := range []struct {
		a    answer
		want bool
	}{
		{answer{Verdict: "accept", Tags: tags(channels.MaxAddedTags)}, true},
		{answer{Verdict: "accept", Tags: tags(channels.MaxAddedTags + 1)}, false},
		{answer{Verdict: "reject", Reason: strings.Repeat("ä", MaxReasonRunes)}, true},
		{answer{Verdict: "reject", Reason: strings.Repeat("ä", MaxReasonRunes+1)}, false},
		{answer{Verdict: "ACCEPT"}, false},
	} {
		raw, err := json.Marshal(row.a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeAnswer(raw); (err == nil) != row.want {
			t.Errorf("%d tags, %d bytes of a reason, %s: %v", len(row.a.Tags), len(row.a.Reason), row.a.Verdict, err)
		}
	}
}

// The options have bounds, and defaults.
func TestBoundsOfOptions(t *testing.T) {
	for what, row := range map[string]struct {
		o    HookOptions
		want kg.Code
	}{
		"none":             {HookOptions{}, ""},
		"the longest time": {HookOptions{Timeout: MaxTimeout}, ""},
		"a longer time":    {HookOptions{Timeout: MaxTimeout + 1}, kg.CodeInvalid},
		"no time":          {HookOptions{Timeout: -1}, kg.CodeInvalid},
		"no calls":         {HookOptions{MaxCalls: -1}, kg.CodeInvalid},
		"no bytes":         {HookOptions{MaxBytes: -1}, kg.CodeInvalid},
		"a secret":         {HookOptions{Secret: make([]byte, MaxSecretBytes)}, ""},
		"a longer secret":  {HookOptions{Secret: make([]byte, MaxSecretBytes+1)}, kg.CodeLimitExceeded},
		"another choice":   {HookOptions{OnFailure: "ignore"}, kg.CodeInvalid},
	} {
		row.o.Target, row.o.AllowPrivate = delivery.Target{URL: "http://127.0.0.1:1/"}, true
		h, err := NewHook(row.o)
		if kg.CodeOf(err) != row.want {
			t.Errorf("%s: %v", what, err)
		}
		if what == "none" && (h.options.Timeout != DefaultTimeout || h.options.MaxCalls != DefaultMaxCalls || h.options.MaxBytes != DefaultMaxBytes || h.options.OnFailure != Reject) {
			t.Errorf("defaults: %+v", h.options)
		}
		if h != nil {
			h.Close()
		}
	}
	if _, err := NewHook(HookOptions{Target: delivery.Target{URL: "http://127.0.0.1:1/"}}); err == nil {
		t.Error("a private address is allowed")
	}
}
