package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/google/uuid"

	"koine/a2a"
	"koine/internal/sse"
	"koine/kg"
)

// selfClient is the official Go client of koine as an agent.
func (s *testServer) selfClient(t *testing.T) *a2aclient.Client {
	t.Helper()
	client, err := a2aclient.NewFromEndpoints(t.Context(), []*sdk.AgentInterface{sdk.NewAgentInterface(s.URL+"/self", sdk.TransportProtocolJSONRPC)})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func sending(parts ...*sdk.Part) *sdk.SendMessageRequest {
	return &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, parts...)}
}

// koine accepts every example of the card as a message, as text and as data, waited for
// and streamed.
func TestEveryExampleOfTheCardIsServed(t *testing.T) {
	s := newTestServer(t)
	client := s.selfClient(t)
	examples := 0
	for _, skill := range a2a.NewCard(a2a.CardOptions{Channels: true}, s.URL).Skills {
		for _, example := range skill.Examples {
			examples++
			parts := map[string]*sdk.Part{"text": sdk.NewTextPart(example)}
			var data map[string]any
			if json.Unmarshal([]byte(example), &data) == nil {
				parts["data"] = sdk.NewDataPart(data)
			}
			for form, part := range parts {
				result, err := client.SendMessage(t.Context(), sending(part))
				if err != nil {
					t.Errorf("%s as %s: %v", example, form, err)
					continue
				}
				task := result.(*sdk.Task)
				if task.Status.State != sdk.TaskStateCompleted || len(task.Artifacts) == 0 && task.Status.Message == nil {
					t.Errorf("%s as %s: %s, %+v", example, form, task.Status.State, task.Status.Message)
				}
				ctx, cancel := context.WithCancel(t.Context())
				for event, err := range client.SendStreamingMessage(ctx, sending(part)) {
					if err != nil {
						t.Errorf("%s as streamed %s: %v", example, form, err)
						break
					}
					if skill.ID == "subscribe" && fmt.Sprintf("%T", event) == "*a2a.Task" {
						if state := event.(*sdk.Task).Status.State; state != sdk.TaskStateWorking {
							t.Errorf("%s as streamed %s: %s", example, form, state)
						}
						break // it is followed: its output is tested below
					}
					if status, ok := event.(*sdk.TaskStatusUpdateEvent); ok && status.Status.State.Terminal() && status.Status.State != sdk.TaskStateCompleted {
						t.Errorf("%s as streamed %s: %s, %+v", example, form, status.Status.State, status.Status.Message)
					}
				}
				cancel()
			}
		}
	}
	if examples < 10 {
		t.Errorf("%d examples", examples)
	}
}

// followed is a subscription in a streaming message.
type followed struct {
	*subscriber
	task string
}

func (s *testServer) followed(t *testing.T, text string) *followed {
	t.Helper()
	raw, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	sub := s.open(t, http.MethodPost, "/self", `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":{"messageId":"`+uuid.NewString()+`","role":"ROLE_USER","parts":[{"text":`+string(raw)+`}]}}}`, "X-Agent-ID: ann")
	sub.established()
	first := sub.block()
	id := remembered["task"].FindStringSubmatch(first)
	if id == nil || !strings.Contains(first, `"state":"TASK_STATE_WORKING"`) {
		t.Fatalf("it begins with %s", first)
	}
	return &followed{sub, id[1]}
}

func (f *followed) wants(texts ...string) string {
	f.t.Helper()
	got := f.block()
	for _, text := range texts {
		if !strings.Contains(got, text) {
			f.t.Errorf("no %s in %q", text, got)
		}
	}
	return got
}

const everything = `subscription { statementChanged { __typename } }`

// A subscription in a streaming message yields its events as artifacts, which are not
// stored, until its task is canceled.
func TestASubscriptionIsAStreamingTask(t *testing.T) {
	s := newTestServer(t)
	f := s.followed(t, everything)
	if n := s.streams.Streams(); n != 1 {
		t.Errorf("%d streams are counted", n)
	}
	revision := s.store.Head().Revision
	for i := range 3 {
		s.set(t, kg.Add, "urn:s", kg.Integer(int64(i)), "agent://ann")
		position := s.store.FormatPosition(s.store.Head())
		f.wants("id: "+position+"\n", `"artifactUpdate":{"taskId":"`+f.task+`"`, fmt.Sprintf(`"artifactId":"event-%d"`, i+1), `"name":"knowledge/subscribe"`,
			`"lastChunk":true`, fmt.Sprintf(`"object":{"value":%d,`, i), `"position":"`+position+`"`)
	}
	if made := s.store.Head().Revision - revision; made != 3 {
		t.Errorf("three updates and their events made %d commits", made)
	}
	if got := s.self(t, "CancelTask", `{"id":"`+f.task+`"}`); !strings.Contains(got, "TASK_STATE_CANCELED") {
		t.Error(got)
	}
	f.wants(`"statusUpdate"`, `"state":"TASK_STATE_CANCELED"`)
	if more := f.block(); more != "" {
		t.Errorf("behind its end: %s", more)
	}
	if got := s.self(t, "GetTask", `{"id":"`+f.task+`"}`); !strings.Contains(got, "TASK_STATE_CANCELED") || strings.Contains(got, "artifacts") {
		t.Errorf("what is kept: %s", got)
	}
	s.gone(t)
}

// self calls a method of base A2A for koine as an agent.
func (s *testServer) self(t *testing.T, method, params string) string {
	t.Helper()
	return answer(t, s.send(t, []byte("POST /self\nContent-Type: application/json\nX-Agent-ID: ann\n\n"+`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`), nil))
}

// until waits for a condition without a signal.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

// gone waits until no stream holds resources.
func (s *testServer) gone(t *testing.T) {
	t.Helper()
	until(t, "the streams end", func() bool { return s.streams.Streams() == 0 && s.store.Stats().Watchers == s.own })
}

// A client that leaves cancels the task, which then has the position to resume from;
// the missed events follow.
func TestASubscriptionEndsWithItsClient(t *testing.T) {
	s := newTestServer(t)
	f := s.followed(t, everything)
	s.set(t, kg.Add, "urn:s", kg.Integer(1), "agent://ann")
	f.wants(`"value":1`)
	f.cancel()
	var got string
	until(t, "the task is canceled", func() bool {
		got = s.self(t, "GetTask", `{"id":"`+f.task+`"}`)
		return strings.Contains(got, "TASK_STATE_CANCELED")
	})
	resume := regexp.MustCompile(`1 event sent\. Resume with resume: \\"([\w-]+)\\"`).FindStringSubmatch(got)
	if resume == nil {
		t.Fatalf("how to go on: %s", got)
	}
	s.gone(t)
	s.set(t, kg.Add, "urn:s", kg.Integer(2), "agent://ann")
	s.followed(t, `subscription { statementChanged(resume: "`+resume[1]+`") { __typename } }`).wants(`"artifactId":"event-1"`, `"value":2`)
}

// A repeated message follows the existing task; 0.3 behaves the same.
func TestASubscriptionIsFollowedOnce(t *testing.T) {
	s := newTestServer(t)
	body := `{"jsonrpc":"2.0","id":1,"method":"message/stream","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"data","data":{"subscriptionQuery":"` + everything + `"}}]}}}`
	first := s.open(t, http.MethodPost, "/self", body, "X-Agent-ID: ann")
	first.block()
	second := s.open(t, http.MethodPost, "/self", body, "X-Agent-ID: ann")
	second.block()
	s.set(t, kg.Add, "urn:s", kg.Integer(1), "agent://ann")
	if got := first.block(); !strings.Contains(got, `"kind":"artifact-update"`) {
		t.Errorf("an event: %s", got)
	}
	first.cancel()
	for {
		got := second.block()
		if got == "" {
			t.Fatal("the end was not told")
		}
		if strings.Contains(got, `"state":"canceled"`) && strings.Contains(got, `"final":true`) {
			return
		}
	}
}

// An invalid subscription fails its task with the reason; above the limit of streams no
// task is created.
func TestSubscriptionsThatAreNotFollowed(t *testing.T) {
	s := newTestServerWith(t, kg.Options{}, sse.Options{MaxStreams: 1}, a2a.Options{})
	stream := func(text string) string {
		return s.self(t, "SendStreamingMessage", `{"message":{"messageId":"`+uuid.NewString()+`","role":"ROLE_USER","parts":[{"text":"`+text+`"}]}}`)
	}
	if got := stream(`subscription { nothing }`); !strings.Contains(got, "TASK_STATE_FAILED") || !strings.Contains(got, `\"nothing\"`) {
		t.Errorf("an invalid one: %s", got)
	}
	if got := stream(`subscription { statementChanged(resume: \"x\") { __typename } }`); !strings.Contains(got, "TASK_STATE_FAILED") {
		t.Errorf("a position that is none: %s", got)
	}
	total := regexp.MustCompile(`"totalSize":(\d+)`)
	before := total.FindString(s.self(t, "ListTasks", `{}`))
	s.followed(t, everything)
	if got := stream(everything); !strings.Contains(got, "TOO_MANY_STREAMS") {
		t.Errorf("one more: %s", got)
	}
	if after := total.FindString(s.self(t, "ListTasks", `{}`)); before != `"totalSize":2` || after != `"totalSize":3` {
		t.Errorf("tasks: %s, then %s", before, after)
	}
}

// Followed subscriptions do not count among koine's running tasks.
func TestSubscriptionsAreNotAtTheDesk(t *testing.T) {
	s := newTestServer(t)
	for range 70 { // more than are worked on at a time
		s.followed(t, everything)
	}
	if got := s.self(t, "SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"help"}]}}`); !strings.Contains(got, "TASK_STATE_COMPLETED") {
		t.Error(got)
	}
}

// A subscription in a message that is not streamed is answered with its snapshot, up to
// a limit, and with the position to start a stream from.
func TestASubscriptionIsAnsweredWithWhatStands(t *testing.T) {
	s := newTestServer(t)
	standing := func() (text string, events int, position string, more bool) {
		t.Helper()
		result, err := s.selfClient(t).SendMessage(t.Context(), sending(sdk.NewTextPart(everything)))
		if err != nil {
			t.Fatal(err)
		}
		task := result.(*sdk.Task)
		if task.Status.State != sdk.TaskStateCompleted || len(task.Artifacts) != 1 {
			t.Fatalf("%+v", task)
		}
		data := task.Artifacts[0].Parts[0].Data().(map[string]any)
		position, _ = data["position"].(string)
		more, _ = data["more"].(bool)
		return task.Status.Message.Parts[0].Text(), len(data["events"].([]any)), position, more
	}
	text, events, position, more := standing()
	if events != 0 || position == "" || more || !strings.Contains(text, "SendStreamingMessage") {
		t.Errorf("of nothing: %q, %d events, %q, %v", text, events, position, more)
	}
	for i := range 25 {
		s.set(t, kg.Add, "urn:s", kg.Integer(int64(i)), "agent://ann")
	}
	if _, events, position, more = standing(); events != 25 || position == "" || more {
		t.Errorf("at the bound: %d events, %q, %v", events, position, more)
	}
	s.set(t, kg.Add, "urn:s", kg.Integer(25), "agent://ann")
	if text, events, position, more = standing(); events != 25 || position != "" || !more || !strings.HasPrefix(text, "The first 25 events") {
		t.Errorf("past the bound: %q, %d events, %q, %v", text, events, position, more)
	}
}
