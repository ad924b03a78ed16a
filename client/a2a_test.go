package client_test

import (
	"context"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
)

func testA2A(t *testing.T, ctx context.Context, c *a2aclient.Client) {
	t.Helper()
	answer, err := c.SendMessage(ctx, &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(`{ entity(iri: "finding:1") { label } }`))})
	if err != nil {
		t.Fatal(err)
	}
	if task, ok := answer.(*a2a.Task); !ok || task.Status.State != a2a.TaskStateCompleted || len(task.Artifacts) != 1 {
		t.Errorf("%+v", answer)
	}
}
