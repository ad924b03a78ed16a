package graph_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
)

// TestChannelsAsStatementsFollowMembership proves that members of a private channel find it
// and its messages in all reads of the graph, that others do not, and that this changes at
// once with the membership.
func TestChannelsAsStatementsFollowMembership(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	message := c.say("ann", id, "hello", "")
	for _, row := range []struct{ query, member, other string }{
		{`{ entities(where: {type: {in: ["koine:Message", "koine:Channel"]}}, view: {allGraphs: true}) { totalCount nodes { asChannel { name } asMessage { text } } } }`,
			`{"entities":{"totalCount":2,"nodes":[{"asChannel":{"name":"lab"},"asMessage":null},{"asChannel":null,"asMessage":{"text":"hello"}}]}}`, `{"entities":{"totalCount":0,"nodes":[]}}`},
		{`{ match(pattern: {triples: [{s: "?m", p: "koine:channel/koine:channelName", o: "?name"}]}, view: {allGraphs: true}) { nodes { value(var: "name") } } }`,
			`{"match":{"nodes":[{"value":"lab"}]}}`, `{"match":{"nodes":[]}}`},
		{`{ entity(iri: "koine:Message", view: {allGraphs: true}) { follow(path: "^<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>/koine:channel") { nodes { asChannel { name } } } } }`,
			`{"entity":{"follow":{"nodes":[{"asChannel":{"name":"lab"}}]}}}`, `{"entity":null}`},
		{`{ entity(iri: "urn:koine:message:` + message + `", view: {allGraphs: true}) { asMessage { text } } }`,
			`{"entity":{"asMessage":{"text":"hello"}}}`, `{"entity":null}`},
	} {
		told := func(what, who, want string) {
			t.Helper()
			c.want(what+" "+row.query, c.told(who, "%s", row.query), want)
		}
		told("a member", "bob", row.member)
		told("another", "eve", row.other)
		c.told("ann", `mutation { addChannelMember(input: {channelId: "%s", agentId: "eve"}) { channel { id } } }`, id)
		c.told("ann", `mutation { removeChannelMember(input: {channelId: "%s", agentId: "bob"}) { channel { id } } }`, id)
		told("who is in it now", "eve", row.member)
		told("who is not any more", "bob", row.other)
		c.told("ann", `mutation { addChannelMember(input: {channelId: "%s", agentId: "bob"}) { channel { id } } }`, id)
		c.told("ann", `mutation { removeChannelMember(input: {channelId: "%s", agentId: "eve"}) { channel { id } } }`, id)
	}
}

// TestStreamsOfStatementsFollowMembership proves that a stream of the statements of a
// private channel gets a resync when its reader is removed, or admitted, before the next
// message, and that the streams of other members continue.
func TestStreamsOfStatementsFollowMembership(t *testing.T) {
	said := ` { ... on StatementChange { statement { subject { asMessage { text } } } } }`
	for _, query := range []string{
		`subscription { e: statementChanged(where: {predicate: {eq: "koine:author"}}, view: {allGraphs: true})` + said + ` }`,
		`subscription { e: entityChanged(iri: "agent://ann", depth: 1, view: {allGraphs: true}) { ... on EntityChange { changes { statement { subject { asMessage { text } } } } } } }`,
		`subscription { e: entityChanged(iri: "urn:koine:channel:{channel}", depth: 1, view: {allGraphs: true}) { ... on EntityChange { changes { statement { subject { asMessage { text } } } } } } }`,
		`subscription { e: matchChanged(pattern: {triples: [{s: "?m", p: "koine:parts", o: "?said"}]}, view: {allGraphs: true}) { ... on MatchChange { added { value(var: "said") } } } }`,
	} {
		c := newConversing(t, limit.Limits{})
		id := c.lab("PRIVATE")
		query = strings.ReplaceAll(query, "{channel}", id)
		c.told("ann", `mutation { addChannelMember(input: {channelId: "%s", agentId: "cy"}) { channel { id } } }`, id)
		listeners := map[string]*tail{}
		for _, who := range []string{"bob", "cy", "eve"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			sub, err := c.engine.Subscribe(ctx, operation.Request{Query: query, Principal: kg.Principal{ID: kg.CanonicalAgent(who), Method: "key"}})
			if err != nil {
				cancel()
				t.Fatal(err)
			}
			listeners[who] = tailOf(t, sub, cancel)
		}
		c.say("ann", id, "hello", "")
		for _, who := range []string{"bob", "cy"} {
			if _, data := listeners[who].event(); !strings.Contains(data, "hello") {
				t.Errorf("%s: %s, a member, is told %s", query, who, data)
			}
		}
		c.told("ann", `mutation { removeChannelMember(input: {channelId: "%s", agentId: "bob"}) { channel { id } } }`, id)
		c.told("ann", `mutation { addChannelMember(input: {channelId: "%s", agentId: "eve"}) { channel { id } } }`, id)
		c.say("ann", id, "hush", "")
		c.say("ann", id, "end", "")
		for who, f := range listeners {
			var heard []string
			var end error
			for end == nil && !strings.Contains(strings.Join(heard, ""), "end") {
				e, err, ok := f.next()
				if end = err; !ok {
					t.Fatalf("%s: the stream of %s ended", query, who)
				}
				heard = append(heard, fmt.Sprint(string(e.Result.Data), e.Result.Errors))
			}
			all := strings.Join(heard, "\n")
			switch stays := who == "cy"; {
			case stays && (end != nil || !strings.Contains(all, "hush")):
				t.Errorf("%s: one that stays is told %s, and ends with %v", query, all, end)
			case !stays && (kg.CodeOf(end) != kg.CodeAccessChanged || strings.Contains(all, "hello") || strings.Contains(all, "hush")):
				t.Errorf("%s: %s, to whom it begins or ends, is told %s, and ends with %v", query, who, all, end)
			}
			f.stop()
		}
	}
}
