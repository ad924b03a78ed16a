package channels_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/internal/agents"
	"koine/internal/systemgraph"
	"koine/kg"
)

// role puts agents with a role on record.
func (s *server) role(t testing.TB, role string, names ...string) {
	t.Helper()
	for _, name := range names {
		err := systemgraph.Update(within(t), s.store, kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
			return agents.Ensure(tx, agents.Record{ID: kg.CanonicalAgent(name), Roles: []string{role}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// clock is a time that a test sets.
type clock struct{ ms atomic.Int64 }

func startClock() *clock {
	c := new(clock)
	c.ms.Store(1_750_000_000_000)
	return c
}

func (c *clock) now() time.Time        { return time.UnixMilli(c.ms.Load()).UTC() }
func (c *clock) step(by time.Duration) { c.ms.Add(by.Milliseconds()) }

// send publishes with an envelope.
func (s *server) send(t testing.TB, by string, id channel.ID, e message.Envelope) (*message.Message, error) {
	t.Helper()
	r, err := s.Publish(within(t), as(by), channels.Publication{Channel: id, Parts: text("from %s", by), Envelope: e})
	if err != nil {
		return nil, err
	}
	return r.Message, nil
}

func (s *server) mustSend(t testing.TB, by string, id channel.ID, e message.Envelope) *message.Message {
	t.Helper()
	m, err := s.send(t, by, id, e)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// An address is an agent of the channel, the agents of a role that are in it, or all; any
// other address is refused. A request needs recipients that can respond.
func TestAddress(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo", "dora")
	public := s.make(t, channel.Public, "bob")
	s.role(t, "critic", "ann", "bob", "cleo", "eve")
	if _, err := s.Members().Add(within(t), as("ann"), c.ID, "ola", channel.Observer); err != nil {
		t.Fatal(err)
	}
	s.role(t, "outside", "eve")
	s.role(t, "watcher", "ola", "dora")
	s.role(t, "silent", "ola")
	s.role(t, "mine", "ann")
	for _, row := range []struct {
		name    string
		channel channel.ID
		e       message.Envelope
		to      string
		want    []kg.AgentID
		code    kg.Code
	}{
		{"no address", c.ID, message.Envelope{}, "", nil, ""},
		{"everyone", c.ID, message.Envelope{To: "*"}, "*", nil, ""},
		{"a broadcast to one", c.ID, message.Envelope{Interaction: message.BroadcastAll, To: "bob"}, "*", nil, ""},
		{"an agent", c.ID, message.Envelope{Interaction: message.Notification, To: "bob"}, "agent://bob", []kg.AgentID{"agent://bob"}, ""},
		{"a request", c.ID, message.Envelope{Interaction: message.Request, To: "bob"}, "agent://bob", []kg.AgentID{"agent://bob"}, ""},
		{"a role", c.ID, message.Envelope{Interaction: message.Request, To: "role:critic"}, "role:critic", []kg.AgentID{"agent://bob", "agent://cleo"}, ""},
		{"a role of who only reads", public.ID, message.Envelope{To: "role:outside"}, "", nil, kg.CodeNoRecipient},
		{"an observer", c.ID, message.Envelope{To: "ola"}, "agent://ola", []kg.AgentID{"agent://ola"}, ""},
		{"a role of an observer", c.ID, message.Envelope{To: "role:watcher"}, "role:watcher", []kg.AgentID{"agent://dora", "agent://ola"}, ""},
		{"a request to a role of an observer", c.ID, message.Envelope{Interaction: message.Request, To: "role:watcher"}, "role:watcher", []kg.AgentID{"agent://dora"}, ""},
		{"a request to an observer", c.ID, message.Envelope{Interaction: message.Request, To: "ola"}, "", nil, kg.CodeNotMember},
		{"a request to a role of observers", c.ID, message.Envelope{Interaction: message.Request, To: "role:silent"}, "", nil, kg.CodeNoRecipient},
		{"a request to nobody", c.ID, message.Envelope{Interaction: message.Request}, "", nil, kg.CodeInvalid},
		{"a request to everyone", c.ID, message.Envelope{Interaction: message.Request, To: "*"}, "", nil, kg.CodeInvalid},
		{"no name of a role", c.ID, message.Envelope{To: "role:"}, "", nil, kg.CodeInvalid},
		{"an outsider", c.ID, message.Envelope{To: "eve"}, "", nil, kg.CodeNotMember},
		{"an outsider of a public channel", public.ID, message.Envelope{To: "eve"}, "", nil, kg.CodeNotMember},
		{"a role outside", c.ID, message.Envelope{To: "role:outside"}, "", nil, kg.CodeNoRecipient},
		{"a role of the author alone", c.ID, message.Envelope{To: "role:mine"}, "", nil, kg.CodeNoRecipient},
		{"a role of nobody", c.ID, message.Envelope{To: "role:none"}, "", nil, kg.CodeNoRecipient},
		{"from the system", c.ID, message.Envelope{ContentType: message.Notice}, "", nil, kg.CodePermissionDenied},
	} {
		m, err := s.send(t, "ann", row.channel, row.e)
		wantCode(t, row.name, err, row.code)
		if row.code == "" && (m.To != row.to || !slices.Equal(m.Recipients, row.want)) {
			t.Errorf("%s: to %q, which is %v; want %q, %v", row.name, m.To, m.Recipients, row.to, row.want)
		}
		if row.code == "" {
			page, _, err := s.History(within(t), as("bob"), row.channel, channels.HistoryQuery{SinceSequence: at(m.Sequence - 1)})
			if err != nil || len(page) != 1 || page[0].To != row.to || !slices.Equal(page[0].Recipients, row.want) {
				t.Errorf("%s: reads back as %+v, %v", row.name, page, err)
			}
		}
	}
}

// A suspended agent is never a recipient, and later agents of a role are not recipients of
// an earlier message.
func TestRoleAsOfTheMessage(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo", "dora")
	s.role(t, "critic", "bob", "cleo")
	status := agents.Suspended
	admin := kg.Meta{Principal: kg.Principal{ID: "agent://root", Method: "key", Roles: []string{kg.RoleAdmin}}}
	if _, err := agents.NewService(s.store).Update(within(t), admin, "agent://cleo", agents.Change{Status: &status}); err != nil {
		t.Fatal(err)
	}
	m := s.mustSend(t, "ann", c.ID, message.Envelope{Interaction: message.Request, To: "role:critic"})
	if !slices.Equal(m.Recipients, []kg.AgentID{"agent://bob"}) {
		t.Errorf("the recipients are %v", m.Recipients)
	}
	s.role(t, "critic", "dora")
	_, err := s.send(t, "dora", c.ID, message.Envelope{Interaction: message.Response, Correlation: m.ID})
	wantCode(t, "a later critic's response", err, kg.CodePermissionDenied)
}

// Recipients of a request respond to its author, as often as they like, until it
// expires; one that was answered does not.
func TestRespond(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	c, other := s.make(t, channel.Private, "bob", "cleo", "dora"), s.make(t, channel.Private, "bob")
	s.role(t, "critic", "bob", "cleo")
	due := clock.now().Add(time.Minute)
	ask := func(id channel.ID, to string) *message.Message {
		return s.mustSend(t, "ann", id, message.Envelope{Interaction: message.Request, To: to, ExpiresAt: due})
	}
	answered, forgotten, elsewhere := ask(c.ID, "role:critic"), ask(c.ID, "role:critic"), ask(other.ID, "bob")
	plain := s.say(t, "ann", c.ID, "no request")
	respond := func(by string, to message.ID) (*message.Message, error) {
		return s.send(t, by, c.ID, message.Envelope{Interaction: message.Response, Correlation: to, To: "agent://dora"})
	}
	for _, by := range []string{"bob", "cleo", "bob"} {
		m, err := respond(by, answered.ID)
		if err != nil || m.To != "agent://ann" || !slices.Equal(m.Recipients, []kg.AgentID{"agent://ann"}) || m.Correlation != answered.ID {
			t.Fatalf("%s responds %+v, %v", by, m, err)
		}
	}
	for _, row := range []struct {
		name, by string
		e        message.Envelope
		code     kg.Code
	}{
		{"one who was not asked", "dora", message.Envelope{Interaction: message.Response, Correlation: answered.ID}, kg.CodePermissionDenied},
		{"the author", "ann", message.Envelope{Interaction: message.Response, Correlation: answered.ID}, kg.CodePermissionDenied},
		{"without a request", "bob", message.Envelope{Interaction: message.Response}, kg.CodeInvalid},
		{"to what is no request", "bob", message.Envelope{Interaction: message.Response, Correlation: plain.ID}, kg.CodeInvalid},
		{"to another channel's", "bob", message.Envelope{Interaction: message.Response, Correlation: elsewhere.ID}, kg.CodeInvalid},
		{"to nothing", "bob", message.Envelope{Interaction: message.Response, Correlation: "no such"}, kg.CodeInvalid},
		{"correlation with another channel's", "bob", message.Envelope{Correlation: elsewhere.ID}, kg.CodeInvalid},
		{"reply to another channel's", "bob", message.Envelope{ReplyTo: elsewhere.ID}, kg.CodeInvalid},
		{"reply to nothing", "bob", message.Envelope{ReplyTo: "no such"}, kg.CodeInvalid},
		{"expired before it is published", "bob", message.Envelope{ExpiresAt: clock.now()}, kg.CodeInvalid},
		{"a reply", "bob", message.Envelope{ReplyTo: plain.ID, Correlation: plain.ID}, ""},
	} {
		_, err := s.send(t, row.by, c.ID, row.e)
		wantCode(t, row.name, err, row.code)
	}
	clock.step(time.Minute)
	_, err := respond("bob", forgotten.ID)
	wantCode(t, "too late", err, kg.CodeMessageExpired)
	_, err = respond("cleo", answered.ID)
	wantCode(t, "after another's answer", err, "")
	page, _, err := s.History(within(t), as("ann"), c.ID, channels.HistoryQuery{})
	if err != nil || page[0].Answered != page[3].ID || page[1].Answered != "" {
		t.Errorf("answered by %q and %q, %v; want %q and nothing", page[0].Answered, page[1].Answered, err, page[3].ID)
	}
}

// The same key returns the first message again, also if its address resolves to others by
// then.
func TestAddressedAgain(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	c := s.make(t, channel.Private, "bob", "cleo")
	s.role(t, "critic", "bob")
	p := channels.Publication{Channel: c.ID, Parts: text("look"), IdempotencyKey: "k",
		Envelope: message.Envelope{Interaction: message.Request, To: "role:critic", ExpiresAt: clock.now().Add(time.Second)}}
	first, err := s.Publish(within(t), as("ann"), p)
	if err != nil {
		t.Fatal(err)
	}
	s.role(t, "critic", "cleo")
	clock.step(time.Hour)
	again, err := s.Publish(within(t), as("ann"), p)
	if err != nil || !again.Replayed || again.Message.ID != first.Message.ID || !slices.Equal(again.Message.Recipients, first.Message.Recipients) {
		t.Errorf("got %+v, %v", again, err)
	}
}

// In a scope a role address also reaches the participants that registered with the role, which
// gives them no access; elsewhere only those whose credentials brought it.
func TestRolesByRegistration(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{
		Access: scope.Access{Agents: []kg.AgentID{"bob", "cleo", "dora"}, Roles: []string{"critic"}}, Grants: []scope.Grant{{Agent: "rita", Level: scope.Read}},
	})
	shared, few := s.makeIn(t, intent.ID, "shared", channel.ByScope), s.makeIn(t, intent.ID, "few", channel.Explicit, "bob", "eve")
	outside := s.make(t, channel.Private, "bob", "cleo")
	s.role(t, "critic", "bob")
	register := func(name, role string) {
		t.Helper()
		s.role(t, "worker", name)
		err := systemgraph.Update(within(t), s.store, kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
			return systemgraph.Write(tx, agents.Graph, kg.IRI(string(kg.CanonicalAgent(name))), systemgraph.Record{"agentDuty": systemgraph.Text(role)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cleo", "eve", "bob", "rita"} { // eve has no access by what she says
		register(name, "critic")
	}
	register("dora", "other")
	reaches := func(c channel.ID, interaction message.Interaction, want []kg.AgentID, code kg.Code) {
		t.Helper()
		m, err := s.send(t, "ann", c, message.Envelope{Interaction: interaction, To: "role:critic"})
		wantCode(t, string(c), err, code)
		if err == nil && !slices.Equal(m.Recipients, want) {
			t.Errorf("it reaches %v, want %v", m.Recipients, want)
		}
	}
	reaches(shared.ID, message.Notification, []kg.AgentID{"agent://bob", "agent://cleo", "agent://rita"}, "")
	reaches(shared.ID, message.Request, []kg.AgentID{"agent://bob", "agent://cleo"}, "") // rita could not answer
	reaches(few.ID, message.Request, []kg.AgentID{"agent://bob"}, "")
	reaches(outside.ID, message.Request, []kg.AgentID{"agent://bob"}, "")
	register("cleo", "") // no longer
	reaches(shared.ID, message.Request, []kg.AgentID{"agent://bob"}, "")
}
