package channels_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/slowtest"
	"koine/kg"
)

// ask is a question to an address.
func question(id channel.ID, to string, wait time.Duration) channels.Question {
	return channels.Question{Publication: channels.Publication{Channel: id, Parts: text("well?"), Envelope: message.Envelope{To: to}}, Wait: wait}
}

// answering responds to every request to an agent, until the test ends.
func (s *server) answering(t *testing.T, who string, id channel.ID) {
	t.Helper()
	stream, err := s.Stream(t.Context(), as(who), id, nil)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	t.Cleanup(done.Wait)
	done.Go(func() {
		defer stream.Close()
		for m, err := range stream.Messages() {
			if err != nil {
				return
			}
			if m.Interaction == message.Request && slices.Contains(m.Recipients, kg.CanonicalAgent(who)) {
				if _, err := s.send(t, who, id, message.Envelope{Interaction: message.Response, Correlation: m.ID}); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// Each asker gets the response to its own request and no other, with many asking at once.
func TestAsk(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo", "dora")
	s.role(t, "critic", "bob", "cleo")
	s.answering(t, "bob", c.ID)
	s.answering(t, "cleo", c.ID)
	var asking sync.WaitGroup
	for i := range 20 {
		asking.Go(func() {
			by := []string{"ann", "dora"}[i%2]
			a, err := s.Ask(within(t), as(by), question(c.ID, "bob", time.Minute))
			if err != nil || len(a.Responses) != 1 || a.Responses[0].Correlation != a.Message.ID || a.Responses[0].Author != "agent://bob" || a.Responses[0].Parts == nil {
				t.Errorf("got %+v, %v", a, err)
			}
		})
	}
	asking.Wait()
	a, err := s.AskAll(within(t), as("ann"), question(c.ID, "role:critic", time.Minute))
	if err != nil || len(a.Responses) != 2 || a.Responses[0].Author == a.Responses[1].Author {
		t.Errorf("all: %+v, %v", a, err)
	}
	// The same again waits for the response to the first.
	q := question(c.ID, "bob", time.Minute)
	q.IdempotencyKey = "k"
	first, err := s.Ask(within(t), as("ann"), q)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Ask(within(t), as("ann"), q)
	if err != nil || !again.Replayed || again.Responses[0].ID != first.Responses[0].ID {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// A response that was retracted is none: the same question again waits for another one.
func TestAskPassesOverTheRetracted(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo")
	s.role(t, "critic", "bob", "cleo")
	q := question(c.ID, "bob", time.Millisecond)
	q.IdempotencyKey = "k"
	first, err := s.Ask(within(t), as("ann"), q)
	wantCode(t, "before it is answered", err, kg.CodeTimeout)
	respond := func(who string, to message.ID) *message.Message {
		t.Helper()
		return s.mustSend(t, who, c.ID, message.Envelope{Interaction: message.Response, Correlation: to})
	}
	retract := func(who string, m message.ID) {
		t.Helper()
		_, err := s.Retract(within(t), as(who), channels.Retraction{Channel: c.ID, Message: m})
		wantCode(t, "retracted", err, "")
	}
	retract("bob", respond("bob", first.Message.ID).ID)
	again, err := s.Ask(within(t), as("ann"), q)
	wantCode(t, "what is retracted", err, kg.CodeTimeout)
	if again == nil || !again.Replayed || len(again.Responses) != 0 {
		t.Errorf("again: %+v", again)
	}
	stands := respond("bob", first.Message.ID)
	q.Wait = time.Minute
	if again, err = s.Ask(within(t), as("ann"), q); err != nil || again.Responses[0].ID != stands.ID {
		t.Errorf("at last: %+v, %v", again, err)
	}
	// Of all recipients, one retracts its response before the other responds.
	all := s.askAll(t, c.ID, func(asked message.ID) {
		if m, err := s.Message(within(t), as("ann"), asked); err != nil || !slices.Contains(m.Recipients, "agent://cleo") {
			t.Fatal(m, err)
		}
		retract("bob", respond("bob", asked).ID)
		respond("cleo", asked)
		respond("bob", asked)
	})
	if len(all.Responses) != 2 || all.Responses[0].Author != "agent://cleo" {
		t.Errorf("all: %v", sequences(all.Responses))
	}
}

// No caller waits longer than its timeout or after it gave up, and the number of waiting
// callers is bounded.
func TestAskEnds(t *testing.T) {
	slowtest.Long(t)
	s := serve(t, channels.Options{MaxPendingAsks: 1}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo")
	s.role(t, "critic", "bob", "cleo")
	a, err := s.Ask(within(t), as("ann"), question(c.ID, "bob", time.Second))
	if wantCode(t, "nobody", err, kg.CodeTimeout); a == nil || a.Message == nil || !a.Message.ExpiresAt.After(a.Message.Time) {
		t.Errorf("got %+v", a)
	}
	if a, err = s.AskAll(within(t), as("ann"), question(c.ID, "role:critic", time.Second)); err != nil || len(a.Responses) != 0 {
		t.Errorf("all: %+v, %v", a, err)
	}
	for what, q := range map[string]channels.Question{
		"too long": question(c.ID, "bob", channels.MaxAskTime+1), "less than nothing": question(c.ID, "bob", -1),
	} {
		_, err := s.Ask(within(t), as("ann"), q)
		wantCode(t, what, err, kg.CodeLimitExceeded)
	}
	q := question(c.ID, "bob", time.Minute)
	q.Interaction = message.Notification
	_, err = s.Ask(within(t), as("ann"), q)
	wantCode(t, "no request", err, kg.CodeInvalid)
	_, err = s.Ask(within(t), as("ann"), question(c.ID, "eve", time.Minute))
	wantCode(t, "an outsider", err, kg.CodeNotMember)
	_, err = s.Ask(within(t), as("eve"), question(c.ID, "bob", time.Minute))
	wantCode(t, "from outside", err, kg.CodeChannelNotFound)
	before, err := s.Get(within(t), as("ann"), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(within(t))
	ended := make(chan error)
	go func() {
		_, err := s.Ask(ctx, as("ann"), question(c.ID, "bob", time.Minute))
		ended <- err
	}()
	eventually(t, "asks", func() bool {
		now, err := s.Get(within(t), as("ann"), c.ID)
		return err == nil && now.Messages > before.Messages
	})
	_, err = s.Ask(within(t), as("ann"), question(c.ID, "bob", time.Minute))
	wantCode(t, "a second one", err, kg.CodeOverloaded)
	cancel(gone)
	if err := <-ended; !errors.Is(err, gone) {
		t.Errorf("who gave up got %v", err)
	}
}

// A recipient that responds twice counts once; the others are awaited.
func TestAskAllWaitsForEach(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo")
	s.role(t, "critic", "bob", "cleo")
	answer := s.askAll(t, c.ID, func(asked message.ID) {
		for _, who := range []string{"bob", "bob", "cleo"} {
			if _, err := s.send(t, who, c.ID, message.Envelope{Interaction: message.Response, Correlation: asked}); err != nil {
				t.Error(err)
			}
		}
	})
	if got := sequences(answer.Responses); !slices.Equal(got, []int64{2, 3, 4}) {
		t.Errorf("the responses are %v", got)
	}
}

// The number of collected responses is bounded, also if a recipient has not responded yet.
func TestAskAllIsBounded(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo")
	s.role(t, "critic", "bob", "cleo")
	answer := s.askAll(t, c.ID, func(asked message.ID) {
		var responding sync.WaitGroup
		for range 20 { // at once: they share commits
			responding.Go(func() {
				for range channels.MaxAnswers / 20 {
					if _, err := s.send(t, "bob", c.ID, message.Envelope{Interaction: message.Response, Correlation: asked}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		responding.Wait()
	})
	if len(answer.Responses) != channels.MaxAnswers {
		t.Errorf("there are %d responses", len(answer.Responses))
	}
}

// askAll asks the critics in ann's name, responds as the function does, and waits.
func (s *server) askAll(t *testing.T, id channel.ID, respond func(message.ID)) *channels.Answer {
	t.Helper()
	stream, err := s.Stream(within(t), as("ann"), id, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	answers := make(chan *channels.Answer, 1)
	go func() {
		answer, err := s.AskAll(within(t), as("ann"), question(id, "role:critic", channels.MaxAskTime))
		if err != nil {
			t.Error(err)
		}
		answers <- answer
	}()
	for m, err := range stream.Messages() {
		if err != nil {
			t.Fatal(err)
		}
		respond(m.ID)
		break
	}
	answer := <-answers
	if answer == nil {
		t.Fatal("there is no answer")
	}
	return answer
}
