package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/scope"
	"koine/graph"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
)

func caller(name string) channels.Caller {
	return channels.Caller{Principal: kg.Principal{ID: kg.CanonicalAgent(name), Method: "key"}}
}

// heard is a message of a subscription.
type heard struct{ Text, Position string }

// hears reads messages of a subscription whose root field is m, and compares their texts.
func (c *conversing) hears(f *tail, texts ...string) (list []heard) {
	c.t.Helper()
	for _, text := range texts {
		e, data := f.event()
		var got struct {
			M struct {
				Kind, Position string
				Message        struct{ Text string }
			}
		}
		if err := json.Unmarshal([]byte(data), &got); err != nil {
			c.t.Fatal(err)
		}
		if got.M.Kind != "MessagePublished" || got.M.Message.Text != text || got.M.Position != c.store.FormatPosition(e.Position) || len(e.Changes) != 1 {
			c.t.Fatalf("got %s, want the message %s", data, text)
		}
		list = append(list, heard{text, got.M.Position})
	}
	return list
}

// The sources of messagePublished.
const ofInbox, ofJoined = "inbox: true", "joined: true"

// subscription is one to the messages of a source, as hears reads it.
func subscription(source, args string) string {
	return `subscription { m: messagePublished(where: {` + source + `}` + args + `) { kind: __typename ... on MessagePublished { message { text } position } ... on Progress { position } ... on Resync { reason } } }`
}

// deaf is the code and the field with which a subscription is refused.
func (c *conversing) deaf(name, query string, from operation.Resume) string {
	c.t.Helper()
	sub, err := c.engine.Subscribe(c.t.Context(), operation.Request{Query: query, Principal: kg.Principal{ID: kg.CanonicalAgent(name), Method: "key"}, Resume: from})
	if err == nil {
		sub.Close()
		return ""
	}
	if invalid, ok := err.(*operation.InvalidError); ok {
		return fmt.Sprint(invalid.Errors[0].Extensions["code"], " ", invalid.Errors[0].Extensions["field"])
	}
	return strings.TrimSpace(string(kg.CodeOf(err)) + " " + kg.AsError(err).Field)
}

// TestFeeds proves that the messages of several channels come once each and in the order of
// the log, from any start, including those of channels that are joined or created later.
func TestFeeds(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	scope, err := c.service.Scopes().Create(t.Context(), caller("ann"), scope.Draft{Title: "kiln", Access: scope.Access{Agents: []kg.AgentID{"bob"}}})
	if err != nil {
		t.Fatal(err)
	}
	within := func(name string, policy channel.MemberPolicy) string {
		t.Helper()
		made, err := c.service.CreateIn(t.Context(), caller("ann"), scope.ID, channel.Draft{Name: name, MemberPolicy: policy})
		if err != nil {
			t.Fatal(err)
		}
		return string(made.ID)
	}
	lab, works := c.lab("PRIVATE"), within("works", channel.ByScope)
	owners := within("owners", channel.Explicit)
	inbox, member, scoped := subscription(ofInbox, ""), subscription(ofJoined, ""), subscription(`scopeId: "`+string(scope.ID)+`"`, "")
	live := map[string]*tail{}
	for _, query := range []string{inbox, member, scoped} {
		live[query] = c.hear(t, "bob", query, operation.Resume{})
	}
	c.say("ann", lab, "1", "")
	c.say("bob", lab, "2", "")
	c.say("ann", works, "3", "")
	c.say("ann", owners, "4", "") // which bob is not in
	c.told("ann", `mutation { publishMessage(input: {to: "bob", parts: [{text: "5"}]}) { success } }`)
	c.say("ann", lab, "6", `, recipient: "bob"`)
	c.told("ann", `mutation { addChannelMember(input: {channelId: "%s", agentId: "cy"}) { channel { id } } }`, lab)
	c.say("ann", lab, "7", `, recipient: "cy"`)
	later, last := c.lab("PRIVATE"), within("later", channel.ByScope) // made later
	c.say("ann", later, "8", "")
	c.say("ann", last, "9", "")

	// In channels of a scope whose members are all agents with access no agent has to be a
	// member.
	want := map[string][]string{inbox: {"1", "5", "6", "8"}, member: {"1", "2", "5", "6", "", "8"}, scoped: {"3", "9"}}
	for query, texts := range want {
		told := c.hears(live[query], texts...)
		c.hears(c.hear(t, "bob", query, operation.Resume{Start: operation.Earliest}), texts...)
		c.hears(c.hear(t, "bob", query, operation.Resume{Start: operation.Snapshot}), texts...)
		for i, m := range told {
			at, err := c.store.ParsePosition(m.Position)
			if err != nil {
				t.Fatal(err)
			}
			c.hears(c.hear(t, "bob", query, operation.Resume{Start: operation.After, After: at}), texts[i+1:]...)
			// In the middle of the commit, at a position of a subscription to statements.
			c.hears(c.hear(t, "bob", query, operation.Resume{Start: operation.After, After: kg.Position{Epoch: at.Epoch, Revision: at.Revision}}), texts[i:]...)
		}
		if got := c.deaf("bob", query, operation.Resume{Start: operation.After, After: kg.Position{Epoch: kg.Epoch{1}}}); got != string(kg.CodePositionGone) {
			t.Errorf("%s: a position of another log: %s", query, got)
		}
	}
	resumed := c.hear(t, "bob", subscription(ofInbox, `, resume: "earliest"`), operation.Resume{})
	c.hears(resumed, want[inbox]...)
	c.hears(c.hear(t, "bob", subscription(ofInbox, `, resume: "latest"`), operation.Resume{Start: operation.Earliest}), want[inbox]...) // of the request: it wins
	c.want("a bad position", c.deaf("bob", subscription(ofInbox, `, resume: "x"`), operation.Resume{}), "POSITION_GONE resume")
	if got, want := c.deaf("eve", scoped, operation.Resume{}), c.deaf("eve", strings.Replace(scoped, string(scope.ID), nowhere, 1), operation.Resume{}); got != want || want != "SCOPE_NOT_FOUND where.scopeId" {
		t.Errorf("a scope of others: %s, and none: %s", got, want)
	}
	// The messages remain when the log is cut.
	if err := c.store.Maintenance().CutLog(t.Context(), c.store.Head().Revision); err != nil {
		t.Fatal(err)
	}
	c.hears(c.hear(t, "bob", member, operation.Resume{Start: operation.Earliest}), want[member]...)
	// A former member gets no further messages of the channel, and continues with the rest.
	c.told("ann", `mutation { removeChannelMember(input: {channelId: "%s", agentId: "bob"}) { channel { id } } }`, lab)
	c.say("ann", lab, "10", "")
	c.say("ann", later, "11", "")
	c.hears(live[inbox], "11")
	if log := c.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}

// TestMessageSource proves that messagePublished has one source, that a sequence number is
// one of a channel, and that a position of one source continues any other.
func TestMessageSource(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	lab := c.lab("PRIVATE")
	one := `channelId: "` + lab + `"`
	for source, args := range map[string]string{
		"": "", "inbox: false": "", "inbox: false, joined: null": "", "inbox: true, joined: true": "", one + ", inbox: true": "", one + `, scopeId: "` + nowhere + `"`: "", `scopeId: "` + nowhere + `", joined: true`: "",
	} {
		c.want(source, c.deaf("bob", subscription(source, args), operation.Resume{}), "INVALID where")
	}
	c.want("a sequence of many channels", c.deaf("bob", subscription(ofInbox, `, sinceSequence: 0`), operation.Resume{}), "INVALID sinceSequence")
	c.want("two starts", c.deaf("bob", subscription(ofInbox, `, sinceSequence: 0, resume: "latest"`), operation.Resume{}), "INVALID resume")
	c.want("an unknown channel", c.deaf("bob", subscription(`channelId: "`+nowhere+`"`, ""), operation.Resume{}), "CHANNEL_NOT_FOUND where.channelId")
	sources := []string{ofInbox, ofJoined, one, one + ", inbox: false, scopeId: null"}
	for _, text := range []string{"1", "2", "3"} {
		c.say("ann", lab, text, "")
	}
	for _, source := range sources {
		first := c.hears(c.hear(t, "bob", subscription(source, `, resume: "earliest"`), operation.Resume{}), "1", "2", "3")[0].Position
		for _, other := range sources {
			c.hears(c.hear(t, "bob", subscription(other, `, resume: "`+first+`"`), operation.Resume{}), "2", "3")
		}
	}
}

// TestMatchingMessages proves that messagePublished leaves out the messages that do not match,
// from every source, and that its positions pass over them.
func TestMatchingMessages(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	lab := c.lab("PRIVATE")
	sources := []string{ofInbox, ofJoined, `channelId: "` + lab + `"`}
	matching := func(source, filter string) string { return subscription(source+`, matching: {`+filter+`}`, "") }
	for i := range 6 {
		more := ""
		if i%2 == 0 {
			more = `, tags: ["kiln"], messageType: NOTIFY`
		}
		c.say("ann", lab, fmt.Sprint(i), more)
	}
	for _, source := range sources {
		live := c.hear(t, "bob", matching(source, `tag: "kiln"`), operation.Resume{})
		last := c.hears(c.hear(t, "bob", matching(source, `tag: "kiln"`), operation.Resume{Start: operation.Earliest}), "0", "2", "4")[2].Position
		c.hears(c.hear(t, "bob", matching(source, `messageType: NOTIFY`), operation.Resume{Start: operation.Earliest}), "0", "2", "4")
		c.hears(c.hear(t, "bob", matching(source, ``), operation.Resume{Start: operation.Earliest}), "0", "1", "2")
		at, err := c.store.ParsePosition(last)
		if err != nil {
			t.Fatal(err)
		}
		resumed := c.hear(t, "bob", matching(source, `tag: "kiln", messageType: REQUEST`), operation.Resume{Start: operation.After, After: at})
		c.say("ann", lab, "z", "")
		passed := c.store.Head().Revision
		c.say("ann", lab, "w", `, tags: ["kiln"], messageType: REQUEST, recipient: "bob"`)
		c.hears(resumed, "w")
		c.hears(live, "w")
		if got := live.sub.Position().Revision; got != passed {
			t.Errorf("%s: with the next one sent the position is at %d, want %d, after the one left out", source, got, passed)
		}
	}
	for filter, want := range map[string]string{
		`status: READ`:                  "INVALID where.matching.status",
		`forMe: true, recipient: "ann"`: "INVALID where.matching.forMe",
	} {
		c.want(filter, c.deaf("bob", matching(ofJoined, filter), operation.Resume{}), want)
	}
}

// TestInbox proves that the inbox has the messages to its agent, in pages, and that the
// subscription delivers those after its last page.
func TestInbox(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	lab := c.lab("PRIVATE")
	var want []string
	for i := range 70 {
		text := fmt.Sprint(i)
		switch i % 3 {
		case 0:
			c.say("bob", lab, text, "")
		case 1:
			c.say("ann", lab, text, `, recipient: "bob"`)
			want = append(want, text)
		default:
			c.told("ann", `mutation { publishMessage(input: {to: "bob", parts: [{text: "%s"}]}) { success } }`, text)
			want = append(want, text)
		}
	}
	type page struct {
		Inbox struct {
			Nodes    []struct{ Text string }
			PageInfo struct {
				EndCursor   string
				HasNextPage bool
			}
		}
	}
	walk := func(who, args string) (texts []string, at string) {
		t.Helper()
		for after := ""; ; {
			var p page
			if err := json.Unmarshal([]byte(c.told(who, `{ inbox(%s%s) { nodes { text } pageInfo { endCursor hasNextPage } } }`, args, after)), &p); err != nil {
				t.Fatal(err)
			}
			for _, n := range p.Inbox.Nodes {
				texts = append(texts, n.Text)
			}
			if after = `, after: "` + p.Inbox.PageInfo.EndCursor + `"`; !p.Inbox.PageInfo.HasNextPage {
				return texts, p.Inbox.PageInfo.EndCursor
			}
		}
	}
	for _, args := range []string{"first: 1", "first: 7", "first: 33", "first: 200"} {
		got, at := walk("bob", args)
		c.want(args, strings.Join(got, " "), strings.Join(want, " "))
		if args != "first: 200" {
			continue
		}
		f := c.hear(t, "bob", subscription(ofInbox, `, resume: "`+at+`"`), operation.Resume{})
		c.say("ann", lab, "more", "")
		c.hears(f, "more")
	}
	if got, _ := walk("eve", "first: 5"); len(got) != 0 {
		t.Errorf("for others: %v", got)
	}
	for args, want := range map[string]string{
		`first: 0`: "INVALID first", `first: 201`: "LIMIT_EXCEEDED", `after: "x"`: "POSITION_GONE after",
		`after: "` + newBench(t, graph.Options{}).store.FormatPosition(c.store.Head()) + `"`: "POSITION_GONE after",
	} {
		c.want(args, c.refused("bob", `{ inbox(%s) { pageInfo { endCursor } } }`, args), want)
	}
	small := newConversing(t, limit.Limits{ResultBytes: 20_000})
	for range 8 {
		small.told("ann", `mutation { publishMessage(input: {to: "bob", parts: [{text: "%s"}]}) { success } }`, strings.Repeat("x", 3000))
	}
	if result := small.ask("bob", `{ inbox { nodes { sequence } } }`); len(result.Errors) != 1 || result.Errors[0].Extensions["limit"] != "resultBytes" {
		t.Errorf("more than an answer holds: %v", result.Errors)
	}
}
