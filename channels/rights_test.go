package channels_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/slowtest"
	"koine/kg"
)

// crew makes a channel with one agent of each role; eve is none of them.
func (s *server) crew(t testing.TB, d channel.Draft) *channel.Channel {
	t.Helper()
	d.Name, d.Topic = "lab", "what we do"
	d.Members = []channel.Member{{Agent: "mod", Role: channel.Moderator}, {Agent: "bob"}, {Agent: "ola", Role: channel.Observer}}
	c, err := s.Create(within(t), as("ann"), d)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// does lists the rights of the crew and eve, by the letters of their names.
func (s *server) does(t testing.TB, c *channel.Channel) string {
	t.Helper()
	var out []string
	for _, right := range []struct {
		name string
		do   func(by channels.Caller) error
	}{
		{"find", func(by channels.Caller) error {
			got, err := s.Get(within(t), by, c.ID)
			list, _, listed := s.List(within(t), by, channel.ListQuery{})
			if (err == nil) != (len(list) > 0) || listed != nil {
				t.Errorf("%s gets %v, %v, and lists %v, %v", by.Principal.ID, got, err, list, listed)
			}
			return err
		}},
		{"read", func(by channels.Caller) error {
			_, _, err := s.History(within(t), by, c.ID, channels.HistoryQuery{})
			stream, err2 := s.Stream(within(t), by, c.ID, nil)
			if err2 == nil {
				stream.Close()
			}
			if got, err := s.Get(within(t), by, c.ID); err == nil && (len(got.Members) > 0) != (err2 == nil) {
				t.Errorf("%s sees the members %v", by.Principal.ID, got.Members)
			}
			snapshot, err3 := s.store.View(within(t), kg.View{Principal: by.Principal, AllGraphs: true})
			if err3 != nil {
				t.Fatal(err3)
			}
			defer snapshot.Close()
			n, err3 := snapshot.Count(kg.Pattern{Graph: c.ID.MessagesGraph()})
			if err3 != nil || kg.CodeOf(err) != kg.CodeOf(err2) || (n > 0) != (err == nil) {
				t.Errorf("%s: history %v, stream %v, and %d statements in the graph", by.Principal.ID, err, err2, n)
			}
			return err
		}},
		{"post", func(by channels.Caller) error {
			_, err := s.Publish(within(t), by, channels.Publication{Channel: c.ID, Parts: text("hi")})
			return err
		}},
		{"manage", func(by channels.Caller) error {
			now, err := s.Get(within(t), as("ann"), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			topic := "by " + string(by.Principal.ID)
			_, err = s.Update(within(t), by, c.ID, channel.Update{ExpectedVersion: now.Version, Topic: &topic})
			return err
		}},
	} {
		who := ""
		for _, name := range []string{"ann", "mod", "bob", "ola", "eve"} {
			switch err := right.do(as(name)); kg.CodeOf(err) {
			case "":
				who += name[:1]
			case kg.CodePermissionDenied, kg.CodeChannelNotFound:
				found, _, _ := s.List(within(t), as(name), channel.ListQuery{})
				if (len(found) > 0) != (kg.CodeOf(err) == kg.CodePermissionDenied) {
					t.Errorf("%s, who finds %d channels, may not %s: %v", name, len(found), right.name, err)
				}
			default:
				t.Fatalf("%s %s: %v", name, right.name, err)
			}
		}
		out = append(out, right.name+" "+who)
	}
	return strings.Join(out, ", ")
}

// Rights by kind, visibility, and the overrides of a channel.
func TestRights(t *testing.T) {
	slowtest.Long(t)
	for _, row := range []struct {
		d    channel.Draft
		want string
	}{
		{channel.Draft{Visibility: channel.Private}, "find ambo, read ambo, post amb, manage am"},
		{channel.Draft{Visibility: channel.Public}, "find amboe, read amboe, post amb, manage am"},
		{channel.Draft{Kind: channel.Broadcast}, "find ambo, read ambo, post a, manage am"},
		{channel.Draft{Kind: channel.Broadcast, Visibility: channel.Public}, "find amboe, read amboe, post a, manage am"},
		{channel.Draft{Kind: channel.Room}, "find ambo, read ambo, post amb, manage am"},
		{channel.Draft{Kind: channel.Room, Visibility: channel.Public}, "find amboe, read ambo, post amb, manage am"},
		{channel.Draft{Rights: channel.Rights{Discover: channel.Owners, Read: channel.Moderators, Post: channel.Moderators, Manage: channel.Owners}}, "find am, read am, post am, manage a"},
		{channel.Draft{Rights: channel.Rights{Read: channel.Owners}}, "find ambo, read a, post amb, manage a"},
		{channel.Draft{Visibility: channel.Public, Rights: channel.Rights{Discover: channel.Members, Read: channel.Owners, Post: channel.Everybody, Manage: channel.Members}}, "find ambo, read a, post amb, manage a"},
		{channel.Draft{Visibility: channel.Public, Rights: channel.Rights{Post: channel.Everybody, Manage: channel.Members}}, "find amboe, read amboe, post ambe, manage amb"},
	} {
		s := serve(t, channels.Options{}, kg.Options{})
		c := s.crew(t, row.d)
		s.say(t, "ann", c.ID, "first")
		name := fmt.Sprintf("%s %s %+v", row.d.Kind, row.d.Visibility, row.d.Rights)
		if got := s.does(t, c); got != row.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, row.want)
		}
		s.restart(t)
		if got, err := s.Get(within(t), as("ann"), c.ID); err != nil || got.Rights != row.d.Rights || got.Kind != c.Kind {
			t.Errorf("%s: opened again: %+v, %v", name, got, err)
		}
	}
}

// An agent that may discover a channel but not read it sees its name and topic, and not its
// members.
func TestOutline(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.crew(t, channel.Draft{Kind: channel.Room, Visibility: channel.Public, Metadata: []byte(`{"a":1}`), MaxMembers: 9})
	s.say(t, "bob", c.ID, "hi")
	got, err := s.Get(within(t), as("eve"), c.ID)
	if err != nil || got.Name != "lab" || got.Topic != "what we do" || got.MaxMembers != 9 || len(got.Members) != 0 || got.Metadata != nil || got.Messages != 0 || got.CreatedBy != "" {
		t.Errorf("eve sees %+v, %v", got, err)
	}
	for _, member := range []kg.AgentID{"bob", "agent://nobody"} {
		if list, _, err := s.List(within(t), as("eve"), channel.ListQuery{Member: member}); err != nil || len(list) != 0 {
			t.Errorf("eve lists channels of %s: %v, %v", member, list, err)
		}
	}
}

// Owners change rights and bounds, at once and for open streams; invalid ones are refused.
func TestRightsChange(t *testing.T) {
	s := serve(t, channels.Options{MaxMembers: 5}, kg.Options{})
	c := s.crew(t, channel.Draft{Visibility: channel.Public})
	s.say(t, "bob", c.ID, "first")
	stream, err := s.Stream(within(t), as("eve"), c.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	closed := channel.Rights{Read: channel.Members, Post: channel.Owners}
	_, err = s.Update(within(t), as("mod"), c.ID, channel.Update{ExpectedVersion: 1, Rights: &closed})
	wantCode(t, "by a moderator", err, kg.CodePermissionDenied)
	_, err = s.Update(within(t), as("mod"), c.ID, channel.Update{ExpectedVersion: 1, MaxMembers: new(int)})
	wantCode(t, "a bound, by a moderator", err, kg.CodePermissionDenied)
	got, err := s.Update(within(t), as("ann"), c.ID, channel.Update{ExpectedVersion: 1, Rights: &closed})
	if err != nil || got.Rights != closed || got.Version != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, err := range stream.Messages() {
		wantCode(t, "eve's stream", err, kg.CodePermissionDenied)
		break
	}
	if got, want := s.does(t, c), "find amboe, read ambo, post a, manage am"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for what, r := range map[string]channel.Rights{
		"everybody manages": {Manage: channel.Everybody}, "nobody that is": {Read: "kings"},
	} {
		_, err := s.Update(within(t), as("ann"), c.ID, channel.Update{ExpectedVersion: 4, Rights: &r})
		wantCode(t, what, err, kg.CodeInvalid)
	}
	_, err = s.Create(within(t), as("ann"), channel.Draft{Rights: channel.Rights{Discover: channel.Everybody}})
	wantCode(t, "a private channel that everybody finds", err, kg.CodeInvalid)
	for _, kind := range []channel.Kind{channel.Direct, "party"} {
		_, err = s.Create(within(t), as("ann"), channel.Draft{Kind: kind})
		wantCode(t, "made as "+string(kind), err, kg.CodeInvalid)
	}
	for most, want := range map[int]kg.Code{-1: kg.CodeInvalid, 3: kg.CodeLimitExceeded, 6: kg.CodeLimitExceeded} {
		_, err := s.Update(within(t), as("ann"), c.ID, channel.Update{ExpectedVersion: 4, MaxMembers: &most})
		wantCode(t, fmt.Sprintf("%d members at most", most), err, want)
	}
	four := 4
	if got, err = s.Update(within(t), as("ann"), c.ID, channel.Update{ExpectedVersion: 4, MaxMembers: &four}); err != nil || got.MaxMembers != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	_, err = s.Members().Add(within(t), as("ann"), c.ID, "eve", channel.Observer)
	wantCode(t, "a fifth of four", err, kg.CodeLimitExceeded)
	if _, err = s.Update(within(t), as("ann"), c.ID, channel.Update{ExpectedVersion: 5, MaxMembers: new(int), Rights: &channel.Rights{}}); err != nil {
		t.Fatal(err)
	}
	if _, err = s.Members().Add(within(t), as("ann"), c.ID, "eve", channel.Observer); err != nil {
		t.Error(err)
	}
	_, err = s.Publish(within(t), as("eve"), channels.Publication{Channel: c.ID, Parts: text("hi")})
	wantCode(t, "an observer publishes", err, kg.CodePermissionDenied)
	if _, err := s.Members().Remove(within(t), as("eve"), c.ID, "eve"); err != nil {
		t.Errorf("an observer leaves: %v", err)
	}
}
