package channels_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// A message is read as it was published: in the answer, in the history, in a stream that
// was open, and in one that replays.
func TestMessageReadsBack(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	live, err := s.Stream(within(t), as("bob"), c.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	r, err := s.Publish(within(t), as("bob"), channels.Publication{
		Channel: c.ID, Parts: append(text("hello"), []byte(`{"kind":"data","data":{"b":[1,2.50,null],"a":"<&>"}}`)),
		Metadata: []byte(`{"phase": "analysis"}`), ArtifactRefs: []string{"artifact_b", "artifact_a"}, IdempotencyKey: "k1",
		Envelope: message.Envelope{Interaction: message.Notification, ContentType: message.Structured, Format: "json", Tags: []string{"b", "a", "b"}, To: "*", Thread: "t 1", ExpiresAt: time.Now().Add(time.Hour)},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := r.Message
	if !slices.Equal(m.Tags, []string{"a", "b"}) || m.Interaction != message.Notification || m.Thread != "t 1" {
		t.Errorf("the envelope is %+v", m.Envelope)
	}
	if m.Sequence != 1 || m.Author != "agent://bob" || m.Channel != c.ID || m.Time.IsZero() || string(m.Metadata) != `{"phase":"analysis"}` || m.Revision == 0 {
		t.Errorf("got %+v", m)
	}
	if string(m.Parts[1]) != `{"kind":"data","data":{"b":[1,2.50,null],"a":"<&>"}}` {
		t.Errorf("the part is now %s", m.Parts[1])
	}
	page, next, err := s.History(within(t), as("ann"), c.ID, channels.HistoryQuery{})
	if err != nil || next != "" || len(page) != 1 {
		t.Fatalf("history: %v, %q, %v", page, next, err)
	}
	if d := cmp.Diff(m, page[0]); d != "" {
		t.Errorf("history (-answer +history):\n%s", d)
	}
	for told, err := range live.Messages() {
		if d := cmp.Diff(m, told); d != "" || err != nil {
			t.Errorf("stream (-answer +stream): %v\n%s", err, d)
		}
		break
	}
	got, err := s.Get(within(t), as("ann"), c.ID)
	if err != nil || got.Messages != 1 || !got.LastMessageAt.Equal(m.Time) {
		t.Errorf("the channel says %+v, %v", got, err)
	}
}

// Sequence numbers are 1, 2, 3 … with any number of concurrent publishers, in the order of
// the log.
func TestSequencesHaveNoGap(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Public, "bob")
	other := s.make(t, channel.Private)
	const each, publishers = 20, 16
	var done sync.WaitGroup
	for i := range publishers {
		done.Go(func() {
			for n := range each {
				id := c.ID
				by := []string{"ann", "bob"}[i%2]
				if i == 0 {
					id = other.ID
				}
				s.say(t, by, id, "%d of %d", n, i)
			}
		})
	}
	done.Wait()
	for id, want := range map[channel.ID]int{c.ID: each * (publishers - 1), other.ID: each} {
		var all []*message.Message
		q := channels.HistoryQuery{PageSize: 33}
		for {
			page, next, err := s.History(within(t), as("ann"), id, q)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, page...)
			if q.PageToken = next; next == "" {
				break
			}
		}
		if len(all) != want {
			t.Errorf("%d messages, want %d", len(all), want)
		}
		for i, m := range all {
			if m.Sequence != int64(i)+1 || i > 0 && (m.Revision <= all[i-1].Revision || m.Time.Before(all[i-1].Time)) {
				t.Fatalf("message %d is %+v", i, m)
			}
		}
	}
}

// The same key makes one message, at once and again after the store was reopened;
// another content is a conflict, another author has keys of its own.
func TestIdempotency(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	p := channels.Publication{Channel: c.ID, Parts: []jsonText{[]byte(`{"a":1,"b":2}`)}, IdempotencyKey: "k", Metadata: []byte(`{"x":1,"y":2}`)}
	ids := make([]message.ID, 8)
	var done sync.WaitGroup
	for i := range ids {
		done.Go(func() {
			r, err := s.Publish(within(t), as("ann"), p)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = r.Message.ID
		})
	}
	done.Wait()
	if ids = slices.Compact(ids); len(ids) != 1 {
		t.Errorf("there are %d messages with the key: %v", len(ids), ids)
	}
	same := p
	same.Parts, same.Metadata = []jsonText{[]byte(`{"b": 2, "a": 1}`)}, []byte(`{"y":2,"x":1}`)
	if r, err := s.Publish(within(t), as("ann"), same); err != nil || !r.Replayed || r.Message.ID != ids[0] || r.Message.Sequence != 1 || string(r.Message.Parts[0]) != `{"a":1,"b":2}` {
		t.Errorf("the same, written otherwise: %+v, %v", r, err)
	}
	for what, change := range map[string]func(*channels.Publication){
		"parts":     func(p *channels.Publication) { p.Parts = text("other") },
		"metadata":  func(p *channels.Publication) { p.Metadata = nil },
		"artifacts": func(p *channels.Publication) { p.ArtifactRefs = []string{"a"} },
		"facts": func(p *channels.Publication) {
			p.Patches = []kg.Patch{{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1)}}}
		},
	} {
		other := p
		change(&other)
		_, err := s.Publish(within(t), as("ann"), other)
		wantCode(t, what, err, kg.CodeIdempotencyConflict)
	}
	if r, err := s.Publish(within(t), as("bob"), p); err != nil || r.Replayed || r.Message.Sequence != 2 {
		t.Errorf("another author: %+v, %v", r, err)
	}
}

// Every request about an unreadable channel gets the same answer as for one that does not
// exist.
func TestPrivateIsNotThere(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	s.say(t, "ann", c.ID, "secret")
	var said []string
	for _, id := range []channel.ID{c.ID, "0192aaaa-0000-7000-8000-000000000000", "chan:direct:000000000000000000000000", "no such / id"} {
		var answers []string
		note := func(what string, err error) {
			wantCode(t, fmt.Sprintf("%s of %s", what, id), err, kg.CodeChannelNotFound)
			answers = append(answers, fmt.Sprint(what, err))
		}
		eve := as("eve")
		_, err := s.Get(within(t), eve, id)
		note("get", err)
		_, err = s.Update(within(t), eve, id, channel.Update{ExpectedVersion: 1})
		note("update", err)
		note("delete", s.Delete(within(t), eve, id))
		_, err = s.Members().Add(within(t), eve, id, "agent://eve", channel.Owner)
		note("addMember", err)
		_, err = s.Members().Remove(within(t), eve, id, "agent://bob")
		note("removeMember", err)
		_, err = s.Members().Remove(within(t), eve, id, "agent://eve")
		note("leave", err)
		_, err = s.Publish(within(t), eve, channels.Publication{Channel: id, Parts: text("hi")})
		note("publish", err)
		_, _, err = s.History(within(t), eve, id, channels.HistoryQuery{})
		note("history", err)
		_, err = s.Stream(within(t), eve, id, nil)
		note("stream", err)
		said = append(said, fmt.Sprint(answers))
	}
	for _, other := range said[1:] {
		if other != said[0] {
			t.Errorf("got %s\nwant %s", other, said[0])
		}
	}
	if list, _, err := s.List(within(t), as("eve"), channel.ListQuery{}); err != nil || len(list) != 0 {
		t.Errorf("eve lists %v, %v", list, err)
	}
	// Nor in the graph.
	for _, graph := range []kg.Term{c.ID.RecordGraph(), c.ID.MessagesGraph(), {}} {
		for _, who := range []string{"eve", "bob"} {
			snapshot, err := s.store.View(within(t), kg.View{Principal: as(who).Principal, AllGraphs: true})
			if err != nil {
				t.Fatal(err)
			}
			n, err := snapshot.Count(kg.Pattern{Graph: graph})
			if err != nil || (n > 0) != (who == "bob") {
				t.Errorf("%s counts %d statements in %v: %v", who, n, graph, err)
			}
			snapshot.Close()
		}
	}
}

// Facts are committed with their message, which the commit names; refused facts publish
// nothing, held facts publish the message, which names their proposal.
func TestFacts(t *testing.T) {
	v, h := &judge{}, &holder{}
	s := serve(t, channels.Options{}, kg.Options{Governor: kg.Governor{Verifier: v, Holder: h}})
	private, public := s.make(t, channel.Private, "bob"), s.make(t, channel.Public, "bob")
	fact := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1)}}
	for _, row := range []struct {
		channel *channel.Channel
		graph   kg.Term
	}{{private, private.ID.FactsGraph()}, {public, kg.DefaultGraph}} {
		r, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: row.channel.ID, Parts: text("see"), Patches: []kg.Patch{fact}})
		if err != nil || r.Affected != 1 || r.Verdict.Outcome != kg.Accepted {
			t.Fatalf("%+v, %v", r, err)
		}
		c, err := s.store.Commit(within(t), as("bob").Principal, r.Message.Revision)
		if err != nil || c.MessageID != string(r.Message.ID) {
			t.Errorf("the commit is %+v, %v", c, err)
		}
		for _, who := range []string{"bob", "eve"} {
			snapshot, err := s.store.View(within(t), kg.View{Principal: as(who).Principal})
			if err != nil {
				t.Fatal(err)
			}
			n, err := snapshot.Count(kg.Pattern{Graph: row.graph})
			if want := uint64(1); err != nil || n != want && (who == "bob" || row.channel == public) || n != 0 && who == "eve" && row.channel == private {
				t.Errorf("%s counts %d in %s: %v", who, n, row.graph, err)
			}
			snapshot.Close()
		}
	}
	fact.Quad.Object = kg.Integer(2)
	v.verdict = kg.Verdict{Outcome: kg.Rejected, Reason: "no", Details: "because"}
	r, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: private.ID, Parts: text("see"), Patches: []kg.Patch{fact}})
	if err != nil || r.Message != nil || r.Verdict.Reason != "no" || r.Verdict.Details != "because" {
		t.Errorf("rejected: %+v, %v", r, err)
	}
	v.verdict = kg.Verdict{Outcome: kg.Held, Reason: "look", Hold: &kg.Hold{}}
	p := channels.Publication{Channel: private.ID, Parts: text("look"), Patches: []kg.Patch{fact}, IdempotencyKey: "k"}
	r, err = s.Publish(within(t), as("bob"), p)
	if err != nil || r.Message == nil || r.Message.Sequence != 2 || r.Message.FactCount != 1 || r.Message.ProposalID != "p1" || r.Verdict.Outcome != kg.Held || len(h.held) != 1 || len(h.held[0].Patches) != 1 {
		t.Fatalf("held: %+v, %v", r, err)
	}
	page, _, err := s.History(within(t), as("ann"), private.ID, channels.HistoryQuery{SinceSequence: at(1)})
	if err != nil || len(page) != 1 || page[0].ProposalID != "p1" || page[0].FactCount != 1 {
		t.Errorf("history: %+v, %v", page, err)
	}
	if again, err := s.Publish(within(t), as("bob"), p); err != nil || !again.Replayed || again.Message.ID != r.Message.ID || again.Verdict.Outcome != kg.Held || len(h.held) != 1 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// A direct channel is created by its first message, has two members, and never changes.
func TestDirect(t *testing.T) {
	known := func(fn func(kg.AgentID) bool) { _ = fn("agent://ann") && fn("agent://bob") && fn("agent://eve") }
	s := serve(t, channels.Options{Agents: known}, kg.Options{})
	id := channel.DirectID("agent://bob", "agent://ann")
	if id != channel.DirectID("agent://ann", "agent://bob") || !id.IsDirect() {
		t.Errorf("the id is %s", id)
	}
	if c, err := s.Get(within(t), as("ann"), id); err != nil || len(c.Members) != 2 || c.Kind != channel.Direct || c.Messages != 0 {
		t.Errorf("before: %+v, %v", c, err)
	}
	stream, err := s.Stream(within(t), as("bob"), id, new(int64))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	r, err := s.Publish(within(t), as("ann"), channels.Publication{To: "bob", Parts: text("psst")})
	if err != nil || r.Message.Channel != id || r.Message.Sequence != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	for m, err := range stream.Messages() {
		if err != nil || m.ID != r.Message.ID {
			t.Errorf("the stream tells %+v, %v", m, err)
		}
		break
	}
	if r, err = s.Publish(within(t), as("bob"), channels.Publication{Channel: id, Parts: text("what")}); err != nil || r.Message.Sequence != 2 {
		t.Errorf("the answer: %+v, %v", r, err)
	}
	_, err = s.Members().Add(within(t), as("ann"), id, "agent://eve", channel.Ordinary)
	wantCode(t, "a third", err, kg.CodePermissionDenied)
	wantCode(t, "delete", s.Delete(within(t), as("ann"), id), kg.CodePermissionDenied)
	_, err = s.Get(within(t), as("eve"), id)
	wantCode(t, "an outsider", err, kg.CodeChannelNotFound)
	_, err = s.Publish(within(t), as("ann"), channels.Publication{To: "agent://ann", Parts: text("me")})
	wantCode(t, "alone", err, kg.CodeInvalid)
	if list, _, err := s.List(within(t), as("ann"), channel.ListQuery{}); err != nil || len(list) != 0 {
		t.Errorf("listed: %v, %v", list, err)
	}
}

// The first message of a direct channel carries facts like any other, and so does one that
// creates a channel by its name; only the two agents read them.
func TestFirstMessageWithFacts(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	fact := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1)}}
	r, err := s.Publish(within(t), as("ann"), channels.Publication{To: "bob", Parts: text("see"), Patches: []kg.Patch{fact}})
	if err != nil || r.Message.Sequence != 1 || r.Affected != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	for who, want := range map[string]uint64{"ann": 1, "bob": 1, "eve": 0} {
		snapshot, err := s.store.View(within(t), kg.View{Principal: as(who).Principal})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := snapshot.Count(kg.Pattern{Graph: r.Message.Channel.FactsGraph()}); n != want || err != nil {
			t.Errorf("%s counts %d, %v; want %d", who, n, err, want)
		}
		snapshot.Close()
	}
	// A direct channel whose first message is refused does not exist.
	bad := fact
	bad.Quad.Graph = kg.SystemGraph
	_, err = s.Publish(within(t), as("ann"), channels.Publication{To: "cleo", Parts: text("see"), Patches: []kg.Patch{bad}})
	wantCode(t, "a reserved graph", err, kg.CodeReserved)
	_, err = s.Get(within(t), as("ann"), channel.DirectID("agent://ann", "agent://cleo"))
	wantCode(t, "after that", err, kg.CodeChannelNotFound)
}

// Ids of channels, messages and scopes are UUIDs of version 7, in the order of their
// creation; publishing changes no version.
func TestIDsAndVersions(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c, before := s.make(t, channel.Private), ""
	for range 5 {
		for _, id := range []string{string(s.scope(t, scope.Draft{}).ID), string(s.make(t, channel.Private).ID), string(s.say(t, "ann", c.ID, "hi").ID)} {
			made, err := uuid.Parse(id)
			if err != nil || made.Version() != 7 || made.String() != id || id <= before {
				t.Errorf("%s behind %s: %v, %v", id, before, made.Version(), err)
			}
			before = id
		}
	}
	if now, err := s.Get(within(t), as("ann"), c.ID); err != nil || now.Version != 1 || now.Messages != 5 {
		t.Errorf("%+v, %v", now, err)
	}
}
