package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/slowtest"
)

// TestHeldMessagesAcrossServers proves that a held message is published exactly once, with
// the next number, when it is approved, while the server is killed with SIGKILL and
// restarted between and during holds and approvals; and that a repeated key has its first
// answer after all of that, for which the hook is not asked.
func TestHeldMessagesAcrossServers(t *testing.T) {
	slowtest.Long(t)
	var calls atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		verdict := `{"verdict":"hold","reason":"words are looked at"}`
		if body, _ := io.ReadAll(r.Body); bytes.Contains(body, []byte("rude")) {
			verdict = `{"verdict":"reject","reason":"Not here"}`
		}
		_, _ = io.WriteString(w, verdict)
	}))
	defer hook.Close()
	at := newRelay(t)
	dir := t.TempDir()
	args := []string{"--content-hook", hook.URL, "--content-hook-private", "--content-hook-time", "30s"}
	s, url := startServerOn(t, dir, args...)
	at.leadTo(url)
	ctx, cancel := context.WithTimeout(t.Context(), slowtest.Slack(5*time.Minute))
	defer cancel()
	m := &moderated{working: working{url: at.url()}}
	made, _, err := m.try(ctx, "ann", http.MethodPost, "/a2a", `{"jsonrpc":"2.0","id":1,"method":"channels/create","params":{"name":"lab","members":[{"principalId":"bob"},{"principalId":"rob"}]}}`)
	if found := channelID.FindStringSubmatch(made); err == nil && found != nil {
		m.channel = found[1]
	} else {
		t.Fatal(made, err)
	}
	over := make(chan struct{})
	waiting := make(chan *heldOne, 4)
	var all sync.WaitGroup
	begin := func(do func() error) {
		all.Go(func() {
			if err := do(); err != nil && ctx.Err() == nil {
				t.Error(err)
				cancel()
			}
		})
	}
	begin(func() error { defer close(waiting); return m.write(ctx, over, waiting) })
	begin(func() error { return m.review(ctx, waiting) })
	for range *serverKills {
		m.approved.reach(ctx, m.approved.Load()+1+rand.Int64N(5))
		time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond)))) // anywhere in a hold or an approval
		if err := s.process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-s.ended
		s, url = startServerOn(t, dir, args...)
		at.leadTo(url)
	}
	m.approved.reach(ctx, m.approved.Load()+1)
	close(over)
	all.Wait()
	if t.Failed() {
		return
	}
	m.settled(ctx, t, &calls)
	if err := s.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	if out, err := exec.Command("koine", "check", "--data", dir).CombinedOutput(); err != nil {
		t.Errorf("koine check: %v\n%s", err, out)
	}
	t.Logf("%d messages", len(m.held))
}

// moderated is a channel whose messages are held.
type moderated struct {
	working
	channel  string
	held     []*heldOne
	refused  []*heldOne
	approved counted
}

// heldOne is a message that is held, or refused.
type heldOne struct{ key, text, answer, proposal string }

func (m *moderated) publish(ctx context.Context, h *heldOne) (string, error) {
	text, _, err := m.try(ctx, "bob", http.MethodPost, "/a2a", fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"channels/publish","params":{"channelId":%q,"parts":[{"type":"text","text":%q}],"idempotencyKey":%q}}`, m.channel, h.text, h.key))
	return text, err
}

// write has messages held, one behind the other, each twice, and now and then one refused.
func (m *moderated) write(ctx context.Context, over chan struct{}, waiting chan *heldOne) error {
	for n := 0; ; n++ {
		select {
		case <-over:
			return nil
		default:
		}
		h := &heldOne{key: fmt.Sprint("k", n), text: fmt.Sprintf("odd <%d>", n)}
		bad := n%4 == 3
		if bad {
			h.text = fmt.Sprintf("rude <%d>", n)
		}
		for range 2 {
			text, err := m.publish(ctx, h)
			if err != nil {
				return err
			}
			var e struct {
				Error struct {
					Data struct{ ProposalID, VerificationStatus string }
				}
			}
			_ = json.Unmarshal([]byte(text), &e) // what is no answer has none of both
			d := e.Error.Data
			if bad != (d.VerificationStatus == "Rejected - Not here") || bad == (d.ProposalID != "") || h.answer != "" && d.ProposalID != h.proposal {
				return fmt.Errorf("%s: got %s, before %s", h.text, text, h.answer)
			}
			h.answer, h.proposal = text, d.ProposalID
		}
		if bad {
			m.refused = append(m.refused, h)
			continue
		}
		m.held = append(m.held, h)
		select {
		case waiting <- h:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// review approves the messages in their order, each until it is applied.
func (m *moderated) review(ctx context.Context, waiting chan *heldOne) error {
	for h := range waiting {
		text, repeated, err := m.try(ctx, "rob", http.MethodPost, "/graphql", fmt.Sprintf(
			`{"query":"mutation { reviewProposal(input: {proposalId: \"%s\", decision: APPROVE}) { proposal { status } } }"}`, h.proposal))
		if err != nil {
			return err
		}
		if !strings.Contains(text, `"status":"APPLIED"`) && !(repeated && strings.Contains(text, "PROPOSAL_CLOSED")) {
			return fmt.Errorf("approval of %s: %s", h.text, text)
		}
		m.approved.Store(m.approved.Load() + 1)
	}
	return nil
}

// settled checks what came of it: each approved message once, in the order of approval, with
// numbers without a gap; and each key with its answer, for which the hook is not asked.
func (m *moderated) settled(ctx context.Context, t *testing.T, calls *atomic.Int64) {
	t.Helper()
	seen := 0
	for since := 0; ; {
		text, _, err := m.try(ctx, "ann", http.MethodPost, "/a2a", fmt.Sprintf(
			`{"jsonrpc":"2.0","id":1,"method":"channels/history","params":{"channelId":%q,"sinceSequence":%d,"pageSize":100}}`, m.channel, since))
		var page struct {
			Result struct {
				Events []struct {
					Sequence int
					Parts    []struct{ Text string }
				}
			}
		}
		if err != nil || json.Unmarshal([]byte(text), &page) != nil {
			t.Fatal(text, err)
		}
		if len(page.Result.Events) == 0 {
			break
		}
		for _, e := range page.Result.Events {
			if seen >= len(m.held) || e.Sequence != seen+1 || e.Parts[0].Text != m.held[seen].text {
				t.Fatalf("message %d is %d %v", seen+1, e.Sequence, e.Parts)
			}
			seen, since = seen+1, e.Sequence
		}
	}
	if seen != len(m.held) || int64(seen) != m.approved.Load() {
		t.Errorf("%d messages of %d that were held", seen, len(m.held))
	}
	before := calls.Load()
	for i, h := range m.held {
		if text, err := m.publish(ctx, h); err != nil || !strings.Contains(text, fmt.Sprintf(`"sequence":%d,`, i+1)) || !strings.Contains(text, `"replayed":true`) {
			t.Errorf("%s again: %s, %v", h.text, text, err)
		}
	}
	for _, h := range m.refused {
		if text, err := m.publish(ctx, h); err != nil || text != h.answer {
			t.Errorf("%s again: %s, %v\nwant %s", h.text, text, err, h.answer)
		}
	}
	if n := calls.Load(); n != before {
		t.Errorf("repetitions call the hook %d times", n-before)
	}
}
