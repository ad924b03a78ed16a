package channels_test

import (
	"fmt"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/scope"
	"koine/kg"
)

// A changed member policy decides at once who takes part; streams of who loses the channel
// end, and rights that the new policy does not allow have to go with it.
func TestMemberPolicyChanges(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Coordinator: "cleo", Access: scope.Access{Everybody: true}})
	made := s.makeIn(t, intent.ID, "lab", channel.Explicit, "bob")
	set := func(by string, policy channel.MemberPolicy, rights *channel.Rights, want kg.Code) {
		t.Helper()
		now, err := s.Get(within(t), as("ann"), made.ID)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Update(within(t), as(by), made.ID, channel.Update{ExpectedVersion: now.Version, MemberPolicy: &policy, Rights: rights})
		wantCode(t, fmt.Sprintf("%s sets %s", by, policy), err, want)
		if err == nil && got.MemberPolicy != policy {
			t.Errorf("%s sets %s: %+v", by, policy, got)
		}
	}
	reads := func(want string) {
		t.Helper()
		got := ""
		for _, who := range []string{"ann", "bob", "dora"} {
			_, _, err := s.History(within(t), as(who), made.ID, channels.HistoryQuery{})
			_, posts := s.Publish(within(t), as(who), channels.Publication{Channel: made.ID, Parts: text("hi")})
			if (err == nil) != (posts == nil) {
				t.Errorf("%s reads: %v, publishes: %v", who, err, posts)
			}
			got += map[bool]string{true: "x", false: "-"}[err == nil]
		}
		if got != want {
			t.Errorf("takes part: %s, want %s", got, want)
		}
	}
	reads("xx-")
	set("bob", channel.ByScope, nil, kg.CodePermissionDenied)
	set("dora", channel.ByScope, nil, kg.CodeChannelNotFound)
	set("ann", "all", nil, kg.CodeInvalid)
	set("ann", channel.Explicit, &channel.Rights{Post: channel.Everybody}, kg.CodeInvalid)
	set("cleo", channel.ByScope, &channel.Rights{Post: channel.Everybody}, "")
	reads("xxx")

	outcome := make(chan error, 2)
	follow := func(who string) {
		stream, err := s.Stream(within(t), as(who), made.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stream.Close)
		go func() {
			for m, err := range stream.Messages() {
				if err != nil || string(m.Parts[0]) == string(text("end")[0]) {
					outcome <- err
					return
				}
			}
		}()
	}
	follow("dora")
	set("ann", channel.Explicit, nil, kg.CodeInvalid) // everybody may post
	set("ann", channel.Explicit, &channel.Rights{}, "")
	wantCode(t, "the stream of who takes part by the scope only", <-outcome, kg.CodeChannelNotFound)
	reads("xx-")
	follow("bob")
	set("ann", channel.ByScope, nil, "")
	set("ann", channel.Explicit, nil, "")
	s.say(t, "ann", made.ID, "end")
	wantCode(t, "the stream of a member", <-outcome, "")
	s.restart(t)
	reads("xx-")
	set("ann", channel.Explicit, nil, "") // no change
	if now, err := s.Get(within(t), as("bob"), made.ID); err != nil || now.Version != 5 {
		t.Errorf("%+v, %v", now, err)
	}

	free := s.make(t, channel.Private)
	policy := channel.ByScope
	_, err := s.Update(within(t), as("ann"), free.ID, channel.Update{ExpectedVersion: 1, MemberPolicy: &policy})
	wantCode(t, "a channel outside of a scope", err, kg.CodeInvalid)
}

// A name is taken in the intent and all of its tasks, until its channel is renamed or
// deleted.
func TestNamesAreUniqueInTheIntent(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	everybody := scope.Access{Everybody: true}
	intent, other := s.scope(t, scope.Draft{Access: everybody}), s.scope(t, scope.Draft{Access: everybody})
	task, hidden := s.scope(t, scope.Draft{Parent: intent.ID, Access: everybody}), s.scope(t, scope.Draft{Parent: intent.ID})
	plan := s.makeIn(t, intent.ID, "plan", channel.ByScope)
	tests := s.makeIn(t, task.ID, "tests", channel.ByScope)
	s.makeIn(t, hidden.ID, "secret", channel.ByScope)
	s.makeIn(t, other.ID, "plan", channel.ByScope) // another intent has its own names
	check := func() {
		t.Helper()
		for _, row := range []struct {
			in   scope.ID
			name string
		}{{intent.ID, "plan"}, {intent.ID, "tests"}, {intent.ID, "secret"}, {task.ID, "plan"}, {task.ID, "tests"}, {hidden.ID, "tests"}} {
			_, err := s.CreateIn(within(t), as("ann"), row.in, channel.Draft{Name: row.name})
			wantCode(t, "create "+row.name, err, kg.CodeNameTaken)
		}
	}
	check()
	s.restart(t)
	check()
	name := "tests"
	_, err := s.Update(within(t), as("ann"), plan.ID, channel.Update{ExpectedVersion: 1, Name: &name})
	wantCode(t, "rename", err, kg.CodeNameTaken)
	publish := func(in scope.ID, name string, want kg.Code) channel.ID {
		t.Helper()
		r, err := s.PublishByName(within(t), as("bob"), in, name, channels.Publication{Parts: text("hi")})
		wantCode(t, "publish to "+name, err, want)
		if err != nil {
			return ""
		}
		return r.Message.Channel
	}
	if got := publish(intent.ID, "tests", ""); got != tests.ID {
		t.Errorf("a name of a task, on the intent, is %s, want %s", got, tests.ID)
	}
	publish(intent.ID, "secret", kg.CodeChannelNotFound)
	publish(task.ID, "plan", kg.CodeNameTaken)
	publish(task.ID, "secret", kg.CodeNameTaken)

	name = "better tests"
	if _, err := s.Update(within(t), as("ann"), tests.ID, channel.Update{ExpectedVersion: 1, Name: &name}); err != nil {
		t.Fatal(err)
	}
	s.makeIn(t, intent.ID, "tests", channel.ByScope)
	if err := s.Delete(within(t), as("ann"), plan.ID); err != nil {
		t.Fatal(err)
	}
	s.makeIn(t, task.ID, "plan", channel.ByScope)
}

// Channels from before names were unique in the intent keep theirs.
func TestNamesFromBefore(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{})
	first, second := s.scope(t, scope.Draft{Parent: intent.ID}), s.scope(t, scope.Draft{Parent: intent.ID})
	a, b := s.makeIn(t, first.ID, "plan", channel.ByScope), s.makeIn(t, second.ID, "plan two", channel.ByScope)
	before, after := kg.String("plan two"), kg.String("plan")
	_, err := s.store.Update(within(t), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
		q := kg.Quad{Subject: b.ID.Entity(), Predicate: vocab("channelName"), Object: before, Graph: b.ID.RecordGraph()}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
			return err
		}
		q.Object = after
		return tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q})
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, row := range []struct {
			in   scope.ID
			want channel.ID
		}{{first.ID, a.ID}, {second.ID, b.ID}, {intent.ID, a.ID}} {
			r, err := s.PublishByName(within(t), as("ann"), row.in, "plan", channels.Publication{Parts: text("hi")})
			if err != nil || r.Message.Channel != row.want {
				t.Errorf("in %s: %+v, %v, want %s", row.in, r, err, row.want)
			}
		}
		name := "plan"
		if _, err := s.Update(within(t), as("ann"), b.ID, channel.Update{ExpectedVersion: 1, Name: &name}); err != nil {
			t.Errorf("the name as it is: %v", err)
		}
		s.restart(t)
	}
	if err := s.Delete(within(t), as("ann"), a.ID); err != nil {
		t.Fatal(err)
	}
	_, err = s.CreateIn(within(t), as("ann"), intent.ID, channel.Draft{Name: "plan"})
	wantCode(t, "while another has it", err, kg.CodeNameTaken)
	if err := s.Delete(within(t), as("ann"), b.ID); err != nil {
		t.Fatal(err)
	}
	s.makeIn(t, intent.ID, "plan", channel.ByScope)
}
