package graph_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"koine/graph/limit"
	"koine/internal/slowtest"
)

// overheard are queries about channels and messages, which an outsider runs.
var overheard = []string{
	`{ channels(first: 200) { nodes { name topic visibility version messageCount members { nodes { agent { id name owner { id name } ownerId roles status createdAt statementCount presence { status } registration { description } } agentId role } } createdBy { id name owner { id name } ownerId roles status createdAt statementCount presence { status } registration { description } } messages(first: 200, order: DESC) { nodes { sequence text embedding { model dimension vector } author { id name owner { id name } ownerId roles status createdAt statementCount presence { status } registration { description } } recipients { id name owner { id name } ownerId roles status createdAt statementCount presence { status } registration { description } } recipientIds replyTo { text } replies(first: 200) { nodes { text } } facts(first: 100) { nodes { predicate object { ... on Literal { value } } graph } } channel { name } } } } pageInfo { hasNextPage } } }`,
	`{ channels(first: 200) { nodes { name status closedReason expireAfterSeconds keepMessages audit scopeId memberPolicy scope { title } limits { messagesPerMinute } restrictions { nodes { agent { id name owner { id name } ownerId roles status createdAt statementCount presence { status } registration { description } } agentId kind } } invitations { nodes { agent { id } agentId invitedBy { id name } invitedById } } } } scopes(first: 200) { nodes { title tasks { nodes { title } } channels { nodes { name } } events { nodes { sequence hash actor { id name } } } coordinator { id } createdBy { id name } access { agents { id name } } } } }`,
	`{ channels(first: 200, invited: true) { nodes { name } } entities(first: 1000, where: {type: {in: ["koine:Scope", "koine:ScopeEvent"]}}, view: {allGraphs: true}) { totalCount nodes { types degree } } }`,
	`{ channels(first: 200, memberId: "bob") { nodes { name entity { types degree out(first: 100) { totalCount } in(first: 100) { totalCount } } } } }`,
	`{ entities(first: 1000, where: {type: {in: ["koine:Message", "koine:Channel"]}}, view: {allGraphs: true}) { totalCount nodes { types degree asChannel { name messageCount } asMessage { text channel { name } } } groups(first: 100, by: [{as: "t", property: "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"}]) { count } } }`,
	`{ statements(first: 1000, view: {allGraphs: true}) { totalCount nodes { predicate evidence(first: 100) { nodes { text channel { name } } } subject { asMessage { text } } object { ... on Entity { asChannel { name } asMessage { text } } } } } }`,
	`{ statements(first: 1000) { totalCount nodes { predicate graph assertions { embedding { model vector } source { id name owner { id name } ownerId roles status createdAt statementCount presence { status } registration { description } } sourceId } evidence(first: 100) { nodes { text author { id name owner { id name } ownerId roles status createdAt statementCount presence { status } registration { description } } authorId } } } } }`,
	`{ match(first: 1000, pattern: {triples: [{s: "?m", p: "koine:channel/koine:channelName", o: "?name"}, {s: "?m", p: "koine:author", o: "?who"}]}, view: {allGraphs: true}) { totalCount nodes { value(var: "name") values } } }`,
	`{ vocabulary(view: {allGraphs: true}) { classes(first: 1000) { nodes { iri count } } predicates(first: 1000) { nodes { iri count } } graphs(first: 1000) { nodes { graph count } } } stats(view: {allGraphs: true}) { statements graphs predicates classes } }`,
	`{ entity(iri: "koine:Message", view: {allGraphs: true}) { degree in(first: 1000) { totalCount nodes { subject { asMessage { text } } } } follow(path: "^<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>/koine:replyTo", first: 1000) { totalCount nodes { asMessage { text } } } } }`,
	`{ changes(first: 1000, view: {allGraphs: true}) { nodes { op statement { predicate evidence { nodes { text } } assertions { source { id name } } } commit { principal { id name } actor { id name owner { id name } ownerId roles status createdAt statementCount presence { status } registration { description } } actorId } } } }`,
	`{ tasks(first: 100) { totalCount nodes { id } } entities(first: 1000, where: {type: {in: ["koine:Task", "koine:TaskMessage", "koine:Artifact"]}}, view: {allGraphs: true}) { totalCount nodes { types degree asTask { id } } } }`,
	`{ match(first: 1000, pattern: {triples: [{s: "?t", p: "koine:taskCreator", o: "?who"}]}, view: {allGraphs: true}) { totalCount nodes { values } } entity(iri: "agent://bob", view: {allGraphs: true}) { degree in(first: 100) { totalCount } } }`,
	`{ inbox(first: 200) { nodes { text author: authorId channel { name } } pageInfo { hasNextPage } } channels(first: 200, visibility: PUBLIC) { nodes { readMarker unread { count hasMore } messages(first: 200, where: {forMe: true, status: PENDING}) { nodes { receiptStatus receipts { nodes { agent { id name presence { status } } agentId status } } withheldReason } } } } }`,
	`{ channels(first: 200) { nodes { messages(first: 200) { nodes { entity { history(first: 100) { nodes { op statement { predicate } } } out(first: 100) { nodes { predicate } } } } } } } }`,
}

var anyID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// TestUnseenChannelsDoNotExist proves that messages in private channels, and tasks between
// others, change no answer to an outsider, by any field, about channels, messages, tasks
// and facts: the answers are those of a server without them.
func TestUnseenChannelsDoNotExist(t *testing.T) {
	slowtest.Long(t)
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", s)
	r := rand.New(rand.NewPCG(s, 6))
	whole, seen := newConversing(t, limit.Limits{Complexity: 1 << 30}), newConversing(t, limit.Limits{Complexity: 1 << 30})
	type room struct {
		hidden   bool
		ids      [2]string // on whole, and on seen
		messages [2][]string
	}
	var rooms []*room
	servers := func(hidden bool) []*conversing {
		if hidden {
			return []*conversing{whole}
		}
		return []*conversing{whole, seen}
	}
	for n := range 80 {
		if n%8 == 0 { // work that the two ask of each other is theirs
			id, _ := whole.asks(fmt.Sprint("task ", n), "")
			whole.reports(id, `, state: WORKING, artifacts: [{id: "a", parts: [{text: "x"}]}]`)
		}
		if len(rooms) < 2 || r.IntN(10) == 0 {
			o := &room{hidden: len(rooms)%2 == 0}
			visibility := map[bool]string{true: "PRIVATE", false: "PUBLIC"}[o.hidden]
			for i, c := range servers(o.hidden) {
				if o.hidden { // half of the hidden channels are in scopes
					scope := c.id("ann", `mutation { createScope(input: {title: "scope %d", access: {agentIds: ["bob"]}}) { scope { id } } }`, len(rooms))
					if r.IntN(2) == 0 {
						o.ids[i] = c.id("ann", `mutation { createChannel(input: {scopeId: "%s", name: "room %d", memberPolicy: SCOPE, audit: true}) { channel { id } } }`, scope, len(rooms))
						continue
					}
				}
				o.ids[i] = c.id("ann", `mutation { createChannel(input: {name: "room %d", visibility: %s, members: [{agentId: "bob"}]}) { channel { id } } }`, len(rooms), visibility)
			}
			rooms = append(rooms, o)
			continue
		}
		o := rooms[r.IntN(len(rooms))]
		who, reply, graph := []string{"ann", "bob"}[r.IntN(2)], r.IntN(2) == 0, ""
		if o.hidden || r.IntN(2) == 0 { // facts that members assert in public are there for all
			graph = ""
		} else {
			graph = `, graph: "ex:g"`
		}
		facts, to := r.IntN(2) == 0, r.IntN(1<<20)
		for i, c := range servers(o.hidden) {
			more := ""
			if reply && len(o.messages[i]) > 0 {
				more = `, replyToId: "` + o.messages[i][to%len(o.messages[i])] + `"`
			}
			if to%3 == 0 {
				more += fmt.Sprintf(`, embedding: {model: "m", vector: [1, %d]}`, n)
			}
			if facts {
				more += fmt.Sprintf(`, patches: [{op: add, statement: {subject: {id: "ex:s%d"}, predicate: {id: "ex:%s"}, object: {value: %d}%s}, embedding: {model: "f", vector: [2, %d]}}]`, n%7, map[bool]string{true: "whispered", false: "said"}[o.hidden], n, graph, n)
			}
			o.messages[i] = append(o.messages[i], c.say(who, o.ids[i], fmt.Sprint("message ", n), more))
		}
	}
	told := func(c *conversing, query string) string {
		result := c.ask("eve", "%s", query)
		var data any
		if err := json.Unmarshal(result.Data, &data); err != nil {
			t.Fatalf("%s: %v, %v", query, err, result.Errors)
		}
		errs, _ := json.Marshal(result.Errors)
		hints, _ := json.Marshal(result.Hints)
		return anyID.ReplaceAllString(canonical(data, false)+string(errs)+string(hints), "…")
	}
	for _, query := range overheard {
		got, want := told(whole, query), told(seen, query)
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", query, got, want)
		}
		if strings.Contains(want, `"data":null`) || !strings.Contains(told(whole, strings.Replace(query, "{", "{ __typename ", 1)), "Query") {
			t.Errorf("%s: not answered", query)
		}
	}
	// A member gets more: the channels were not hidden from all callers.
	if r := whole.told("bob", `{ entities(where: {type: {eq: "koine:Message"}}, view: {allGraphs: true}) { totalCount } }`); r == whole.told("eve", `{ entities(where: {type: {eq: "koine:Message"}}, view: {allGraphs: true}) { totalCount } }`) {
		t.Errorf("eve is told as much as bob: %s", r)
	}
}

// TestChannelQueriesAreBounded proves that the fields of channels are under the limits
// before they are read, and that an answer that grows beyond them ends.
func TestChannelQueriesAreBounded(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	deep := strings.Repeat(`channel { messages(first: 200) { nodes { `, 3) + `id` + strings.Repeat(` } } }`, 3)
	for _, query := range []string{
		`{ channels(first: 200) { nodes { messages(first: 200) { nodes { ` + deep + ` } } } } }`,
		`{ channels(first: 200) { nodes { messages(first: 200) { nodes { replies(first: 200) { nodes { id } } } } } } }`,
		`{ statements(first: 1000) { nodes { evidence(first: 1000) { nodes { id } } } } }`,
		`{ channels { nodes { messages(first: 200) { nodes { facts(first: 1000) { nodes { id } } } } } } }`,
	} {
		result := c.ask("bob", "%s", query)
		if len(result.Errors) != 1 || result.Errors[0].Extensions["limit"] != "complexity" {
			t.Errorf("%.80s: %v", query, result.Errors)
		}
	}
	if result := c.ask("bob", "%s", `{ channel(id: "`+id+`") { `+strings.Repeat(`entity { asChannel { `, 20)+`id`+strings.Repeat(` } }`, 20)+` } }`); len(result.Errors) != 1 || result.Errors[0].Extensions["limit"] != "depth" {
		t.Errorf("deep: %v", result.Errors)
	}
	small := newConversing(t, limit.Limits{ResultBytes: 20_000})
	id = small.lab("PRIVATE")
	for range 8 {
		small.say("ann", id, strings.Repeat("x", 3000), "")
	}
	for _, query := range []string{`{ channel(id: "%s") { messages { nodes { sequence } } } }`, `{ channel(id: "%s") { messages { nodes { parts } } } }`} {
		if result := small.ask("bob", query, id); len(result.Errors) != 1 || result.Errors[0].Extensions["limit"] != "resultBytes" {
			t.Errorf("%s: %.200s %v", query, result.Data, result.Errors)
		}
	}
	if result := small.ask("bob", `{ channel(id: "%s") { messages(first: 5) { nodes { sequence } } } }`, id); len(result.Errors) != 0 {
		t.Errorf("a smaller page: %v", result.Errors)
	}
}
