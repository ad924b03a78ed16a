package inboxhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/delivery"
	"koine/internal/delivery/inboxhook"
	"koine/internal/logtest"
	"koine/kg"
)

const patience = time.Minute

func as(who string) channels.Caller {
	return channels.Caller{Principal: kg.Principal{ID: kg.CanonicalAgent(who), Method: "key"}}
}

// post is a store with channels, agents and deliveries.
type post struct {
	t        *testing.T
	dir      string
	options  inboxhook.Options
	log      logtest.Buffer
	store    *kg.Store
	channels *channels.Service
	agents   *agents.Directory
	hooks    *inboxhook.Service
	shut     atomic.Bool // nothing may be delivered
}

func newPost(t *testing.T, o inboxhook.Options) *post {
	p := &post{t: t, dir: t.TempDir(), options: o}
	p.options.Pause = time.Millisecond
	p.options.Logger = slog.New(slog.NewTextHandler(&p.log, nil))
	p.options.MayDeliver = func(kg.AgentID) bool { return !p.shut.Load() }
	p.options.Endpoint = func(r *agents.Record) string { return r.Registration.Endpoint }
	p.options.Body = func(_ context.Context, _ kg.AgentID, m *message.Message) ([]byte, error) {
		if m.Retracts != "" {
			return []byte("retraction"), nil
		}
		var part struct{ Text string }
		err := json.Unmarshal(m.Parts[0], &part)
		return []byte(part.Text), err
	}
	p.open()
	t.Cleanup(p.close)
	return p
}

func (p *post) open() {
	p.t.Helper()
	p.channels = channels.New(channels.Options{})
	var err error
	p.store, err = kg.Open(p.dir, kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: p.channels.Guard(kg.AllowAll{}), OnSystemChange: p.channels.Follow}})
	if err == nil {
		err = p.channels.Load(p.t.Context(), p.store)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.agents = agents.NewDirectory(p.store, agents.DirectoryOptions{DeregisterTx: inboxhook.Forget})
	p.hooks = inboxhook.New(p.options)
	if err := p.hooks.Load(p.t.Context(), p.store, p.channels, p.agents); err != nil {
		p.t.Fatal(err)
	}
}

func (p *post) close() {
	p.hooks.Close()
	p.channels.Close()
	if err := p.store.Close(); err != nil {
		p.t.Error(err)
	}
}

func (p *post) register(who, endpoint string) {
	p.t.Helper()
	by := caller.Caller{Principal: as(who).Principal}
	if _, err := p.agents.Register(p.t.Context(), by, agents.Record{ID: by.Principal.ID, Registration: &agents.Registration{Endpoint: endpoint}}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *post) room(members ...string) channel.ID {
	p.t.Helper()
	d := channel.Draft{Name: "room", Visibility: channel.Private}
	for _, who := range members {
		d.Members = append(d.Members, channel.Member{Agent: kg.CanonicalAgent(who)})
	}
	c, err := p.channels.Create(p.t.Context(), as("ann"), d)
	if err != nil {
		p.t.Fatal(err)
	}
	return c.ID
}

func (p *post) say(in channel.ID, text string, to ...string) message.ID {
	p.t.Helper()
	m := channels.Publication{Channel: in, Parts: []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"type":"text","text":%q}`, text))}}
	if len(to) > 0 {
		m.Interaction, m.Envelope.To = message.Notification, string(kg.CanonicalAgent(to[0]))
	}
	r, err := p.channels.Publish(p.t.Context(), as("ann"), m)
	if err != nil {
		p.t.Fatal(err)
	}
	return r.Message.ID
}

func (p *post) logs(text string) {
	p.t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(p.log.String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("the log does not say %q: %s", text, &p.log)
		}
	}
}

// door is an endpoint.
type door struct {
	*httptest.Server
	t      *testing.T
	status func(text string) int // called one at a time

	mu    sync.Mutex // guards the following
	calls []string   // what was accepted
	keys  []string   // Idempotency-Key and X-Agent-ID
}

func newDoor(t *testing.T, status func(text string) int) *door {
	d := &door{t: t, status: status}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		code := http.StatusNoContent
		if d.status != nil {
			code = d.status(b.String())
		}
		d.mu.Lock()
		if code < 300 {
			d.calls = append(d.calls, b.String())
			d.keys = append(d.keys, r.Header.Get("Idempotency-Key")+" "+r.Header.Get("X-Agent-ID"))
		}
		d.mu.Unlock()
		w.WriteHeader(code)
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *door) accepted() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

func (d *door) expect(want ...string) {
	d.t.Helper()
	for end := time.Now().Add(patience); !slices.Equal(d.accepted(), want); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("got %q, want %q", d.accepted(), want)
		}
	}
}

func local() inboxhook.Options {
	return inboxhook.Options{Options: delivery.Options{AllowPrivate: true}}
}

// An endpoint gets what is for its agent, behind its registration, in order, with the id of
// the message. A failure is tried again, and what follows waits; a refusal leaves the
// message out; a message that was retracted meanwhile is not delivered.
func TestDelivery(t *testing.T) {
	p := newPost(t, local())
	room, other := p.room("bob", "cy"), p.room("cy")
	p.say(room, "before")
	var failures atomic.Int32
	var retract message.ID
	d := newDoor(t, func(text string) int {
		switch {
		case text == "refused":
			return http.StatusBadRequest
		case text == "third" && failures.Add(1) < 4:
			if failures.Load() == 1 {
				if _, err := p.channels.Retract(t.Context(), as("ann"), channels.Retraction{Channel: room, Message: retract}); err != nil {
					t.Error(err)
				}
			}
			return http.StatusServiceUnavailable
		}
		return http.StatusAccepted
	})
	p.register("bob", d.URL+"/in?x=1")
	first := p.say(room, "first")
	p.say(room, "for cy", "cy")
	p.say(other, "elsewhere")
	d.expect("first")
	p.say(room, "refused")
	p.say(room, "second", "bob")
	d.expect("first", "second")
	p.shut.Store(true) // so that both are there before the first try
	p.say(room, "third")
	retract = p.say(room, "retracted")
	p.say(room, "fourth")
	p.shut.Store(false)
	d.expect("first", "second", "third", "fourth", "retraction")
	if failures.Load() != 4 {
		t.Errorf("the third came %d times", failures.Load())
	}
	if d.keys[0] != string(first)+" bob" {
		t.Errorf("the first came as %s, want %s for bob", d.keys[0], first)
	}
	p.logs("refuses a message")
	p.logs("gets messages again")
}

// Progress survives a restart: what was delivered is not repeated, what came meanwhile
// follows. What an agent was sent while it was suspended waits.
func TestRestart(t *testing.T) {
	p := newPost(t, local())
	d := newDoor(t, nil)
	room := p.room("bob")
	p.register("bob", d.URL)
	p.say(room, "1")
	d.expect("1")
	p.shut.Store(true)
	p.say(room, "2")
	p.logs("agent is suspended")
	p.close()
	p.open()
	p.say(room, "3")
	p.shut.Store(false)
	d.expect("1", "2", "3")
}

// The deliveries follow the registration: to a new endpoint, to none, and none after the
// agent has deregistered. A new registration does not get what came before it.
func TestEndpointChanges(t *testing.T) {
	p := newPost(t, local())
	one, two, control := newDoor(t, nil), newDoor(t, nil), newDoor(t, nil)
	room := p.room("bob", "cy")
	p.register("cy", control.URL)
	p.register("bob", one.URL)
	said := []string{}
	say := func(text string) {
		p.say(room, text)
		said = append(said, text)
		control.expect(said...) // and so bob's hook has seen it, unless it has none
	}
	say("1")
	one.expect("1")
	p.register("bob", two.URL)
	say("2")
	two.expect("2")
	p.register("bob", "")
	say("3")
	p.register("bob", one.URL)
	say("4")
	one.expect("1", "4")
	if err := p.agents.Deregister(t.Context(), caller.Caller{Principal: as("bob").Principal}, as("bob").Principal.ID); err != nil {
		t.Fatal(err)
	}
	say("5")
	p.register("bob", two.URL)
	say("6")
	two.expect("2", "6")
	one.expect("1", "4")
}

// MaxEndpoints agents have deliveries; one more has none, and the log names it. Endpoints at
// private addresses have none unless they are allowed.
func TestBounds(t *testing.T) {
	o := local()
	o.MaxEndpoints = 2
	p := newPost(t, o)
	d := newDoor(t, nil)
	room := p.room("bob", "cy", "eve")
	p.register("bob", d.URL)
	p.register("cy", d.URL)
	p.register("eve", d.URL)
	p.logs("there are too many\" agent=agent://eve limit=2")
	p.say(room, "1")
	d.expect("1", "1")
	p.register("bob", "") // makes room
	p.register("eve", d.URL+"/2")
	p.say(room, "2")
	d.expect("1", "1", "2", "2")
	slices.Sort(d.keys)

	strict := newPost(t, inboxhook.Options{})
	strict.register("bob", d.URL)
	strict.logs("gets no messages")
}
