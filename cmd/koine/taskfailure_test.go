package main

import (
	"net/http"
	"regexp"
	"testing"
)

// The reason of a rejected or canceled task is shown in every protocol, whichever set it.
func TestWhyTasksEnd(t *testing.T) {
	_, url := startServer(t)
	ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"name":"Bot"}`)
	for name, row := range map[string]struct {
		by, method, path, body string
		code, state, failure   string
	}{
		"rejected over REST": {"bot", http.MethodPut, "/rest/tasks/", `{"state":"failed","error":{"code":"REJECTED","message":"why not","details":{"z":1}}}`,
			"REJECTED", "REJECTED", `{"code":"REJECTED","message":"why not","details":{"z":1}}`},
		"canceled over REST": {"ann", http.MethodPut, "/rest/tasks/", `{"state":"failed","error":{"code":"CANCELED","message":"why not","details":{"z":1}}}`,
			"CANCELED", "CANCELED", `{"code":"CANCELED","message":"why not","details":{"z":1}}`},
		"rejected in a report": {"bot", http.MethodPost, "/agents/bot/mailbox/", `{"state":"TASK_STATE_REJECTED","error":{"code":"BUSY","message":"why not","details":{"z":1}}}`,
			"REJECTED", "REJECTED", `{"code":"BUSY","message":"why not","details":{"z":1}}`},
	} {
		_, text := ask(t, http.MethodPost, url+"/rest/agents/bot/messages", "ann", `{"message":[{"type":"text","content":"rain?"}]}`)
		id := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(text)
		if status, text := ask(t, row.method, url+row.path+id, row.by, row.body); status != http.StatusOK {
			t.Errorf("%s: %d %s", name, status, text)
		}
		_, text = ask(t, http.MethodGet, url+"/rest/tasks/"+id, "ann", "")
		tells(t, text, `"state":"failed"`, `"error":{"code":"`+row.code+`","message":"why not","details":{"z":1}}`)
		_, text = ask(t, http.MethodPost, url+"/agents/bot/a2a", "ann", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"`+id+`"}}`)
		tells(t, text, `"state":"TASK_STATE_`+row.state+`"`, `"parts":[{"text":"why not"}]`)
		tells(t, askGraphQL(t, url, "ann", `{ task(id: "`+id+`") { status { state } failure { code message details } } }`), `"state":"`+row.state+`"`, `"failure":`+row.failure)
	}
}
