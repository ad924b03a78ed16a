package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"koine/client"
	"koine/internal/slowtest"
)

// testA2A sends messages to koine.
func testA2A(t *testing.T, ctx context.Context, c *a2aclient.Client) {
	t.Helper()
	answer, err := c.SendMessage(ctx, asking(`{ entity(iri: "finding:1") { label } }`))
	if err != nil {
		t.Fatal(err)
	}
	task, ok := answer.(*a2a.Task)
	if !ok || task.Status.State != a2a.TaskStateCompleted || len(task.Artifacts) != 1 {
		t.Fatalf("%+v", answer)
	}
	if got, err := c.GetTask(ctx, &a2a.GetTaskRequest{ID: task.ID}); err != nil || got.Status.State != a2a.TaskStateCompleted || len(got.Artifacts) != 1 {
		t.Errorf("got: %+v, %v", got, err)
	}
	var streamed *a2a.Task
	var artifacts int
	var last a2a.TaskState
	for event, err := range c.SendStreamingMessage(ctx, asking(`{ entity(iri: "finding:2") { label } }`)) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := event.(type) {
		case *a2a.Task:
			streamed = e
		case *a2a.TaskArtifactUpdateEvent:
			artifacts++
		case *a2a.TaskStatusUpdateEvent:
			last = e.Status.State
		}
	}
	if streamed == nil || artifacts != 1 || last != a2a.TaskStateCompleted {
		t.Fatalf("streamed: %+v, %d artifacts, %s", streamed, artifacts, last)
	}
	list, err := c.ListTasks(ctx, &a2a.ListTasksRequest{PageSize: 1})
	if err != nil || list.TotalSize != 2 || len(list.Tasks) != 1 || list.Tasks[0].ID != streamed.ID || list.NextPageToken == "" {
		t.Fatalf("listed: %+v, %v", list, err)
	}
	if list, err = c.ListTasks(ctx, &a2a.ListTasksRequest{PageSize: 1, PageToken: list.NextPageToken}); err != nil || len(list.Tasks) != 1 || list.Tasks[0].ID != task.ID || list.NextPageToken != "" {
		t.Errorf("the next page: %+v, %v", list, err)
	}
	if _, err := c.CancelTask(ctx, &a2a.CancelTaskRequest{ID: task.ID}); !errors.Is(err, a2a.ErrTaskNotCancelable) {
		t.Errorf("what has ended was canceled: %v", err)
	}
	if _, err := c.GetTask(ctx, &a2a.GetTaskRequest{ID: "none"}); !errors.Is(err, a2a.ErrTaskNotFound) {
		t.Errorf("none: %v", err)
	}
}

func asking(text string) *a2a.SendMessageRequest {
	return &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text))}
}

// A task that waits behind the hub is followed, called about and canceled with the
// official client.
func TestA2AOfWhatWaits(t *testing.T) {
	slowtest.Long(t)
	s := start(t)
	ctx := bounded(t)
	if err := open(t, s.URL, "bot").RegisterAgent(ctx, "bot", map[string]any{"name": "Bot", "version": "1"}); err != nil {
		t.Fatal(err)
	}
	at, err := client.OpenAgent(ctx, s.URL, "bot", client.Options{Agent: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := at.A2A(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Destroy() }()
	message := asking("rain?")
	message.Config = &a2a.SendMessageConfig{ReturnImmediately: true}
	sent, err := c.SendMessage(ctx, message)
	if err != nil {
		t.Fatal(err)
	}
	id := sent.TaskInfo().TaskID
	testPushConfigs(t, ctx, c, id)
	var states []a2a.TaskState
	for event, err := range c.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: id}) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := event.(type) {
		case *a2a.Task:
			states = append(states, e.Status.State)
			if got, err := c.CancelTask(ctx, &a2a.CancelTaskRequest{ID: id}); err != nil || got.Status.State != a2a.TaskStateCanceled {
				t.Fatalf("canceled: %+v, %v", got, err)
			}
		case *a2a.TaskStatusUpdateEvent:
			states = append(states, e.Status.State)
		}
	}
	if len(states) != 2 || states[0] != a2a.TaskStateSubmitted || states[1] != a2a.TaskStateCanceled {
		t.Errorf("followed: %v", states)
	}
}

// testPushConfigs leaves no configuration, so that no URL is called.
func testPushConfigs(t *testing.T, ctx context.Context, c *a2aclient.Client, id a2a.TaskID) {
	t.Helper()
	const url = "https://hook.invalid/"
	made, err := c.CreateTaskPushConfig(ctx, &a2a.PushConfig{
		TaskID: id, ID: "mine", URL: url, Token: "t", Auth: &a2a.PushAuthInfo{Scheme: "Bearer", Credentials: "secret"},
	})
	if err != nil || made.ID != "mine" || made.URL != url {
		t.Fatalf("made: %+v, %v", made, err)
	}
	if got, err := c.GetTaskPushConfig(ctx, &a2a.GetTaskPushConfigRequest{TaskID: id, ID: "mine"}); err != nil || got.URL != url || got.Auth == nil || got.Auth.Credentials != "" {
		t.Errorf("got: %+v, %v", got, err)
	}
	if list, err := c.ListTaskPushConfigs(ctx, &a2a.ListTaskPushConfigRequest{TaskID: id}); err != nil || len(list) != 1 || list[0].ID != "mine" {
		t.Errorf("listed: %+v, %v", list, err)
	}
	if err := c.DeleteTaskPushConfig(ctx, &a2a.DeleteTaskPushConfigRequest{TaskID: id, ID: "mine"}); err != nil {
		t.Error(err)
	}
	if list, err := c.ListTaskPushConfigs(ctx, &a2a.ListTaskPushConfigRequest{TaskID: id}); err != nil || len(list) != 0 {
		t.Errorf("listed when it is deleted: %+v, %v", list, err)
	}
	if _, err := c.CreateTaskPushConfig(ctx, &a2a.PushConfig{TaskID: id, URL: "http://127.0.0.1/"}); err == nil {
		t.Error("a loopback address is called")
	}
}
