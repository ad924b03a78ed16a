package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"koine/channels"
	"koine/channels/scope"
	"koine/cmd/koine/internal/cli"
)

func TestTierFlag(t *testing.T) {
	o, err := tierFlags{map[string]string{
		"*": "free", "partner": "standard", "root": "unlimited", "batch": "messages:6000,channels:1000000", "lab": " standard , channels:0, bytes:262144,streams:1000000 ",
	}}.applyTiers(channels.Options{MaxMembers: 7})
	want := map[string]channels.Tier{
		"partner": channels.Standard, "root": channels.Unlimited, "batch": {Name: "batch", MessagesPerMinute: 6000, Channels: 1_000_000},
		"lab": {Name: "lab", MessagesPerMinute: 600, Streams: 1_000_000, MessageBytes: 262144},
	}
	if err != nil || o.MaxMembers != 7 || o.Tier != channels.Free || !maps.Equal(o.Tiers, want) {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err = (tierFlags{}).applyTiers(channels.Options{}); err != nil || o.Tier != (channels.Tier{}) || len(o.Tiers) != 0 {
		t.Errorf("without any: %+v, %v", o, err)
	}
	if o, err = (tierFlags{map[string]string{"*": "messages:5"}}).applyTiers(channels.Options{}); err != nil || o.Tier != (channels.Tier{Name: "default", MessagesPerMinute: 5}) {
		t.Errorf("everybody's: %+v, %v", o, err)
	}
	long, many := strings.Repeat("x", scope.MaxRoleRunes+1), map[string]string{}
	for n := range maxTiers {
		many[fmt.Sprint(n)] = "free"
	}
	if _, err := (tierFlags{many}).applyTiers(channels.Options{}); err != nil {
		t.Errorf("as many as there may be: %v", err)
	}
	many["more"] = "free"
	for _, row := range []struct {
		flags map[string]string
		want  string
	}{
		{map[string]string{"a": "gold"}, `--tier a: unknown tier "gold"`},
		{map[string]string{"a": ""}, `--tier a: unknown tier ""`},
		{map[string]string{"a": "free,standard"}, `--tier a: unknown bound "standard"`},
		{map[string]string{"a": "messages:1,speed:3"}, `unknown bound "speed:3"`},
		{map[string]string{"a": "messages:1,messages:2"}, "messages is given twice"},
		{map[string]string{"a": "messages:6001"}, "messages must be between 0 (no bound) and 6000"},
		{map[string]string{"a": "streams:1000001"}, "streams must be between"},
		{map[string]string{"a": "channels:-1"}, "channels must be between"},
		{map[string]string{"a": "bytes:262145"}, "bytes must be between 0 (no bound) and 262144"},
		{map[string]string{"a": "bytes:64k"}, "bytes must be between"},
		{map[string]string{"": "free"}, "a role has between"},
		{map[string]string{long: "free"}, "a role has between"},
		{many, "at most 1000 roles"},
	} {
		if _, err := (tierFlags{row.flags}).applyTiers(channels.Options{}); err == nil || !strings.Contains(err.Error(), row.want) || cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%.80v: got %v, want %s", row.flags, err, row.want)
		}
	}
}

// The tiers of the flag hold through the whole server, by the roles of the key.
func TestTiersThroughTheServer(t *testing.T) {
	k := startKnowing(t, "--auth", "keys", "--tier", "*=messages:2,channels:1,bytes:100", "--tier", "partner=messages:3")
	guest, _ := k.create(`{agentId: "guest"}`)
	partner, _ := k.create(`{agentId: "partner", roles: ["partner"]}`)
	const tier = `{ me { tier { name messagesPerMinute streams channels messageBytes } } }`
	want := func(what, got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	want("everybody", k.graphql(guest, tier), `{"name":"default","messagesPerMinute":2,"streams":null,"channels":1,"messageBytes":100}`)
	want("administrators are not exempt", k.graphql(k.admin, tier), `{"name":"default"`)
	want("a partner", k.graphql(partner, tier), `{"name":"partner","messagesPerMinute":3,"streams":null,"channels":null,"messageBytes":null}`)
	const create = `mutation { createChannel(input: {name: "x"}) { channel { name } } }`
	want("the first channel", k.graphql(guest, create), `"name":"x"`)
	want("the second", k.graphql(guest, create), `"limit":"channels"`)
	say := func(key, text string) string {
		return k.graphql(key, `mutation { publishMessage(input: {to: "chen", parts: [{text: "`+text+`"}]}) { message { sequence } } }`)
	}
	want("a large one", say(guest, strings.Repeat("x", 101)), `"limit":"messageBytes"`)
	for key, most := range map[string]int{guest: 2, partner: 3} {
		for n := range most {
			want(fmt.Sprint("message ", n+1), say(key, "hello"), fmt.Sprintf(`"sequence":%d`, n+1))
		}
		want("one more", say(key, "hello"), `"code":"RATE_LIMITED"`)
	}
}

// The bounds of a tier and those that a channel has of its own hold over every protocol,
// each with the error that it has for them.
func TestBoundsOfChannelsOverTheWire(t *testing.T) {
	k := startKnowing(t, "--auth", "keys", "--tier", "*=streams:2,messages:2,bytes:100", "--tier", "partner=unlimited")
	guest, _ := k.create(`{agentId: "guest"}`)
	partner, _ := k.create(`{agentId: "partner", roles: ["partner"]}`)
	call := func(key, method, params string) string {
		t.Helper()
		status, text := k.send("POST", "/a2a", key, `{"jsonrpc":"2.0","id":1,"method":"channels/`+method+`","params":`+params+`}`)
		return fmt.Sprint(status, " ", text)
	}
	want := func(what, got string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("%s: got %s, want %s", what, got, part)
			}
		}
	}
	channel := func(limits string) string {
		t.Helper()
		made := channelID.FindStringSubmatch(k.graphql(partner, `mutation { createChannel(input: {visibility: PUBLIC, members: [{agentId: "guest"}], limits: {`+limits+`}}) { channel { id } } }`))
		if made == nil {
			t.Fatal("no channel was made")
		}
		return made[1]
	}
	say := func(key, id, text string) string {
		t.Helper()
		return call(key, "publish", `{"channelId":"`+id+`","parts":[{"text":"`+text+`"}]}`)
	}
	const tooFast, tooMuch, done = `"code":-31105`, `"code":-31104`, `200 {"jsonrpc":"2.0","id":1,"result":`

	wide, narrow := channel(""), channel("messagesPerMinute: 1, streams: 1, messageBytes: 50")
	want("a long one of a guest's", say(guest, wide, strings.Repeat("x", 100)), tooMuch, `"reason":"LIMIT_EXCEEDED"`)
	want("in a channel that takes less", say(partner, narrow, strings.Repeat("x", 50)), tooMuch)
	want("a long one of a partner's", say(partner, wide, strings.Repeat("x", 100)), done)
	want("the first", say(guest, wide, "one"), done)
	want("the second", say(guest, wide, "two"), done)
	want("a third", say(guest, wide, "three"), tooFast, `"reason":"RATE_LIMITED"`, `"retryAfterMs":`)
	want("in a narrow channel", say(partner, narrow, "one"), done)
	want("again", say(partner, narrow, "two"), tooFast)
	want("elsewhere", say(partner, wide, "two"), done)

	// Streams of a principal, over every protocol.
	stream := func(id string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"channels/stream","params":{"channelId":"` + id + `"}}`
	}
	subscription := func(field, id string) string {
		arguments := `channelId: "` + id + `"`
		if field == "messagePublished" {
			arguments = `where: {` + arguments + `}`
		}
		body, err := json.Marshal(map[string]string{"query": `subscription { ` + field + `(` + arguments + `) { __typename } }`})
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	k.stream("POST", "/a2a", guest, stream(wide))
	k.stream("POST", "/graphql", guest, subscription("messagePublished", wide))
	refused := func(what, key, id string) {
		t.Helper()
		status, text := k.send("POST", "/a2a", key, stream(id), "Accept", "text/event-stream")
		want(what, fmt.Sprint(status, " ", text), "400 ", tooMuch, `"reason":"LIMIT_EXCEEDED"`)
		for _, field := range []string{"messagePublished", "channelChanged", "signalSent"} {
			_, text := k.send("POST", "/graphql", key, subscription(field, id), "Accept", "text/event-stream")
			want(what+" "+field, text, `"code":"LIMIT_EXCEEDED"`, `"limit":"streams"`)
		}
	}
	refused("a guest's third stream", guest, wide)
	for range 2 {
		k.stream("POST", "/a2a", partner, stream(wide))
	}
	// Those of a channel, which may become more.
	k.stream("POST", "/graphql", partner, subscription("signalSent", narrow))
	refused("the second of a narrow channel", k.admin, narrow)
	want("more", k.graphql(partner, `mutation { updateChannel(input: {channelId: "`+narrow+`", expectedVersion: 1, limits: {streams: 2}}) { channel { version } } }`), `"version":2`)
	k.stream("POST", "/a2a", partner, stream(narrow))
	refused("a third of it", partner, narrow)
}
