package channels_test

import (
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/kg"
)

// A direct channel cannot be changed, before its first message and after it: its two agents
// are refused, and for others it does not exist.
func TestDirectStaysAsItIs(t *testing.T) {
	known := func(fn func(kg.AgentID) bool) { _ = fn("agent://ann") && fn("agent://bob") && fn("agent://eve") }
	s := serve(t, channels.Options{Agents: known}, kg.Options{})
	id := channel.DirectID("agent://ann", "agent://bob")
	name := "ours"
	check := func(when string) {
		t.Helper()
		for method, call := range map[string]func(channels.Caller) error{
			"update": func(by channels.Caller) error {
				_, err := s.Update(within(t), by, id, channel.Update{ExpectedVersion: 1, Name: &name})
				return err
			},
			"delete":       func(by channels.Caller) error { return s.Delete(within(t), by, id) },
			"addMember":    func(by channels.Caller) error { _, err := s.Members().Add(within(t), by, id, "eve", ""); return err },
			"removeMember": func(by channels.Caller) error { _, err := s.Members().Remove(within(t), by, id, "bob"); return err },
			"leave":        func(by channels.Caller) error { return s.Members().Leave(within(t), by, id) },
			"close":        func(by channels.Caller) error { _, err := s.CloseChannel(within(t), by, id, ""); return err },
			"invite":       func(by channels.Caller) error { return s.Members().Invite(within(t), by, id, "eve") },
			"accept":       func(by channels.Caller) error { _, err := s.Members().Accept(within(t), by, id); return err },
			"join":         func(by channels.Caller) error { _, err := s.Members().Join(within(t), by, id, ""); return err },
			"mute":         func(by channels.Caller) error { return s.Members().Mute(within(t), by, id, "bob", time.Time{}) },
		} {
			for who, want := range map[string]kg.Code{"ann": kg.CodePermissionDenied, "bob": kg.CodePermissionDenied, "eve": kg.CodeChannelNotFound} {
				wantCode(t, when+": "+who+" "+method, call(as(who)), want)
			}
		}
	}
	check("before")
	if _, err := s.Publish(within(t), as("ann"), channels.Publication{To: "bob", Parts: text("psst")}); err != nil {
		t.Fatal(err)
	}
	check("after")
}
