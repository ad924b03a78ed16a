package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"koine/client"
	"koine/internal/slowtest"
)

// following returns the output of a subscription or stream, read in another goroutine,
// until it is complete.
func following[T any](t *testing.T, seq func(func(T, error) bool), n int, seen chan<- T) <-chan error {
	done := make(chan error, 1)
	go func() {
		for one, err := range seq {
			if err != nil {
				done <- err
				return
			}
			seen <- one
			if n--; n == 0 {
				break
			}
		}
		done <- nil
	}()
	return done
}

// A subscription sees each change once, through all restarts of the server.
func TestSubscribeAcrossServers(t *testing.T) {
	s := start(t)
	ctx, c := bounded(t), open(t, s.URL, "dora")
	const rounds, each = 3, 5
	at, err := c.Query(ctx, client.Query{Text: "{ __typename }"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan *client.Change, rounds*each)
	done := following(t, c.Subscribe(ctx, client.Subscription{
		Query: `subscription { statementChanged(where: {predicate: {eq: "lab:seen"}}) { __typename } }`, From: at.Position,
	}), rounds*each, seen)
	for i := range rounds * each {
		if i > 0 && i%each == 0 {
			s.Restart()
		}
		if _, err := c.Update(ctx, client.Update{Patches: []client.Patch{client.Add("finding:1", "lab:seen", client.Value(i))}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range rounds * each {
		if got := (<-seen).Statement.Object.Value; numberOf(got) != i {
			t.Fatalf("change %d is of %v", i, got)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A live subscription misses nothing after its start, one with a snapshot has its end.
func TestSubscribeSnapshot(t *testing.T) {
	s := start(t)
	ctx, c := bounded(t), open(t, s.URL, "dora")
	ended := false
	for change, err := range c.Subscribe(ctx, client.Subscription{
		Query: `subscription { statementChanged(where: {subject: {eq: "finding:1"}}) { __typename } }`, From: client.Snapshot,
	}) {
		if err != nil {
			t.Fatal(err)
		}
		if change.Op != client.OpAdd {
			t.Errorf("%+v", change)
		}
		if ended {
			if change.Metadata.Snapshot || change.Metadata.Actor != "agent://dora" || change.Statement.Object.Language != "en" {
				t.Errorf("%+v", change)
			}
			break
		}
		if ended = change.Metadata.SnapshotEnd; ended {
			if change.Metadata.Position == "" {
				t.Error("the end of a snapshot has no position")
			}
			if _, err := c.Update(ctx, client.Update{Patches: []client.Patch{client.Add("finding:1", "rdfs:comment", client.TextIn("wet", "en"))}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, err := range c.Subscribe(ctx, client.Subscription{Query: "subscription { statementChanged { __typename } }", From: "yesterday"}) {
		if !errors.Is(err, client.PositionGone) {
			t.Error(err)
		}
	}
	for _, err := range c.Subscribe(ctx, client.Subscription{Query: "{ __typename }"}) {
		if err == nil {
			t.Error("a query is a subscription")
		}
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	for _, err := range c.Subscribe(stopped, client.Subscription{Query: "subscription { statementChanged { __typename } }"}) {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestChannels(t *testing.T) {
	s := start(t)
	ctx, ann, bob := bounded(t), open(t, s.URL, "ann"), open(t, s.URL, "bob")
	made, err := ann.CreateChannel(ctx, client.NewChannel{Name: "lab", Members: []client.Member{{Agent: "bob"}}})
	if err != nil || len(made.Members) != 2 || made.Version != 1 {
		t.Fatalf("%+v %v", made, err)
	}
	if _, err := open(t, s.URL, "eve").GetChannel(ctx, made.ID); !errors.Is(err, client.ChannelNotFound) {
		t.Errorf("eve: %v", err)
	}
	changed, err := ann.UpdateChannel(ctx, made.ID, client.ChannelChange{ExpectedVersion: 1, Name: "laboratory", Set: map[string]any{"x": 1}})
	if err != nil || changed.Name != "laboratory" {
		t.Errorf("%+v %v", changed, err)
	}
	if _, err := ann.UpdateChannel(ctx, made.ID, client.ChannelChange{ExpectedVersion: 1, Name: "x"}); !errors.Is(err, client.VersionConflict) {
		t.Errorf("%v", err)
	}
	if added, err := ann.AddMember(ctx, made.ID, "cleo", "moderator"); err != nil || len(added.Members) != 3 {
		t.Errorf("%+v %v", added, err)
	}
	if removed, err := ann.RemoveMember(ctx, made.ID, "cleo"); err != nil || len(removed.Members) != 2 {
		t.Errorf("%+v %v", removed, err)
	}
	if _, err := ann.RemoveMember(ctx, made.ID, "ann"); !errors.Is(err, client.LastOwner) {
		t.Errorf("%v", err)
	}
	for i := range 5 {
		if _, err := ann.Publish(ctx, client.Publication{Channel: made.ID, Parts: []any{client.TextPart(string(rune('a' + i)))}}); err != nil {
			t.Fatal(err)
		}
	}
	text := ""
	for m, err := range bob.History(ctx, made.ID, client.HistoryFilter{PageSize: 2, Since: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		text += m.Text()
	}
	if text != "bcde" {
		t.Errorf("the history is %q", text)
	}
	names := ""
	for c, err := range bob.ListChannels(ctx, client.ChannelFilter{PageSize: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		if c.ID == made.ID {
			names += c.Name
		}
	}
	if names != "laboratory" {
		t.Errorf("listed %q", names)
	}
	if err := ann.DeleteChannel(ctx, made.ID); err != nil {
		t.Error(err)
	}
	for _, err := range bob.Stream(ctx, made.ID, client.StreamOptions{}) {
		if !errors.Is(err, client.ChannelNotFound) {
			t.Error(err)
		}
	}
}

// A stream of messages delivers each once, through all restarts of the server, and a
// question is answered across them.
func TestStreamAndAskAcrossServers(t *testing.T) {
	slowtest.Long(t)
	s := start(t)
	ctx, ann, bob := bounded(t), open(t, s.URL, "ann"), open(t, s.URL, "bob")
	made, err := ann.CreateChannel(ctx, client.NewChannel{Members: []client.Member{{Agent: "bob"}}})
	if err != nil {
		t.Fatal(err)
	}
	const n = 9
	seen := make(chan *client.Message, n+2)
	done := following(t, bob.Stream(ctx, made.ID, client.StreamOptions{}), n+2, seen)
	for i := range n {
		if i%3 == 2 {
			s.Restart()
		}
		if _, err := ann.Publish(ctx, client.Publication{Channel: made.ID, Parts: []any{client.TextPart("x")}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		if m := <-seen; m.Sequence != int64(i+1) {
			t.Fatalf("message %d has the sequence %d", i+1, m.Sequence)
		}
	}
	answered := make(chan error, 1)
	go func() {
		m, err := ann.Ask(ctx, client.Publication{Channel: made.ID, Recipient: "bob", Parts: []any{client.TextPart("Is it wet?")}}, patience)
		if err == nil && (m.Text() != "yes" || m.Author != "agent://bob") {
			err = errors.New(m.Text())
		}
		answered <- err
	}()
	asked := <-seen
	s.Restart() // between the question and its answer
	if _, err := bob.Respond(ctx, asked, client.TextPart("yes")); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := ann.Ask(ctx, client.Publication{Channel: made.ID, Recipient: "bob", Parts: []any{client.TextPart("And now?")}}, time.Second); !errors.Is(err, client.Unanswered) {
		t.Errorf("nobody answered: %v", err)
	}
}
