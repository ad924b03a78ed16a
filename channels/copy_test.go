package channels_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// copies returns, for each event of a scope, the text of the copy that the agent reads, or
// "#" if it has the hash only. It checks that copies have the hash of their event, and that
// the chain verifies.
func (s *server) copies(t testing.TB, by string, id scope.ID) string {
	t.Helper()
	page, next, err := s.Scopes().ListEvents(within(t), as(by), id, scope.EventQuery{})
	if err != nil || next != 0 {
		t.Fatalf("%s: %v, next %d", by, err, next)
	}
	var out []string
	for _, e := range page {
		if e.Copy == nil {
			out = append(out, "#")
			continue
		}
		raw, err := json.Marshal([]any{e.Copy.Parts, e.Copy.Metadata, e.Copy.Salt})
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(raw); !strings.Contains(string(e.Data), `"contentHash":"`+hex.EncodeToString(sum[:])) {
			t.Errorf("%s: event %d does not have the hash of %s", by, e.Sequence, raw)
		}
		var part struct{ Text string }
		if err := json.Unmarshal(e.Copy.Parts[0], &part); err != nil {
			t.Fatal(err)
		}
		out = append(out, part.Text+e.Copy.TraceID)
	}
	if check, err := s.Scopes().VerifyEvents(within(t), as(by), id, 1); err != nil || check.Verified != int64(len(page)) {
		t.Errorf("%s verifies %+v, %v", by, check, err)
	}
	return strings.Join(out, " ")
}

// audited creates an audited channel of ann's in a scope.
func (s *server) audited(t testing.TB, in scope.ID, d channel.Draft, members ...string) *channel.Channel {
	t.Helper()
	d.Audit = true
	for _, m := range members {
		d.Members = append(d.Members, channel.Member{Agent: kg.CanonicalAgent(m)})
	}
	c, err := s.CreateIn(within(t), as("ann"), in, d)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The audit copies of messages are for the members of their channel with access to the scope,
// and outlive eviction and the channel; everybody else with access has the hashes, and the
// chain verifies for all.
func TestAuditCopies(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob", "cleo", "dora", "eve"}}, Grants: []scope.Grant{{Agent: "rita", Level: scope.Read}}})
	c := s.audited(t, intent.ID, channel.Draft{Name: "few", KeepMessages: 1}, "bob", "dora", "eve", "rita", "gus") // gus has no access to the scope
	one := s.say(t, "bob", c.ID, "one")
	two := s.say(t, "bob", c.ID, "two")
	if _, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: c.ID, Parts: text("three"), Metadata: []byte(`{"trace_id": "-t3"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Members().Remove(within(t), as("ann"), c.ID, "dora"); err != nil {
		t.Fatal(err)
	}
	if err := s.Members().Leave(within(t), as("eve"), c.ID); err != nil {
		t.Fatal(err)
	}
	all, none := "one two three-t3", "# # #"
	want := func(what string, who map[string]string) {
		t.Helper()
		for by, want := range who {
			if got := s.copies(t, by, intent.ID); got != want {
				t.Errorf("%s: %s reads %s, want %s", what, by, got, want)
			}
		}
	}
	readers := map[string]string{"ann": all, "bob": all, "rita": all, "cleo": none, "dora": none, "eve": none}
	want("with the channel", readers)
	if m, err := s.Message(within(t), as("bob"), one.ID); err != nil || m.Withheld != message.Evicted {
		t.Errorf("the first message is %+v, %v", m, err)
	}
	// An administrator reads copies as statements, not as a participant.
	root := admin("root")
	if _, err := s.managed().Grant(within(t), as("ann"), intent.ID, scope.Grant{Agent: "root", Level: scope.Read}); err != nil {
		t.Fatal(err)
	}
	page, _, err := s.Scopes().ListEvents(within(t), root, intent.ID, scope.EventQuery{})
	if err != nil || page[0].Copy != nil {
		t.Errorf("an administrator reads %+v, %v", page[0], err)
	}

	if err := s.Delete(within(t), as("ann"), c.ID); err != nil {
		t.Fatal(err)
	}
	want("with the channel deleted", readers)
	s.restart(t)
	want("after a restart", readers)
	for by, n := range map[string]uint64{"bob": 3, "cleo": 0, "gus": 0, "root": 3} {
		p := as(by).Principal
		if by == "root" {
			p = root.Principal
		}
		snapshot, err := s.store.View(within(t), kg.View{Principal: p, AllGraphs: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := snapshot.Count(kg.Pattern{Predicate: kg.Parts}); err != nil || got != n {
			t.Errorf("%s counts %d copies, want %d: %v", by, got, n, err)
		}
		snapshot.Close()
	}
	if _, err := s.Scopes().End(within(t), as("ann"), intent.ID, scope.Completed, ""); err != nil {
		t.Fatal(err)
	}
	want("after the end", readers)

	// Who loses the scope loses the copies, and has them again with it.
	sc, err := s.Scopes().Get(within(t), as("ann"), intent.ID)
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := s.store.Watch(within(t), kg.Filter{Patterns: []kg.Pattern{{Predicate: kg.Parts}}, View: kg.View{Principal: as("bob").Principal, AllGraphs: true}}, s.store.Head())
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	access := sc.Access
	if sc, err = s.Scopes().Update(within(t), as("ann"), intent.ID, scope.Update{ExpectedVersion: sc.Version, Access: &scope.Access{}}); err != nil {
		t.Fatal(err)
	}
	for _, err := range watcher.Events() {
		wantCode(t, "a watch of who lost the copies", err, kg.CodeAccessChanged)
		break
	}
	_, _, err = s.Scopes().ListEvents(within(t), as("bob"), intent.ID, scope.EventQuery{})
	wantCode(t, "without the scope", err, kg.CodeScopeNotFound)
	if _, err = s.Scopes().Update(within(t), as("ann"), intent.ID, scope.Update{ExpectedVersion: sc.Version, Access: &access}); err != nil {
		t.Fatal(err)
	}
	want("with the scope again", readers)
	s.erase(t, kg.EraseOptions{Pattern: kg.Pattern{Subject: two.ID.Entity(), Graph: c.ID.MessagesGraph()}})
	s.store.MustCheck(within(t))
	want("erased", map[string]string{"bob": "one # three-t3", "cleo": none})
}

// The copy of an addressed message is for its author and recipients. A retraction takes the
// copy, also of a message that was evicted; expiry leaves it.
func TestAuditCopiesOfAddressed(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob", "cleo", "dora"}}})
	c := s.audited(t, intent.ID, channel.Draft{Name: "open", MemberPolicy: channel.ByScope, KeepMessages: 2})
	private := s.mustSend(t, "ann", c.ID, message.Envelope{Interaction: message.Notification, To: "bob", ExpiresAt: clock.now().Add(time.Minute)})
	said := s.say(t, "cleo", c.ID, "said")
	s.say(t, "cleo", c.ID, "more")
	s.say(t, "cleo", c.ID, "last")
	var part struct{ Text string }
	if err := json.Unmarshal(private.Parts[0], &part); err != nil {
		t.Fatal(err)
	}
	want := func(what, all, some string) {
		t.Helper()
		for by, want := range map[string]string{"ann": part.Text + all, "bob": part.Text + all, "cleo": "#" + some, "dora": "#" + some} {
			if got := s.copies(t, by, intent.ID); got != want {
				t.Errorf("%s: %s reads %s, want %s", what, by, got, want)
			}
		}
	}
	want("at first", " said more last", " said more last")
	clock.step(time.Hour)
	eventually(t, "it has expired", func() bool { n, _ := s.contents(t); return n == 2+4 })
	want("expired", " said more last", " said more last")
	taken := func(id message.ID) {
		t.Helper()
		if _, err := s.Retract(within(t), as("cleo"), channels.Retraction{Channel: c.ID, Message: id, Reason: "wrong"}); err != nil {
			t.Fatal(err)
		}
	}
	taken(said.ID)
	want("retracted", " # more last wrong", " # more last wrong")
	// The policy decides who takes part, for copies too.
	policy := channel.Explicit
	if _, err := s.Update(within(t), as("ann"), c.ID, channel.Update{ExpectedVersion: 1, MemberPolicy: &policy}); err != nil {
		t.Fatal(err)
	}
	for by, want := range map[string]string{"ann": part.Text + " # more last wrong", "bob": "# # # # #"} {
		if got := s.copies(t, by, intent.ID); got != want {
			t.Errorf("with another policy %s reads %s, want %s", by, got, want)
		}
	}
	policy = channel.ByScope
	if _, err := s.Update(within(t), as("ann"), c.ID, channel.Update{ExpectedVersion: 2, MemberPolicy: &policy}); err != nil {
		t.Fatal(err)
	}
	if err := s.Members().Ban(within(t), as("ann"), c.ID, "bob", clock.now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(within(t), as("ann"), c.ID); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for by, want := range map[string]string{"ann": part.Text + " # more last wrong", "bob": "# # # # #", "dora": "# # more last wrong"} {
			if got := s.copies(t, by, intent.ID); got != want {
				t.Errorf("with the channel deleted %s reads %s, want %s", by, got, want)
			}
		}
		clock.step(time.Hour) // the ban is over
		s.restart(t)
	}
}

// Copies of large messages make pages of a bounded size, and events of audited channels are
// written by nobody else.
func TestPagesOfCopies(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{})
	c := s.audited(t, intent.ID, channel.Draft{Name: "big", MemberPolicy: channel.ByScope})
	large := strings.Repeat("x", channel.MaxMessageBytes-100)
	const n = message.MaxPageBytes/channel.MaxMessageBytes + 4
	for range n {
		s.say(t, "ann", c.ID, "%s", large)
	}
	for _, descending := range []bool{false, true} {
		var pages []int
		for q := (scope.EventQuery{Descending: descending}); ; {
			page, next, err := s.Scopes().ListEvents(within(t), as("ann"), intent.ID, q)
			if err != nil {
				t.Fatal(err)
			}
			size := 0
			for _, e := range page {
				size += e.Size()
			}
			if size > message.MaxPageBytes {
				t.Errorf("a page has %d bytes", size)
			}
			pages = append(pages, len(page))
			if next == 0 {
				break
			}
			if q.After = next; descending {
				q.After, q.Before = 0, next
			}
		}
		if total := fmt.Sprint(pages); len(pages) != 2 || pages[0]+pages[1] != n {
			t.Errorf("pages of %s events, want %d in two", total, n)
		}
	}
	_, err := s.Scopes().Change(within(t), as("ann"), intent.ID, scope.Write, "events/append", func(tx *kg.Tx, sc *scope.Scope) error {
		_, err := (&scope.Event{Scope: sc.ID, Type: scope.EventMessage, Actor: "agent://ann"}).AppendTo(tx)
		return err
	})
	wantCode(t, "an event of a message", err, kg.CodeInvalid)
}
