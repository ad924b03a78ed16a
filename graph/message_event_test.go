package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
)

// hear subscribes as an agent.
func (c *conversing) hear(t *testing.T, name, query string, from operation.Resume) *tail {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	sub, err := c.engine.Subscribe(ctx, operation.Request{Query: query, Principal: kg.Principal{ID: kg.CanonicalAgent(name), Method: "key"}, Resume: from})
	if err != nil {
		t.Fatal(err)
	}
	return tailOf(t, sub, cancel)
}

// TestMessagePublished proves that the messages of a channel come once each and in order,
// from any start, until the reader loses access.
func TestMessagePublished(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	first := c.say("ann", id, "1", "")
	c.say("bob", id, "2", `, replyToId: "`+first+`"`)
	query := func(args string) string {
		return `subscription { m: messagePublished(where: {channelId: "` + id + `"}` + args + `) { kind: __typename ... on MessagePublished { sequence message { text author: authorId replyTo { text } entity { types } } position } ... on Progress { position } ... on Resync { reason } } }`
	}
	want := func(f *tail, texts ...string) (last operation.Event) {
		t.Helper()
		for _, text := range texts {
			e, data := f.event()
			var got struct {
				M struct {
					Kind, Position string
					Sequence       int
					Message        struct {
						Text   string
						Entity struct{ Types []string }
					}
				}
			}
			if err := json.Unmarshal([]byte(data), &got); err != nil {
				t.Fatal(err)
			}
			if got.M.Kind != "MessagePublished" || got.M.Message.Text != text || fmt.Sprint(got.M.Sequence) != text || got.M.Position != c.store.FormatPosition(e.Position) || len(got.M.Message.Entity.Types) != 1 {
				t.Fatalf("got %s, want message %s", data, text)
			}
			if len(e.Changes) != 1 || e.Changes[0].Statement.Predicate != kg.Sequence || e.Changes[0].Commit == nil {
				t.Errorf("the event of %s is %+v", text, e)
			}
			last = e
		}
		return last
	}
	live := c.hear(t, "bob", query(""), operation.Resume{})
	all := c.hear(t, "bob", query(`, sinceSequence: 0`), operation.Resume{})
	snapshot := c.hear(t, "bob", query(`, resume: "snapshot"`), operation.Resume{})
	latest := c.hear(t, "bob", query(`, sinceSequence: 0`), operation.Resume{Start: operation.Latest}) // of the request: it wins
	second := c.hear(t, "bob", query(`, sinceSequence: 1`), operation.Resume{})
	at := want(all, "1")
	if got := all.sub.Position(); got != (kg.Position{}) {
		t.Errorf("before the next one was asked for the position is %v", got)
	}
	want(all, "2")
	if got := all.sub.Position(); got != at.Position {
		t.Errorf("the position is %v, want that of the first, %v", got, at.Position)
	}
	want(snapshot, "1", "2")
	want(second, "2")
	c.update(add(iri("other"), iri("p"), kg.Integer(1)))
	between := c.store.Head()
	c.say("ann", id, "3", "")
	for _, f := range []*tail{live, all, snapshot, latest, second} {
		want(f, "3")
	}
	c.want("an event", func() string { c.say("bob", id, "4", `, replyToId: "`+first+`"`); _, data := live.event(); return data }(),
		`{"m":{"kind":"MessagePublished","sequence":4,"message":{"text":"4","author":"agent://bob","replyTo":{"text":"1"},"entity":{"types":["urn:koine:vocab:Message"]}},"position":"`+c.store.FormatPosition(c.store.Head())+`"}}`)
	for start, texts := range map[kg.Position][]string{
		at.Position: {"2", "3", "4"}, between: {"3", "4"}, {Epoch: between.Epoch, Revision: at.Position.Revision}: {"1", "2", "3", "4"}, c.store.Oldest(): {"1", "2", "3", "4"},
	} {
		want(c.hear(t, "bob", query(""), operation.Resume{Start: operation.After, After: start}), texts...)
		if start.Index == kg.EndOfCommit {
			want(c.hear(t, "bob", query(`, resume: "`+c.store.FormatPosition(start)+`"`), operation.Resume{}), texts...)
		}
	}
	// The messages remain when the log is cut.
	if err := c.store.Maintenance().CutLog(t.Context(), c.store.Head().Revision); err != nil {
		t.Fatal(err)
	}
	want(c.hear(t, "bob", query(""), operation.Resume{Start: operation.After, After: at.Position}), "2", "3", "4")

	refused := func(who, args string, from operation.Resume) kg.Code {
		t.Helper()
		sub, err := c.engine.Subscribe(t.Context(), operation.Request{Query: query(args), Principal: kg.Principal{ID: kg.CanonicalAgent(who), Method: "key"}, Resume: from})
		if err == nil {
			sub.Close()
			return ""
		}
		if invalid, ok := err.(*operation.InvalidError); ok {
			code, _ := invalid.Errors[0].Extensions["code"].(string)
			return kg.Code(code)
		}
		return kg.CodeOf(err)
	}
	if got := refused("eve", "", operation.Resume{}); got != kg.CodeChannelNotFound {
		t.Errorf("for others: %s", got)
	}
	if got := refused("bob", `, sinceSequence: 5`, operation.Resume{}); got != kg.CodeInvalid {
		t.Errorf("behind what there is: %s", got)
	}
	if got := refused("bob", `, sinceSequence: 1, resume: "latest"`, operation.Resume{}); got != kg.CodeInvalid {
		t.Errorf("two starts: %s", got)
	}
	if got := refused("bob", "", operation.Resume{Start: operation.After, After: kg.Position{Epoch: kg.Epoch{1}}}); got != kg.CodePositionGone {
		t.Errorf("a position of another log: %s", got)
	}

	c.told("ann", `mutation { removeChannelMember(input: {channelId: "%s", agentId: "bob"}) { channel { id } } }`, id)
	if _, err, ok := live.next(); !ok || kg.CodeOf(err) != kg.CodeChannelNotFound {
		t.Errorf("when bob is no member any more the stream ends with %v", err)
	}
	if log := c.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}

// TestMessagesAreFollowed proves that messages are delivered as statements too, to readers
// of their channel.
func TestMessagesAreFollowed(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	query := `subscription { statementChanged(where: {or: [{predicate: {eq: "koine:author"}}, {predicate: {eq: "ex:end"}}]}, view: {allGraphs: true}) { ... on StatementChange { statement { subject { asMessage { text sequence channel { name } } } predicate } } } }`
	bob, eve := c.hear(t, "bob", query, operation.Resume{}), c.hear(t, "eve", query, operation.Resume{})
	c.say("ann", id, "hello", "")
	c.update(add(iri("other"), iri("end"), kg.Integer(1)))
	bob.want(`{"statementChanged":{"statement":{"subject":{"asMessage":{"text":"hello","sequence":1,"channel":{"name":"lab"}}},"predicate":"urn:koine:vocab:author"}}}`)
	end := `{"statementChanged":{"statement":{"subject":{"asMessage":null},"predicate":"https://example.org/end"}}}`
	bob.want(end)
	eve.want(end)
}
