package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
)

// pastDoors are the ways to read past statements. $at is a revision, $entity a message and
// $secret its text.
var pastDoors = []string{
	`{ statements(first: 1000, view: {allGraphs: true, at: "$at"}) { totalCount nodes { subject { iri } predicate object { ... on Literal { lexical } } graph } } }`,
	`{ statements(first: 1000, where: {object: {eq: "$tag"}}, view: {allGraphs: true, at: "$at"}) { totalCount nodes { subject { iri } object { ... on Literal { lexical } } } } }`,
	`{ entities(first: 1000, where: {type: {eq: "koine:Message"}}, view: {allGraphs: true, at: "$at"}) { totalCount nodes { iri degree predicates { iri count } out(first: 100) { nodes { object { ... on Literal { lexical } } } } } } }`,
	`{ entity(iri: "$entity", view: {allGraphs: true, at: "$at"}) { degree out(first: 100) { totalCount nodes { predicate object { ... on Literal { lexical } } } } } }`,
	`{ entity(iri: "$entity", view: {allGraphs: true}) { history(first: 100) { nodes { op statement { predicate object { ... on Literal { lexical } } } previous { object { ... on Literal { lexical } } } } } } }`,
	`{ match(first: 1000, pattern: {triples: [{s: "?m", p: "koine:parts", o: "?said"}]}, view: {allGraphs: true, at: "$at"}) { totalCount nodes { values } } }`,
	`{ match(first: 1000, pattern: {triples: [{s: "?m", p: "koine:channel", o: "?c"}, {s: "?m", p: "koine:tag", o: "?said"}]}, view: {allGraphs: true, at: "$at"}) { totalCount nodes { values } } }`,
	`{ changes(first: 1000, view: {allGraphs: true}) { nodes { op statement { predicate object { ... on Literal { lexical } } } previous { object { ... on Literal { lexical } } } } } }`,
	`{ changes(first: 1000, order: DESC, until: "$at", view: {allGraphs: true}) { nodes { op statement { object { ... on Literal { lexical } } } previous { object { ... on Literal { lexical } } } } } }`,
	`{ diff(first: 1000, from: "$at", view: {allGraphs: true}) { nodes { op statement { object { ... on Literal { lexical } } } previous { object { ... on Literal { lexical } } } } } }`,
	`{ diff(first: 1000, from: "0", to: "$at", view: {allGraphs: true}) { nodes { statement { object { ... on Literal { lexical } } } } } }`,
	`{ why(statement: {subject: {id: "$entity"}, predicate: {id: "koine:tag"}, object: {value: "$tag"}, graph: "$graph"}, view: {allGraphs: true, at: "$at"}) { statement { object { __typename } } history { op message { text } } } }`,
	`{ vocabulary(view: {allGraphs: true, at: "$at"}) { predicates(first: 1000) { nodes { iri count } } } stats(view: {allGraphs: true, at: "$at"}) { statements } }`,
	`{ channel(id: "$channel") { messages(first: 200) { nodes { text tags metadata artifactRefs facts { nodes { object { ... on Literal { lexical } } } } entity { out(first: 100) { nodes { object { ... on Literal { lexical } } } } } } } } }`,
}

var followedDoors = []string{
	`subscription { e: statementChanged(where: {graph: {eq: "$graph"}}, resume: "earliest", view: {allGraphs: true}) { ... on StatementChange { op statement { object { ... on Literal { lexical } } } previous { object { ... on Literal { lexical } } } } } }`,
	`subscription { e: entityChanged(iri: "$channelEntity", depth: 2, resume: "earliest", view: {allGraphs: true}) { ... on EntityChange { entity { degree } changes { op statement { object { ... on Literal { lexical } } } } } } }`,
	`subscription { e: matchChanged(pattern: {triples: [{s: "?m", p: "koine:parts", o: "?said"}]}, resume: "earliest", view: {allGraphs: true}) { ... on MatchChange { added { values } removed { values } changes { statement { object { ... on Literal { lexical } } } } } } }`,
}

// toldAs runs an operation with roles.
func (c *conversing) toldAs(name string, roles []string, query string) string {
	c.t.Helper()
	req := operation.Request{Query: query, Principal: kg.Principal{ID: kg.CanonicalAgent(name), Roles: roles, Method: "key"}}
	result := c.engine.Execute(c.t.Context(), req)
	if len(result.Errors) > 0 {
		c.t.Fatalf("%s: %v", query, result.Errors)
	}
	return string(result.Data)
}

// TestWhatWasTakenBackHasNoPast proves that former readers cannot read the content of a
// message once it was retracted, has expired, or was evicted: not by any field, at any
// revision. Administrators can, and the remaining statements are there for all.
func TestWhatWasTakenBackHasNoPast(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", s)
	r := rand.New(rand.NewPCG(s, 7))
	c := newConversing(t, limit.Limits{Complexity: 1 << 30})
	by := channels.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}
	room, err := c.service.Create(t.Context(), by, channel.Draft{Name: "room", KeepMessages: 12, Members: []channel.Member{{Agent: "agent://bob", Role: channel.Ordinary}}})
	if err != nil {
		t.Fatal(err)
	}
	type said struct {
		id   message.ID
		text string
		gone bool
	}
	var messages []*said
	came := make(map[kg.Revision]*said)
	for n := range 16 {
		m := &said{text: fmt.Sprintf("secret-%d-", n)}
		pub := channels.Publication{
			Channel: room.ID, Parts: []json.RawMessage{[]byte(`{"type":"text","text":"` + m.text + `"}`)}, Metadata: []byte(`{"a":"` + m.text + `"}`),
			ArtifactRefs: []string{m.text}, Envelope: message.Envelope{Tags: []string{m.text}, Format: m.text},
		}
		if n < 15 && r.IntN(3) == 0 {
			pub.Envelope.To = "agent://bob"
		}
		receipt, err := c.service.Publish(t.Context(), by, pub)
		if err != nil {
			t.Fatal(err)
		}
		m.id = receipt.Message.ID
		messages = append(messages, m)
		came[receipt.Message.Revision] = m
		if n < 15 && r.IntN(3) == 0 {
			of := messages[r.IntN(len(messages))]
			if _, err := c.service.Retract(t.Context(), by, channels.Retraction{Channel: room.ID, Message: of.id}); err != nil {
				t.Fatal(err)
			}
			of.gone = true
		}
	}
	count := int64(len(messages))
	for _, m := range messages {
		if shown, err := c.service.Message(t.Context(), by, m.id); err != nil || (shown.Withheld != "") != m.gone {
			if m.gone = true; err != nil || shown.Withheld != message.Evicted {
				t.Fatalf("a message is %v, %v", shown, err)
			}
		}
	}
	if !slices.ContainsFunc(messages, func(m *said) bool { return m.gone }) || !slices.ContainsFunc(messages, func(m *said) bool { return !m.gone }) {
		t.Fatalf("of %d messages all are gone or none", count)
	}

	told := make(map[string]int) // by reader: occurrences of removed content
	seen := 0
	look := func(who, door, answer string) {
		for _, m := range messages {
			switch has := strings.Contains(answer, m.text); {
			case has && m.gone && who == "bob":
				t.Errorf("bob is told %s: %s\n%s", m.text, door, answer)
			case has && m.gone:
				told[door]++
			case has:
				seen++
			}
		}
	}
	for at := 1; at <= int(c.store.Head().Revision); at++ {
		for _, door := range pastDoors {
			m := came[kg.Revision(at)] // each is asked for when it stood, so that there is a past
			if m == nil {
				m = messages[r.IntN(len(messages))]
			}
			query := strings.NewReplacer("$at", fmt.Sprint(at), "$entity", m.id.Entity().Value(), "$tag", m.text, "$graph", room.ID.MessagesGraph().Value(), "$channel", string(room.ID)).Replace(door)
			look("bob", door, c.toldAs("bob", nil, query))
			look("root", door, c.adminAsk(query))
		}
	}
	for _, door := range followedDoors {
		query := strings.NewReplacer("$graph", room.ID.MessagesGraph().Value(), "$channelEntity", room.ID.Entity().Value()).Replace(door)
		last := messages[len(messages)-1].text
		look("bob", door, c.followedUntil(t, "agent://bob", nil, query, last))
		look("root", door, c.followedUntil(t, "agent://root", []string{kg.RoleAdmin}, query, last))
	}
	if seen == 0 {
		t.Error("nothing that stands is told")
	}
	for _, door := range append(pastDoors[:11:11], followedDoors...) {
		if told[door] == 0 {
			t.Errorf("an administrator is not told of the past: %s", door)
		}
	}
}

func (c *conversing) adminAsk(query string) string {
	if strings.Contains(query, "channel(id:") {
		return "" // administrators are no members
	}
	return c.toldAs("root", []string{kg.RoleAdmin}, query)
}

// followedUntil is the output of a subscription up to the given text.
func (c *conversing) followedUntil(t *testing.T, who kg.AgentID, roles []string, query, last string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	sub, err := c.engine.Subscribe(ctx, operation.Request{Query: query, Principal: kg.Principal{ID: who, Roles: roles, Method: "key"}})
	if err != nil {
		t.Fatal(err)
	}
	f := tailOf(t, sub, cancel)
	defer f.stop()
	var out strings.Builder
	for {
		_, data := f.event()
		if out.WriteString(data); strings.Contains(data, last) {
			return out.String()
		}
	}
}

// TestWhatIsFollowedIsToldToGo proves that an open stream delivers the removal of retracted
// content, and that a stream that resumes afterwards gets a resync.
func TestWhatIsFollowedIsToldToGo(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	first := c.say("ann", id, "hello", "")
	query := `subscription { e: matchChanged(pattern: {triples: [{s: "?m", p: "koine:parts", o: "?said"}]}, resume: "%s", view: {allGraphs: true}) { ... on MatchChange { added { values } removed { values } } ... on Resync { reason } } }`
	bob := kg.Principal{ID: "agent://bob", Method: "key"}
	follow := func(from string) *tail {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		sub, err := c.engine.Subscribe(ctx, operation.Request{Query: fmt.Sprintf(query, from), Principal: bob})
		if err != nil {
			t.Fatal(err)
		}
		return tailOf(t, sub, cancel)
	}
	live := follow("snapshot")
	_, stands := live.event()
	if !strings.Contains(stands, "hello") {
		t.Fatalf("what stands is %s", stands)
	}
	before := c.store.FormatPosition(c.store.Head())
	by := channels.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}
	if _, err := c.service.Retract(t.Context(), by, channels.Retraction{Channel: channel.ID(id), Message: message.ID(first), Reason: "bye"}); err != nil {
		t.Fatal(err)
	}
	_, went := live.event()
	if _, removed, _ := strings.Cut(went, "removed"); !strings.Contains(went, "bye") || !strings.Contains(removed, "hello") {
		t.Errorf("a follower is told %s", went)
	}
	back := follow(before)
	if e, err, _ := back.next(); kg.CodeOf(err) != kg.CodeAccessChanged || strings.Contains(string(e.Result.Data), "hello") {
		t.Errorf("who comes back is told %s, %v", e.Result.Data, err)
	}
	anew := follow("snapshot")
	if _, data := anew.event(); strings.Contains(data, "hello") || !strings.Contains(data, "bye") {
		t.Errorf("who reads anew is told %s", data)
	}
}
