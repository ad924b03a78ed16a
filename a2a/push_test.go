package a2a_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"koine/a2a"
	"koine/internal/tasks"
)

// notified is a web hook that hands over the requests it receives.
func notified(t *testing.T) (url string, next func() (body []byte, header http.Header)) {
	type call struct {
		body   []byte
		header http.Header
	}
	came := make(chan call, 100)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		came <- call{body, r.Header.Clone()}
	}))
	t.Cleanup(s.Close)
	return s.URL, func() ([]byte, http.Header) {
		t.Helper()
		select {
		case c := <-came:
			return c.body, c.header
		case <-time.After(patience):
			t.Fatal("no notification came")
			return nil, nil
		}
	}
}

// The official Go client sets configurations, and its library can read the
// notifications.
func TestOfficialGoClientIsNotified(t *testing.T) {
	s := newTestServer(t)
	ctx := t.Context()
	url, next := notified(t)
	client, err := a2aclient.NewFromEndpoints(ctx, []*sdk.AgentInterface{sdk.NewAgentInterface(s.URL, sdk.TransportProtocolJSONRPC)})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := client.SendMessage(ctx, &sdk.SendMessageRequest{
		Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("do it")),
		Config:  &sdk.SendMessageConfig{PushConfig: &sdk.PushConfig{ID: "mine", URL: url, Token: "t", Auth: &sdk.PushAuthInfo{Scheme: "Bearer", Credentials: "c"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	id := sent.TaskInfo().TaskID
	var kinds []string
	for len(kinds) < 4 {
		body, header := next()
		var event sdk.StreamResponse
		if err := json.Unmarshal(body, &event); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		switch e := event.Event.(type) {
		case *sdk.TaskStatusUpdateEvent:
			kinds = append(kinds, string(e.Status.State))
		case *sdk.TaskArtifactUpdateEvent:
			kinds = append(kinds, "artifact")
		}
		if event.Event.TaskInfo().TaskID != id || header.Get("A2A-Notification-Token") != "t" || header.Get("Authorization") != "Bearer c" {
			t.Errorf("%s, %v", body, header)
		}
	}
	if want := []string{"TASK_STATE_WORKING", "artifact", "artifact", "TASK_STATE_COMPLETED"}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
	made, err := client.CreateTaskPushConfig(ctx, &sdk.PushConfig{TaskID: id, ID: "other", URL: url})
	if err != nil || made.ID != "other" || made.URL != url {
		t.Fatalf("made: %+v, %v", made, err)
	}
	got, err := client.GetTaskPushConfig(ctx, &sdk.GetTaskPushConfigRequest{TaskID: id, ID: "mine"})
	if err != nil || got.Token != "t" || got.Auth == nil || got.Auth.Scheme != "Bearer" || got.Auth.Credentials != "" {
		t.Errorf("got: %+v, %v", got, err)
	}
	if list, err := client.ListTaskPushConfigs(ctx, &sdk.ListTaskPushConfigRequest{TaskID: id}); err != nil || len(list) != 2 {
		t.Errorf("listed: %+v, %v", list, err)
	}
	if err := client.DeleteTaskPushConfig(ctx, &sdk.DeleteTaskPushConfigRequest{TaskID: id, ID: "other"}); err != nil {
		t.Error(err)
	}
	if list, err := client.ListTaskPushConfigs(ctx, &sdk.ListTaskPushConfigRequest{TaskID: id}); err != nil || len(list) != 1 {
		t.Errorf("listed after one was deleted: %+v, %v", list, err)
	}
}

// A hook set in 0.3 receives the whole task.
func TestNotifiedIn03(t *testing.T) {
	s := newTestServer(t)
	url, next := notified(t)
	resp, err := http.Post(s.URL, "application/json", jsonReader(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": map[string]any{
		"message":       map[string]any{"kind": "message", "messageId": "m", "role": "user", "parts": []any{map[string]any{"kind": "text", "text": "do it"}}},
		"configuration": map[string]any{"pushNotificationConfig": map[string]any{"url": url, "token": "t"}},
	}}))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for {
		body, header := next()
		var task struct {
			Kind   string
			Status struct{ State string }
		}
		if err := json.Unmarshal(body, &task); err != nil || task.Kind != "task" || header.Get("X-A2A-Notification-Token") != "t" {
			t.Fatalf("%s, %v, %v", body, header, err)
		}
		if task.Status.State == "completed" {
			return
		}
	}
}

// A server without push notifications returns the error for it.
func TestWithoutPush(t *testing.T) {
	s := newTestServer(t)
	bare := asCaller(a2a.NewHandler(a2a.Deps{Store: s.store, Querier: s.querier, Tasks: s.tasks, Streams: s.streams}, a2a.Options{}))
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig","params":{"taskId":"x","url":"https://example.org"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/get","params":{"id":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"taskPushNotificationConfig":{"url":"https://example.org"}}}}`,
	} {
		_, answer := serve(bare, body, "")
		var got struct{ Error struct{ Code int } }
		if err := json.Unmarshal([]byte(answer), &got); err != nil || got.Error.Code != -32003 {
			t.Errorf("%s: got %s", body, answer)
		}
	}
}

func jsonReader(value any) io.Reader {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // plain values always encode
	}
	return bytes.NewReader(raw)
}

// If the log no longer has an event, the notification contains the whole task, in both
// forms.
func TestNotificationOfTheTaskAsItIs(t *testing.T) {
	text := tasks.TextPart("sunny")
	task := &tasks.Task{ID: "t", Context: "c", Status: tasks.Status{State: tasks.Completed}, Artifacts: []tasks.Artifact{{ID: "a", Parts: []tasks.Part{text}}}}
	for form, want := range map[string]string{
		"": `{"task":{"id":"t",`, "0.3": `{"kind":"task","id":"t",`,
	} {
		got, err := a2a.Notification(form, task, nil)
		if err != nil || !bytes.HasPrefix(got, []byte(want)) || !bytes.Contains(got, []byte("sunny")) {
			t.Errorf("%q: %s, %v", form, got, err)
		}
	}
}
