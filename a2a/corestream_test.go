package a2a_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/a2a"
	"koine/internal/caller"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// told is an element of a stream of a task: its id, and the raw result.
type told struct{ id, result string }

var eventOnWire = regexp.MustCompile(`(?m)^id: (\S+)\ndata: \{"jsonrpc":"2.0","id":1,"result":(.*)\}$`)

// events reads the stream of a method to its end.
func (s *testServer) events(t *testing.T, method, params, last string) (out []told) {
	t.Helper()
	head := "POST /\nContent-Type: application/json\nX-Agent-ID: ann\n"
	if last != "" {
		head += "Last-Event-ID: " + last + "\n"
	}
	got := answer(t, s.send(t, []byte(head+"\n"+`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`), nil))
	if !strings.HasPrefix(got, "200 text/event-stream\n") {
		t.Fatalf("%s behind %q: %s", method, last, got)
	}
	for _, m := range eventOnWire.FindAllStringSubmatch(got, -1) {
		out = append(out, told{m[1], m[2]})
	}
	return out
}

// A stream resumed after each event of a task yields the rest, each once and in order,
// in both versions, also after the task has ended. Ids increase.
func TestTaskStreamsGoOn(t *testing.T) {
	s := newTestServer(t)
	for version, m := range map[string]struct{ stream, follow, params string }{
		"1.0": {"SendStreamingMessage", "SubscribeToTask", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"do it"}]}}`},
		"0.3": {"message/stream", "tasks/resubscribe", `{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"do it now"}]}}`},
	} {
		whole := s.events(t, m.stream, m.params, "")
		if len(whole) != 5 {
			t.Fatalf("%s: %d events", version, len(whole))
		}
		id := regexp.MustCompile(`"taskId":"([^"]+)"`).FindStringSubmatch(whole[1].result)[1]
		var before kg.Position
		for i, e := range whole {
			position, err := s.store.ParsePosition(e.id)
			if err != nil || i > 0 && position.Compare(before) <= 0 {
				t.Errorf("%s: event %d has %v behind %v, %v", version, i, position, before, err)
			}
			before = position
			if rest := s.events(t, m.follow, fmt.Sprintf(`{"id":%q}`, id), e.id); !slices.Equal(rest, whole[i+1:]) {
				t.Errorf("%s: behind event %d come %v, want %v", version, i, rest, whole[i+1:])
			}
		}
		refused := answer(t, s.send(t, []byte("POST /\nContent-Type: application/json\nX-Agent-ID: ann\nLast-Event-ID: none\n\n"+
			`{"jsonrpc":"2.0","id":1,"method":"`+m.follow+`","params":{"id":"`+id+`"}}`), nil))
		if !strings.HasPrefix(refused, "200 text/event-stream") || !strings.Contains(refused, `"code":-32602`) || !strings.Contains(refused, `"field":"Last-Event-ID"`) {
			t.Errorf("%s: behind nothing that there is: %s", version, refused)
		}
	}
}

// Every state has its name in each version, and comes back from it.
func TestStatesInBothVersions(t *testing.T) {
	s := newTestServer(t)
	ann := caller.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "open"}}
	known := caller.Caller{Principal: kg.Principal{ID: "agent://known", Method: "open"}}
	at := func(body string) string {
		return answer(t, s.send(t, []byte("POST /known\nContent-Type: application/json\nX-Agent-ID: ann\n\n"+body), nil))
	}
	for state, name := range map[tasks.State]string{
		tasks.Submitted: "submitted", tasks.Working: "working", tasks.InputRequired: "input-required", tasks.AuthRequired: "auth-required",
		tasks.Completed: "completed", tasks.Failed: "failed", tasks.Canceled: "canceled", tasks.Rejected: "rejected",
	} {
		sent, err := s.tasks.Send(t.Context(), ann, tasks.SendRequest{To: "agent://known", Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("x")}}})
		if err != nil {
			t.Fatal(err)
		}
		if state != tasks.Submitted {
			if _, err := s.tasks.Report(t.Context(), known, sent.Task.ID, tasks.Report{State: state}); err != nil {
				t.Fatal(err)
			}
		}
		for method, want := range map[string]string{"GetTask": "TASK_STATE_" + string(state), "tasks/get": name} {
			if got := at(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"id":%q}}`, method, sent.Task.ID)); !strings.Contains(got, `"state":"`+want+`"`) {
				t.Errorf("%s in %s: %s", state, method, got)
			}
		}
		list := at(`{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"status":"TASK_STATE_` + string(state) + `"}}`)
		if !strings.Contains(list, `"totalSize":1}`) || !strings.Contains(list, string(sent.Task.ID)) {
			t.Errorf("those that are %s: %s", state, list)
		}
	}
}

// A large result arrives in several chunks, in both versions, which together are the
// JSON.
func TestLargeResultsAreStreamed(t *testing.T) {
	s := newTestServer(t)
	s.large(t)
	query := `{ entity(iri: \"urn:x:s\") { values(predicate: \"urn:x:p\", first: 20) } }`
	for version, m := range map[string]struct{ method, params string }{
		"1.0": {"SendStreamingMessage", `{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"` + query + `"}]}}`},
		"0.3": {"message/stream", `{"message":{"kind":"message","messageId":"m2","role":"user","parts":[{"kind":"text","text":"` + query + `"}]}}`},
	} {
		type update struct {
			Artifact struct {
				ID    string `json:"artifactId"`
				Parts []struct {
					Raw  []byte
					File struct{ Bytes []byte }
				}
			}
			Append    bool
			LastChunk bool
		}
		var whole []byte
		got := answer(t, s.send(t, []byte("POST /self\nContent-Type: application/json\nX-Agent-ID: ann\n\n"+`{"jsonrpc":"2.0","id":1,"method":"`+m.method+`","params":`+m.params+`}`), nil))
		chunks := 0
		for _, line := range eventOnWire.FindAllStringSubmatch(got, -1) {
			var e struct {
				update
				ArtifactUpdate update
			}
			if err := json.Unmarshal([]byte(line[2]), &e); err != nil {
				t.Fatal(err)
			}
			u := e.update
			if version == "1.0" {
				u = e.ArtifactUpdate
			}
			if u.Artifact.ID == "" {
				continue
			}
			if u.Append != (chunks > 0) || u.Artifact.ID != "result-1" {
				t.Errorf("%s: chunk %d of %s, append %v", version, chunks, u.Artifact.ID, u.Append)
			}
			chunks++
			whole = append(append(whole, u.Artifact.Parts[0].Raw...), u.Artifact.Parts[0].File.Bytes...)
			if last := json.Valid(whole); u.LastChunk != last {
				t.Errorf("%s: chunk %d is the last: %v, and should be: %v", version, chunks, u.LastChunk, last)
			}
		}
		if chunks < 3 || !json.Valid(whole) || !strings.Contains(got, "ompleted") && !strings.Contains(got, "COMPLETED") {
			t.Errorf("%s: %d chunks of %d bytes", version, chunks, len(whole))
		}
	}
}

// A client that waits for a message is answered in time, with the present state of the
// task.
func TestWaitingEnds(t *testing.T) {
	s := newTestServerWith(t, kg.Options{}, sse.Options{}, a2a.Options{MaxSendWait: time.Millisecond})
	for method, params := range map[string]string{
		"SendMessage":  `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"wait"}]}}`,
		"message/send": `{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"wait"}]},"configuration":{"blocking":true}}`,
	} {
		if got := s.call(t, "ann", method, params); !strings.HasPrefix(got, "200 ") || !strings.Contains(strings.ToUpper(got), `SUBMITTED"`) {
			t.Errorf("%s: %s", method, got)
		}
	}
}
