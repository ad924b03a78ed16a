package a2a_test

import (
	"fmt"
	"strings"
	"testing"
)

// Hidden channels do not change the answers of methods that name no channel, nor of a
// caller's own channel in which it names hidden ones: apart from ids, the answers equal
// those of a server without them.
func TestHiddenChannelsDoNotShow(t *testing.T) {
	const absent = "0192f1c0-0000-7000-8000-000000000000"
	var told [2][]string
	for i := range told {
		s := newTestServer(t)
		hidden, token := absent, ""
		if i == 1 {
			for n := range 3 {
				private := s.channel(t, `{"name":"lab","members":[{"principalId":"bob"}]}`)
				s.say(t, "ann", private, "one")
				s.call(t, "ann", "channels/delete", `{"channelId":"`+s.channel(t, `{"name":"gone","visibility":"public"}`)+`"}`)
				s.call(t, "ann", "channels/publish", fmt.Sprintf(`{"to":"bob","idempotencyKey":"%d","parts":[{"type":"text","text":"psst"}]}`, n))
				said := s.call(t, "ann", "channels/publish", `{"channelId":"`+private+`","messageType":"request","recipient":"bob","parts":[{"type":"text","text":"a secret"}]}`)
				hidden = remembered["message"].FindStringSubmatch(said)[1]
			}
			listed := s.call(t, "bob", "channels/list", `{"pageSize":2}`)
			token = remembered["token"].FindStringSubmatch(listed)[1]
		}
		own := ""
		for _, ask := range []struct{ method, params, want string }{
			{"channels/list", `{}`, `"channels":[]`},
			{"channels/create", `{"name":"lab","members":[{"principalId":"ann"}]}`, `"version":1`},
			{"channels/publish", `{"channelId":"<own>","parts":[{"type":"text","text":"first"}]}`, `"sequence":1`},
			{"channels/publish", `{"channelId":"<own>","replyToId":"<hidden>","parts":[{"type":"text","text":"x"}]}`, `"reason":"INVALID"`},
			{"channels/publish", `{"channelId":"<own>","messageType":"response","correlationId":"<hidden>","parts":[{"type":"text","text":"x"}]}`, `"reason":"INVALID"`},
			{"channels/publish", `{"to":"ann","replyToId":"<hidden>","parts":[{"type":"text","text":"x"}]}`, `"reason":"INVALID"`},
			{"channels/publish", `{"to":"ann","parts":[{"type":"text","text":"x"}]}`, `"sequence":1`},
			{"channels/list", `{}`, `"name":"lab"`},
			{"channels/list", `{"visibility":"private"}`, `"name":"lab"`},
			{"channels/list", `{"visibility":"public"}`, `"channels":[]`},
			{"channels/list", `{"memberId":"ann"}`, `"name":"lab"`},
			{"channels/list", `{"memberId":"bob"}`, `"channels":[]`},
			{"channels/list", `{"pageSize":1}`, `"name":"lab"`},
			{"channels/list", `{"pageToken":"<token>"}`, `"reason":"CURSOR_FOREIGN"`},
		} {
			params := strings.NewReplacer("<own>", own, "<hidden>", hidden, "<token>", token).Replace(ask.params)
			if token == "" && strings.Contains(ask.params, "<token>") {
				params = `{"pageToken":"foreign"}`
			}
			got := s.call(t, "eve", ask.method, params)
			if !strings.Contains(got, ask.want) {
				t.Errorf("%s %s: got %swant %s", ask.method, params, got, ask.want)
			}
			if ask.method == "channels/create" {
				own = remembered["channel"].FindStringSubmatch(got)[1]
			}
			told[i] = append(told[i], strings.ReplaceAll(mask(got), hidden, "<hidden>"))
		}
	}
	for n, want := range told[0] {
		if got := told[1][n]; got != want {
			t.Errorf("call %d: got %swhere nothing is hidden %s", n, got, want)
		}
	}
}
