package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"koine/client"
	"koine/internal/slowtest"
)

// answers responds to each request that is for the agent, until the test ends.
func answers(t *testing.T, ctx context.Context, c *client.Client, channel string) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m, err := range c.Stream(ctx, channel, client.StreamOptions{Since: 1}) {
			if err != nil {
				return // the test has ended
			}
			if m.Type != "request" || m.Withheld != "" {
				continue
			}
			if _, err := c.Respond(ctx, m, client.TextPart("to "+m.Recipient)); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// The addressee of a question is its recipient: no other is needed.
func TestAskTo(t *testing.T) {
	slowtest.Long(t)
	s := start(t)
	ctx, ann, bob := bounded(t), open(t, s.URL, "ann"), open(t, s.URL, "bob")
	said, err := ann.Publish(ctx, client.Publication{To: "bob", Parts: []any{client.TextPart("Good morning")}})
	if err != nil {
		t.Fatal(err)
	}
	answers(t, ctx, bob, said.Message.ChannelID)
	m, err := ann.Ask(ctx, client.Publication{To: "bob", Parts: []any{client.TextPart("Is it wet?")}}, patience)
	if err != nil || m.Text() != "to agent://bob" {
		t.Errorf("%+v, %v", m, err)
	}
}

// A time that is over before the question is published is over all the same.
func TestAskWithoutTime(t *testing.T) {
	s := start(t)
	question := client.Publication{To: "bob", Parts: []any{client.TextPart("Is it wet?")}}
	if _, err := open(t, s.URL, "ann").Ask(bounded(t), question, time.Nanosecond); err == nil || err.Error() != "no response within 1ns (UNANSWERED)" {
		t.Error(err)
	}
}

// In a channel of more a question and its answer are for the two alone.
func TestAskIsForTheRecipient(t *testing.T) {
	s := start(t)
	ctx, ann, bob, eve := bounded(t), open(t, s.URL, "ann"), open(t, s.URL, "bob"), open(t, s.URL, "eve")
	made, err := ann.CreateChannel(ctx, client.NewChannel{Members: []client.Member{{Agent: "bob"}, {Agent: "eve"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ann.Publish(ctx, client.Publication{Channel: made.ID, Parts: []any{client.TextPart("Good morning")}}); err != nil {
		t.Fatal(err)
	}
	answers(t, ctx, bob, made.ID)
	question := client.Publication{Channel: made.ID, Parts: []any{client.TextPart("Is it wet?")}}
	if _, err := ann.Ask(ctx, question, patience); err == nil {
		t.Error("a question to nobody was asked")
	}
	question.Recipient = "bob"
	if _, err := ann.Ask(ctx, question, patience); err != nil {
		t.Fatal(err)
	}
	read := 0
	for m, err := range eve.History(ctx, made.ID, client.HistoryFilter{Since: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		if read++; m.Withheld != "addressed" || len(m.Parts) != 0 {
			t.Errorf("eve reads %s", m.Raw)
		}
	}
	if read != 2 {
		t.Errorf("there are %d messages", read)
	}
}

// A retracted response does not count: it is reported, and another is awaited.
func TestAskPassesOverTheRetracted(t *testing.T) {
	slowtest.Long(t)
	s := start(t)
	ctx, ann, bob := bounded(t), open(t, s.URL, "ann"), open(t, s.URL, "bob")
	question := client.Publication{To: "bob", Parts: []any{client.TextPart("Is it wet?")}, IdempotencyKey: "wet"}
	asked, err := ann.Publish(ctx, client.Publication{To: "bob", Type: "request", Parts: question.Parts, IdempotencyKey: "wet"})
	if err != nil {
		t.Fatal(err)
	}
	respond := func(text string) *client.Message {
		t.Helper()
		out, err := bob.Respond(ctx, asked.Message, client.TextPart(text))
		if err != nil {
			t.Fatal(err)
		}
		return out.Message
	}
	const retract = `mutation($input: RetractMessageInput!) { retractMessage(input: $input) { success } }`
	input := map[string]any{"channelId": asked.Message.ChannelID, "messageId": respond("no").ID}
	if err := bob.GraphQL(ctx, retract, map[string]any{"input": input}, nil); err != nil {
		t.Fatal(err)
	}
	for wait, told := time.Second, false; !told; wait *= 2 { // long enough to read it
		m, err := ann.Ask(ctx, question, wait)
		if !errors.Is(err, client.Unanswered) {
			t.Fatalf("%+v, %v", m, err)
		}
		told = strings.Contains(err.Error(), "was retracted, and no other came")
	}
	respond("yes")
	if m, err := ann.Ask(ctx, question, patience); err != nil || m.Text() != "yes" {
		t.Errorf("%+v, %v", m, err)
	}
}
