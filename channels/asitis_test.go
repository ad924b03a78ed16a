package channels_test

import (
	"encoding/json"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/scope"
	"koine/kg"
)

// A change without effect does not change the version of a channel or scope and makes no
// commit, for any caller.
func TestWhatChangesNothingIsNoVersion(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Title: "research", Access: scope.Access{Agents: []kg.AgentID{"bob"}, Roles: []string{"analyst"}}})
	name, topic, most, keep, audit, expire := "lab", "cells", 5, int64(100), true, time.Hour
	rights, limits := channel.Rights{Post: channel.Owners}, channel.Limits{MessagesPerMinute: 7}
	made, err := s.CreateIn(within(t), as("ann"), intent.ID, channel.Draft{
		Name: name, Topic: topic, Metadata: []byte(`{"b": 1.0, "a": "x"}`), Rights: rights, Limits: limits, MaxMembers: most, KeepMessages: keep, Audit: audit, ExpireAfter: expire,
		Members: []channel.Member{{Agent: "bob", Role: channel.Owner}, {Agent: "cleo"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]json.RawMessage{"b": json.RawMessage("1.0")}
	title, access, nobody := intent.Title, intent.Access, kg.AgentID("")
	changes := map[string]func(by channels.Caller) (int64, error){
		"nothing": func(by channels.Caller) (int64, error) {
			return version(s.Update(within(t), by, made.ID, channel.Update{ExpectedVersion: 1}))
		},
		"all as it is": func(by channels.Caller) (int64, error) {
			return version(s.Update(within(t), by, made.ID, channel.Update{
				ExpectedVersion: 1, Name: &name, Topic: &topic, Set: set, Remove: []string{"c"}, Rights: &rights, Limits: &limits,
				MaxMembers: &most, KeepMessages: &keep, Audit: &audit, ExpireAfter: &expire,
			}))
		},
		"a member again": func(by channels.Caller) (int64, error) {
			return version(s.Members().Add(within(t), by, made.ID, "cleo", channel.Ordinary))
		},
		"an owner again": func(by channels.Caller) (int64, error) {
			return version(s.Members().Add(within(t), by, made.ID, "bob", channel.Owner))
		},
	}
	before := s.store.Head().Revision
	for what, change := range changes {
		for _, by := range []string{"ann", "bob"} { // bob has not said any of it
			if v, err := change(as(by)); err != nil || v != 1 {
				t.Errorf("%s, by %s: version %d, %v, want 1", what, by, v, err)
			}
		}
	}
	sc, err := s.Scopes().Update(within(t), as("ann"), intent.ID, scope.Update{ExpectedVersion: 1, Title: &title, Access: &access, Coordinator: &nobody})
	if err != nil || sc.Version != 1 {
		t.Errorf("the scope: %+v, %v, want version 1", sc, err)
	}
	if now := s.store.Head().Revision; now != before {
		t.Errorf("%d commits", now-before)
	}
	// A change with an effect does.
	topic = "water"
	if v, err := version(s.Update(within(t), as("bob"), made.ID, channel.Update{ExpectedVersion: 1, Name: &name, Topic: &topic})); err != nil || v != 2 {
		t.Errorf("a change: version %d, %v, want 2", v, err)
	}
	title = "development"
	if sc, err := s.Scopes().Update(within(t), as("ann"), intent.ID, scope.Update{ExpectedVersion: 1, Title: &title}); err != nil || sc.Version != 2 {
		t.Errorf("a change of the scope: %+v, %v, want version 2", sc, err)
	}
}

func version(c *channel.Channel, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return c.Version, nil
}
