package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"koine/channels"
	"koine/graph"
	"koine/graph/limit"
	"koine/internal/intents"
	"koine/internal/operation"
	"koine/internal/proposals"
	"koine/internal/slowtest"
	"koine/internal/tasks"
	"koine/kg"
)

// conversing is a bench with channels, tasks, and reviews that hold facts with ex:pay.
type conversing struct {
	*bench
	service *channels.Service
	tasks   *tasks.Service
}

func newConversing(t testing.TB, limits limit.Limits) *conversing {
	t.Helper()
	return newConversingWith(t, limits, channels.Options{})
}

func newConversingWith(t testing.TB, limits limit.Limits, o channels.Options) *conversing {
	t.Helper()
	if limits.Duration == 0 {
		limits.Duration = slowtest.Slack(limit.DefaultDuration)
	}
	var reviews *proposals.Service
	o.WithdrawProposal = func(tx *kg.Tx, proposal, why string) (bool, error) { return reviews.WithdrawIn(tx, proposal, why) }
	service := channels.New(o)
	b := newBench(t, graph.Options{}, func(o *kg.Options) {
		reviews = proposals.New(proposals.Options{Clock: o.Clock})
		o.Verifier, o.Holder = payHeld{}, reviews
		o.Access = tasks.NewGuard(service.Guard(reviews.Guard(kg.AllowAll{})))
		o.OnSystemChange = func(c *kg.Commit) {
			reviews.Follow(c)
			service.Follow(c)
		}
	})
	if err := reviews.Open(t.Context(), b.store); err != nil {
		t.Fatal(err)
	}
	if err := service.Load(t.Context(), b.store); err != nil {
		t.Fatal(err)
	}
	work := tasks.New(tasks.Options{Known: func(kg.AgentID) bool { return true }})
	if err := work.Load(t.Context(), b.store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(work.Close)
	prefixes, err := kg.NewPrefixes(map[string]string{"ex": ex, "koine": kg.OwnVocabulary})
	if err != nil {
		t.Fatal(err)
	}
	deps := graph.Deps{Store: b.store, Prefixes: prefixes, Reviews: reviews, Channels: service, Intents: intents.New(b.store, service, intents.Options{Clock: b.clock.tick}), Tasks: work, Logger: slog.New(slog.NewTextHandler(b.log, nil))}
	b.engine = graph.NewEngine(deps, graph.Options{Limits: limits})
	return &conversing{b, service, work}
}

// ask runs an operation as an agent.
func (c *conversing) ask(name, query string, args ...any) operation.Result {
	c.t.Helper()
	req := operation.Request{Query: fmt.Sprintf(query, args...), Principal: kg.Principal{ID: kg.CanonicalAgent(name), Method: "key"}}
	return c.engine.Execute(context.Background(), req)
}

// told is the data of an answer without errors.
func (c *conversing) told(name, query string, args ...any) string {
	c.t.Helper()
	result := c.ask(name, query, args...)
	if len(result.Errors) > 0 {
		c.t.Fatalf("%s: %v", fmt.Sprintf(query, args...), result.Errors)
	}
	return string(result.Data)
}

// refused is the code and the field of an answer's only error.
func (c *conversing) refused(name, query string, args ...any) string {
	c.t.Helper()
	result := c.ask(name, query, args...)
	if len(result.Errors) != 1 {
		c.t.Fatalf("%s: got %s with %v, want one error", fmt.Sprintf(query, args...), result.Data, result.Errors)
	}
	e := result.Errors[0].Extensions
	if e["field"] == nil {
		return fmt.Sprint(e["code"])
	}
	return fmt.Sprint(e["code"], " ", e["field"])
}

// id is the member of the first object that a mutation answered with.
func (c *conversing) id(name, query string, args ...any) string {
	c.t.Helper()
	var data map[string]struct {
		Message, Channel, Scope struct{ ID string }
	}
	if err := json.Unmarshal([]byte(c.told(name, query, args...)), &data); err != nil {
		c.t.Fatal(err)
	}
	for _, v := range data {
		return v.Message.ID + v.Channel.ID + v.Scope.ID
	}
	return ""
}

// lab makes a channel of ann's with bob.
func (c *conversing) lab(visibility string) string {
	c.t.Helper()
	return c.id("ann", `mutation { createChannel(input: {name: "lab", topic: "glass", visibility: %s, members: [{agentId: "bob", role: MODERATOR}], metadata: {a: 1}}) { channel { id } } }`, visibility)
}

// say publishes a text, with more of an input.
func (c *conversing) say(name, channel, text, more string) string {
	c.t.Helper()
	return c.id(name, `mutation { publishMessage(input: {channelId: "%s", parts: [{type: "text", text: "%s"}] %s}) { message { id } } }`, channel, text, more)
}

func (c *conversing) want(what, got, want string) {
	c.t.Helper()
	if got != want {
		c.t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

func TestChannelFields(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	first := c.say("ann", id, "hello", `, artifactRefs: ["a1"], metadata: {b: [1.5]}, idempotencyKey: "k", tags: ["y", "x"], format: "markdown", threadId: "t", messageType: NOTIFY, contentType: TEXT`)
	second := c.id("bob", `mutation { publishMessage(input: {channelId: "%s", replyToId: "%s", parts: [{kind: "text", text: "one"}, {kind: "data", data: {x: 1}}, {text: "two"}]}) { message { id } } }`, id, first)
	c.want("the channel", c.told("bob", `{ channel(id: "%s") { kind name topic visibility createdBy: createdById members { nodes { agent: agentId role } } metadata version messageCount factsGraph maxMembers rights { discover join read post manage } } }`, id),
		`{"channel":{"kind":"CHANNEL","name":"lab","topic":"glass","visibility":"PRIVATE","createdBy":"agent://ann",`+
			`"members":{"nodes":[{"agent":"agent://ann","role":"OWNER"},{"agent":"agent://bob","role":"MODERATOR"}]},`+
			`"metadata":{"a":1},"version":1,"messageCount":2,"factsGraph":"urn:koine:facts:`+id+`","maxMembers":null,`+
			`"rights":{"discover":"MEMBERS","join":"OWNERS","read":"MEMBERS","post":"MEMBERS","manage":"MODERATORS"}}}`)
	c.want("a message", c.told("bob", `{ message(id: "%s") { channelId channel { name } sequence author: authorId parts text metadata artifactRefs idempotencyKey messageType contentType format tags recipient recipients: recipientIds correlationId expiresAt replyToId threadId factCount proposalId proposal { id } revision private withheldReason retracts { id } replies { nodes { id text } pageInfo { hasNextPage } } } }`, first),
		`{"message":{"channelId":"`+id+`","channel":{"name":"lab"},"sequence":1,"author":"agent://ann","parts":[{"text":"hello","type":"text"}],"text":"hello","metadata":{"b":[1.5]},`+
			`"artifactRefs":["a1"],"idempotencyKey":"k","messageType":"NOTIFY","contentType":"TEXT","format":"markdown","tags":["x","y"],"recipient":null,"recipients":[],"correlationId":null,"expiresAt":null,"replyToId":null,"threadId":"t","factCount":0,"proposalId":null,"proposal":null,"revision":2,`+
			`"private":false,"withheldReason":null,"retracts":null,"replies":{"nodes":[{"id":"`+second+`","text":"one\ntwo"}],"pageInfo":{"hasNextPage":false}}}}`)
	c.want("what it replies to", c.told("ann", `{ message(id: "%s") { replyTo { text channel { messages { nodes { sequence } } } } } }`, second),
		`{"message":{"replyTo":{"text":"hello","channel":{"messages":{"nodes":[{"sequence":1},{"sequence":2}]}}}}}`)

	times := c.told("bob", `{ channel(id: "%s") { createdAt lastMessageAt members { nodes { joinedAt } } messages { nodes { time } } } }`, id)
	if at := regexp.MustCompile(`2026-01-01T00:00:..\.000Z`).FindAllString(times, -1); len(at) != 6 || at[0] != at[2] || at[2] != at[3] || at[0] >= at[4] || at[4] >= at[5] || at[5] != at[1] {
		t.Errorf("the times are %s", times)
	}

	entities := `{ channel(id: "%s") { entity { iri types label: value(predicate: "koine:channelName") as: asChannel { name } } messages(first: 1) { nodes { entity { types author: value(predicate: "koine:author") asMessage { text } asChannel { id } } } } } }`
	c.want("as entities", c.told("bob", entities, id), `{"channel":{"entity":{"iri":"urn:koine:channel:`+id+`","types":["urn:koine:vocab:Channel"],"label":"lab","as":{"name":"lab"}},`+
		`"messages":{"nodes":[{"entity":{"types":["urn:koine:vocab:Message"],"author":"agent://ann","asMessage":{"text":"hello"},"asChannel":null}}]}}}`)
	all := `{ entities(where: {type: {eq: "koine:%s"}}, view: {allGraphs: true}) { totalCount nodes { asChannel { name } asMessage { text } } } }`
	c.want("found by their class", c.told("bob", all, "Message"), `{"entities":{"totalCount":2,"nodes":[{"asChannel":null,"asMessage":{"text":"hello"}},{"asChannel":null,"asMessage":{"text":"one\ntwo"}}]}}`)
	c.want("the channel by its class", c.told("bob", all, "Channel"), `{"entities":{"totalCount":1,"nodes":[{"asChannel":{"name":"lab"},"asMessage":null}]}}`)
	c.want("of others", c.told("eve", all, "Message"), `{"entities":{"totalCount":0,"nodes":[]}}`)
	c.want("of others", c.told("eve", all, "Channel"), `{"entities":{"totalCount":0,"nodes":[]}}`)
	c.want("by a pattern", c.told("bob", `{ match(pattern: {triples: [{s: "?m", p: "koine:replyTo/koine:author", o: "?who"}]}, view: {allGraphs: true}) { nodes { value(var: "who") } } }`), `{"match":{"nodes":[{"value":"agent://ann"}]}}`)
	c.want("by a way", c.told("bob", `{ entity(iri: "urn:koine:message:%s", view: {allGraphs: true}) { follow(path: "koine:channel") { nodes { asChannel { name } } } } }`, second), `{"entity":{"follow":{"nodes":[{"asChannel":{"name":"lab"}}]}}}`)
	c.want("under a budget", c.told("bob", `query @budget(maxTokens: 2000) { entities(where: {type: {eq: "koine:Message"}}, view: {allGraphs: true}) { nodes { asMessage { text channel { entity { out(first: 1) { nodes { predicate } } } } } } } channel(id: "%s") { messages { nodes { text } } } }`, id),
		`{"entities":{"nodes":[{"asMessage":{"text":"hello","channel":{"entity":{"out":{"nodes":[{"predicate":"http://www.w3.org/1999/02/22-rdf-syntax-ns#type"}]}}}}},`+
			`{"asMessage":{"text":"one\ntwo","channel":{"entity":{"out":{"nodes":[{"predicate":"http://www.w3.org/1999/02/22-rdf-syntax-ns#type"}]}}}}}]},"channel":{"messages":{"nodes":[{"text":"hello"},{"text":"one\ntwo"}]}}}`)
	if log := c.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}

// For others a private channel does not exist, for every request.
func TestChannelsOfOthers(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	message := c.say("ann", id, "secret", "")
	for _, query := range []string{
		`{ channel(id: "%s") { name } }`,
		`mutation { updateChannel(input: {channelId: "%s", expectedVersion: 1, name: "x"}) { channel { id } } }`,
		`mutation { deleteChannel(input: {channelId: "%s"}) { channelId } }`,
		`mutation { addChannelMember(input: {channelId: "%s", agentId: "eve"}) { channel { id } } }`,
		`mutation { removeChannelMember(input: {channelId: "%s", agentId: "bob"}) { channel { id } } }`,
		`mutation { publishMessage(input: {channelId: "%s", parts: [{text: "x"}]}) { success } }`,
	} {
		got, want := c.ask("eve", query, id), c.ask("eve", query, "0192aaaa-0000-7000-8000-000000000000")
		a, _ := json.Marshal(got.Errors)
		b, _ := json.Marshal(want.Errors)
		if string(a) != string(b) || !strings.Contains(string(a), `"CHANNEL_NOT_FOUND"`) || string(got.Data) != string(want.Data) {
			t.Errorf("%s:\n got %s %s\nwant %s %s", query, got.Data, a, want.Data, b)
		}
	}
	c.want("a message", c.refused("eve", `{ message(id: "%s") { text } }`, message), "NOT_FOUND id")
	c.want("none", c.refused("eve", `{ message(id: "%s") { text } }`, "0192aaaa-0000-7000-8000-000000000000"), "NOT_FOUND id")
	c.want("the list", c.told("eve", `{ channels { nodes { id } } }`), `{"channels":{"nodes":[]}}`)
	c.want("as an entity", c.told("eve", `{ entity(iri: "urn:koine:message:%s", view: {allGraphs: true}) { asMessage { text } } }`, message), `{"entity":null}`)
	// One that a statement of its own names is an entity, and no message.
	c.told("eve", `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "urn:koine:message:%s"}, predicate: {id: "ex:p"}, object: {id: "urn:koine:channel:%s"}}}]}) { success } }`, message, id)
	c.want("named", c.told("eve", `{ entity(iri: "urn:koine:message:%s") { asMessage { text } out { nodes { object { ... on Entity { asChannel { name } } } } } } }`, message), `{"entity":{"asMessage":null,"out":{"nodes":[{"object":{"asChannel":null}}]}}}`)
	c.want("to a member", c.told("bob", `{ entity(iri: "urn:koine:message:%s") { asMessage { text } } }`, message), `{"entity":{"asMessage":{"text":"secret"}}}`)

	public := c.lab("PUBLIC")
	c.say("bob", public, "open", "")
	c.want("a public one", c.told("eve", `{ channels(visibility: PUBLIC, memberId: "bob") { nodes { name messages { nodes { text } } } pageInfo { hasNextPage } } }`), `{"channels":{"nodes":[{"name":"lab","messages":{"nodes":[{"text":"open"}]}}],"pageInfo":{"hasNextPage":false}}}`)
	c.want("to write there", c.refused("eve", `mutation { publishMessage(input: {channelId: "%s", parts: [{text: "x"}]}) { success } }`, public), "PERMISSION_DENIED")
	b := newBench(t, graph.Options{})
	if r := b.execute(`{ channels { nodes { id } } }`, ""); len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != "NOT_FOUND" {
		t.Errorf("where there are no channels: %v", r.Errors)
	}
}

func TestChannelPages(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	root := c.say("ann", id, "0", "")
	for i := range 70 {
		c.say([]string{"ann", "bob"}[i%2], id, fmt.Sprint(i+1), `, replyToId: "`+root+`"`)
	}
	walk := func(who, query string) (texts []string) {
		t.Helper()
		after := ""
		for page := 0; ; page++ {
			type connection struct {
				Nodes    []struct{ Text string }
				PageInfo struct {
					HasNextPage, HasPreviousPage bool
					EndCursor                    *string
				}
			}
			var data struct {
				Channel struct{ Messages connection }
				Message struct{ Replies connection }
			}
			if err := json.Unmarshal([]byte(c.told(who, query, after)), &data); err != nil {
				t.Fatal(err)
			}
			of := data.Channel.Messages
			if of.Nodes == nil {
				of = data.Message.Replies
			}
			for _, n := range of.Nodes {
				texts = append(texts, n.Text)
			}
			if of.PageInfo.HasPreviousPage != (page > 0) || (len(of.Nodes) > 0 && of.PageInfo.EndCursor == nil) {
				t.Errorf("page %d says %+v", page, of.PageInfo)
			}
			if !of.PageInfo.HasNextPage {
				return texts
			}
			after = `, after: "` + *of.PageInfo.EndCursor + `"`
		}
	}
	var since struct {
		Channel struct {
			Messages struct{ Nodes []struct{ Time string } }
		}
	}
	if err := json.Unmarshal([]byte(c.told("bob", `{ channel(id: "%s") { messages(first: 1, beforeSequence: 70, order: DESC) { nodes { time } } } }`, id)), &since); err != nil {
		t.Fatal(err)
	}
	const page = ` { nodes { text } pageInfo { hasNextPage hasPreviousPage endCursor } } } }`
	for args, want := range map[string]string{
		`first: 40`:                     "0 1 2…70 of 71",
		`first: 7, order: DESC`:         "70 69 68…0 of 71",
		`first: 200, sinceSequence: 60`: "60 61 62…70 of 11",
		`sinceSequence: 10, first: 10, beforeSequence: 14`:          "10 11 12…12 of 3",
		`authorIds: ["bob"], first: 3`:                              "2 4 6…70 of 35",
		`sinceTime: "` + since.Channel.Messages.Nodes[0].Time + `"`: "68 69 70…70 of 3",
	} {
		texts := walk("bob", `{ channel(id: "`+id+`") { messages(`+args+`%s)`+page)
		got := strings.Join(texts, " ")
		if len(texts) > 2 {
			got = strings.Join(texts[:3], " ") + "…" + texts[len(texts)-1]
		}
		c.want(args, fmt.Sprint(got, " of ", len(texts)), want)
	}
	if texts := walk("bob", `{ message(id: "`+root+`") { replies(first: 33%s)`+page); len(texts) != 70 || texts[0] != "1" || texts[69] != "70" {
		t.Errorf("replies: %v", texts)
	}
	var data struct {
		Channel struct {
			Messages struct{ PageInfo struct{ EndCursor string } }
		}
	}
	if err := json.Unmarshal([]byte(c.told("bob", `{ channel(id: "%s") { messages(first: 1) { pageInfo { endCursor } } } }`, id)), &data); err != nil {
		t.Fatal(err)
	}
	messages := `{ channel(id: "` + id + `") { messages(%s) { nodes { id } } } }`
	for args, want := range map[string]string{
		`first: 0`:   "INVALID first",
		`first: 201`: "LIMIT_EXCEEDED",
		`sinceSequence: 0, sinceTime: "2026-01-01T00:00:00Z"`: "INVALID sinceTime",
		`sinceSequence: -1`: "INVALID sinceSequence",
		`after: "nonsense"`: "CURSOR_FOREIGN after",
		`authorIds: ["` + strings.Repeat(`x", "`, 32) + `x"]`:                    "LIMIT_EXCEEDED authorIds",
		`order: DESC, after: "` + data.Channel.Messages.PageInfo.EndCursor + `"`: "CURSOR_FOREIGN after",
	} {
		c.want(args, c.refused("bob", messages, args), want)
	}
	c.want("a cursor of another's", c.refused("ann", messages, `after: "`+data.Channel.Messages.PageInfo.EndCursor+`"`), "CURSOR_FOREIGN after")
	for args, want := range map[string]string{`first: 0`: "INVALID first", `first: 201`: "LIMIT_EXCEEDED", `after: "x"`: "CURSOR_FOREIGN after"} {
		c.want(args, c.refused("bob", `{ channels(%s) { nodes { id } } }`, args), want)
		c.want(args, c.refused("bob", `{ message(id: "`+root+`") { replies(%s) { nodes { id } } } }`, args), want)
	}
}

func TestChannelMutations(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	shown := `{ name topic metadata version members { nodes { agent: agentId role } } }`
	c.want("updated", c.told("bob", `mutation { updateChannel(input: {channelId: "%s", expectedVersion: 1, name: "works", metadataPatch: {set: {b: "2"}, remove: ["a"]}}) { channel `+shown+` } }`, id),
		`{"updateChannel":{"channel":{"name":"works","topic":"glass","metadata":{"b":"2"},"version":2,"members":{"nodes":[{"agent":"agent://ann","role":"OWNER"},{"agent":"agent://bob","role":"MODERATOR"}]}}}}`)
	c.want("too late", c.refused("bob", `mutation { updateChannel(input: {channelId: "%s", expectedVersion: 1, name: "x"}) { channel { id } } }`, id), "VERSION_CONFLICT input.expectedVersion")
	c.want("not an object", c.refused("bob", `mutation { updateChannel(input: {channelId: "%s", expectedVersion: 2, metadataPatch: {set: [1]}}) { channel { id } } }`, id), "INVALID input.metadataPatch.set")
	c.want("too long", c.refused("ann", `mutation { createChannel(input: {name: "%s"}) { channel { id } } }`, strings.Repeat("x", 129)), "LIMIT_EXCEEDED input.name")
	c.want("not by a moderator", c.refused("bob", `mutation { addChannelMember(input: {channelId: "%s", agentId: "cy"}) { channel { id } } }`, id), "PERMISSION_DENIED")
	c.want("added", c.told("ann", `mutation { addChannelMember(input: {channelId: "%s", agentId: "cy", role: OBSERVER}) { channel { version members { nodes { agent: agentId role } } } } }`, id),
		`{"addChannelMember":{"channel":{"version":3,"members":{"nodes":[{"agent":"agent://ann","role":"OWNER"},{"agent":"agent://bob","role":"MODERATOR"},{"agent":"agent://cy","role":"OBSERVER"}]}}}}`)
	c.want("the last owner", c.refused("ann", `mutation { removeChannelMember(input: {channelId: "%s", agentId: "ann"}) { channel { id } } }`, id), "LAST_OWNER input.agentId")
	c.want("left", c.told("cy", `mutation { removeChannelMember(input: {channelId: "%s", agentId: "cy"}) { channel { version } } }`, id), `{"removeChannelMember":{"channel":{"version":4}}}`)
	c.want("a broadcast", c.told("ann", `mutation { createChannel(input: {kind: BROADCAST, visibility: PUBLIC, rights: {post: MODERATORS}, maxMembers: 5}) { channel { kind maxMembers rights { join post } } } }`), `{"createChannel":{"channel":{"kind":"BROADCAST","maxMembers":5,"rights":{"join":"EVERYBODY","post":"MODERATORS"}}}}`)
	result := c.ask("ann", `mutation { deleteChannel(input: {channelId: "%s"}) { channelId } }`, id)
	if string(result.Data) != `{"deleteChannel":{"channelId":"`+id+`"}}` || result.Position != c.store.Head() {
		t.Errorf("deleted: %s, %v, at %v of %v", result.Data, result.Errors, result.Position, c.store.Head())
	}
	c.want("gone", c.refused("ann", `{ channel(id: "%s") { id } }`, id), "CHANNEL_NOT_FOUND id")
}

func TestPublishMessage(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	payload := ` { success replayed statementsAffected verificationStatus message { sequence text factCount proposalId facts { nodes { subject { iri } predicate graph assertedBy } } } } `
	fact := `patches: [{op: add, statement: {subject: {id: "ex:s", type: "ex:Thing"}, predicate: {id: "ex:p"}, object: {value: 1}}}]`
	publish := `mutation { publishMessage(input: {channelId: "` + id + `", parts: [{text: "x"}], %s})` + payload + `}`
	result := c.ask("ann", publish, `idempotencyKey: "k", `+fact)
	own := `"graph":"urn:koine:facts:` + id + `","assertedBy":["agent://ann"]}`
	c.want("with facts", string(result.Data), `{"publishMessage":{"success":true,"replayed":false,"statementsAffected":2,"verificationStatus":"Verified","message":{"sequence":1,"text":"x","factCount":1,"proposalId":null,"facts":{"nodes":[`+
		`{"subject":{"iri":"https://example.org/s"},"predicate":"https://example.org/p",`+own+`,{"subject":{"iri":"https://example.org/s"},"predicate":"http://www.w3.org/1999/02/22-rdf-syntax-ns#type",`+own+`]}}}}`)
	if result.Position != c.store.Head() {
		t.Errorf("the position is %v of %v", result.Position, c.store.Head())
	}
	c.want("again", strings.SplitAfter(c.told("ann", publish, `idempotencyKey: "k", `+fact), "message")[0], `{"publishMessage":{"success":true,"replayed":true,"statementsAffected":0,"verificationStatus":"Verified","message`)
	c.want("another with the key", c.refused("ann", publish, `idempotencyKey: "k"`), "IDEMPOTENCY_CONFLICT input.idempotencyKey")
	c.want("no part", c.refused("ann", `mutation { publishMessage(input: {channelId: "%s", parts: []}) { success } }`, id), "INVALID input.parts")
	c.want("a bad patch", c.refused("ann", publish, `patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {}}}]`), "INVALID input.patches[0].statement.object")
	c.want("a reserved one", c.refused("ann", publish, `patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "koine:author"}, object: {value: 1}}}]`), "RESERVED input.patches[0]")
	c.want("to an agent", c.told("ann", `mutation { publishMessage(input: {to: "cy", parts: [{text: "psst"}]}) { message { channel { kind members { nodes { agent: agentId } } } } } }`), `{"publishMessage":{"message":{"channel":{"kind":"DIRECT","members":{"nodes":[{"agent":"agent://ann"},{"agent":"agent://cy"}]}}}}}`)

	held := c.ask("ann", `mutation { publishMessage(input: {channelId: "%s", parts: [{text: "a rise"}], patches: [{op: add, statement: {subject: {id: "ex:ann"}, predicate: {id: "ex:pay"}, object: {value: 5}, graph: "ex:g"}}]}) { success verificationStatus verificationDetails proposalId message { id sequence proposal { status patches } facts { nodes { predicate } } } } }`, id)
	var data struct {
		PublishMessage struct {
			VerificationStatus, ProposalID string
			Message                        struct {
				ID       string
				Sequence int
				Proposal *struct{ Status string }
				Facts    struct{ Nodes []any }
			}
		}
	}
	if err := json.Unmarshal(held.Data, &data); err != nil || len(held.Errors) > 0 {
		t.Fatal(err, held.Errors)
	}
	if p := data.PublishMessage; p.VerificationStatus != "Pending Review" || p.ProposalID == "" || p.Message.Sequence != 2 || p.Message.Proposal == nil || p.Message.Proposal.Status != "PENDING" || len(p.Message.Facts.Nodes) != 0 {
		t.Errorf("held: %s", held.Data)
	}
	c.want("for who may not read the proposal", c.told("bob", `{ message(id: "%s") { proposalId proposal { id } facts { nodes { predicate } } } }`, data.PublishMessage.Message.ID), `{"message":{"proposalId":"`+data.PublishMessage.ProposalID+`","proposal":null,"facts":{"nodes":[]}}}`)
	for _, who := range []string{"rob", "rae"} {
		if got := c.saidTo(who, reviewer, `mutation { reviewProposal(input: {proposalId: "`+data.PublishMessage.ProposalID+`", decision: APPROVE}) { proposal { id } } }`); !strings.Contains(got, "reviewProposal") {
			t.Fatal(got)
		}
	}
	c.want("once it is applied", c.told("bob", `{ message(id: "%s") { facts { nodes { predicate graph } } } }`, data.PublishMessage.Message.ID), `{"message":{"facts":{"nodes":[{"predicate":"https://example.org/pay","graph":"https://example.org/g"}]}}}`)
}

// The embedding of a message is shown to the readers of its content, as long as it has some, and
// another one under the same idempotency key is a conflict.
func TestMessageEmbedding(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PUBLIC")
	open := c.say("ann", id, "to all", `, embedding: {model: "m", vector: [0.1, -2]}, idempotencyKey: "k"`)
	addressed := c.say("ann", id, "to bob", `, recipient: "bob", embedding: {model: "n", vector: [3]}`)
	plain := c.say("ann", id, "without", "")
	const shown = `{ message(id: "%s") { withheldReason embedding { __typename model dimension vector } } }`
	embedding := func(fields string) string {
		return `{"message":{"withheldReason":null,"embedding":{"__typename":"Embedding",` + fields + `}}}`
	}
	c.want("to all", c.told("eve", shown, open), embedding(`"model":"m","dimension":2,"vector":[0.1,-2]`))
	for _, name := range []string{"ann", "bob"} {
		c.want("to one, by "+name, c.told(name, shown, addressed), embedding(`"model":"n","dimension":1,"vector":[3]`))
	}
	c.want("to another", c.told("eve", shown, addressed), `{"message":{"withheldReason":"ADDRESSED","embedding":null}}`)
	c.want("none", c.told("eve", shown, plain), `{"message":{"withheldReason":null,"embedding":null}}`)
	c.want("a page", c.told("eve", `{ channel(id: "%s") { messages { nodes { embedding { model } } } } }`, id),
		`{"channel":{"messages":{"nodes":[{"embedding":{"model":"m"}},{"embedding":null},{"embedding":null}]}}}`)

	c.want("the same again", c.say("ann", id, "to all", `, embedding: {model: "m", vector: [0.1, -2]}, idempotencyKey: "k"`), open)
	again := `mutation { publishMessage(input: {channelId: "` + id + `", parts: [{type: "text", text: "to all"}], idempotencyKey: "k" %s}) { success } }`
	c.want("without the embedding", c.refused("ann", again, ""), "IDEMPOTENCY_CONFLICT input.idempotencyKey")
	c.want("with another", c.refused("ann", again, `, embedding: {model: "m", vector: [0.1, -3]}`), "IDEMPOTENCY_CONFLICT input.idempotencyKey")
	c.want("one of zeros", c.refused("ann", `mutation { publishMessage(input: {channelId: "%s", parts: [{text: "x"}], embedding: {model: "m", vector: [0]}}) { success } }`, id), "INVALID input.embedding.vector")
	c.want("a fact's of zeros", c.refused("ann", `mutation { publishMessage(input: {channelId: "%s", parts: [{text: "x"}], patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: 1}}, embedding: {model: "m", vector: [0]}}]}) { success } }`, id), "INVALID input.patches[0].embedding.vector")

	c.told("ann", `mutation { retractMessage(input: {channelId: "%s", messageId: "%s"}) { success } }`, id, open)
	c.want("retracted", c.told("ann", shown, open), `{"message":{"withheldReason":"RETRACTED","embedding":null}}`)
	const stored = `{ statements(where: {subject: {eq: "urn:koine:message:%s"}}, view: {allGraphs: true}, first: 100) { nodes { assertions { embedding { model } } } } }`
	if left := c.told("ann", stored, open); strings.Contains(left, "model") || !strings.Contains(left, "embedding") {
		t.Errorf("after the retraction its statements are %s", left)
	}
	for name, shows := range map[string]bool{"bob": true, "eve": false} {
		if seen := c.told(name, stored, addressed); strings.Contains(seen, `"model":"n"`) != shows {
			t.Errorf("%s reads the statements %s", name, seen)
		}
	}
}
