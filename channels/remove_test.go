package channels_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/actions"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// A removed agent is in no channel any more; each channel has an owner and a notice; a
// channel without members that not all agents can read is deleted.
func TestRemoveAgent(t *testing.T) {
	now := startClock()
	s := serveAt(t, now, channels.Options{})
	make := func(by string, d channel.Draft, members ...channel.Member) channel.ID {
		t.Helper()
		d.Members = members
		c, err := s.Create(within(t), as(by), d)
		if err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	m := func(name string, role channel.Role) channel.Member {
		return channel.Member{Agent: kg.CanonicalAgent(name), Role: role}
	}
	join := func(id channel.ID, who string, role channel.Role) {
		t.Helper()
		now.step(time.Second) // the first to join is known to the millisecond
		if _, err := s.Members().Add(within(t), as("ann"), id, kg.AgentID(who), role); err != nil {
			t.Fatal(err)
		}
	}
	public := channel.Draft{Visibility: channel.Public}
	mods := make("ann", public, m("bob", ""))
	join(mods, "zoe", channel.Moderator)
	join(mods, "mod", channel.Moderator)
	plain := make("ann", public, m("ola", channel.Observer))
	join(plain, "zoe", "")
	join(plain, "bob", "")
	watched := make("ann", public, m("ola", channel.Observer))
	shared := make("ann", public, m("bob", channel.Owner))
	member := make("bob", public, m("ann", ""))
	invited := make("bob", channel.Draft{})
	if err := s.Members().Invite(within(t), as("bob"), invited, "ann"); err != nil {
		t.Fatal(err)
	}
	alone, alonePublic, other := make("ann", channel.Draft{}), make("ann", public), make("bob", public)
	if _, err := s.Publish(within(t), as("ann"), channels.Publication{To: "bob", Parts: text("psst")}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Members().RemoveAgent(within(t), as("bob"), "ann")
	wantCode(t, "by another agent", err, kg.CodePermissionDenied)
	_, err = s.Members().RemoveAgent(within(t), as("ann"), "")
	wantCode(t, "nobody", err, kg.CodeInvalid)
	if n, err := s.Members().RemoveAgent(within(t), as("ann"), "ann"); err != nil || n != 7 {
		t.Fatalf("taken out of %d, %v", n, err)
	}
	for _, row := range []struct {
		what    string
		id      channel.ID
		members []string
		notices int64
	}{
		{"the moderator that was there first", mods, []string{"agent://bob member", "agent://zoe owner", "agent://mod moderator"}, 1},
		{"the member that was there first", plain, []string{"agent://ola observer", "agent://zoe owner", "agent://bob member"}, 1},
		{"the observer", watched, []string{"agent://ola owner"}, 1},
		{"the other owner", shared, []string{"agent://bob owner"}, 1},
		{"as before", member, []string{"agent://bob owner"}, 1},
		{"nobody", alonePublic, nil, 1},
		{"not in it", other, []string{"agent://bob owner"}, 0},
	} {
		c, err := s.Get(within(t), as("eve"), row.id)
		if err != nil {
			t.Errorf("%s: %v", row.what, err)
			continue
		}
		if got := members(c); !slices.Equal(got, row.members) || c.Messages != row.notices {
			t.Errorf("%s: %v and %d messages, want %v and %d", row.what, got, c.Messages, row.members, row.notices)
		}
		page, _, err := s.History(within(t), as("eve"), row.id, channels.HistoryQuery{})
		for _, m := range page {
			if m.ContentType != message.Notice || !strings.Contains(string(m.Parts[0]), "agent://ann was removed") || string(m.Metadata) != `{"agent":"agent://ann","event":"agentRemoved"}` || m.Author != kg.System {
				t.Errorf("%s: the notice is %+v", row.what, m)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	_, err = s.Get(within(t), channels.Caller{Principal: kg.SystemPrincipal(), Actor: "ann"}, alone)
	wantCode(t, "the channel of nobody", err, kg.CodeChannelNotFound)
	if c, err := s.Get(within(t), as("bob"), invited); err != nil || len(c.Invited) != 0 || c.Messages != 0 {
		t.Errorf("invited is still %v, %v", c, err)
	}
	if c, err := s.Get(within(t), as("bob"), channel.DirectID("agent://ann", "agent://bob")); err != nil || len(c.Members) != 2 {
		t.Errorf("the direct channel is %v, %v", c, err)
	}
	before := s.store.Head().Revision
	if n, err := s.Members().RemoveAgent(within(t), admin("root"), "ann"); err != nil || n != 0 || s.store.Head().Revision != before {
		t.Errorf("again: %d, %v, revision %d after %d", n, err, s.store.Head().Revision, before)
	}
}

// Requests that only the removed agent could answer expire; answered ones, and those that
// others can answer, stay.
func TestRemoveAgentExpiresRequests(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	s.role(t, "dev", "bob", "zoe")
	c := s.make(t, channel.Private, "bob", "zoe")
	ask := func(to string, expires time.Time) message.ID {
		return s.mustSend(t, "ann", c.ID, message.Envelope{Interaction: message.Request, To: to, ExpiresAt: expires}).ID
	}
	never, later, both, zoes := ask("agent://bob", time.Time{}), ask("agent://bob", time.Now().Add(time.Hour)), ask("role:dev", time.Time{}), ask("agent://zoe", time.Time{})
	answered := ask("agent://bob", time.Time{})
	s.mustSend(t, "bob", c.ID, message.Envelope{Interaction: message.Response, Correlation: answered})
	if _, err := s.Members().RemoveAgent(within(t), admin("root"), "bob"); err != nil {
		t.Fatal(err)
	}
	page, _, err := s.History(within(t), as("ann"), c.ID, channels.HistoryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	withheld := map[message.ID]message.Withheld{}
	for _, m := range page {
		withheld[m.ID] = m.Withheld
		if m.Withheld == message.Expired && (m.ExpiresAt.IsZero() || m.Parts != nil) {
			t.Errorf("expired: %+v", m)
		}
	}
	for id, want := range map[message.ID]message.Withheld{never: message.Expired, later: message.Expired, both: "", zoes: "", answered: ""} {
		if withheld[id] != want {
			t.Errorf("%v: %q, want %q", id, withheld[id], want)
		}
	}
	if len(page) != 7 {
		t.Errorf("%d messages, want 7 with the notice", len(page))
	}
}

// More requests than fit into one commit are expired by several.
func TestRemoveAgentInBoundedCommits(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	const requests = 18 // a little less than 256 KiB each, past 4 MiB
	for range requests {
		_, err := s.Publish(within(t), as("ann"), channels.Publication{Channel: c.ID, Parts: text("%s", strings.Repeat("x", 250<<10)), Envelope: message.Envelope{Interaction: message.Request, To: "bob"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	before := s.store.Head().Revision
	if _, err := s.Members().RemoveAgent(within(t), admin("root"), "bob"); err != nil {
		t.Fatal(err)
	}
	if n := s.store.Head().Revision - before; n != 2 {
		t.Errorf("%d commits, want 2", n)
	}
	page, _, err := s.History(within(t), as("ann"), c.ID, channels.HistoryQuery{})
	if err != nil || len(page) != requests+1 {
		t.Fatalf("%d messages, %v", len(page), err)
	}
	for _, m := range page[:requests] {
		if m.Withheld != message.Expired {
			t.Errorf("message %d is not expired", m.Sequence)
		}
	}
}

// meanwhile is a verifier that has nothing against anything, and lets something be
// done before an agent is taken out of a channel.
type meanwhile struct{ do func(record kg.Term) }

func (m *meanwhile) Verify(_ context.Context, of kg.Judgement) (kg.Verdict, error) {
	for _, c := range of.Changes {
		if of.Meta.Method == "channels/removeAgent" && actions.IsRecordGraph(c.Quad.Graph) {
			m.do(c.Quad.Graph)
			break
		}
	}
	return kg.Verdict{}, nil
}

// An agent that is added to other channels during its removal is in none of them
// afterwards.
func TestRemoveAgentWhileItIsAdded(t *testing.T) {
	var hook meanwhile
	s := serve(t, channels.Options{}, kg.Options{Governor: kg.Governor{Verifier: &hook}})
	var last channel.ID
	var made []channel.ID
	add := func() {
		last = s.make(t, channel.Private, "bob").ID
		made = append(made, last)
	}
	more := 0
	hook.do = func(record kg.Term) {
		if more > 0 && record == last.RecordGraph() {
			more--
			add()
		}
	}
	// So often and no more.
	for _, row := range []struct {
		times int
		want  kg.Code
	}{{channels.MaxRemovals - 2, ""}, {channels.MaxRemovals - 1, kg.CodeOverloaded}} {
		made, more = nil, row.times
		add()
		n, err := s.Members().RemoveAgent(within(t), admin("root"), "bob")
		if wantCode(t, "added meanwhile", err, row.want); n != row.times+1 || len(made) != n {
			t.Errorf("taken out of %d of %d channels, %d more", n, len(made), row.times)
		}
		if row.want != "" && kg.AsError(err).RetryAfter == 0 {
			t.Error("when to try again is not said")
		}
		for _, id := range made {
			_, err := s.Get(within(t), as("bob"), id)
			wantCode(t, "afterwards", err, kg.CodeChannelNotFound)
		}
	}
}

// Requests expire wherever they wait for the removed agent, member or not; those with other
// recipients left do not.
func TestRemoveAgentEverywhere(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	s.role(t, "dev", "bob", "zoe")
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"agent://bob", "agent://zoe"}}})
	open := s.makeIn(t, intent.ID, "open", channel.ByScope)
	one := s.mustSend(t, "ann", open.ID, message.Envelope{Interaction: message.Request, To: "bob"})
	both := s.mustSend(t, "ann", open.ID, message.Envelope{Interaction: message.Request, To: "role:dev"})
	note := s.mustSend(t, "ann", open.ID, message.Envelope{To: "bob"})
	r, err := s.Publish(within(t), as("ann"), channels.Publication{To: "bob", Parts: text("well?"), Envelope: message.Envelope{Interaction: message.Request, To: "bob"}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Members().RemoveAgent(within(t), as("bob"), "bob"); err != nil || n != 0 {
		t.Errorf("taken out of %d, %v", n, err)
	}
	for m, want := range map[*message.Message]message.Withheld{one: message.Expired, both: "", note: "", r.Message: message.Expired} {
		if now, err := s.Message(within(t), as("ann"), m.ID); err != nil || now.Withheld != want {
			t.Errorf("%+v, %v; want %q", now, err, want)
		}
	}
}

// Asking an agent ends when it is removed.
func TestAskEndsWithWhoWasAsked(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	ended := make(chan error)
	go func() {
		_, err := s.Ask(within(t), as("ann"), question(c.ID, "bob", channels.MaxAskTime))
		ended <- err
	}()
	eventually(t, "asks", func() bool { now, err := s.Get(within(t), as("ann"), c.ID); return err == nil && now.Messages == 1 })
	if _, err := s.Members().RemoveAgent(within(t), as("bob"), "bob"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "nobody can answer", <-ended, kg.CodeTimeout)
}

// A channel for all agents with access to its scope stays when its members are removed,
// with its messages, sequence and name; one for its members alone is deleted.
func TestRemoveAgentKeepsWhatTheScopeHas(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob", "cleo"}}})
	say := func(by string) *channels.Receipt {
		t.Helper()
		r, err := s.PublishByName(within(t), as(by), intent.ID, "shared", channels.Publication{Parts: text("from %s", by)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	id := say("bob").Message.Channel
	say("cleo")
	alone, err := s.CreateIn(within(t), as("bob"), intent.ID, channel.Draft{Name: "alone"})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Members().RemoveAgent(within(t), admin("root"), "bob"); err != nil || n != 2 {
		t.Fatalf("taken out of %d, %v", n, err)
	}
	page, _, err := s.History(within(t), as("cleo"), id, channels.HistoryQuery{})
	if err != nil || len(page) != 3 || page[2].ContentType != message.Notice {
		t.Errorf("cleo reads %v, %v", page, err)
	}
	if m := say("cleo").Message; m.Channel != id || m.Sequence != 4 {
		t.Errorf("the name is of %s now, at %d", m.Channel, m.Sequence)
	}
	// Its coordinator would still find one of members that stays.
	_, err = s.Get(within(t), as("ann"), alone.ID)
	wantCode(t, "the channel of its members", err, kg.CodeChannelNotFound)
}

// A request expires when all its recipients are removed, one after the other, members or
// not, also if its content is evicted.
func TestRemoveAgentOneByOne(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	s.role(t, "dev", "bob", "cleo", "dora")
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob", "cleo", "dora"}}})
	id := s.makeIn(t, intent.ID, "open", channel.ByScope).ID
	m := s.mustSend(t, "ann", id, message.Envelope{Interaction: message.Request, To: "role:dev"})
	left := map[kg.AgentID]message.Withheld{"bob": "", "cleo": "", "dora": message.Expired}
	for _, who := range []kg.AgentID{"bob", "cleo", "dora"} {
		for range 2 { // the work is not repeated
			if _, err := s.Members().RemoveAgent(within(t), admin("root"), who); err != nil {
				t.Fatal(err)
			}
		}
		if now, err := s.Message(within(t), as("ann"), m.ID); err != nil || now.Withheld != left[who] {
			t.Errorf("without %s: %+v, %v", who, now, err)
		}
	}
	head := s.store.Head().Revision
	if _, err := s.Members().RemoveAgent(within(t), admin("root"), "cleo"); err != nil || s.store.Head().Revision != head {
		t.Errorf("again: revision %d after %d, %v", s.store.Head().Revision, head, err)
	}

	c, err := s.Create(within(t), as("ann"), channel.Draft{Members: []channel.Member{{Agent: "bob"}}, KeepMessages: 1})
	if err != nil {
		t.Fatal(err)
	}
	evicted := s.mustSend(t, "ann", c.ID, message.Envelope{Interaction: message.Request, To: "bob"})
	s.say(t, "ann", c.ID, "more")
	if _, err := s.Members().RemoveAgent(within(t), admin("root"), "bob"); err != nil {
		t.Fatal(err)
	}
	if got := s.got(t, "ann", c.ID, evicted.ID); got != "bob:expired" {
		t.Errorf("receipts of what is not kept are %q", got)
	}
}
