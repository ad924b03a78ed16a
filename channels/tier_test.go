package channels_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/scope"
	"koine/kg"
)

// wantLimit is wantCode for a bound with a name and a time to wait.
func wantLimit(t testing.TB, what string, err error, code kg.Code, limit string, wait time.Duration) {
	t.Helper()
	wantCode(t, what, err, code)
	if e := kg.AsError(err); err != nil && (e.Limit != limit || e.RetryAfter != wait) {
		t.Errorf("%s: limit %q, wait %v; want %q, %v", what, e.Limit, e.RetryAfter, limit, wait)
	}
}

// The tiers are those of the specification; an agent with the roles of several gets the
// widest bounds.
func TestTiers(t *testing.T) {
	for _, row := range []struct {
		tier                         channels.Tier
		messages, streams, inChannel int
	}{{channels.Free, 60, 2, 10}, {channels.Standard, 600, 10, 100}, {channels.Unlimited, 0, 0, 0}} {
		if row.tier.MessagesPerMinute != row.messages || row.tier.Streams != row.streams || row.tier.Channels != row.inChannel {
			t.Errorf("%+v", row.tier)
		}
	}
	s := serve(t, channels.Options{Tier: channels.Tier{Channels: 1}, Tiers: map[string]channels.Tier{
		"two": {Channels: 2, Streams: 1}, "three": {Channels: 3}, "all": channels.Unlimited,
	}}, kg.Options{})
	for roles, want := range map[string]int{"": 1, "other": 1, "two": 2, "two three": 3, "three all": 4} {
		by := as("of " + strings.ReplaceAll(roles, " ", "-"))
		by.Principal.ID = kg.CanonicalAgent("agent-" + strings.ReplaceAll(roles, " ", "-"))
		by.Principal.Roles = strings.Fields(roles)
		made := 0
		for range 4 {
			_, err := s.Create(within(t), by, channel.Draft{})
			if err != nil {
				wantLimit(t, roles, err, kg.CodeLimitExceeded, "channels", 0)
				break
			}
			made++
		}
		if made != want {
			t.Errorf("with the roles %q %d channels were made, want %d", roles, made, want)
		}
	}
}

// An agent may be in as many channels as its tier allows, created or entered; channels that
// it left and direct channels do not count.
func TestChannelsPerAgent(t *testing.T) {
	s := serve(t, channels.Options{Tiers: map[string]channels.Tier{"small": {Channels: 2}}}, kg.Options{})
	eve := withRole("eve", "small")
	room, err := s.Create(within(t), as("ann"), channel.Draft{Kind: channel.Room, Visibility: channel.Public})
	if err != nil {
		t.Fatal(err)
	}
	private := s.make(t, channel.Private)
	if err := s.Members().Invite(within(t), as("ann"), private.ID, "eve"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Publish(within(t), eve, channels.Publication{To: "ann", Parts: text("psst")}); err != nil {
		t.Fatal(err)
	}
	own, err := s.Create(within(t), eve, channel.Draft{})
	wantCode(t, "one", err, "")
	_, err = s.Members().Join(within(t), eve, room.ID, "")
	wantCode(t, "two", err, "")
	_, err = s.Members().Accept(within(t), eve, private.ID)
	wantLimit(t, "three", err, kg.CodeLimitExceeded, "channels", 0)
	_, err = s.Members().Join(within(t), eve, room.ID, "")
	wantCode(t, "one that it is in", err, "")
	wantCode(t, "deleted", s.Delete(within(t), eve, own.ID), "")
	_, err = s.Members().Accept(within(t), eve, private.ID)
	wantCode(t, "two again", err, "")
}

// So many messages in any minute, and one more a millisecond after the first of
// them has become older than that.
func TestMessagesPerMinute(t *testing.T) {
	now := startClock()
	s := serveAt(t, now, channels.Options{Tiers: map[string]channels.Tier{"small": {MessagesPerMinute: 3}}})
	c, other := s.make(t, channel.Public, "eve", "bob"), s.make(t, channel.Public, "eve", "bob")
	eve := withRole("eve", "small")
	say := func(by channels.Caller, id channel.ID) error {
		_, err := s.Publish(within(t), by, channels.Publication{Channel: id, Parts: text("hi")})
		return err
	}
	for i, id := range []channel.ID{c.ID, other.ID, c.ID} {
		wantCode(t, fmt.Sprint(i), say(eve, id), "")
		now.step(time.Second)
	}
	wantLimit(t, "a fourth", say(eve, other.ID), kg.CodeRateLimited, "messagesPerMinute", 57*time.Second)
	wantCode(t, "bob's", say(as("bob"), c.ID), "")
	now.step(57*time.Second - time.Millisecond)
	wantLimit(t, "a millisecond before", say(eve, c.ID), kg.CodeRateLimited, "messagesPerMinute", time.Millisecond)
	now.step(time.Millisecond)
	wantCode(t, "then", say(eve, c.ID), "")
	wantLimit(t, "one more", say(eve, c.ID), kg.CodeRateLimited, "messagesPerMinute", time.Second)

	// A channel bounds each of its authors.
	got, err := s.Update(within(t), as("ann"), other.ID, channel.Update{ExpectedVersion: 1, Limits: &channel.Limits{MessagesPerMinute: 1}})
	if err != nil || got.Limits.MessagesPerMinute != 1 {
		t.Fatal(got, err)
	}
	for _, who := range []string{"ann", "bob"} {
		wantCode(t, who, say(as(who), other.ID), "")
		wantLimit(t, who+" again", say(as(who), other.ID), kg.CodeRateLimited, "messagesPerMinute", time.Minute)
		wantCode(t, who+" elsewhere", say(as(who), c.ID), "")
	}
}

// The rate of an author is remembered for a minute, and the number of authors is bounded.
func TestRatesAreBounded(t *testing.T) {
	now := startClock()
	s := serveAt(t, now, channels.Options{MaxRates: 2, Tier: channels.Tier{MessagesPerMinute: 2}})
	c := s.make(t, channel.Public, "bob", "cleo")
	say := func(who string) error {
		_, err := s.Publish(within(t), as(who), channels.Publication{Channel: c.ID, Parts: text("hi")})
		return err
	}
	wantCode(t, "ann", say("ann"), "")
	now.step(time.Second)
	wantCode(t, "bob", say("bob"), "")
	wantLimit(t, "cleo", say("cleo"), kg.CodeRateLimited, "messagesPerMinute", time.Minute)
	wantCode(t, "bob again", say("bob"), "")
	now.step(59 * time.Second)
	wantCode(t, "cleo, when ann is forgotten", say("cleo"), "")
}

func TestMessageBytes(t *testing.T) {
	s := serve(t, channels.Options{Tiers: map[string]channels.Tier{"free": channels.Free}}, kg.Options{})
	c, err := s.Create(within(t), as("ann"), channel.Draft{Limits: channel.Limits{MessageBytes: 1000}, Members: []channel.Member{{Agent: "bob"}}})
	if err != nil {
		t.Fatal(err)
	}
	wide := s.make(t, channel.Private, "bob")
	frame := len(text("")[0])
	for _, row := range []struct {
		what string
		by   channels.Caller
		id   channel.ID
		size int
		want kg.Code
	}{
		{"at the channel's bound", as("bob"), c.ID, 1000, ""},
		{"past it", as("bob"), c.ID, 1001, kg.CodeLimitExceeded},
		{"at the tier's bound", withRole("bob", "free"), wide.ID, 64 << 10, ""},
		{"past it", withRole("bob", "free"), wide.ID, 64<<10 + 1, kg.CodeLimitExceeded},
		{"without a tier", as("bob"), wide.ID, 64<<10 + 1, ""},
	} {
		_, err := s.Publish(within(t), row.by, channels.Publication{Channel: row.id, Parts: text("%s", strings.Repeat("x", row.size-frame-1)), ArtifactRefs: []string{"a"}})
		wantLimit(t, row.what, err, row.want, "messageBytes", 0)
	}
	for what, row := range map[string]struct {
		limits channel.Limits
		want   kg.Code
	}{
		"negative": {channel.Limits{Streams: -1}, kg.CodeInvalid}, "too many": {channel.Limits{MessagesPerMinute: channel.MaxPerMinute + 1}, kg.CodeLimitExceeded},
		"at the bound": {channel.Limits{MessagesPerMinute: channel.MaxPerMinute, MessageBytes: channel.MaxMessageBytes}, ""},
		"too large":    {channel.Limits{MessageBytes: channel.MaxMessageBytes + 1}, kg.CodeLimitExceeded},
	} {
		_, err := s.Create(within(t), as("ann"), channel.Draft{Limits: row.limits})
		wantCode(t, what, err, row.want)
	}
}

// So many streams are open at once, of a principal and of a channel.
func TestStreamsAreBounded(t *testing.T) {
	s := serve(t, channels.Options{Tiers: map[string]channels.Tier{"small": {Streams: 2}}}, kg.Options{})
	wide := s.make(t, channel.Public)
	narrow, err := s.Create(within(t), as("ann"), channel.Draft{Visibility: channel.Public, Limits: channel.Limits{Streams: 1}})
	if err != nil {
		t.Fatal(err)
	}
	open := func(by channels.Caller, id channel.ID, want kg.Code) *channels.Stream {
		t.Helper()
		st, err := s.Stream(within(t), by, id, nil)
		wantLimit(t, "a stream", err, want, "streams", 0)
		return st
	}
	eve := withRole("eve", "small")
	first, second := open(eve, wide.ID, ""), open(eve, narrow.ID, "")
	open(eve, wide.ID, kg.CodeLimitExceeded)
	open(as("bob"), narrow.ID, kg.CodeLimitExceeded)
	_, err = s.StreamAll(within(t), eve, nil)
	wantLimit(t, "a feed", err, kg.CodeLimitExceeded, "streams", 0)
	second.Close()
	second.Close() // counts once
	open(as("bob"), narrow.ID, "").Close()
	third := open(eve, wide.ID, "")
	open(eve, wide.ID, kg.CodeLimitExceeded)
	first.Close()
	third.Close()
	// One that was refused for another reason is not counted.
	for range 3 {
		_, err := s.Stream(within(t), eve, wide.ID, at(99))
		wantCode(t, "ahead", err, kg.CodeInvalid)
	}
	open(eve, wide.ID, "").Close()
}

// The bounds of a channel hold for agents with access to its scope by a role of their
// credential, too.
func TestBoundsOfWhoHasARole(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Roles: []string{"dev"}}})
	c, err := s.CreateIn(within(t), as("ann"), intent.ID, channel.Draft{Name: "room", MemberPolicy: channel.ByScope, Limits: channel.Limits{MessageBytes: 100, MessagesPerMinute: 1}})
	if err != nil {
		t.Fatal(err)
	}
	publish := func(words string) error {
		_, err := s.Publish(within(t), withRole("dora", "dev"), channels.Publication{Channel: c.ID, Parts: text("%s", words)})
		return err
	}
	wantLimit(t, "too large", publish(strings.Repeat("x", 100)), kg.CodeLimitExceeded, "messageBytes", 0)
	wantCode(t, "the first", publish("short"), "")
	wantCode(t, "the second", publish("short"), kg.CodeRateLimited)
}
