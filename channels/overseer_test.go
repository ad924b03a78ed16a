package channels_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/receipts"
	"koine/channels/scope"
	"koine/kg"
)

const auditor = "auditor"

// overseen is a server with the role auditor for overseers.
func overseen(t testing.TB) *server {
	return serve(t, channels.Options{OverseerRole: auditor}, kg.Options{})
}

// overseersOf lists the overseers on the record of a channel, as ann sees it.
func (s *server) overseersOf(t testing.TB, id channel.ID) (names []string) {
	t.Helper()
	c, err := s.Get(within(t), as("ann"), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range c.Overseers {
		if o.Since.IsZero() || time.Since(o.Since) > time.Minute {
			t.Errorf("%s oversees since %v", o.Agent, o.Since)
		}
		names = append(names, string(o.Agent))
	}
	return names
}

// shownIn counts the statements of a channel that a principal reads in the graph.
func (s *server) shownIn(t testing.TB, p kg.Principal, id channel.ID) (n uint64) {
	t.Helper()
	snapshot, err := s.store.View(within(t), kg.View{Principal: p, AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	for _, graph := range []kg.Term{id.RecordGraph(), id.MessagesGraph(), id.ReceiptsGraph(), id.FactsGraph(), id.VerdictsGraph()} {
		found, err := snapshot.Count(kg.Pattern{Graph: graph})
		if err != nil {
			t.Fatal(err)
		}
		n += found
	}
	return n
}

// readings are the calls that read a channel with one message.
var readings = map[string]func(ctx context.Context, s *server, by channels.Caller, m *message.Message) error{
	"Get": func(ctx context.Context, s *server, by channels.Caller, m *message.Message) error {
		c, err := s.Get(ctx, by, m.Channel)
		if err == nil && len(c.Members) == 0 {
			return fmt.Errorf("an outline")
		}
		return err
	},
	"History": func(ctx context.Context, s *server, by channels.Caller, m *message.Message) error {
		list, _, err := s.History(ctx, by, m.Channel, channels.HistoryQuery{})
		if err == nil && (len(list) != 1 || list[0].Parts == nil) {
			return fmt.Errorf("history has %d messages", len(list))
		}
		return err
	},
	"HistoryPage": func(ctx context.Context, s *server, by channels.Caller, m *message.Message) error {
		_, _, _, err := s.HistoryPage(ctx, by, m.Channel, channels.HistoryQuery{})
		return err
	},
	"CountHistory": func(ctx context.Context, s *server, by channels.Caller, m *message.Message) error {
		_, _, err := s.CountHistory(ctx, by, m.Channel, channels.HistoryQuery{})
		return err
	},
	"Message": func(ctx context.Context, s *server, by channels.Caller, m *message.Message) error {
		_, err := s.Message(ctx, by, m.ID)
		return err
	},
	"Replies": func(ctx context.Context, s *server, by channels.Caller, m *message.Message) error {
		_, _, err := s.Replies(ctx, by, m.ID, 0, "")
		return err
	},
	"SequenceAt": func(ctx context.Context, s *server, by channels.Caller, m *message.Message) error {
		_, err := s.SequenceAt(ctx, by, m.Channel, m.Revision)
		return err
	},
	"Counts": func(ctx context.Context, s *server, by channels.Caller, m *message.Message) error {
		_, err := s.Counts(ctx, by, m.Channel, channels.CountQuery{})
		return err
	},
	"Receipts": func(ctx context.Context, s *server, by channels.Caller, m *message.Message) error {
		_, err := s.Receipts().List(ctx, by, m.Channel, m.ID)
		return err
	},
	"Stream": func(ctx context.Context, s *server, by channels.Caller, m *message.Message) error {
		stream, err := s.Stream(ctx, by, m.Channel, new(int64))
		if err != nil {
			return err
		}
		defer stream.Close()
		for got, err := range stream.Messages() {
			if err == nil && got.ID != m.ID {
				return fmt.Errorf("another message")
			}
			return err
		}
		return nil
	},
	"StreamEvents": func(ctx context.Context, s *server, by channels.Caller, m *message.Message) error {
		events, err := s.StreamEvents(ctx, by, m.Channel, &kg.Position{})
		if err != nil {
			return err
		}
		defer events.Close()
		for _, err := range events.All() {
			return err
		}
		return nil
	},
	"Signals": func(ctx context.Context, s *server, by channels.Caller, m *message.Message) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		_, err := s.Signals(ctx, by, m.Channel)
		return err
	},
}

// Each way to read a channel puts an overseer on its record before it shows anything. The
// graph shows nothing until then, and agents without the role find nothing.
func TestOverseersAreOnRecord(t *testing.T) {
	s := overseen(t)
	without := serve(t, channels.Options{}, kg.Options{})
	for name, read := range readings {
		for kind, of := range map[string]func() *message.Message{
			"private": func() *message.Message { return s.say(t, "ann", s.make(t, channel.Private, "bob").ID, "hi") },
			"public": func() *message.Message {
				return s.say(t, "ann", s.crew(t, channel.Draft{Kind: channel.Room, Visibility: channel.Public}).ID, "hi")
			},
			"direct": func() *message.Message {
				r, err := s.Publish(within(t), as("ann"), channels.Publication{To: kg.CanonicalAgent("bob-" + name), Parts: text("hi")})
				if err != nil {
					t.Fatal(err)
				}
				return r.Message
			},
			"of an intent": func() *message.Message {
				return s.say(t, "ann", s.makeIn(t, s.scope(t, scope.Draft{Title: "research"}).ID, "lab", channel.Explicit, "bob").ID, "hi")
			},
		} {
			m, what := of(), name+" of a "+kind+" channel"
			over := withRole("ova", auditor)
			if code := kg.CodeOf(read(within(t), s, as("eve"), m)); code != kg.CodeChannelNotFound && code != kg.CodeNotFound && (kind != "public" || code != kg.CodePermissionDenied) && (kind != "public" || name != "Get") {
				t.Errorf("%s by an outsider: %q", what, code)
			}
			if n := s.shownIn(t, over.Principal, m.Channel); n != 0 {
				t.Errorf("%s: the graph shows %d statements to an overseer that is not on record", what, n)
			}
			head := s.store.Head().Revision
			for range 2 {
				if err := read(within(t), s, over, m); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			if got := s.store.Head().Revision; got != head+1 {
				t.Errorf("%s: %d commits, want one", what, got-head)
			}
			if got := s.overseersOf(t, m.Channel); !slices.Equal(got, []string{"agent://ova"}) {
				t.Errorf("%s: overseers %v", what, got)
			}
			if n := s.shownIn(t, over.Principal, m.Channel); n == 0 {
				t.Errorf("%s: the graph shows nothing to an overseer on record", what)
			}
			for who, p := range map[string]kg.Principal{"an outsider": as("eve").Principal, "the agent without the role": as("ova").Principal} {
				if n := s.shownIn(t, p, m.Channel); n != 0 {
					t.Errorf("%s: the graph shows %d statements to %s", what, n, who)
				}
			}
			if code := kg.CodeOf(read(within(t), s, as("ova"), m)); code == "" && (kind != "public" || name != "Get") {
				t.Errorf("%s: the agent on record reads without the role", what)
			}
		}
		m := without.say(t, "ann", without.make(t, channel.Private, "bob").ID, "hi")
		if code := kg.CodeOf(read(within(t), without, withRole("ova", auditor), m)); code != kg.CodeChannelNotFound && code != kg.CodeNotFound {
			t.Errorf("%s without the option: %q", name, code)
		}
		if got := without.overseersOf(t, m.Channel); got != nil {
			t.Errorf("%s without the option: overseers %v", name, got)
		}
	}
}

// A caller in open mode oversees nothing, nor does one that acts for another agent or is
// banned from the server. A ban in the channel does not keep an overseer out.
func TestWhoOversees(t *testing.T) {
	s := overseen(t)
	open, acting, banned := withRole("ova", auditor), withRole("ova", auditor), withRole("bad", auditor)
	open.Principal.Method = kg.MethodOpen
	acting.Actor, acting.Principal.ActFor = "agent://eve", []kg.AgentID{"agent://eve"}
	if err := s.Members().Ban(within(t), admin("root"), channel.AllChannels, "bad", time.Time{}); err != nil {
		t.Fatal(err)
	}
	c := s.make(t, channel.Private, "bob")
	m := s.say(t, "ann", c.ID, "hi")
	for what, by := range map[string]channels.Caller{"open mode": open, "acting": acting, "banned": banned} {
		for name, read := range readings {
			if code := kg.CodeOf(read(within(t), s, by, m)); code != kg.CodeChannelNotFound && code != kg.CodeNotFound {
				t.Errorf("%s, %s: %q", what, name, code)
			}
		}
		if list, _, err := s.List(within(t), by, channel.ListQuery{}); err != nil || len(list) > 0 {
			t.Errorf("%s: lists %v, %v", what, list, err)
		}
	}
	if got := s.overseersOf(t, c.ID); got != nil {
		t.Errorf("overseers %v", got)
	}
	if err := s.Members().Ban(within(t), as("ann"), c.ID, "ova", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.History(within(t), withRole("ova", auditor), c.ID, channels.HistoryQuery{}); err != nil {
		t.Error(err)
	}
}

// An overseer changes nothing.
func TestOverseersOnlyRead(t *testing.T) {
	s := overseen(t)
	c := s.make(t, channel.Private, "bob")
	m := s.say(t, "ann", c.ID, "hi")
	over := withRole("ova", auditor)
	topic := "mine"
	for name, do := range map[string]func() error{
		"publish": func() error {
			_, err := s.Publish(within(t), over, channels.Publication{Channel: c.ID, Parts: text("hi")})
			return err
		},
		"signal": func() error { return s.Signal(within(t), over, c.ID, channels.Typing, nil) },
		"update": func() error {
			_, err := s.Update(within(t), over, c.ID, channel.Update{ExpectedVersion: 1, Topic: &topic})
			return err
		},
		"close":  func() error { _, err := s.CloseChannel(within(t), over, c.ID, ""); return err },
		"delete": func() error { return s.Delete(within(t), over, c.ID) },
		"retract": func() error {
			_, err := s.Retract(within(t), over, channels.Retraction{Channel: c.ID, Message: m.ID})
			return err
		},
		"join":   func() error { _, err := s.Members().Join(within(t), over, c.ID, ""); return err },
		"invite": func() error { return s.Members().Invite(within(t), over, c.ID, "ova") },
		"add":    func() error { _, err := s.Members().Add(within(t), over, c.ID, "ova", ""); return err },
		"remove": func() error { _, err := s.Members().Remove(within(t), over, c.ID, "bob"); return err },
		"ban":    func() error { return s.Members().Ban(within(t), over, c.ID, "bob", time.Time{}) },
		"acknowledge": func() error {
			return s.Receipts().Acknowledge(within(t), over, receipts.Acknowledgement{Channel: c.ID, UpTo: 1, State: receipts.Delivered})
		},
		"assert": func() error {
			_, err := s.store.Update(within(t), over.UpdateMeta("test"), func(tx *kg.Tx) error {
				return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:a"), Predicate: kg.IRI("urn:p"), Object: kg.IRI("urn:o"), Graph: c.ID.FactsGraph()}})
			})
			return err
		},
	} {
		for _, on := range []string{"not on record", "on record"} {
			head := s.store.Head().Revision
			if err := do(); kg.CodeOf(err) != kg.CodePermissionDenied && !(name == "assert" && kg.CodeOf(err) == kg.CodeGraphNotFound) {
				t.Errorf("%s by an overseer %s: %v", name, on, err)
			}
			if got := s.store.Head().Revision; got != head {
				t.Errorf("%s by an overseer %s made a commit", name, on)
			}
			if on == "not on record" {
				if _, err := s.Get(within(t), over, c.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Overseers find the channels of others as outlines, and read the content that is addressed
// to somebody.
func TestOverseersFindChannels(t *testing.T) {
	s := overseen(t)
	c := s.make(t, channel.Private, "bob")
	in := s.makeIn(t, s.scope(t, scope.Draft{Title: "research"}).ID, "lab", channel.Explicit, "bob")
	direct, err := s.Publish(within(t), as("ann"), channels.Publication{To: "agent://bob", Parts: text("hi")})
	if err != nil {
		t.Fatal(err)
	}
	gone := s.make(t, channel.Private, "bob")
	if err := s.Delete(within(t), as("ann"), gone.ID); err != nil {
		t.Fatal(err)
	}
	own := s.make(t, channel.Private, "ova")
	mine, err := s.Publish(within(t), withRole("ova", auditor), channels.Publication{To: "agent://ann", Parts: text("hi")})
	if err != nil {
		t.Fatal(err)
	}
	want := []channel.ID{c.ID, in.ID, own.ID, direct.Message.Channel}
	slices.Sort(want)
	over := withRole("ova", auditor)
	head := s.store.Head().Revision
	var got []channel.ID
	for l := (channel.ListQuery{PageSize: 2}); ; {
		page, next, err := s.List(within(t), over, l)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range page {
			got = append(got, one.ID)
			if (len(one.Members) > 0) != (one.ID == own.ID) {
				t.Errorf("the list shows the members %v of %s", one.Members, one.ID)
			}
		}
		if l.PageToken = next; next == "" {
			break
		}
	}
	if !slices.Equal(got, want) || slices.Contains(got, mine.Message.Channel) {
		t.Errorf("listed %v, want %v", got, want)
	}
	if s.store.Head().Revision != head {
		t.Error("listing channels reads them")
	}
	if _, err := s.send(t, "ann", c.ID, message.Envelope{Interaction: message.Request, To: "bob"}); err != nil {
		t.Fatal(err)
	}
	list, _, err := s.History(within(t), over, c.ID, channels.HistoryQuery{})
	if err != nil || len(list) != 1 || list[0].Parts == nil {
		t.Errorf("an overseer reads %+v, %v", list, err)
	}
	snapshot, err := s.store.View(within(t), kg.View{Principal: over.Principal, AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	if n, err := snapshot.Count(kg.Pattern{Predicate: kg.Parts, Graph: list[0].ContentGraph()}); err != nil || n != 1 {
		t.Errorf("the graph shows %d contents, %v", n, err)
	}
}

// The members of a channel are told of an overseer, whose streams last while it may
// oversee, and the log of the intent tells it if the channel is audited.
func TestOverseersAreTold(t *testing.T) {
	s := overseen(t)
	intent := s.scope(t, scope.Draft{Title: "research"})
	c, err := s.CreateIn(within(t), as("ann"), intent.ID, channel.Draft{Name: "lab", MemberPolicy: channel.Explicit, Audit: true})
	if err != nil {
		t.Fatal(err)
	}
	plain := s.makeIn(t, intent.ID, "other", channel.Explicit)
	events, err := s.StreamEvents(within(t), as("ann"), c.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	over := withRole("ova", auditor)
	for _, id := range []channel.ID{plain.ID, c.ID} {
		if _, _, err := s.History(within(t), over, id, channels.HistoryQuery{}); err != nil {
			t.Fatal(err)
		}
	}
	for e, err := range events.All() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Control == nil || e.Control.Kind != channels.ChannelUpdated || e.Control.By != "agent://ova" || len(e.Control.Changes) != 1 ||
			e.Control.Changes[0].Name != "overseer" || string(e.Control.Changes[0].New) != `"agent://ova"` || e.Control.Changes[0].Old != nil {
			t.Errorf("told %+v", e.Control)
		}
		break
	}
	if now, err := s.Get(within(t), as("ann"), c.ID); err != nil || now.Version != c.Version {
		t.Errorf("the version is %d, %v, want %d", now.Version, err, c.Version)
	}
	list, err := s.Scopes().Events(within(t), as("ann"), intent.ID, 1, 10)
	if err != nil || len(list) != 1 || list[0].Type != scope.EventOverseen || list[0].Actor != "agent://ova" || string(list[0].Data) != `{"channelId":"`+string(c.ID)+`","channelName":"lab"}` {
		t.Errorf("the log of the intent has %+v, %v", list, err)
	}
	if _, err := s.Scopes().VerifyEvents(within(t), as("ann"), intent.ID, 1); err != nil {
		t.Errorf("the chain: %v", err)
	}
	stream, err := s.Stream(within(t), over, c.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	next, stop := iter.Pull2(stream.Messages())
	defer stop()
	private := s.say(t, "ann", c.ID, "hi")
	if m, err, _ := next(); err != nil || m.ID != private.ID || m.Parts == nil {
		t.Errorf("streamed %+v, %v", m, err)
	}
	if err := s.Members().Ban(within(t), admin("root"), channel.AllChannels, "ova", time.Time{}); err != nil {
		t.Fatal(err)
	}
	s.say(t, "ann", c.ID, "alone")
	if m, err, _ := next(); kg.CodeOf(err) != kg.CodeChannelNotFound && kg.CodeOf(err) != kg.CodeAccessChanged {
		t.Errorf("streamed %+v, %v to an agent that is banned", m, err)
	}
}

// A record has at most MaxOverseers: the next one reads nothing.
func TestMaxOverseers(t *testing.T) {
	s := serve(t, channels.Options{OverseerRole: auditor, MaxOverseers: 2}, kg.Options{})
	m := s.say(t, "ann", s.make(t, channel.Private, "bob").ID, "hi")
	for _, name := range []string{"one", "two"} {
		if err := readings["History"](within(t), s, withRole(name, auditor), m); err != nil {
			t.Fatal(err)
		}
	}
	for name, read := range readings {
		wantCode(t, name, read(within(t), s, withRole("three", auditor), m), kg.CodeLimitExceeded)
	}
	if n := s.shownIn(t, withRole("three", auditor).Principal, m.Channel); n != 0 {
		t.Errorf("the graph shows %d statements", n)
	}
	if err := readings["History"](within(t), s, withRole("two", auditor), m); err != nil {
		t.Error(err)
	}
}

// The record outlives a restart, and a server without the option shows nothing by it.
func TestOversightEndsWithTheOption(t *testing.T) {
	s := overseen(t)
	m := s.say(t, "ann", s.make(t, channel.Private, "bob").ID, "hi")
	over := withRole("ova", auditor)
	if err := readings["History"](within(t), s, over, m); err != nil {
		t.Fatal(err)
	}
	s.restart(t)
	head := s.store.Head().Revision
	if n := s.shownIn(t, over.Principal, m.Channel); n == 0 {
		t.Error("the graph shows nothing after a restart")
	}
	if err := readings["History"](within(t), s, over, m); err != nil || s.store.Head().Revision != head {
		t.Errorf("%v, and %d commits", err, s.store.Head().Revision-head)
	}
	if list, _, err := s.List(within(t), over, channel.ListQuery{}); err != nil || len(list) != 1 {
		t.Errorf("lists %v, %v after a restart", list, err)
	}
	without := channels.New(channels.Options{})
	guard := without.Guard(kg.AllowAll{})
	if err := without.Load(t.Context(), s.store.Store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(without.Close)
	if _, _, err := without.History(within(t), over, m.Channel, channels.HistoryQuery{}); kg.CodeOf(err) != kg.CodeChannelNotFound {
		t.Errorf("without the option: %v", err)
	}
	if guard.Allowed(over.Principal, m.Channel.MessagesGraph(), kg.Read) {
		t.Error("the graph may be read without the option")
	}
	if c, err := without.Get(within(t), as("ann"), m.Channel); err != nil || !c.Overseers.Include("agent://ova") {
		t.Errorf("the record has %+v, %v", c, err)
	}
}
