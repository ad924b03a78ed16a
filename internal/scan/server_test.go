package scan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/celrules"
	"koine/internal/delivery"
	"koine/internal/proposals"
	"koine/internal/scan"
	"koine/kg"
)

// server is a store with channels, reviews and a scanner.
type server struct {
	*channels.Service
	store   *kg.Store
	reviews *proposals.Service
	now     *atomic.Int64 // added to the clock, in nanoseconds
	dir     string
	options options
}

type options struct {
	rules   string
	hook    *scan.Hook
	reviews proposals.Options
	// banned have no rights any more.
	banned *atomic.Pointer[kg.AgentID]
	most   int  // Options.MaxVerdicts
	bare   bool // without a scanner and rules
}

// lateRules are rules that are set after the channels.
type lateScanner struct{ channels.Scanner }

func serve(t testing.TB, o options) *server {
	t.Helper()
	s := &server{dir: filepath.Join(t.TempDir(), "data"), now: new(atomic.Int64), options: o}
	s.open(t)
	return s
}

func (s *server) open(t testing.TB) {
	t.Helper()
	clock := func() time.Time { return time.Now().Add(time.Duration(s.now.Load())) }
	o := s.options.reviews
	o.Clock = clock
	o.CurrentRights = func(p kg.Principal) (kg.Principal, error) {
		if s.options.banned != nil {
			if id := s.options.banned.Load(); id != nil && *id == p.ID {
				return p, kg.Errorf(kg.CodePermissionDenied, "its key was revoked")
			}
		}
		return p, nil
	}
	s.reviews = proposals.New(o)
	late := new(lateScanner)
	s.Service = channels.New(channels.Options{Scanner: late, Reviews: s.reviews, Clock: clock, WithdrawProposal: s.reviews.WithdrawIn, MaxVerdicts: s.options.most})
	if s.options.bare {
		s.Service = channels.New(channels.Options{Reviews: s.reviews, Clock: clock, WithdrawProposal: s.reviews.WithdrawIn})
	}
	s.reviews.SetMessages(channels.NewHeld(s.Service))
	governor := kg.Governor{Holder: s.reviews, Access: s.Guard(s.reviews.Guard(kg.AllowAll{})), OnSystemChange: func(c *kg.Commit) { s.reviews.Follow(c); s.Follow(c) }}
	late.Scanner = scan.New(nil, s.options.hook)
	if s.options.rules != "" {
		set, err := celrules.Parse([]byte(s.options.rules), celrules.Options{Messages: s.JudgedMessages})
		if err != nil {
			t.Fatal(err)
		}
		late.Scanner = scan.New(set, s.options.hook)
		governor.Verifier = set
	}
	store, err := kg.Open(s.dir, kg.Options{ReserveBytes: 1, Governor: governor, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	s.store = store
	if err := s.reviews.Open(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
}

func (s *server) close() {
	if s.store != nil {
		s.Close()
		_ = s.store.Close()
		s.store = nil
	}
}

func as(name string, roles ...string) channels.Caller {
	return channels.Caller{Principal: kg.Principal{ID: kg.CanonicalAgent(name), Roles: roles, Method: "key"}}
}

// reviewer is a caller of package proposals.
func reviewer(name string, roles ...string) proposals.Caller {
	return proposals.Caller{Principal: as(name, roles...).Principal}
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func (s *server) make(t testing.TB, members ...string) channel.ID {
	t.Helper()
	d := channel.Draft{Name: "lab"}
	for _, m := range members {
		d.Members = append(d.Members, channel.Member{Agent: kg.CanonicalAgent(m)})
	}
	c, err := s.Create(within(t), as("ann"), d)
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}

func text(s string) []json.RawMessage {
	return []json.RawMessage{fmt.Appendf(nil, `{"type": "text", "text": %q}`, s)}
}

func (s *server) publish(t testing.TB, by, text_ string, of channel.ID, key string) (*channels.Receipt, error) {
	t.Helper()
	return s.Publish(within(t), as(by), channels.Publication{Channel: of, Parts: text(text_), IdempotencyKey: key})
}

// held publishes a message that has to be held, and returns the proposal.
func (s *server) held(t *testing.T, by, text string, of channel.ID, key string) string {
	t.Helper()
	_, err := s.publish(t, by, text, of, key)
	e := kg.AsError(err)
	if err == nil || e.Code != kg.CodeContentHeld || e.ProposalID == "" {
		t.Fatalf("not held: %v", err)
	}
	return e.ProposalID
}

// history lists the numbers, authors and texts of a channel.
func (s *server) history(t *testing.T, by string, of channel.ID) (out []string) {
	t.Helper()
	page, _, err := s.History(within(t), as(by), of, channels.HistoryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range page {
		var part struct{ Text string }
		if len(m.Parts) > 0 {
			_ = json.Unmarshal(m.Parts[0], &part)
		}
		out = append(out, fmt.Sprint(m.Sequence, " ", m.Author, " ", part.Text))
	}
	return out
}

func wantCode(t *testing.T, what string, err error, want kg.Code) {
	t.Helper()
	if got := kg.CodeOf(err); got != want {
		t.Errorf("%s: got %q (%v), want %q", what, got, err, want)
	}
}

// newHook starts a web hook.
func newHook(t testing.TB, o scan.HookOptions, answer http.HandlerFunc) *scan.Hook {
	t.Helper()
	at := httptest.NewServer(answer)
	t.Cleanup(at.Close)
	o.Target, o.AllowPrivate = delivery.Target{URL: at.URL}, true
	hook, err := scan.NewHook(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hook.Close)
	return hook
}
