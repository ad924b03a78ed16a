package intents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/internal/intents"
	"koine/kg"
)

// follow opens a feed that ends with the test.
func (s *server) follow(t testing.TB, who string, q intents.FeedQuery) *intents.Feed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	f, err := s.Follow(ctx, as(who), q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// tell describes an event of a feed.
func tell(e intents.FeedEvent) string {
	switch {
	case e.Message != nil:
		return fmt.Sprintf("message %s %s", e.Message.Author, e.Message.Parts)
	case e.Change != nil && e.Event.Type == intents.EventStatePatched:
		return fmt.Sprintf("state %s→%s v%d %s", e.Change.OldState, e.Change.NewState, e.Change.Version, e.Change.Actor)
	case e.Change != nil:
		return fmt.Sprintf("status %s→%s v%d %s", e.Change.OldStatus, e.Change.NewStatus, e.Change.Version, e.Change.Actor)
	}
	return fmt.Sprintf("%s %s %s", e.Event.Type, e.Event.Actor, e.Event.Data)
}

// next returns the first n events of a feed, and the error that it ended with before.
func next(f *intents.Feed, n int) (list []intents.FeedEvent, err error) {
	for e, err := range f.All() {
		if err != nil {
			return list, err
		}
		if list = append(list, e); len(list) == n {
			break
		}
	}
	return list, nil
}

// wantEvents checks what a feed tells next, and returns the positions.
func wantEvents(t testing.TB, f *intents.Feed, want ...string) (positions []kg.Position) {
	t.Helper()
	list, err := next(f, len(want))
	var got []string
	for _, e := range list {
		got = append(got, tell(e))
		positions = append(positions, e.Position)
	}
	if !slices.Equal(got, want) || err != nil {
		t.Errorf("the feed tells (%v)\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return positions
}

func (s *server) patch(t testing.TB, who string, id scope.ID, patches ...intents.Patch) {
	t.Helper()
	it, err := s.Get(t.Context(), as(who), id)
	if err == nil {
		_, err = s.PatchState(t.Context(), as(who), id, it.Version, patches)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *server) say(t testing.TB, who string, c channel.ID, text, to string) {
	t.Helper()
	_, err := s.channels.Publish(t.Context(), as(who), channels.Publication{Channel: c, Parts: []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"type":"text","text":%q}`, text))}, Envelope: message.Envelope{To: to}})
	if err != nil {
		t.Fatal(err)
	}
}

// The feed of an intent tells its events and the messages that the reader may read, and each
// position resumes it.
func TestFollowIntent(t *testing.T) {
	s := serve(t)
	it := s.create(t, intents.NewIntent{State: []byte(`{"a":1,"b":2}`), Grants: access})
	other := s.create(t, intents.NewIntent{Access: scope.Access{Everybody: true}})
	start := s.store.Head()
	live := s.follow(t, "rita", intents.FeedQuery{Intent: it.ID})

	s.patch(t, "bob", it.ID, set("a", "5"), set("c", "null"), intents.Patch{Op: intents.Remove, Path: "b"})
	s.patch(t, "bob", other.ID, set("a", "5"))
	open, err := s.channels.CreateIn(t.Context(), as("ann"), it.ID, channel.Draft{Name: "open", MemberPolicy: channel.ByScope, Audit: true})
	if err != nil {
		t.Fatal(err)
	}
	task, err := s.channels.Scopes().Create(t.Context(), as("ann"), scope.Draft{Parent: it.ID, Access: scope.Access{Everybody: true}})
	if err != nil {
		t.Fatal(err)
	}
	inner, err := s.channels.CreateIn(t.Context(), as("ann"), task.ID, channel.Draft{Name: "inner", MemberPolicy: channel.ByScope})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := s.channels.CreateIn(t.Context(), as("ann"), it.ID, channel.Draft{Name: "secret", Members: []channel.Member{{Agent: "agent://bob"}}})
	if err != nil {
		t.Fatal(err)
	}
	s.say(t, "ann", secret.ID, "not for rita", "")
	s.say(t, "ann", open.ID, "for bob", "agent://bob")
	s.say(t, "ann", open.ID, "for all", "")
	s.say(t, "bob", inner.ID, "in the task", "")
	for _, status := range []intents.Status{intents.Active, intents.Completed} {
		now, err := s.Get(t.Context(), as("bob"), it.ID)
		if err == nil {
			_, err = s.SetStatus(t.Context(), as("bob"), it.ID, now.Version, status, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		`state {"a":1,"b":2}→{"a":5,"c":null} v2 agent://bob`,
		`message agent://ann [{"type":"text","text":"for all"}]`,
		`message agent://bob [{"type":"text","text":"in the task"}]`,
		`status draft→active v3 agent://bob`, `status active→completed v4 agent://bob`,
	}
	positions := wantEvents(t, live, want...)
	for _, restart := range []bool{false, true} {
		if restart {
			live.Close()
			s.restart(t)
		}
		for i, at := range append([]kg.Position{start}, positions[:len(positions)-1]...) {
			wantEvents(t, s.follow(t, "rita", intents.FeedQuery{Intent: it.ID, After: &at}), want[i:]...)
		}
	}
	list, err := next(s.follow(t, "bob", intents.FeedQuery{Intent: it.ID, After: &start}), 7)
	if err != nil || len(list) != 7 || tell(list[1]) != `message agent://ann [{"type":"text","text":"not for rita"}]` || tell(list[2]) != `message agent://ann [{"type":"text","text":"for bob"}]` {
		t.Errorf("bob is told %v, %v", list, err)
	}
	_, err = s.Follow(t.Context(), as("gus"), intents.FeedQuery{Intent: it.ID})
	wantCode(t, "an outsider", err, kg.CodeScopeNotFound)
	_, err = s.Follow(t.Context(), as("rita"), intents.FeedQuery{Intent: it.ID, Agent: "rita"})
	wantCode(t, "two subjects", err, kg.CodeInvalid)
	_, err = s.Follow(t.Context(), as("rita"), intents.FeedQuery{Intent: it.ID, After: &kg.Position{Epoch: start.Epoch, Revision: s.store.Head().Revision + 1}})
	wantCode(t, "a position ahead", err, kg.CodePositionGone)
}

// A feed ends when the access to its intent ends, without what happened afterwards.
func TestFollowEndsWithAccess(t *testing.T) {
	s := serve(t)
	it := s.create(t, intents.NewIntent{})
	g, err := s.Grant(t.Context(), as("ann"), it.ID, scope.Grant{Agent: "rita", Level: scope.Read})
	if err != nil {
		t.Fatal(err)
	}
	start := s.store.Head()
	f := s.follow(t, "rita", intents.FeedQuery{Intent: it.ID})
	s.patch(t, "ann", it.ID, set("a", "1"))
	wait := make(chan struct{})
	go func() {
		defer close(wait)
		var got []string
		for e, err := range f.All() {
			if err != nil {
				wantCode(t, "the end", err, kg.CodeScopeNotFound)
				break
			}
			if got = append(got, tell(e)); len(got) == 1 {
				if _, err := s.Revoke(t.Context(), as("ann"), it.ID, g.ID); err != nil {
					t.Error(err)
				}
				s.patch(t, "ann", it.ID, set("a", "2"))
			}
		}
		if want := []string{`state {}→{"a":1} v2 agent://ann`}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}()
	<-wait
	_, err = s.Follow(t.Context(), as("rita"), intents.FeedQuery{Intent: it.ID, After: &start})
	wantCode(t, "resumed", err, kg.CodeScopeNotFound)
}

// The feed of an agent tells of the intents that it is assigned to, from its assignment to
// the end of it.
func TestFollowAgent(t *testing.T) {
	s := serve(t)
	first := s.create(t, intents.NewIntent{Access: scope.Access{Everybody: true}})
	second := s.create(t, intents.NewIntent{Access: scope.Access{Everybody: true}})
	start := s.store.Head()
	f := s.follow(t, "wim", intents.FeedQuery{Agent: "wim"})
	assign := func(agent string, id scope.ID) {
		t.Helper()
		if _, err := s.Assign(t.Context(), as("ann"), id, kg.AgentID(agent), ""); err != nil {
			t.Fatal(err)
		}
	}
	s.patch(t, "ann", first.ID, set("before", "1"))
	assign("bob", first.ID)
	assign("wim", first.ID)
	s.patch(t, "ann", first.ID, set("n", "1"))
	s.patch(t, "ann", second.ID, set("n", "1"))
	assign("wim", second.ID)
	if _, err := s.Unassign(t.Context(), as("ann"), first.ID, "wim"); err != nil {
		t.Fatal(err)
	}
	s.patch(t, "ann", first.ID, set("after", "1"))
	if _, err := s.channels.Scopes().End(t.Context(), as("ann"), second.ID, scope.Abandoned, ""); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`agent_assigned agent://ann {"agent_id":"wim","role":"worker"}`, `state {}→{"n":1} v3 agent://ann`,
		`agent_assigned agent://ann {"agent_id":"wim","role":"worker"}`, `agent_unassigned agent://ann {"agent_id":"wim","role":"worker"}`,
		`status draft→abandoned v3 agent://ann`,
	}
	positions := wantEvents(t, f, want...)
	for i, at := range append([]kg.Position{start}, positions[:len(positions)-1]...) {
		wantEvents(t, s.follow(t, "wim", intents.FeedQuery{Agent: "agent://wim", After: &at}), want[i:]...)
	}
	_, err := s.Follow(t.Context(), as("ann"), intents.FeedQuery{Agent: "wim"})
	wantCode(t, "another agent", err, kg.CodePermissionDenied)
}

// The feed of a portfolio tells of the intents in it that the reader may read.
func TestFollowPortfolio(t *testing.T) {
	s := serve(t)
	p, err := s.Portfolios().Create(t.Context(), as("ann"), intents.Portfolio{Name: "P"})
	if err != nil {
		t.Fatal(err)
	}
	shown := s.create(t, intents.NewIntent{Grants: access})
	hidden := s.create(t, intents.NewIntent{})
	start := s.store.Head()
	f := s.follow(t, "rita", intents.FeedQuery{Portfolio: p.ID})
	s.patch(t, "ann", shown.ID, set("before", "1"))
	for _, id := range []scope.ID{shown.ID, hidden.ID} {
		if _, err := s.Portfolios().AddIntent(t.Context(), as("ann"), p.ID, id, "", 0); err != nil {
			t.Fatal(err)
		}
	}
	s.patch(t, "ann", hidden.ID, set("n", "1"))
	s.patch(t, "ann", shown.ID, set("n", "1"))
	if err := s.Portfolios().RemoveIntent(t.Context(), as("ann"), p.ID, shown.ID); err != nil {
		t.Fatal(err)
	}
	s.patch(t, "ann", shown.ID, set("after", "1"))
	if _, err := s.Portfolios().AddIntent(t.Context(), as("ann"), p.ID, shown.ID, "", 0); err != nil {
		t.Fatal(err)
	}
	s.patch(t, "ann", shown.ID, intents.Patch{Op: intents.Append, Path: "l", Value: []byte("1")})
	want := []string{`state {}→{"n":1} v3 agent://ann`, `state {}→{"l":[1]} v5 agent://ann`}
	at := wantEvents(t, f, want...)[0]
	wantEvents(t, s.follow(t, "rita", intents.FeedQuery{Portfolio: p.ID, After: &start}), want...)
	wantEvents(t, s.follow(t, "rita", intents.FeedQuery{Portfolio: p.ID, After: &at}), want[1:]...)
	_, err = s.Follow(t.Context(), as("rita"), intents.FeedQuery{Portfolio: "none"})
	wantCode(t, "a portfolio that is not there", err, kg.CodeNotFound)
}

// A feed resumes inside a commit that has several events.
func TestFollowResumesInsideCommit(t *testing.T) {
	s := serve(t)
	it := s.create(t, intents.NewIntent{Grants: access})
	start := s.store.Head()
	if _, err := s.SetAccess(t.Context(), as("ann"), it.ID, intents.AccessList{Access: scope.Access{Everybody: true}, Grants: access[1:]}); err != nil {
		t.Fatal(err)
	}
	s.patch(t, "ann", it.ID, set("n", "1"))
	types := func(after kg.Position) (types []string, positions []kg.Position) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		f, err := s.Follow(ctx, as("rita"), intents.FeedQuery{Intent: it.ID, After: &after})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for e, err := range f.All() {
			if err != nil {
				t.Fatal(err)
			}
			types, positions = append(types, e.Event.Type), append(positions, e.Position)
			if e.Event.Type == intents.EventStatePatched {
				break
			}
		}
		return types, positions
	}
	want := []string{intents.EventGranted, intents.EventRevoked, intents.EventStatePatched}
	got, positions := types(start)
	if !slices.Equal(got, want) || positions[0].Revision != positions[1].Revision {
		t.Fatalf("told %q at %v, want %q", got, positions, want)
	}
	for i := range 2 {
		if got, _ := types(positions[i]); !slices.Equal(got, want[i+1:]) {
			t.Errorf("resumed after event %d: told %q, want %q", i, got, want[i+1:])
		}
	}
}
