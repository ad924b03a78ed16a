package client_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"koine/client"
)

// An agent behind the hub gets a message over A2A and answers, also across a restart of the
// server.
func TestHub(t *testing.T) {
	s := start(t)
	ctx, bot := bounded(t), open(t, s.URL, "bot")
	if _, err := client.OpenAgent(ctx, s.URL, "bot", client.Options{}); err == nil {
		t.Error("an agent that is not registered was opened")
	}
	if err := bot.RegisterAgent(ctx, "bot", map[string]any{"name": 1}); !errors.Is(err, client.Invalid) {
		t.Errorf("%v", err)
	}
	if err := bot.RegisterAgent(ctx, "bot", map[string]any{"name": "Bot", "version": "1"}); err != nil {
		t.Fatal(err)
	}
	at, err := client.OpenAgent(ctx, s.URL, "bot", client.Options{Agent: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := at.Query(ctx, client.Query{Text: "{ __typename }"}, nil); !errors.Is(err, client.CapabilityMissing) {
		t.Errorf("a bot has a graph: %v", err)
	}
	ann, err := at.A2A(ctx)
	if err != nil {
		t.Fatal(err)
	}
	letters := make(chan *client.Letter, 3)
	done := following(t, bot.Mailbox(ctx, "bot"), 2, letters)
	for _, text := range []string{"rain?", "snow?"} {
		answer, err := ann.SendMessage(ctx, &a2a.SendMessageRequest{
			Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text)), Config: &a2a.SendMessageConfig{ReturnImmediately: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		letter := <-letters
		if letter.ID == "" || letter.From != "agent://ann" || letter.Text() != text || letter.Task.ID != string(answer.TaskInfo().TaskID) {
			t.Fatalf("%s", letter.Raw)
		}
		if err := bot.Report(ctx, "bot", letter.Task.ID, client.Report{
			State: client.TaskCompleted, Artifacts: []client.ReportArtifact{{ID: "a", Parts: []any{client.TextPart("no"), client.DataPart(7)}}},
		}); err != nil {
			t.Fatal(err)
		}
		task, err := ann.GetTask(ctx, &a2a.GetTaskRequest{ID: answer.TaskInfo().TaskID})
		if err != nil || task.Status.State != a2a.TaskStateCompleted || len(task.Artifacts) != 1 || len(task.Artifacts[0].Parts) != 2 || task.Artifacts[0].Parts[0].Text() != "no" || task.Artifacts[0].Parts[1].Data() != 7.0 {
			t.Errorf("%+v %v", task, err)
		}
		s.Restart()
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := bot.Report(ctx, "bot", "none", client.Report{State: client.TaskWorking}); !errors.Is(err, client.Reason("TASK_NOT_FOUND")) {
		t.Errorf("%v", err)
	}
	for _, err := range open(t, s.URL, "ann").Mailbox(ctx, "koine") {
		if !errors.Is(err, client.Reason("AGENT_NOT_FOUND")) {
			t.Errorf("%v", err)
		}
	}
	if err := bot.DeregisterAgent(ctx, "bot"); err != nil {
		t.Error(err)
	}
}

// A caller that waits for the result of a message continues to wait when the server comes
// back, and the message exists once.
func TestMessageAcrossServers(t *testing.T) {
	s := start(t)
	ctx, bot := bounded(t), open(t, s.URL, "bot")
	if err := bot.RegisterAgent(ctx, "bot", map[string]any{"name": "Bot", "version": "1"}); err != nil {
		t.Fatal(err)
	}
	retrying := make(chan error, 100)
	at, err := client.OpenAgent(ctx, s.URL, "bot", client.Options{Agent: "ann", Retry: client.Retry{
		MinWait: time.Millisecond, MaxWait: 10 * time.Millisecond, Attempts: -1,
		OnRetry: func(err error, _ time.Duration) {
			select {
			case retrying <- err:
			default:
			}
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ann, err := at.A2A(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ann.Destroy() }()
	answered := make(chan error, 1)
	go func() {
		answer, err := ann.SendMessage(ctx, &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("rain?"))})
		if err == nil {
			if task, ok := answer.(*a2a.Task); !ok || task.Status.State != a2a.TaskStateCompleted {
				err = fmt.Errorf("%+v", answer)
			}
		}
		answered <- err
	}()
	letters := make(chan *client.Letter, 10)
	following(t, bot.Mailbox(ctx, "bot"), 10, letters)
	first := <-letters
	s.Restart()
	<-retrying
	again := <-letters // nothing was reported of it
	if again.ID != first.ID || again.Task.ID != first.Task.ID {
		t.Errorf("%s\nis not\n%s", again.Raw, first.Raw)
	}
	if err := bot.Report(ctx, "bot", first.Task.ID, client.Report{State: client.TaskCompleted}); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	list, err := ann.ListTasks(ctx, &a2a.ListTasksRequest{})
	if err != nil || len(list.Tasks) != 1 {
		t.Errorf("%+v for one message: %v", list, err)
	}
}
