package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/graph/limit"
	"koine/internal/operation"
	"koine/internal/slowtest"
	"koine/kg"
)

// respond answers the next request of a channel as an agent.
func (c *conversing) respond(t *testing.T, name, channel, text string, more ...string) {
	t.Helper()
	f := c.hear(t, name, `subscription { m: messagePublished(where: {channelId: "`+channel+`"}, sinceSequence: 0) { ... on MessagePublished { message { id messageType } } } }`, operation.Resume{})
	go func() {
		for {
			e, err, ok := f.next()
			if err != nil || !ok {
				return
			}
			var got struct {
				M struct {
					Message struct{ ID, MessageType string }
				}
			}
			if json.Unmarshal(e.Result.Data, &got) != nil || got.M.Message.MessageType != "REQUEST" {
				continue
			}
			for _, text := range append([]string{text}, more...) {
				c.ask(name, `mutation { publishMessage(input: {channelId: "%s", messageType: RESPONSE, correlationId: "%s", parts: [{text: "%s"}]}) { success } }`, channel, got.M.Message.ID, text)
			}
			return
		}
	}()
}

// TestAsk proves that a question returns its response, after a longer time than other
// operations may take, or reports that there was none; and its refusals.
func TestAsk(t *testing.T) {
	slowtest.Long(t)
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	question := `mutation { ask(input: {message: {channelId: "` + id + `", recipient: "bob", parts: [{text: "how hot?"}] %s}, timeoutSeconds: %d}) { timedOut response { text author: authorId correlation { text } } responses { text } publication { success replayed message { sequence messageType } } } }`
	c.respond(t, "bob", id, "1180")
	result := c.ask("ann", question, `idempotencyKey: "k"`, 60)
	answered := `{"ask":{"timedOut":false,"response":{"text":"1180","author":"agent://bob","correlation":{"text":"how hot?"}},"responses":[{"text":"1180"}],"publication":{"success":true,"replayed":false,"message":{"sequence":1,"messageType":"REQUEST"}}}}`
	c.want("answered", string(result.Data), answered)
	if len(result.Errors) > 0 || result.Position != c.store.Head() {
		t.Errorf("%v, at %v of %v", result.Errors, result.Position, c.store.Head())
	}
	c.want("again", c.told("ann", question, `idempotencyKey: "k"`, 1), strings.Replace(answered, `"replayed":false`, `"replayed":true`, 1))
	// More slowly than an operation may be: the waiting is not counted.
	slow := newConversing(t, limit.Limits{Duration: 4 * time.Second})
	lab := slow.lab("PRIVATE")
	slow.want("not answered", slow.told("ann", `mutation { ask(input: {message: {channelId: "%s", recipient: "bob", parts: [{text: "?"}]}, timeoutSeconds: 5}) { timedOut response { text } publication { success message { text sequence expiresAt } } } }`, lab)[:88],
		`{"ask":{"timedOut":true,"response":null,"publication":{"success":true,"message":{"text":`)

	for args, want := range map[string]string{
		`message: {channelId: "` + id + `", recipient: "bob", parts: []}`:                                                                                                           "INVALID input.message.parts",
		`message: {channelId: "` + id + `", parts: [{text: "x"}]}`:                                                                                                                  "INVALID input.message.recipient",
		`message: {channelId: "` + id + `", recipient: "zoe", parts: [{text: "x"}]}`:                                                                                                "NOT_MEMBER input.message.recipient",
		`message: {channelId: "` + id + `", recipient: "bob", messageType: NOTIFY, parts: [{text: "x"}]}`:                                                                           "INVALID input.message.messageType",
		`message: {scopeId: "x", channelName: "y", recipient: "bob", parts: [{text: "x"}]}`:                                                                                         "INVALID input.message.channelId",
		`timeoutSeconds: 0, message: {channelId: "` + id + `", recipient: "bob", parts: [{text: "x"}]}`:                                                                             "INVALID input.timeoutSeconds",
		`timeoutSeconds: -1, message: {channelId: "` + id + `", recipient: "bob", parts: [{text: "x"}]}`:                                                                            "INVALID input.timeoutSeconds",
		`message: {channelId: "` + id + `", recipient: "bob", parts: [{text: "x"}], patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {}}}]}`: "INVALID input.message.patches[0].statement.object",
	} {
		for _, wait := range []string{"FIRST", "ALL"} {
			c.want(wait+" "+args, c.refused("ann", `mutation { ask(input: {wait: %s, %s}) { publication { success } } }`, wait, args), want)
		}
	}
	c.asIfAbsent("CHANNEL_NOT_FOUND", `mutation { ask(input: {message: {channelId: "ID", recipient: "bob", parts: [{text: "x"}]}}) { timedOut } }`, id)
	c.asIfAbsent("CHANNEL_NOT_FOUND", `mutation { ask(input: {message: {channelId: "ID", recipient: "bob", parts: [{text: "x"}]}, wait: ALL}) { responses { id } } }`, id)

	// The time that one operation waits is bounded, before anything is done.
	before := c.store.Head()
	for _, times := range [][]int{{61}, {30, 31}, {1 << 30}, {0, 0, 0}} { // 0 leaves it to the server
		query := "mutation {"
		for i, n := range times {
			timeout := fmt.Sprintf("timeoutSeconds: %d", n)
			if n == 0 {
				timeout = ""
			}
			query += fmt.Sprintf(` a%d: ask(input: {message: {channelId: "%s", recipient: "bob", parts: [{text: "x"}]}, %s}) { timedOut }`, i, id, timeout)
		}
		if result := c.ask("ann", "%s }", query); len(result.Errors) != 1 || result.Errors[0].Extensions["limit"] != "askTime" {
			t.Errorf("%v: %s %v", times, result.Data, result.Errors)
		}
	}
	if c.store.Head() != before {
		t.Error("something was published")
	}
}

// TestAskAll proves that the responses of all recipients come back.
func TestAskAll(t *testing.T) {
	slowtest.Long(t)
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	c.respond(t, "bob", id, "one")
	c.want("all", c.told("ann", `mutation { ask(input: {message: {channelId: "%s", recipient: "bob", parts: [{text: "who?"}]}, wait: ALL}) { timedOut response { text } responses { text sequence } publication { success verificationStatus } } }`, id),
		`{"ask":{"timedOut":false,"response":{"text":"one"},"responses":[{"text":"one","sequence":2}],"publication":{"success":true,"verificationStatus":"Verified"}}}`)
	c.want("nobody", c.told("ann", `mutation { ask(input: {message: {channelId: "%s", recipient: "bob", parts: [{text: "who?"}]}, timeoutSeconds: 1, wait: ALL}) { timedOut response { text } responses { text } } }`, id), `{"ask":{"timedOut":true,"response":null,"responses":[]}}`)
}

// TestAskGivenUp proves that a caller that disconnects waits no longer, and has asked.
func TestAskGivenUp(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	ctx, cancel := context.WithCancel(t.Context())
	f := c.hear(t, "bob", `subscription { m: messagePublished(where: {channelId: "`+id+`"}) { ... on MessagePublished { message { text } } } }`, operation.Resume{})
	done := make(chan operation.Result, 1)
	go func() {
		done <- c.engine.Execute(ctx, operation.Request{
			Query:     `mutation { ask(input: {message: {channelId: "` + id + `", recipient: "bob", parts: [{text: "x"}]}, timeoutSeconds: 60}) { timedOut } }`,
			Principal: kg.Principal{ID: "agent://ann", Method: "key"},
		})
	}()
	f.want(`{"m":{"message":{"text":"x"}}}`)
	cancel()
	select {
	case result := <-done:
		if len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != string(kg.CodeClosed) {
			t.Errorf("got %s %v", result.Data, result.Errors)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits on")
	}
}
