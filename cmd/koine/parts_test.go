package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The parts of a message are returned as they were sent in the protocol of the sender, to
// the letter, and in each other one in its own form: a part with a type of REST only is
// data in A2A.
func TestPartsInEveryProtocol(t *testing.T) {
	_, address := startServer(t)
	if status, text := ask(t, http.MethodPut, address+"/agents/bot", "bot", `{"name":"Bot"}`); status != http.StatusCreated {
		t.Fatal(status, text)
	}
	forms := map[string]string{
		"1.0": `[{"text":"as <it> is"},{"text":"*x*","mediaType":"text/markdown","metadata":{"a_b":1}},{"data":{"n":12345678901234567890.10,"x":null,"h_h":"<b>&"}},{"data":[1,"two"]},{"data":null},` +
			`{"raw":"aGk=","mediaType":"text/plain","filename":"hi.txt"},{"url":"https://example.org/x","metadata":{"k":[]}}]`,
		"0.3": `[{"kind":"text","text":"as <it> is"},{"kind":"text","text":"y","metadata":{"a_b":1}},{"kind":"data","data":{"n":12345678901234567890.10,"x":null,"h_h":"<b>&"}},` +
			`{"kind":"file","file":{"bytes":"aGk=","mimeType":"text/plain","name":"hi.txt"}},{"kind":"file","file":{"uri":"https://example.org/x"},"metadata":{"k":[]}}]`,
		"REST": `[{"type":"text","content":"as <it> is"},{"type":"text","content":{"not":"a text"}},{"type":"image","content":{"url":"x","n":1.50,"h_h":"<b>&"},"metadata":{"a_b":1}},{"type":"data","content":[1]},` +
			`{"type":"custom","content":null},{"type":"file","content":{"bytes":"aGk=","mimeType":"text/plain","name":"hi.txt"}}]`,
	}
	elsewhere := map[string]map[string]string{
		"1.0": {
			"0.3": `[{"kind":"text","text":"as <it> is"},{"kind":"text","text":"*x*","metadata":{"a_b":1}},{"kind":"data","data":{"n":12345678901234567890.10,"x":null,"h_h":"<b>&"}},{"kind":"data","data":[1,"two"]},{"kind":"data","data":null},` +
				`{"kind":"file","file":{"bytes":"aGk=","mimeType":"text/plain","name":"hi.txt"}},{"kind":"file","file":{"uri":"https://example.org/x"},"metadata":{"k":[]}}]`,
			"REST": `[{"type":"text","content":"as <it> is"},{"type":"text","content":"*x*","metadata":{"a_b":1}},{"type":"data","content":{"n":12345678901234567890.10,"x":null,"h_h":"<b>&"}},{"type":"data","content":[1,"two"]},{"type":"data","content":null},` +
				`{"type":"file","content":{"bytes":"aGk=","mimeType":"text/plain","name":"hi.txt"}},{"type":"file","content":{"uri":"https://example.org/x"},"metadata":{"k":[]}}]`,
		},
		"0.3": {
			"1.0": `[{"text":"as <it> is"},{"text":"y","metadata":{"a_b":1}},{"data":{"n":12345678901234567890.10,"x":null,"h_h":"<b>&"}},{"raw":"aGk=","mediaType":"text/plain","filename":"hi.txt"},{"url":"https://example.org/x","metadata":{"k":[]}}]`,
			"REST": `[{"type":"text","content":"as <it> is"},{"type":"text","content":"y","metadata":{"a_b":1}},{"type":"data","content":{"n":12345678901234567890.10,"x":null,"h_h":"<b>&"}},` +
				`{"type":"file","content":{"bytes":"aGk=","mimeType":"text/plain","name":"hi.txt"}},{"type":"file","content":{"uri":"https://example.org/x"},"metadata":{"k":[]}}]`,
		},
		"REST": {
			"1.0": `[{"text":"as <it> is"},{"data":{"not":"a text"}},{"data":{"url":"x","n":1.50,"h_h":"<b>&"},"metadata":{"a_b":1}},{"data":[1]},{"data":null},{"raw":"aGk=","mediaType":"text/plain","filename":"hi.txt"}]`,
			"0.3": `[{"kind":"text","text":"as <it> is"},{"kind":"data","data":{"not":"a text"}},{"kind":"data","data":{"url":"x","n":1.50,"h_h":"<b>&"},"metadata":{"a_b":1}},{"kind":"data","data":[1]},{"kind":"data","data":null},` +
				`{"kind":"file","file":{"bytes":"aGk=","mimeType":"text/plain","name":"hi.txt"}}]`,
		},
	}
	post := func(url, body string) string {
		t.Helper()
		status, text := ask(t, http.MethodPost, url, "ann", body)
		if status != http.StatusOK && status != http.StatusAccepted || strings.Contains(text, `"error"`) {
			t.Fatal(status, text)
		}
		return text
	}
	rpc := address + "/agents/bot/a2a"
	sends := map[string]func(parts string) string{
		"1.0": func(parts string) string {
			return post(rpc, `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":`+parts+`},"configuration":{"returnImmediately":true}}}`)
		},
		"0.3": func(parts string) string {
			return post(rpc, `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":`+parts+`},"configuration":{"blocking":false}}}`)
		},
		"REST": func(parts string) string { return post(address+"/rest/agents/bot/messages", `{"message":`+parts+`}`) },
	}
	type sent struct {
		TaskID string
		Result struct {
			ID   string
			Task struct{ ID string }
		}
	}
	for from, parts := range forms {
		var s sent
		if err := json.Unmarshal([]byte(sends[from](parts)), &s); err != nil {
			t.Fatal(err)
		}
		task := s.TaskID + s.Result.ID + s.Result.Task.ID
		for _, in := range []string{"1.0", "0.3", "REST"} {
			want := elsewhere[from][in]
			if in == from {
				want = parts
			}
			var got string
			switch in {
			case "REST":
				_, got = ask(t, http.MethodGet, address+"/rest/messages/"+task+".1", "ann", "")
				want = `"message":` + want
			default:
				got = post(rpc, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"id":%q}}`, map[string]string{"1.0": "GetTask", "0.3": "tasks/get"}[in], task))
				want = `"parts":` + want
			}
			if !strings.Contains(got, want) {
				t.Errorf("sent in %s, read in %s:\n%s\nwant\n%s", from, in, got, want)
			}
		}
	}
}

// koine accepts no files, and refuses them before there is a task, in the form of each
// protocol.
func TestKoineTakesNoFiles(t *testing.T) {
	_, address := startServer(t)
	for name, row := range map[string]struct {
		path, body string
		status     int
		says       []string
	}{
		"1.0": {"/a2a", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"aGk="}]}}}`,
			http.StatusOK, []string{`"code":-32005`, `"CONTENT_TYPE_NOT_SUPPORTED"`, `"parts[0]"`}},
		"0.3": {"/a2a", `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"file","file":{"uri":"https://example.org/x"}}]}}}`,
			http.StatusOK, []string{`"code":-32005`, `"CONTENT_TYPE_NOT_SUPPORTED"`}},
		"REST": {"/rest/agents/koine/messages", `{"message":[{"type":"file","content":{"bytes":"aGk="}}]}`,
			http.StatusUnsupportedMediaType, []string{`"INVALID_REQUEST"`, `"reason":"CONTENT_TYPE"`}},
		"GraphQL": {"/graphql", `{"query":"mutation { sendMessage(input: {to: \"koine\", parts: [{raw: \"aGk=\"}]}) { replayed } }"}`,
			http.StatusOK, []string{`"code":"CONTENT_TYPE"`}},
	} {
		status, text := ask(t, http.MethodPost, address+row.path, "ann", row.body)
		for _, part := range row.says {
			if status != row.status || !strings.Contains(text, part) {
				t.Errorf("%s: %d %s, want %d and %s", name, status, text, row.status, part)
			}
		}
	}
	if _, text := ask(t, http.MethodPost, address+"/a2a", "ann", `{"jsonrpc":"2.0","id":1,"method":"ListTasks"}`); !strings.Contains(text, `"totalSize":0`) {
		t.Errorf("a task was made: %s", text)
	}
}

// The changes of a message to koine are found with its task, like those of knowledge/update
// for a task.
func TestChangesNameTheirTask(t *testing.T) {
	_, address := startServer(t)
	mutations := `"mutations":[{"op":"add","statement":{"subject":{"id":"urn:x:%s"},"predicate":{"id":"urn:x:p"},"object":{"value":"x"}}}]`
	_, text := ask(t, http.MethodPost, address+"/a2a", "ann", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{`+fmt.Sprintf(mutations, "a")+`}}]}}}`)
	var sent struct {
		Result struct{ Task struct{ ID string } }
	}
	if err := json.Unmarshal([]byte(text), &sent); err != nil || sent.Result.Task.ID == "" {
		t.Fatal(err, text)
	}
	task := sent.Result.Task.ID
	_, text = ask(t, http.MethodPost, address+"/a2a", "ann", `{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"taskId":"`+task+`",`+fmt.Sprintf(mutations, "b")+`}}`)
	tells(t, text, `"success":true`)
	_, text = ask(t, http.MethodPost, address+"/graphql", "ann", `{"query":"{ task(id: \"`+task+`\") { commits { nodes { facts { nodes { subject { iri } } } } } } }"}`)
	tells(t, text, `urn:x:a`, `urn:x:b`)
}
