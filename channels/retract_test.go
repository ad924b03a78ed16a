package channels_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

// A retracted message keeps its sequence number and loses its content, in every view of the
// present, and for a later stream. The retraction is a message of its own.
func TestRetract(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo")
	stream, err := s.Stream(within(t), as("cleo"), c.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	p := channels.Publication{Channel: c.ID, Parts: text("secret"), Metadata: []byte(`{"a":1}`), IdempotencyKey: "k", Envelope: message.Envelope{Tags: []string{"t"}, Thread: "th"}}
	r, err := s.Publish(within(t), as("bob"), p)
	if err != nil {
		t.Fatal(err)
	}
	other := s.say(t, "ann", c.ID, "other")
	retract := func(by string, id message.ID, want kg.Code) *channels.RetractionReceipt {
		t.Helper()
		out, err := s.Retract(within(t), as(by), channels.Retraction{Channel: c.ID, Message: id, Reason: "a mistake"})
		wantCode(t, by, err, want)
		return out
	}
	retract("eve", r.Message.ID, kg.CodeChannelNotFound)
	retract("cleo", r.Message.ID, kg.CodePermissionDenied)
	retract("bob", other.ID, kg.CodePermissionDenied)
	retract("bob", "0192aaaa-0000-7000-8000-000000000000", kg.CodeNotFound)
	first := retract("bob", r.Message.ID, "")
	if first.Message.Sequence != 3 || first.Message.Retracts != r.Message.ID || first.Replayed {
		t.Errorf("the retraction is %+v", first.Message)
	}
	if again := retract("ann", r.Message.ID, ""); again.Message.ID != first.Message.ID || !again.Replayed {
		t.Errorf("again: %+v", again.Message)
	}
	retract("bob", first.Message.ID, kg.CodeInvalid)
	retract("ann", other.ID, "")
	check := func(where string, m *message.Message) {
		t.Helper()
		if m.ID != r.Message.ID || m.Sequence != 1 || m.Withheld != message.Retracted || m.RetractedBy != first.Message.ID || len(m.Parts)+len(m.Metadata)+len(m.Tags) != 0 || m.Author != "agent://bob" || m.Thread != "th" {
			t.Errorf("%s: %+v", where, m)
		}
	}
	page, _, err := s.History(within(t), as("cleo"), c.ID, channels.HistoryQuery{})
	if err != nil || fmt.Sprint(sequences(page)) != "[1 2 3 4]" {
		t.Fatalf("history: %v, %v", sequences(page), err)
	}
	check("history", page[0])
	for m, err := range stream.Messages() { // it has not read anything yet
		if err != nil {
			t.Fatal(err)
		}
		check("stream", m)
		break
	}
	if again, err := s.Publish(within(t), as("bob"), p); err != nil || !again.Replayed {
		t.Errorf("the same again: %+v, %v", again, err)
	} else {
		check("the same again", again.Message)
	}
	snapshot, err := s.store.View(within(t), kg.View{Principal: as("ann").Principal, AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(kg.Pattern{Subject: r.Message.ID.Entity()}) {
		if err != nil || slices.Contains([]string{`[{"text":"secret","type":"text"}]`, "t", `{"a":1}`}, st.Object.Value()) {
			t.Errorf("the graph still says %v, %v", st, err)
		}
	}
}

// A stream that is behind delivers the present content, not that of the log.
func TestRetractedBeforeItIsTold(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	stream, err := s.Stream(within(t), as("ann"), c.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	told, goOn := make(chan *message.Message), make(chan struct{})
	go func() {
		defer close(told)
		for m, err := range stream.Messages() {
			if err != nil {
				t.Error(err)
				return
			}
			told <- m
			if _, more := <-goOn; !more {
				return
			}
		}
	}()
	defer close(goOn)
	goOnTo := func(sequence int64) *message.Message {
		t.Helper()
		m := <-told
		if m == nil || m.Sequence != sequence {
			t.Fatalf("told %+v, want %d", m, sequence)
		}
		return m
	}
	s.say(t, "ann", c.ID, "one")
	goOnTo(1)
	goOn <- struct{}{}
	s.say(t, "ann", c.ID, "two")
	goOnTo(2) // live by now
	secret := s.say(t, "bob", c.ID, "secret")
	if _, err := s.Retract(within(t), as("bob"), channels.Retraction{Channel: c.ID, Message: secret.ID}); err != nil {
		t.Fatal(err)
	}
	goOn <- struct{}{}
	if m := goOnTo(3); m.Withheld != message.Retracted || m.Parts != nil {
		t.Errorf("told %+v", m)
	}
}

// A retraction withdraws the assertions of the message, unless they were changed since; a
// dry run lists them.
func TestRetractWithdrawsFacts(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Public, "bob")
	fact := func(n int64) kg.Patch {
		return kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(n)}}
	}
	publish := func(by string, patches ...kg.Patch) *message.Message {
		t.Helper()
		r, err := s.Publish(within(t), as(by), channels.Publication{Channel: c.ID, Parts: text("see"), Patches: patches})
		if err != nil {
			t.Fatal(err)
		}
		return r.Message
	}
	m := publish("bob", fact(1), fact(2), fact(3))
	publish("ann", fact(1)) // backs it too
	changed := fact(3)
	changed.Certainty, changed.HasCertainty = 0.5, true
	publish("bob", changed) // says it anew
	r := channels.Retraction{Channel: c.ID, Message: m.ID, WithdrawFacts: true, DryRun: true}
	head := s.store.Head().Revision
	dry, err := s.Retract(within(t), as("bob"), r)
	if err != nil || len(dry.Withdrawn) != 2 || dry.Message != nil || s.store.Head().Revision != head {
		t.Fatalf("dry: %+v, %v", dry, err)
	}
	r.DryRun = false
	done, err := s.Retract(within(t), as("bob"), r)
	if err != nil || len(done.Withdrawn) != 2 || done.Affected != 2 || done.Message.Retracts != m.ID {
		t.Fatalf("done: %+v, %v", done, err)
	}
	snapshot, err := s.store.View(within(t), kg.View{Principal: as("bob").Principal})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	var stand []string
	for st, err := range snapshot.Match(kg.Pattern{}) {
		if err != nil {
			t.Fatal(err)
		}
		stand = append(stand, fmt.Sprint(st.Object.Value(), " ", st.Assertions[0].Source))
	}
	slices.Sort(stand)
	if !slices.Equal(stand, []string{"1 agent://ann", "3 agent://bob"}) {
		t.Errorf("there stand %q", stand)
	}
	again, err := s.Retract(within(t), as("bob"), r)
	if err != nil || !again.Replayed || len(again.Withdrawn) != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// A retracted request accepts no response, and asking ends.
func TestRetractedRequest(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	ended := make(chan error)
	go func() {
		_, err := s.Ask(within(t), as("ann"), question(c.ID, "bob", channels.MaxAskTime))
		ended <- err
	}()
	var asked []*message.Message
	eventually(t, "asks", func() bool {
		asked, _, _ = s.History(within(t), as("ann"), c.ID, channels.HistoryQuery{})
		return len(asked) == 1
	})
	if _, err := s.Retract(within(t), as("ann"), channels.Retraction{Channel: c.ID, Message: asked[0].ID}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "nobody can answer", <-ended, kg.CodeTimeout)
	_, err := s.send(t, "bob", c.ID, message.Envelope{Interaction: message.Response, Correlation: asked[0].ID})
	wantCode(t, "a response", err, kg.CodeMessageExpired)
}

// An author that may not publish any more retracts its own messages, unless it is muted or
// removed; never those of others.
func TestRetractedByItsAuthor(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c, err := s.Create(within(t), as("ann"), channel.Draft{Kind: channel.Broadcast, Members: []channel.Member{{Agent: "bob", Role: channel.Owner}}})
	if err != nil {
		t.Fatal(err)
	}
	mine, later, other := s.say(t, "bob", c.ID, "mine"), s.say(t, "bob", c.ID, "later"), s.say(t, "ann", c.ID, "hers")
	retract := func(m *message.Message) error {
		_, err := s.Retract(within(t), as("bob"), channels.Retraction{Channel: c.ID, Message: m.ID})
		return err
	}
	if _, err := s.Members().Add(within(t), as("ann"), c.ID, "bob", channel.Observer); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "one's own", retract(mine), "")
	wantCode(t, "another's", retract(other), kg.CodePermissionDenied)
	_, err = s.send(t, "bob", c.ID, message.Envelope{})
	wantCode(t, "a message", err, kg.CodePermissionDenied)
	if err := s.Members().Mute(within(t), as("ann"), c.ID, "bob", time.Time{}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "muted", retract(later), kg.CodePermissionDenied)
	if _, err := s.Members().Remove(within(t), as("ann"), c.ID, "bob"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "from outside", retract(later), kg.CodeChannelNotFound)
	if now, err := s.Message(within(t), as("ann"), mine.ID); err != nil || now.Withheld != message.Retracted {
		t.Errorf("%+v, %v", now, err)
	}
}

// A dry run is no message, and is not counted as one.
func TestRetractDryIsNotCounted(t *testing.T) {
	s := serveAt(t, startClock(), channels.Options{Tier: channels.Tier{MessagesPerMinute: 2}})
	c := s.make(t, channel.Private)
	r := channels.Retraction{Channel: c.ID, Message: s.say(t, "ann", c.ID, "one").ID, DryRun: true}
	for range 3 {
		_, err := s.Retract(within(t), as("ann"), r)
		wantCode(t, "dry", err, "")
	}
	r.DryRun = false
	_, err := s.Retract(within(t), as("ann"), r)
	wantCode(t, "the second message", err, "")
	_, err = s.Publish(within(t), as("ann"), channels.Publication{Channel: c.ID, Parts: text("three")})
	wantLimit(t, "a third", err, kg.CodeRateLimited, "messagesPerMinute", time.Minute)
}
