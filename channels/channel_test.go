package channels_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/kg"
)

func members(c *channel.Channel) (out []string) {
	for _, m := range c.Members {
		out = append(out, fmt.Sprint(m.Agent, " ", m.Role))
	}
	return out
}

// Owners manage members; roles change, joined times do not; the last owner stays;
// each change of the channel is a version.
func TestMembership(t *testing.T) {
	s := serve(t, channels.Options{MaxMembers: 3}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	if got := members(c); !slices.Equal(got, []string{"agent://ann owner", "agent://bob member"}) || c.Version != 1 || c.CreatedBy != "agent://ann" || c.Kind != channel.Ordered {
		t.Errorf("made: %+v", c)
	}
	joined := c.Members[1].Joined
	change := func(what string, want kg.Code, c *channel.Channel, err error) *channel.Channel {
		t.Helper()
		wantCode(t, what, err, want)
		return c
	}
	add := func(by, whom string, role channel.Role, want kg.Code) *channel.Channel {
		t.Helper()
		c, err := s.Members().Add(within(t), as(by), c.ID, kg.AgentID(whom), role)
		return change(fmt.Sprintf("%s adds %s as %s", by, whom, role), want, c, err)
	}
	remove := func(by, whom string, want kg.Code) *channel.Channel {
		t.Helper()
		c, err := s.Members().Remove(within(t), as(by), c.ID, kg.AgentID(whom))
		return change(fmt.Sprintf("%s removes %s", by, whom), want, c, err)
	}
	add("bob", "cleo", "", kg.CodePermissionDenied)
	add("ann", "cleo", "king", kg.CodeInvalid)
	add("ann", "", "", kg.CodeInvalid)
	c = add("ann", "cleo", "", "")
	add("ann", "dora", "", kg.CodeLimitExceeded)
	c = add("ann", "bob", channel.Moderator, "")
	if got := members(c); !slices.Equal(got, []string{"agent://ann owner", "agent://bob moderator", "agent://cleo member"}) || c.Version != 3 || !c.Members[1].Joined.Equal(joined) {
		t.Errorf("then: %v, version %d", got, c.Version)
	}
	remove("bob", "cleo", kg.CodePermissionDenied)
	remove("ann", "ann", kg.CodeLastOwner)
	add("ann", "ann", channel.Ordinary, kg.CodeLastOwner)
	remove("ann", "eve", kg.CodeNotFound)
	remove("cleo", "cleo", "")
	remove("cleo", "cleo", kg.CodeChannelNotFound)
	add("ann", "bob", channel.Owner, "")
	remove("bob", "ann", "")
	c, err := s.Get(within(t), as("bob"), c.ID)
	if err != nil || !slices.Equal(members(c), []string{"agent://bob owner"}) || c.Version != 6 {
		t.Errorf("at the end: %+v, %v", c, err)
	}
	s.restart(t)
	if c, err := s.Get(within(t), as("bob"), c.ID); err != nil || !slices.Equal(members(c), []string{"agent://bob owner"}) {
		t.Errorf("opened again: %+v, %v", c, err)
	}
}

func TestUpdate(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Public, "bob", "cleo")
	if _, err := s.Members().Add(within(t), as("ann"), c.ID, "bob", channel.Moderator); err != nil {
		t.Fatal(err)
	}
	name, topic := "war room", "the war"
	c, err := s.Update(within(t), as("bob"), c.ID, channel.Update{ExpectedVersion: 2, Name: &name, Topic: &topic, Set: map[string]json.RawMessage{"a": []byte("1"), "b": []byte(`"<x>"`)}})
	if err != nil || c.Name != name || c.Topic != topic || c.Version != 3 || string(c.Metadata) != `{"a":1,"b":"<x>"}` {
		t.Fatalf("%+v, %v", c, err)
	}
	c, err = s.Update(within(t), as("ann"), c.ID, channel.Update{ExpectedVersion: 3, Set: map[string]json.RawMessage{"c": []byte("null")}, Remove: []string{"a", "none"}})
	if err != nil || string(c.Metadata) != `{"b":"<x>","c":null}` || c.Name != name {
		t.Errorf("%+v, %v", c, err)
	}
	long := strings.Repeat("ä", channel.MaxNameRunes)
	tooLong := long + "x"
	full := json.RawMessage(`"` + strings.Repeat("x", channel.MaxMetadataBytes-len(`{"b":"<x>","c":null,"d":""}`)) + `"`)
	for _, row := range []struct {
		what string
		by   string
		r    channel.Update
		want kg.Code
	}{
		{"an old version", "ann", channel.Update{ExpectedVersion: 3}, kg.CodeVersionConflict},
		{"none", "ann", channel.Update{}, kg.CodeVersionConflict},
		{"a member", "cleo", channel.Update{ExpectedVersion: 4}, kg.CodePermissionDenied},
		{"a reader", "eve", channel.Update{ExpectedVersion: 4}, kg.CodePermissionDenied},
		{"both", "ann", channel.Update{ExpectedVersion: 4, Set: map[string]json.RawMessage{"a": []byte("1")}, Remove: []string{"a"}}, kg.CodeInvalid},
		{"a name too long", "ann", channel.Update{ExpectedVersion: 4, Name: &tooLong}, kg.CodeLimitExceeded},
		{"metadata too large", "ann", channel.Update{ExpectedVersion: 4, Set: map[string]json.RawMessage{"d": append(full[:len(full)-1:len(full)-1], 'x', '"')}}, kg.CodeLimitExceeded},
		{"at the bounds", "ann", channel.Update{ExpectedVersion: 4, Name: &long, Set: map[string]json.RawMessage{"d": full}}, ""},
	} {
		_, err := s.Update(within(t), as(row.by), c.ID, row.r)
		wantCode(t, row.what, err, row.want)
	}
}

// A deleted channel is not there for anybody, at any revision, and streams end.
func TestDelete(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Public, "bob")
	m := s.say(t, "bob", c.ID, "hi")
	stream, err := s.Stream(within(t), as("bob"), c.ID, new(int64))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	wantCode(t, "by a member", s.Delete(within(t), as("bob"), c.ID), kg.CodePermissionDenied)
	wantCode(t, "by the owner", s.Delete(within(t), as("ann"), c.ID), "")
	wantCode(t, "again", s.Delete(within(t), as("ann"), c.ID), kg.CodeChannelNotFound)
	for _, err := range stream.Messages() {
		wantCode(t, "the stream", err, kg.CodeChannelNotFound)
		break
	}
	for _, at := range []kg.Revision{0, m.Revision} {
		snapshot, err := s.store.View(within(t), kg.View{Principal: kg.Principal{ID: "agent://root", Roles: []string{kg.RoleAdmin}, Method: "key"}, AllGraphs: true, At: at})
		if err != nil {
			t.Fatal(err)
		}
		for _, graph := range []kg.Term{c.ID.MessagesGraph(), c.ID.RecordGraph(), c.ID.FactsGraph()} {
			if n, err := snapshot.Count(kg.Pattern{Graph: graph}); n != 0 || err != nil {
				t.Errorf("an administrator counts %d in %s at %d: %v", n, graph, at, err)
			}
		}
		snapshot.Close()
	}
}

// Pages of a listing hold each channel that the caller may see once, in order.
func TestList(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	var want []channel.ID
	for i := range 9 {
		visibility := channel.Private
		if i%3 == 0 {
			visibility = channel.Public
		}
		d := channel.Draft{Visibility: visibility}
		if i%2 == 0 {
			d.Members = []channel.Member{{Agent: "bob"}}
		}
		c, err := s.Create(within(t), as("ann"), d)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 || i%3 == 0 {
			want = append(want, c.ID)
		}
	}
	for _, size := range []int{1, 2, 5, 1000} {
		var got []channel.ID
		l := channel.ListQuery{PageSize: size}
		for {
			page, next, err := s.List(within(t), as("bob"), l)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range page {
				got = append(got, c.ID)
			}
			if next == "" {
				break
			}
			_, _, err = s.List(within(t), as("ann"), channel.ListQuery{PageSize: size, PageToken: next})
			wantCode(t, "somebody else's token", err, kg.CodeCursorForeign)
			_, _, err = s.List(within(t), as("bob"), channel.ListQuery{PageToken: next, Visibility: channel.Public})
			wantCode(t, "another listing's token", err, kg.CodeCursorForeign)
			l.PageToken = next
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %v, want %v", size, got, want)
		}
	}
	for _, row := range []struct {
		l    channel.ListQuery
		want int
	}{{channel.ListQuery{Visibility: channel.Public}, 3}, {channel.ListQuery{Visibility: channel.Private}, 3}, {channel.ListQuery{Member: "bob"}, 5}, {channel.ListQuery{Member: "agent://eve"}, 0}} {
		if page, _, err := s.List(within(t), as("bob"), row.l); err != nil || len(page) != row.want {
			t.Errorf("%+v: %d, %v; want %d", row.l, len(page), err, row.want)
		}
	}
}

// A removed member can no longer read the facts of a channel, nor does an open watch of
// them continue, however often they were read before.
func TestFactsFollowMembership(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	fact := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1)}}
	if _, err := s.Publish(within(t), as("ann"), channels.Publication{Channel: c.ID, Parts: text("see"), Patches: []kg.Patch{fact}}); err != nil {
		t.Fatal(err)
	}
	count := func() (n uint64) {
		t.Helper()
		for range 3 { // answers are kept
			snapshot, err := s.store.View(within(t), kg.View{Principal: as("bob").Principal})
			if err != nil {
				t.Fatal(err)
			}
			if n, err = snapshot.Count(kg.Pattern{}); err != nil {
				t.Fatal(err)
			}
			snapshot.Close()
		}
		return n
	}
	if n := count(); n != 1 {
		t.Errorf("a member counts %d, want 1", n)
	}
	watcher, err := s.store.Watch(within(t), kg.Filter{View: kg.View{Principal: as("bob").Principal}}, s.store.Head())
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	if _, err := s.Members().Remove(within(t), as("ann"), c.ID, "bob"); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 0 {
		t.Errorf("one that was a member counts %d, want none", n)
	}
	for _, err := range watcher.Events() {
		wantCode(t, "the watch", err, kg.CodeAccessChanged)
		break
	}
	if _, err := s.Members().Add(within(t), as("ann"), c.ID, "bob", ""); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 1 {
		t.Errorf("a member again counts %d, want 1", n)
	}
}
