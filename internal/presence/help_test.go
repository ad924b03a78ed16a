package presence_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"koine/internal/presence"
	"koine/kg"
)

const (
	ann kg.AgentID = "agent://ann"
	bob kg.AgentID = "agent://bob"
)

// book is a journal in memory with the times of its writes.
type book struct {
	tracker *presence.Tracker
	began   time.Time

	mu      sync.Mutex // guards the following fields
	lines   []string
	commits []int // how many transitions each had
	last    map[kg.AgentID]presence.Presence
	fail    error
	tries   int
	slow    time.Duration // how long a commit takes
}

func (b *book) Write(ctx context.Context, list []presence.Transition) error {
	time.Sleep(b.slow)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tries++
	if b.fail != nil {
		return b.fail
	}
	b.commits = append(b.commits, len(list))
	for _, tr := range list {
		b.lines = append(b.lines, fmt.Sprintf("%s: %s %s since %s", b.sinceStart(time.Now()), strings.TrimPrefix(string(tr.Agent), "agent://"), tr.Status, b.sinceStart(tr.Since)))
		b.last[tr.Agent] = tr.Presence
	}
	return nil
}

func (b *book) Register(_ context.Context, agent kg.AgentID) error {
	b.tracker.SetRegistered(agent, true)
	return nil
}

// sinceStart is the time since the beginning.
func (b *book) sinceStart(at time.Time) string { return at.Sub(b.began).String() }

// written returns the writes since the last call.
func (b *book) written() []string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { b.lines = nil }()
	return b.lines
}

// want reports whether exactly this was written since the last call.
func (b *book) want(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := b.written(); !slices.Equal(got, want) {
		t.Errorf("%s: written was\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// start begins a tracker over an empty book; all agents have records.
func start(t *testing.T, o presence.Options, known ...kg.AgentID) (*presence.Tracker, *book) {
	t.Helper()
	return startFrom(t, o, nil, known...)
}

func startFrom(t *testing.T, o presence.Options, told map[kg.AgentID]presence.Presence, known ...kg.AgentID) (*presence.Tracker, *book) {
	t.Helper()
	tracker := presence.New(o)
	b := &book{tracker: tracker, began: time.Now(), last: map[kg.AgentID]presence.Presence{}}
	for _, agent := range known {
		tracker.SetRegistered(agent, true)
	}
	tracker.Start(told, b)
	t.Cleanup(tracker.Close)
	return tracker, b
}

// wantStatus reports whether the agent has the status, since a time after the beginning.
func (b *book) wantStatus(t *testing.T, what string, agent kg.AgentID, status presence.Status, since string) {
	t.Helper()
	if got := b.tracker.Get(agent); got.Status != status || b.sinceStart(got.Since) != since {
		t.Errorf("%s: %s is %s since %s, want %s since %s", what, agent, got.Status, b.sinceStart(got.Since), status, since)
	}
}

func (b *book) beat(t *testing.T, agent kg.AgentID, says presence.Status) presence.Presence {
	t.Helper()
	p, err := b.tracker.Heartbeat(t.Context(), agent, says)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
