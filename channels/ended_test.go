package channels_test

import (
	"fmt"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// The messages of an intent and of its tasks are evicted a time after the intent ended, to
// the millisecond, in commits of a bounded size, also after a restart. Those of audited
// channels stay, and those of an intent that goes on.
func TestMessagesOfEndedIntents(t *testing.T) {
	const keep, most = time.Hour, 500
	clock := startClock()
	s := serve(t, channels.Patient(channels.Options{Clock: clock.now, KeepEnded: keep}, time.Millisecond), kg.Options{Clock: clock.now})
	intent := func() scope.ID { return s.scope(t, scope.Draft{Access: scope.Access{Everybody: true}}).ID }
	say := func(in scope.ID, name string, audit bool, n int) channel.ID {
		t.Helper()
		c, err := s.CreateIn(within(t), as("ann"), in, channel.Draft{Name: name, MemberPolicy: channel.ByScope, Audit: audit})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			s.say(t, "ann", c.ID, "%d", i)
		}
		return c.ID
	}
	end := func(id scope.ID) {
		t.Helper()
		if _, err := s.Scopes().End(within(t), as("ann"), id, scope.Completed, ""); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(id channel.ID) (n int) {
		t.Helper()
		page, _, _, err := s.HistoryPage(within(t), as("ann"), id, channels.HistoryQuery{PageSize: channels.MaxPage, Descending: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page {
			if m.Withheld != message.Evicted {
				n++
			}
		}
		return n
	}
	gone := func(id channel.ID) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); kept(id) > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d messages are still there", kept(id))
			}
		}
	}
	first, second, open := intent(), intent(), intent()
	control, talk := say(first, "talk", false, 1), say(second, "talk", false, most+1)
	audited, going := say(second, "audited", true, 1), say(open, "talk", false, 1)
	task, err := s.Scopes().Create(within(t), as("ann"), scope.Draft{Parent: second, Title: "task"})
	if err != nil {
		t.Fatal(err)
	}
	inTask := say(task.ID, "task", false, 1)
	end(first)
	clock.step(time.Millisecond)
	end(second)
	clock.step(keep - time.Millisecond)
	gone(control)
	if kept(talk) == 0 || kept(inTask) != 1 {
		t.Fatalf("a millisecond early: %d and %d messages are kept", kept(talk), kept(inTask))
	}
	s.restart(t)
	before := s.store.Head().Revision
	clock.step(time.Millisecond)
	gone(talk)
	gone(inTask)
	if kept(audited) != 1 || kept(going) != 1 {
		t.Errorf("%d messages of the audited channel are kept, and %d of the open intent", kept(audited), kept(going))
	}
	sizes := ""
	for r := before + 1; r <= s.store.Head().Revision; r++ {
		c, err := s.store.Commit(within(t), kg.SystemPrincipal(), r)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range c.Changes {
			if c.Changes[i].Quad.Predicate == kg.Evicted {
				n++
			}
		}
		sizes += fmt.Sprint(n, " ")
	}
	if sizes != "500 1 1 " {
		t.Errorf("commits evicted %s", sizes)
	}
}
