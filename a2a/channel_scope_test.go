package a2a_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/scope"
	"koine/kg"
)

// Channels of a scope are created and listed by its id, and match the schema; an agent
// without access to the scope sees none.
func TestChannelsOfScope(t *testing.T) {
	s, define := newTestServer(t), definitions(t)
	ann := channels.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}
	scope, err := s.rooms.Scopes().Create(t.Context(), ann, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"agent://bob"}}})
	if err != nil {
		t.Fatal(err)
	}
	in := fmt.Sprintf(`"scopeId":%q`, scope.ID)
	answers := map[string]string{}
	for _, row := range []struct{ agent, method, params, want string }{
		{"ann", "channels/create", `{"name":"plan",` + in + `,"memberPolicy":"scope"}`, `"kind":"channel",` + in},
		{"ann", "channels/create", `{"name":"few",` + in + `}`, `"kind":"channel",` + in},
		{"ann", "channels/create", `{"name":"plan",` + in + `}`, `"reason":"NAME_TAKEN"`},
		{"ann", "channels/create", `{"name":"x",` + in + `,"memberPolicy":"all"}`, `"field":"memberPolicy"`},
		{"ann", "channels/create", `{"name":"x","memberPolicy":"scope"}`, `"field":"memberPolicy"`},
		{"ann", "channels/create", `{"name":"x","visibility":"public",` + in + `}`, `"field":"visibility"`},
		{"ann", "channels/create", `{` + in + `}`, `"field":"name"`},
		{"eve", "channels/create", `{"name":"x",` + in + `}`, `"reason":"SCOPE_NOT_FOUND"`},
		{"bob", "channels/list", `{` + in + `}`, `"name":"plan"`},
		{"bob", "channels/list", `{}`, `"channels":[]`},
		{"eve", "channels/list", `{` + in + `}`, `"reason":"SCOPE_NOT_FOUND"`},
		{"eve", "channels/list", `{"scopeId":"nowhere"}`, `"reason":"SCOPE_NOT_FOUND"`},
	} {
		got := s.call(t, row.agent, row.method, row.params)
		if !strings.Contains(got, row.want) {
			t.Errorf("%s %s %s: got %s, want %s", row.agent, row.method, row.params, got, row.want)
		}
		_, body, _ := strings.Cut(got, "{")
		if err := validate(define(schemaNames[row.method].response), "{"+body); err != nil {
			t.Errorf("%s %s: %v", row.method, got, err)
		}
		answers[row.agent+row.method+row.params] = got
	}
	if got := answers["bobchannels/list{"+in+"}"]; strings.Contains(got, `"few"`) {
		t.Errorf("a member alone is to find it: %s", got)
	}

	// An owner changes who takes part.
	var made struct {
		Result struct{ Channel struct{ ID string } }
	}
	_, body, _ := strings.Cut(answers[`annchannels/create{"name":"few",`+in+`}`], "{")
	if err := json.Unmarshal([]byte("{"+body), &made); err != nil {
		t.Fatal(err)
	}
	of := fmt.Sprintf(`{"channelId":%q,`, made.Result.Channel.ID)
	for _, row := range []struct{ agent, params, want string }{
		{"bob", `"expectedVersion":1,"memberPolicy":"scope"}`, `"reason":"CHANNEL_NOT_FOUND"`},
		{"ann", `"expectedVersion":1,"memberPolicy":"all"}`, `"field":"memberPolicy"`},
		{"ann", `"expectedVersion":1,"memberPolicy":"scope"}`, `"version":2,"kind":"channel",` + in + `,"memberPolicy":"scope"`},
		{"bob", `"expectedVersion":2,"memberPolicy":"explicit"}`, `"reason":"PERMISSION_DENIED"`},
		{"ann", `"expectedVersion":2,"memberPolicy":"explicit"}`, `"memberPolicy":"explicit"`},
		{"bob", `"expectedVersion":3,"name":"many"}`, `"reason":"CHANNEL_NOT_FOUND"`},
	} {
		got := s.call(t, row.agent, "channels/update", of+row.params)
		if !strings.Contains(got, row.want) {
			t.Errorf("%s %s: got %s, want %s", row.agent, row.params, got, row.want)
		}
	}

	// A closed channel has the time, and the reason if one was given; others have
	// neither.
	id := channel.ID(s.channel(t, `{"name":"lab"}`))
	if got := s.call(t, "ann", "channels/get", fmt.Sprintf(`{"channelId":%q}`, id)); strings.Contains(got, "closedAt") || strings.Contains(got, "scopeId") {
		t.Errorf("an open one: %s", got)
	}
	if _, err := s.rooms.CloseChannel(t.Context(), ann, id, ""); err != nil {
		t.Fatal(err)
	}
	if got := s.call(t, "ann", "channels/get", fmt.Sprintf(`{"channelId":%q}`, id)); !strings.Contains(got, `"kind":"channel","closedAt":1767323045000}`) {
		t.Errorf("a closed one: %s", got)
	}
	id = channel.ID(s.channel(t, `{"name":"lab"}`))
	if _, err := s.rooms.CloseChannel(t.Context(), ann, id, "All is said"); err != nil {
		t.Fatal(err)
	}
	if got := s.call(t, "ann", "channels/get", fmt.Sprintf(`{"channelId":%q}`, id)); !strings.Contains(got, `"kind":"channel","closedAt":1767323045000,"closedReason":"All is said"}`) {
		t.Errorf("one closed for a reason: %s", got)
	}
}
