package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"koine/internal/agents"
	"koine/internal/caller"
	"koine/kg"
)

func by(id kg.AgentID, roles ...string) caller.Caller {
	return caller.Caller{Principal: kg.Principal{ID: id, Roles: roles, Method: "key"}}
}

var root = by("agent://root", kg.RoleAdmin)

func parseRecord(t *testing.T, card string) agents.Record {
	t.Helper()
	r, err := agents.ParseCard([]byte(card))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func register(t *testing.T, d *agents.Directory, by caller.Caller, card string) {
	t.Helper()
	if _, err := d.Register(t.Context(), by, parseRecord(t, card)); err != nil {
		t.Fatal(err)
	}
}

// cardOf is the card of an agent without the times in it.
func cardOf(t *testing.T, d *agents.Directory, id kg.AgentID) map[string]any {
	t.Helper()
	raw, err := d.Card(t.Context(), by("agent://eve"), id)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if out["registered"] == nil {
		t.Errorf("%s has no time", id)
	}
	delete(out, "registered")
	delete(out, "changed")
	return out
}

func wantCard(t *testing.T, what string, got map[string]any, want string) {
	t.Helper()
	var wanted map[string]any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

// The card of an agent is returned as it was sent, with members that koine does not know;
// the agent accepts requests as long as it is registered, after a restart as well.
func TestRegistration(t *testing.T) {
	store, g := newRegistry(t, kg.Options{})
	load(t, g, store)
	left, leaving := 0, 0
	d := agents.NewDirectory(store, agents.DirectoryOptions{
		Presence:         func(kg.AgentID) string { return "ONLINE" },
		BeforeDeregister: func(context.Context, kg.AgentID) error { left++; return nil },
		DeregisterTx:     func(*kg.Tx, kg.AgentID) error { leaving++; return nil },
	})
	bot := by("agent://bot")
	const said = `"name":"Bot","description":"does <it>","version":"1.2","owner":"ann","role":"worker","endpoint":"https://bot.example/a2a",
		"capabilities":["b","a"],"skills":[{"id":"s","name":"S","tags":["t"],"own":1}],"parameters":{"p":{"type":"x"}},"auth":{"type":"none"},
		"limits":{"tasks":3},"metadata":{"big":12345678901234567890},"x-own":{"deep":[1,null]},"other":null`
	register(t, d, bot, `{`+said+`,"id":"bot"}`)
	register(t, d, bot, `{`+said+`,"id":"bot"}`)
	if r, err := d.Update(t.Context(), bot, "bot", []byte(`{"name":"Bot","x-own":{"deep":[1,null]},"none":null}`)); err != nil || !r.Registration.Changed.IsZero() {
		t.Errorf("what is said again has changed it: %+v, %v", r.Registration, err)
	}
	want := strings.Replace(`{"id":"bot","status":"ACTIVE","presence":"ONLINE",`+said+`}`, `["b","a"]`, `["a","b"]`, 1)
	wantCard(t, "registered", cardOf(t, d, "bot"), want)
	if raw, _ := d.Card(t.Context(), bot, "bot"); !strings.Contains(string(raw), "12345678901234567890") || !strings.Contains(string(raw), "<it>") {
		t.Errorf("it does not stand as it was said: %s", raw)
	}
	fresh := agents.NewRegistry(nil)
	defer fresh.Close()
	load(t, fresh, store)
	if !g.IsAvailable("agent://bot") || !fresh.IsAvailable("agent://bot") || g.IsAvailable("agent://ann") {
		t.Error("who can be asked is not known")
	}
	suspended := agents.Suspended
	if _, err := agents.NewService(store).Update(t.Context(), admin, "bot", agents.Change{Status: &suspended}); err != nil {
		t.Fatal(err)
	}
	if g.IsAvailable("agent://bot") {
		t.Error("one that is suspended can be asked")
	}
	if _, err := d.Update(t.Context(), root, "bot", []byte(`{"status":"active"}`)); err != nil || !g.IsAvailable("agent://bot") {
		t.Errorf("it is not let in again: %v", err)
	}
	if r, err := d.Get(t.Context(), "bot"); err != nil || r.Registration.Changed.Before(r.Registration.Time) {
		t.Errorf("it was changed: %+v, %v", r, err)
	}
	// Members of a change, one by one; anew, all of it.
	if _, err := d.Update(t.Context(), bot, "bot", []byte(`{"version":"2","skills":null,"x-own":null,"new":true,"capabilities":[]}`)); err != nil {
		t.Fatal(err)
	}
	wantCard(t, "changed", cardOf(t, d, "bot"), `{"id":"bot","status":"ACTIVE","presence":"ONLINE","name":"Bot","description":"does <it>","version":"2","owner":"ann","role":"worker",
		"endpoint":"https://bot.example/a2a","capabilities":[],"parameters":{"p":{"type":"x"}},"auth":{"type":"none"},"limits":{"tasks":3},
		"metadata":{"big":12345678901234567890},"new":true,"other":null}`)
	register(t, d, by("agent://ann"), `{"id":"bot","owner":"ann"}`)
	wantCard(t, "anew", cardOf(t, d, "bot"), `{"id":"bot","status":"ACTIVE","presence":"ONLINE","name":"bot","description":"","version":"","owner":"ann","capabilities":[]}`)
	if err := d.Deregister(t.Context(), by("agent://ann"), "bot"); err != nil || left != 1 || leaving != 1 {
		t.Fatalf("%v, told %d and %d times", err, left, leaving)
	}
	if _, err := d.Get(t.Context(), "bot"); kg.CodeOf(err) != kg.CodeAgentNotFound || g.IsAvailable("agent://bot") {
		t.Errorf("it is there: %v", err)
	}
	if r, err := agents.NewService(store).Get(t.Context(), "bot"); err != nil || r == nil || r.Status != agents.Active || r.Registration != nil {
		t.Errorf("its record is %+v, %v", r, err)
	}
}

// If a callback of deregistering fails, the agent has not left.
func TestDeregisteringThatFails(t *testing.T) {
	store, _ := newRegistry(t, kg.Options{})
	failure := errors.New("not now")
	d := agents.NewDirectory(store, agents.DirectoryOptions{BeforeDeregister: func(context.Context, kg.AgentID) error { return failure }})
	register(t, d, by("agent://bot"), `{"id":"bot"}`)
	if err := d.Deregister(t.Context(), by("agent://bot"), "bot"); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	if _, err := d.Get(t.Context(), "bot"); err != nil {
		t.Error(err)
	}
}

// The agents that may register an agent, and change its card.
func TestWhoRegistersWhom(t *testing.T) {
	store, _ := newRegistry(t, kg.Options{})
	d := agents.NewDirectory(store, agents.DirectoryOptions{})
	bot, ann, eve := by("agent://bot"), by("agent://ann"), by("agent://eve")
	deputy := caller.Caller{Principal: kg.Principal{ID: "agent://dep", ActFor: []kg.AgentID{"agent://bot"}, Method: "key"}}
	register(t, d, bot, `{"id":"bot","owner":"ann"}`)
	put := func(by caller.Caller, card string) error {
		_, err := d.Register(t.Context(), by, parseRecord(t, card))
		return err
	}
	for i, row := range []struct {
		err  error
		code kg.Code
	}{
		{put(eve, `{"id":"bot"}`), kg.CodePermissionDenied},
		{put(eve, `{"id":"new"}`), kg.CodePermissionDenied},
		{d.Deregister(t.Context(), eve, "bot"), kg.CodePermissionDenied},
		{put(deputy, `{"id":"bot","owner":"ann"}`), ""},
		{put(ann, `{"id":"bot","owner":"ann"}`), ""},
		{put(root, `{"id":"new"}`), ""},
		{put(bot, `{"id":"bot","owner":"bot"}`), kg.CodePermissionDenied},
		{put(bot, `{"id":"bot"}`), ""},                   // which leaves its owner
		{put(bot, `{"id":"bot","status":"active"}`), ""}, // as it is
		{put(bot, `{"id":"bot","status":"SUSPENDED"}`), kg.CodePermissionDenied},
		{put(root, `{"id":"root","status":"SUSPENDED"}`), kg.CodeInvalid},
		{put(root, `{"id":"root","status":"suspended"}`), kg.CodeInvalid},
		{put(root, `{"id":"bot","status":"ODD"}`), kg.CodeInvalid},
		{put(ann, `{"id":"bot","owner":"eve"}`), ""},
		{put(ann, `{"id":"bot"}`), kg.CodePermissionDenied},
		{put(root, `{"id":"koine"}`), kg.CodePermissionDenied},
		{put(root, `{"id":"anonymous"}`), kg.CodePermissionDenied},
		{put(root, `{}`), kg.CodeInvalid},
		{put(root, `{"id":"a b"}`), kg.CodeInvalid},
		{d.Deregister(t.Context(), root, "koine"), kg.CodePermissionDenied},
		{d.Deregister(t.Context(), root, "nobody"), kg.CodeAgentNotFound},
	} {
		if kg.CodeOf(row.err) != row.code {
			t.Errorf("%d: got %v, want %q", i, row.err, row.code)
		}
	}
	if _, err := d.Update(t.Context(), root, "nobody", []byte(`{}`)); kg.CodeOf(err) != kg.CodeAgentNotFound {
		t.Errorf("nobody is changed: %v", err)
	}
	if _, err := d.Update(t.Context(), bot, "bot", []byte(`{"id":"other"}`)); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("it gets another id: %v", err)
	}
	if r, err := d.Get(t.Context(), "bot"); err != nil || r.Owner != "agent://eve" {
		t.Errorf("at the end %+v, %v", r, err)
	}
}

// Agents are listed in the order of their ids, koine among them, page by page, all or
// those that can do something.
func TestFindAgents(t *testing.T) {
	store, _ := newRegistry(t, kg.Options{})
	self := &agents.Record{ID: kg.System, Name: "koine", Registration: &agents.Registration{Capabilities: []string{"graph"}}}
	d := agents.NewDirectory(store, agents.DirectoryOptions{Self: self})
	ensure(t, store, agents.Record{ID: "agent://seen"}) // and not registered
	register(t, d, root, `{"id":"z","capabilities":["weather"]}`)
	register(t, d, root, `{"id":"a","skills":[{"id":"weather","name":"W"}]}`)
	register(t, d, root, `{"id":"m","skills":[{"id":"x","name":"X","tags":["weather","graph"]}]}`)
	for _, row := range []struct {
		q    agents.Query
		want string
	}{
		{agents.Query{}, "agent://a agent://koine agent://m agent://z, "},
		{agents.Query{First: 2}, "agent://a agent://koine, agent://koine"},
		{agents.Query{First: 2, After: "koine"}, "agent://m agent://z, "},
		{agents.Query{First: 1, After: "agent://b"}, "agent://koine, agent://koine"},
		{agents.Query{Capability: "weather"}, "agent://a agent://m agent://z, "},
		{agents.Query{Capability: "graph"}, "agent://koine agent://m, "},
		{agents.Query{Capability: "none"}, ", "},
	} {
		page, last, err := d.Find(t.Context(), row.q)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range page {
			ids = append(ids, string(r.ID))
		}
		if got := strings.Join(ids, " ") + ", " + string(last); got != row.want {
			t.Errorf("%+v: got %q, want %q", row.q, got, row.want)
		}
	}
	cards, last, err := d.Cards(t.Context(), root, "", "", 2)
	if err != nil || len(cards) != 2 || last != kg.System || !strings.Contains(string(cards[0]), `"capabilities":["weather"]`) {
		t.Errorf("got %s, %s, %v", cards, last, err)
	}
}

// Each bound is kept to, at it and past it.
func TestBoundsOfRegistrations(t *testing.T) {
	store, _ := newRegistry(t, kg.Options{})
	d := agents.NewDirectory(store, agents.DirectoryOptions{MaxAgents: 2})
	text := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int, one func(i int) string) string {
		var out []string
		for i := range n {
			out = append(out, one(i))
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	skill := func(i int) string { return fmt.Sprintf(`{"id":"s%d","name":"S"}`, i) }
	for name, row := range map[string]struct {
		most int
		card func(n int) string
		code kg.Code
	}{
		"name":         {agents.MaxNameBytes, func(n int) string { return `{"id":"bot","name":"` + text(n) + `"}` }, kg.CodeInvalid},
		"description":  {agents.MaxDescriptionBytes, func(n int) string { return `{"id":"bot","description":"` + text(n) + `"}` }, ""},
		"version":      {agents.MaxTagBytes, func(n int) string { return `{"id":"bot","version":"` + text(n) + `"}` }, ""},
		"role":         {agents.MaxTagBytes, func(n int) string { return `{"id":"bot","role":"` + text(n) + `"}` }, ""},
		"endpoint":     {agents.MaxEndpointBytes, func(n int) string { return `{"id":"bot","endpoint":"http://x/` + text(n-9) + `"}` }, ""},
		"a capability": {agents.MaxTagBytes, func(n int) string { return `{"id":"bot","capabilities":["` + text(n) + `"]}` }, ""},
		"capabilities": {agents.MaxCapabilities, func(n int) string {
			return `{"id":"bot","capabilities":` + many(n, func(i int) string { return fmt.Sprintf(`"c%d"`, i) }) + `}`
		}, ""},
		"skills": {agents.MaxSkills, func(n int) string { return `{"id":"bot","skills":` + many(n, skill) + `}` }, ""},
		"tags": {agents.MaxSkillTags, func(n int) string {
			return `{"id":"bot","skills":[{"id":"s","name":"S","tags":` + many(n-1, func(i int) string { return fmt.Sprintf(`"t%d"`, i) }) + `}]}`
		}, ""},
		"metadata": {agents.MaxRegistrationBytes - len(`{"id":"bot","metadata":}`), func(n int) string {
			return `{"id":"bot","metadata":{"k":"` + text(n-len(`{"k":""}`)) + `"}}`
		}, ""},
	} {
		put := func(n int) error {
			r, err := agents.ParseCard([]byte(row.card(n)))
			if err == nil {
				_, err = d.Register(t.Context(), root, r)
			}
			return err
		}
		if err := put(row.most); err != nil {
			t.Errorf("%s at the bound: %v", name, err)
		}
		if row.code == "" {
			row.code = kg.CodeLimitExceeded
		}
		if err := put(row.most + 1); kg.CodeOf(err) != row.code {
			t.Errorf("%s past the bound: %v", name, err)
		}
	}
	// One change at a time it does not become more.
	half := `"` + text(agents.MaxRegistrationBytes/2) + `"`
	register(t, d, root, `{"id":"bot","x-a":`+half+`}`)
	if _, err := d.Update(t.Context(), root, "bot", []byte(`{"x-b":`+half+`}`)); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("it is too large: %v", err)
	}
	register(t, d, root, `{"id":"second"}`)
	if _, err := d.Register(t.Context(), root, parseRecord(t, `{"id":"third"}`)); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("an agent too many: %v", err)
	}
	register(t, d, root, `{"id":"second"}`) // again
}

func TestCardsThatAreNone(t *testing.T) {
	store, _ := newRegistry(t, kg.Options{})
	d := agents.NewDirectory(store, agents.DirectoryOptions{})
	for _, card := range []string{
		``, `[]`, `null`, `{"name":1}`, `{"capabilities":{}}`, `{"capabilities":[""]}`, `{"capabilities":["a\nb"]}`, `{"skills":[1]}`, `{"skills":[{"id":"x"}]}`,
		`{"skills":[{"id":"x","name":"X","tags":[""]}]}`, `{"parameters":[]}`, `{"auth":"x"}`, `{"limits":1}`, `{"metadata":[]}`, `{"endpoint":"ftp://x"}`,
		`{"endpoint":"http://a:b@x/"}`, `{"endpoint":"no address"}`, `{"version":"a\nb"}`, `{"owner":"a b"}`, `{"owner":7}`,
	} {
		r, err := agents.ParseCard([]byte(card))
		if err == nil {
			r.ID = "agent://bot"
			_, err = d.Register(t.Context(), root, r)
		}
		if kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("%s: %v", card, err)
		}
	}
	for _, change := range []string{`[]`, `null`, `x`} {
		register(t, d, root, `{"id":"bot"}`)
		if _, err := d.Update(t.Context(), root, "bot", []byte(change)); kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("%s: %v", change, err)
		}
	}
	if (&agents.Registration{Capabilities: []string{"a"}}).Can("b") || !slices.Equal((&agents.Registration{}).Tags(), nil) {
		t.Error("it can do what it does not say")
	}
}
