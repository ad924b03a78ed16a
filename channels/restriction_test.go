package channels_test

import (
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/scope"
	"koine/internal/slowtest"
	"koine/kg"
)

func admin(name string) channels.Caller {
	by := as(name)
	by.Principal.Roles = []string{kg.RoleAdmin}
	return by
}

// serveAt is serve with a clock.
func serveAt(t testing.TB, c *clock, o channels.Options) *server {
	o.Clock = c.now
	return serve(t, o, kg.Options{Clock: c.now})
}

// A banned agent finds nothing, a muted one reads; owners ban moderators, these ban
// members, and no role bans an equal. A restriction ends to the millisecond, and the agent
// then has its former role.
func TestBar(t *testing.T) {
	for _, everywhere := range []bool{false, true} {
		now := startClock()
		s := serveAt(t, now, channels.Options{})
		c := s.crew(t, channel.Draft{Kind: channel.Room, Visibility: channel.Public})
		s.say(t, "ann", c.ID, "first")
		id, by := c.ID, as("mod")
		if everywhere {
			id, by = channel.AllChannels, admin("root")
		}
		stream, err := s.Stream(within(t), as("bob"), c.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		check := func(what, want string) {
			t.Helper()
			if got := s.does(t, c); got != want {
				t.Errorf("%s (everywhere: %v):\ngot  %s\nwant %s", what, everywhere, got, want)
			}
		}
		const all = "find amboe, read ambo, post amb, manage am"
		until := now.now().Add(time.Minute)
		version := func() int64 {
			got, err := s.Get(within(t), as("ann"), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			return got.Version
		}
		before := version()
		for _, err := range []error{s.Members().Mute(within(t), by, id, "bob", until), s.Members().Ban(within(t), by, id, "eve", until), s.Members().Ban(within(t), by, id, "ola", time.Time{})} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if after := version(); after != before {
			t.Errorf("version %d became %d", before, after)
		}
		check("barred", "find amb, read amb, post am, manage am")
		_, err = s.Members().Join(within(t), as("eve"), c.ID, "")
		wantCode(t, "a banned one joins", err, kg.CodeChannelNotFound)
		if !everywhere {
			_, err = s.Members().Add(within(t), as("ann"), c.ID, "eve", "")
			wantCode(t, "a banned one is added", err, kg.CodePermissionDenied)
			wantCode(t, "a banned one is invited", s.Members().Invite(within(t), as("ann"), c.ID, "eve"), kg.CodePermissionDenied)
		}
		now.step(time.Minute - time.Millisecond)
		check("a millisecond before", "find amb, read amb, post am, manage am")
		now.step(time.Millisecond)
		check("then", "find ambe, read amb, post amb, manage am")
		if err := s.Members().Unban(within(t), by, id, "ola"); err != nil {
			t.Fatal(err)
		}
		check("unbanned", all)
		wantCode(t, "again", s.Members().Unban(within(t), by, id, "ola"), "")
		wantCode(t, "unmuted, who is not muted", s.Members().Unmute(within(t), by, id, "ola"), "")
		wantCode(t, "until a time that has passed", s.Members().Ban(within(t), by, id, "bob", now.now()), kg.CodeInvalid)
		if err := s.Members().Ban(within(t), by, id, "bob", time.Time{}); err != nil {
			t.Fatal(err)
		}
		for m, err := range stream.Messages() {
			if err != nil {
				wantCode(t, "the stream of a banned one", err, kg.CodeChannelNotFound)
				break
			}
			_ = m
		}
		check("bob is banned", "find amoe, read amo, post am, manage am")
		if everywhere {
			_, err := s.Create(within(t), as("bob"), channel.Draft{})
			wantCode(t, "a banned one makes a channel", err, kg.CodePermissionDenied)
			_, err = s.Publish(within(t), as("bob"), channels.Publication{To: "ann", Parts: text("psst")})
			wantCode(t, "a banned one whispers", err, kg.CodeChannelNotFound)
			if err := s.Members().Mute(within(t), by, id, "mod", time.Time{}); err != nil {
				t.Fatal(err)
			}
			_, err = s.Publish(within(t), as("mod"), channels.Publication{To: "ann", Parts: text("psst")})
			wantCode(t, "a muted one whispers", err, kg.CodePermissionDenied)
			if list, err := s.Members().Restrictions(by, channel.AllChannels); err != nil || len(list) != 2 {
				t.Errorf("the bars are %v, %v", list, err)
			}
		}
		s.restart(t)
		_, err = s.Get(within(t), as("bob"), c.ID)
		wantCode(t, "opened again", err, kg.CodeChannelNotFound)
	}
}

func TestWhoBars(t *testing.T) {
	s := serve(t, channels.Options{MaxRestrictions: 2}, kg.Options{})
	c := s.crew(t, channel.Draft{})
	for _, row := range []struct {
		what string
		err  error
		want kg.Code
	}{
		{"a member bans an observer", s.Members().Ban(within(t), as("bob"), c.ID, "ola", time.Time{}), kg.CodePermissionDenied},
		{"an outsider", s.Members().Ban(within(t), as("eve"), c.ID, "ola", time.Time{}), kg.CodeChannelNotFound},
		{"a moderator bans an owner", s.Members().Ban(within(t), as("mod"), c.ID, "ann", time.Time{}), kg.CodePermissionDenied},
		{"a moderator bans itself", s.Members().Ban(within(t), as("mod"), c.ID, "mod", time.Time{}), kg.CodePermissionDenied},
		{"an owner, who is no administrator", s.Members().Ban(within(t), as("ann"), channel.AllChannels, "bob", time.Time{}), kg.CodePermissionDenied},
		{"an owner bans a moderator", s.Members().Ban(within(t), as("ann"), c.ID, "mod", time.Time{}), ""},
		{"unbanned by itself", s.Members().Unban(within(t), as("mod"), c.ID, "mod"), kg.CodeChannelNotFound},
		{"a second", s.Members().Mute(within(t), as("ann"), c.ID, "bob", time.Time{}), ""},
		{"the same again", s.Members().Mute(within(t), as("ann"), c.ID, "bob", time.Time{}), ""},
		{"past the bound", s.Members().Ban(within(t), as("ann"), c.ID, "eve", time.Time{}), kg.CodeLimitExceeded},
		{"nobody", s.Members().Ban(within(t), as("ann"), c.ID, "", time.Time{}), kg.CodeInvalid},
	} {
		wantCode(t, row.what, row.err, row.want)
	}
	if _, err := s.Members().Restrictions(as("ann"), channel.AllChannels); kg.CodeOf(err) != kg.CodePermissionDenied {
		t.Errorf("an owner lists the server's: %v", err)
	}
}

// Facts of a channel are read again when a ban has ended by itself, though answers
// about them are kept.
func TestBanOfFactsEnds(t *testing.T) {
	slowtest.Long(t)
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	fact := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1)}}
	if _, err := s.Publish(within(t), as("ann"), channels.Publication{Channel: c.ID, Parts: text("see"), Patches: []kg.Patch{fact}}); err != nil {
		t.Fatal(err)
	}
	count := func() uint64 {
		t.Helper()
		snapshot, err := s.store.View(within(t), kg.View{Principal: as("bob").Principal})
		if err != nil {
			t.Fatal(err)
		}
		defer snapshot.Close()
		n, err := snapshot.Count(kg.Pattern{})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, id := range []channel.ID{c.ID, channel.AllChannels} {
		if n := count(); n != 1 {
			t.Errorf("before: %d", n)
		}
		if err := s.Members().Ban(within(t), admin("ann"), id, "bob", time.Time{}); err != nil {
			t.Fatal(err)
		}
		if n := count(); n != 0 {
			t.Errorf("banned: %d", n)
		}
		for {
			err := s.Members().Ban(within(t), admin("ann"), id, "bob", time.Now().Add(300*time.Millisecond))
			if kg.CodeOf(err) == kg.CodeInvalid {
				continue // the machine is slow: it has passed
			}
			if err != nil {
				t.Fatal(err)
			}
			count() // so that the answer is kept
			break
		}
		eventually(t, "the ban ends", func() bool { return count() == 1 })
	}
}

// A stream without messages ends with the ban, too.
func TestBanEndsIdleStream(t *testing.T) {
	for _, everywhere := range []bool{false, true} {
		s := serve(t, channels.Options{}, kg.Options{})
		c := s.make(t, channel.Public, "bob")
		for _, who := range []string{"bob", "eve"} {
			stream, err := s.Stream(within(t), as(who), c.ID, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			ended := make(chan error)
			go func() {
				for _, err := range stream.Messages() {
					ended <- err
					return
				}
			}()
			id := c.ID
			if everywhere {
				id = channel.AllChannels
			}
			if err := s.Members().Ban(within(t), admin("ann"), id, kg.AgentID(who), time.Time{}); err != nil {
				t.Fatal(err)
			}
			wantCode(t, who, <-ended, kg.CodeChannelNotFound)
		}
	}
}

// The manager of the scope of a channel bans its members, and only administrators ban the
// manager.
func TestBarInScope(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	sc := s.scope(t, scope.Draft{Coordinator: "cleo", Access: scope.Access{Agents: []kg.AgentID{"bob"}}})
	c := s.makeIn(t, sc.ID, "lab", channel.Explicit, "bob")
	wantCode(t, "the coordinator bans", s.Members().Ban(within(t), as("cleo"), c.ID, "bob", time.Time{}), "")
	_, err := s.Get(within(t), as("bob"), c.ID)
	wantCode(t, "bob", err, kg.CodeChannelNotFound)
	wantCode(t, "banned everywhere", s.Members().Ban(within(t), admin("root"), channel.AllChannels, "cleo", time.Time{}), "")
	_, err = s.Get(within(t), as("cleo"), c.ID)
	wantCode(t, "cleo", err, kg.CodeChannelNotFound)
	wantCode(t, "unbanned by cleo", s.Members().Unban(within(t), as("cleo"), c.ID, "bob"), kg.CodeChannelNotFound)
}

// Readers and managers of a channel see its restrictions and invitations; an agent that can
// only discover it sees its own invitation.
func TestWhoIsToldOfBars(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	scope, err := s.Scopes().Create(within(t), as("run"), scope.Draft{Access: scope.Access{Everybody: true}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.CreateIn(within(t), as("ann"), scope.ID, channel.Draft{Name: "lab", Members: []channel.Member{{Agent: "bob"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		s.Members().Mute(within(t), as("ann"), c.ID, "bob", time.Time{}), s.Members().Ban(within(t), as("ann"), c.ID, "eve", time.Time{}),
		s.Members().Invite(within(t), as("ann"), c.ID, "cy"), s.Members().Invite(within(t), as("ann"), c.ID, "dee"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		who           string
		bars, invited int
		listed, told  kg.Code
	}{
		{"ann", 2, 2, "", ""}, {"bob", 2, 2, "", ""}, {"run", 2, 2, "", ""},
		{"cy", 0, 1, kg.CodePermissionDenied, ""}, {"fay", 0, 0, kg.CodeChannelNotFound, kg.CodeChannelNotFound}, {"eve", 0, 0, kg.CodeChannelNotFound, kg.CodeChannelNotFound},
	} {
		bars, err := s.Members().Restrictions(as(row.who), c.ID)
		wantCode(t, "the bars, for "+row.who, err, row.listed)
		invited, err := s.Members().Invitations(as(row.who), c.ID)
		wantCode(t, "the invitations, for "+row.who, err, row.told)
		if len(bars) != row.bars || len(invited) != row.invited {
			t.Errorf("%s is told of %v and %v", row.who, bars, invited)
		}
	}
}
