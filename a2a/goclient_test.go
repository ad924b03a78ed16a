package a2a_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2aext"

	"koine/a2a"
)

// officialClient returns the official Go client, which finds the server by its card.
func (s *testServer) officialClient(t *testing.T, options ...a2aclient.FactoryOption) *a2aclient.Client {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/.well-known/agent-card.json", a2a.NewCardHandler(a2a.CardOptions{Version: "test", PublicURL: s.URL, Channels: true}))
	mux.Handle("/", s.Config.Handler)
	s.Config.Handler = mux
	card, err := agentcard.NewResolver(s.Client()).Resolve(t.Context(), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := a2aclient.NewFromCard(t.Context(), card, options...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// bindings are the bindings of base A2A, each with the option for a client that has no other.
var bindings = map[sdk.TransportProtocol]a2aclient.FactoryOption{
	sdk.TransportProtocolJSONRPC:  a2aclient.WithJSONRPCTransport(nil),
	sdk.TransportProtocolHTTPJSON: a2aclient.WithRESTTransport(nil),
}

// The official Go client finds the server by its card and calls every method, over each
// binding.
func TestOfficialGoClient(t *testing.T) {
	for binding, option := range bindings {
		t.Run(string(binding), func(t *testing.T) {
			useOfficialGoClient(t, newTestServer(t).officialClient(t, a2aclient.WithDefaultsDisabled(), option))
		})
	}
}

func useOfficialGoClient(t *testing.T, client *a2aclient.Client) {
	ctx := t.Context()
	message := func(text string) *sdk.SendMessageRequest {
		return &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(text))}
	}
	result, err := client.SendMessage(ctx, message("do it"))
	if err != nil {
		t.Fatal(err)
	}
	task, ok := result.(*sdk.Task)
	if !ok || task.Status.State != sdk.TaskStateCompleted || len(task.Artifacts) != 1 {
		t.Fatalf("sent: %+v", result)
	}
	if result, err = client.SendMessage(ctx, message("answer")); err != nil {
		t.Fatal(err)
	} else if m, ok := result.(*sdk.Message); !ok || m.Role != sdk.MessageRoleAgent {
		t.Errorf("answered: %+v", result)
	}
	var kinds []string
	for event, err := range client.SendStreamingMessage(ctx, message("do it again")) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := event.(type) {
		case *sdk.Task:
			kinds = append(kinds, "task")
		case *sdk.TaskStatusUpdateEvent:
			kinds = append(kinds, string(e.Status.State))
		case *sdk.TaskArtifactUpdateEvent:
			kinds = append(kinds, "artifact")
		}
	}
	if got, want := len(kinds), 5; got != want || kinds[0] != "task" || kinds[4] != string(sdk.TaskStateCompleted) {
		t.Errorf("streamed: %v", kinds)
	}
	if got, err := client.GetTask(ctx, &sdk.GetTaskRequest{ID: task.ID}); err != nil || got.Status.State != sdk.TaskStateCompleted {
		t.Errorf("got: %+v, %v", got, err)
	}
	list, err := client.ListTasks(ctx, &sdk.ListTasksRequest{PageSize: 1})
	if err != nil || list.TotalSize != 2 || len(list.Tasks) != 1 || list.NextPageToken == "" {
		t.Errorf("listed: %+v, %v", list, err)
	}
	waiting, err := client.SendMessage(ctx, &sdk.SendMessageRequest{
		Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("wait")), Config: &sdk.SendMessageConfig{ReturnImmediately: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	id := waiting.TaskInfo().TaskID
	if got, err := client.CancelTask(ctx, &sdk.CancelTaskRequest{ID: id}); err != nil || got.Status.State != sdk.TaskStateCanceled {
		t.Errorf("canceled: %+v, %v", got, err)
	}
	if _, err := client.CancelTask(ctx, &sdk.CancelTaskRequest{ID: id}); !errors.Is(err, sdk.ErrTaskNotCancelable) {
		t.Errorf("canceled again: %v", err)
	}
	if _, err := client.GetTask(ctx, &sdk.GetTaskRequest{ID: "none"}); !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("none: %v", err)
	}
	if err := refusedStream(t, client.SubscribeToTask(ctx, &sdk.SubscribeToTaskRequest{ID: id})); !errors.Is(err, sdk.ErrUnsupportedOperation) {
		t.Errorf("what has ended is followed: %v", err)
	}
	if err := refusedStream(t, client.SubscribeToTask(ctx, &sdk.SubscribeToTaskRequest{ID: "none"})); !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("what is not there is followed: %v", err)
	}
	toNone := message("more")
	toNone.Message.TaskID = "none"
	if err := refusedStream(t, client.SendStreamingMessage(ctx, toNone)); !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("a message to a task that is not there: %v", err)
	}
	if err := refusedStream(t, client.SendStreamingMessage(ctx, &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser)})); !errors.Is(err, sdk.ErrInvalidParams) {
		t.Errorf("a message of nothing: %v", err)
	}
	pushWithOfficialGoClient(t, client)
	if card, err := client.GetExtendedAgentCard(ctx, &sdk.GetExtendedAgentCardRequest{}); !errors.Is(err, sdk.ErrExtendedCardNotConfigured) {
		t.Errorf("the extended card of a server without one: %+v, %v", card, err)
	}
}

// pushWithOfficialGoClient sets, reads, lists and deletes a push configuration of a task that
// waits.
func pushWithOfficialGoClient(t *testing.T, client *a2aclient.Client) {
	ctx := t.Context()
	asked, err := client.SendMessage(ctx, &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("ask"))})
	if err != nil {
		t.Fatal(err)
	}
	id := asked.TaskInfo().TaskID
	made, err := client.CreateTaskPushConfig(ctx, &sdk.PushConfig{TaskID: id, ID: "mine", URL: "https://192.0.2.1/hook"})
	if err != nil || made.ID != "mine" {
		t.Fatalf("set: %+v, %v", made, err)
	}
	get := &sdk.GetTaskPushConfigRequest{TaskID: id, ID: "mine"}
	if got, err := client.GetTaskPushConfig(ctx, get); err != nil || got.URL != made.URL {
		t.Errorf("got: %+v, %v", got, err)
	}
	if all, err := client.ListTaskPushConfigs(ctx, &sdk.ListTaskPushConfigRequest{TaskID: id}); err != nil || len(all) != 1 {
		t.Errorf("listed: %+v, %v", all, err)
	}
	if err := client.DeleteTaskPushConfig(ctx, &sdk.DeleteTaskPushConfigRequest{TaskID: id, ID: "mine"}); err != nil {
		t.Errorf("deleted: %v", err)
	}
	if got, err := client.GetTaskPushConfig(ctx, get); !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("deleted, and got: %+v, %v", got, err)
	}
}

// refusedStream returns the error of a stream without other events.
func refusedStream(t *testing.T, events iter.Seq2[sdk.Event, error]) (refused error) {
	t.Helper()
	for event, err := range events {
		if err == nil || refused != nil {
			t.Errorf("a refused stream has %+v, %v", event, err)
		}
		refused = err
	}
	return refused
}

// The official Go client activates an extension of the card, and the server confirms
// it.
func TestOfficialGoClientActivatesExtensions(t *testing.T) {
	s := newTestServer(t)
	heard := &listening{RoundTripper: s.Client().Transport}
	client := s.officialClient(t, a2aclient.WithJSONRPCTransport(&http.Client{Transport: heard}),
		a2aclient.WithCallInterceptors(a2aext.NewActivator(a2a.ChannelsExtensionURI, "urn:x:unknown")))
	if _, err := client.SendMessage(t.Context(), &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("do it"))}); err != nil {
		t.Fatal(err)
	}
	if got := heard.header.Get("A2A-Extensions"); got != a2a.ChannelsExtensionURI {
		t.Errorf("active: %q", got)
	}
}

// listening records the header of the last answer.
type listening struct {
	http.RoundTripper
	header http.Header
}

func (l *listening) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		l.header = response.Header
	}
	return response, err
}

// The official Go client sends messages to koine itself: words, data, an update, and a
// request with a result in several parts.
func TestOfficialGoClientAsksKoine(t *testing.T) {
	s := newTestServer(t)
	s.large(t)
	ctx := t.Context()
	client, err := a2aclient.NewFromEndpoints(ctx, []*sdk.AgentInterface{sdk.NewAgentInterface(s.URL+"/self", sdk.TransportProtocolJSONRPC)})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(p *sdk.Part) (*sdk.Task, string) {
		t.Helper()
		result, err := client.SendMessage(ctx, &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, p)})
		if err != nil {
			t.Fatal(err)
		}
		task, ok := result.(*sdk.Task)
		if !ok {
			t.Fatalf("it answers %+v", result)
		}
		said := ""
		if task.Status.Message != nil {
			said = task.Status.Message.Parts[0].Text()
		}
		return task, said
	}
	update := map[string]any{"mutations": []any{map[string]any{"op": "add", "statement": map[string]any{
		"subject": map[string]any{"id": "urn:x:ada"}, "predicate": map[string]any{"id": "urn:x:name"}, "object": map[string]any{"value": "Ada Lovelace"},
	}}}}
	if task, said := ask(sdk.NewDataPart(update)); task.Status.State != sdk.TaskStateCompleted || said != "Verified: 1 statement changed." {
		t.Errorf("an update: %+v", task)
	}
	if _, said := ask(sdk.NewTextPart("search lovelace")); said != "Found 1 statement with: lovelace." {
		t.Errorf("a search: %s", said)
	}
	if task, _ := ask(sdk.NewDataPart(map[string]any{"query": `{ entity(iri: "urn:x:ada") { value(predicate: "urn:x:name") } }`})); !strings.Contains(fmt.Sprint(task.Artifacts[0].Parts[0].Data()), "value:Ada Lovelace") {
		t.Errorf("a query: %v", task.Artifacts)
	}
	if task, said := ask(sdk.NewTextPart("{ nothing }")); task.Status.State != sdk.TaskStateFailed || !strings.Contains(said, "line 1, column 3") {
		t.Errorf("what is none: %s", said)
	}
	if _, err := client.SendMessage(ctx, &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewRawPart([]byte("x")))}); !errors.Is(err, sdk.ErrUnsupportedContentType) {
		t.Errorf("a file: %v", err)
	}
	var whole []byte
	message := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(`{ entity(iri: "urn:x:s") { values(predicate: "urn:x:p", first: 20) } }`))
	for event, err := range client.SendStreamingMessage(ctx, &sdk.SendMessageRequest{Message: message}) {
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := event.(*sdk.TaskArtifactUpdateEvent); ok {
			whole = append(whole, e.Artifact.Parts[0].Raw()...)
		}
	}
	if !json.Valid(whole) || len(whole) < 12*60_000 {
		t.Errorf("a large result: %d bytes", len(whole))
	}
}
