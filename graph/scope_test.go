package graph_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/graph"
	"koine/graph/limit"
	"koine/kg"
)

func TestScopes(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	const shown = `{ kind title status access { everybody agents: agentIds roles } coordinator: coordinatorId createdBy: createdById parentId version endedAt endReason }`
	intent := c.id("ann", `mutation { createScope(input: {title: "glaze", coordinatorId: "cy", access: {agentIds: ["bob", "agent://dee"], roles: ["potter"]}}) { scope { id } } }`)
	ofIntent := `"kind":"INTENT","title":"glaze","status":"ACTIVE","access":{"everybody":false,"agents":["agent://bob","agent://dee"],"roles":["potter"]},"coordinator":"agent://cy","createdBy":"agent://ann","parentId":null,"version":1,"endedAt":null,"endReason":null`
	for _, who := range []string{"ann", "bob", "cy", "dee"} {
		c.want("for "+who, c.told(who, `{ scope(id: "%s") `+shown+` }`, intent), `{"scope":{`+ofIntent+`}}`)
	}
	c.want("by a role", string(c.askAs("eve", []string{"potter"}, `{ scope(id: "%s") { title } }`, intent).Data), `{"scope":{"title":"glaze"}}`)
	task := c.id("bob", `mutation { createScope(input: {parentId: "%s", title: "sieve", access: {everybody: true}}) { scope { id } } }`, intent)
	c.want("a task", c.told("dee", `{ scope(id: "%s") { kind title parentId parent { title tasks { nodes { title status } pageInfo { hasNextPage } } } access { everybody } } }`, task),
		`{"scope":{"kind":"TASK","title":"sieve","parentId":"`+intent+`","parent":{"title":"glaze","tasks":{"nodes":[{"title":"sieve","status":"ACTIVE"}],"pageInfo":{"hasNextPage":false}}},"access":{"everybody":true}}}`)
	if got := c.told("bob", `{ scope(id: "%s") { createdAt entity { types label: value(predicate: "koine:scopeTitle") } } }`, intent); !strings.Contains(got, `"createdAt":"2026-01-01T`) || !strings.Contains(got, `"entity":{"types":["urn:koine:vocab:Scope"],"label":"glaze"}`) {
		t.Errorf("as an entity: %s", got)
	}

	update := `mutation { updateScope(input: {scopeId: "` + intent + `", %s}) { scope { title coordinator: coordinatorId access { everybody agents: agentIds roles } version } } }`
	c.want("by who has access only", c.refused("bob", update, `expectedVersion: 1, title: "x"`), "PERMISSION_DENIED")
	c.want("by the coordinator", c.told("cy", update, `expectedVersion: 1, title: "celadon", access: {agentIds: ["bob"]}`), `{"updateScope":{"scope":{"title":"celadon","coordinator":"agent://cy","access":{"everybody":false,"agents":["agent://bob"],"roles":[]},"version":2}}}`)
	c.want("too late", c.refused("ann", update, `expectedVersion: 1, title: "x"`), "VERSION_CONFLICT input.expectedVersion")
	c.want("nobody coordinates", c.told("ann", update, `expectedVersion: 2, coordinatorId: "", title: ""`), `{"updateScope":{"scope":{"title":null,"coordinator":null,"access":{"everybody":false,"agents":["agent://bob"],"roles":[]},"version":3}}}`)
	create := `mutation { createScope(input: {%s}) { scope { id } } }`
	for input, want := range map[string]string{
		`title: "` + strings.Repeat("x", 256) + `"`:                      "LIMIT_EXCEEDED input.title",
		`access: {roles: [""]}`:                                          "INVALID input.access.roles",
		`access: {agentIds: ["` + strings.Repeat(`x", "`, 1000) + `x"]}`: "LIMIT_EXCEEDED input.access.agentIds",
		`access: {roles: ["` + strings.Repeat(`x", "`, 64) + `x"]}`:      "LIMIT_EXCEEDED input.access.roles",
		`parentId: "` + task + `"`:                                       "INVALID input.parentId",
		`parentId: "` + nowhere + `"`:                                    "SCOPE_NOT_FOUND input.parentId",
	} {
		if want != "" {
			c.want(input[:min(40, len(input))], c.refused("bob", create, input), want)
		}
	}

	end := `mutation { endScope(input: {scopeId: "%s", status: %s, reason: "fired"}) { scope ` + shown + ` } }`
	c.want("by another", c.refused("bob", end, intent, "COMPLETED"), "PERMISSION_DENIED")
	c.want("no end", c.refused("ann", end, intent, "ACTIVE"), "INVALID input.status")
	if got := c.told("ann", end, intent, "COMPLETED"); !strings.Contains(got, `"status":"COMPLETED"`) || !strings.Contains(got, `"endedAt":"2026-`) || !strings.Contains(got, `"endReason":"fired"`) {
		t.Errorf("ended: %s", got)
	}
	c.want("again", c.refused("ann", end, intent, "ABANDONED"), "SCOPE_ENDED input.scopeId")
	c.want("with its task", c.told("bob", `{ scopes(parentId: "%s", status: COMPLETED) { nodes { title endReason } } }`, intent), `{"scopes":{"nodes":[{"title":"sieve","endReason":"fired"}]}}`)
	c.want("a task of one that has ended", c.refused("bob", create, `parentId: "`+intent+`"`), "SCOPE_ENDED input.parentId")

	for _, query := range []string{
		`{ scope(id: "%s") { title } }`, `{ channels(scopeId: "%s") { nodes { id } } }`, `mutation { createScope(input: {parentId: "%s"}) { scope { id } } }`,
		`mutation { updateScope(input: {scopeId: "%s", expectedVersion: 3, title: "x"}) { scope { id } } }`, `mutation { endScope(input: {scopeId: "%s", status: COMPLETED}) { scope { id } } }`,
		`mutation { createChannel(input: {scopeId: "%s", name: "x"}) { channel { id } } }`, `mutation { publishMessage(input: {scopeId: "%s", channelName: "x", parts: [{text: "x"}]}) { success } }`,
	} {
		c.likeAbsent("eve", "SCOPE_NOT_FOUND", query, intent)
		c.likeAbsent("eve", "SCOPE_NOT_FOUND", query, task)
	}
	c.want("the list of others", c.told("eve", `{ scopes { nodes { id } pageInfo { hasNextPage } } }`), `{"scopes":{"nodes":[],"pageInfo":{"hasNextPage":false}}}`)
	b := newBench(t, graph.Options{})
	for _, query := range []string{`{ scope(id: "x") { id } }`, `{ scopes { nodes { id } } }`, `{ globalRestrictions { nodes { agent: agentId } } }`} {
		if r := b.execute(query, ""); len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != "NOT_FOUND" {
			t.Errorf("where there are no channels: %v", r.Errors)
		}
	}
}

func TestScopePages(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	for n := range 7 {
		c.told("ann", `mutation { createScope(input: {title: "%d", access: {everybody: true}}) { scope { id } } }`, n)
	}
	var titles []string
	for after := ""; ; {
		var data struct {
			Scopes struct {
				Nodes    []struct{ Title string }
				PageInfo struct {
					HasNextPage bool
					EndCursor   *string
				}
			}
		}
		if err := json.Unmarshal([]byte(c.told("bob", `{ scopes(first: 3 %s) { nodes { title } pageInfo { hasNextPage endCursor } } }`, after)), &data); err != nil {
			t.Fatal(err)
		}
		for _, n := range data.Scopes.Nodes {
			titles = append(titles, n.Title)
		}
		if !data.Scopes.PageInfo.HasNextPage {
			break
		}
		after = `, after: "` + *data.Scopes.PageInfo.EndCursor + `"`
		c.want("the cursor of another", c.refused("eve", `{ scopes(first: 3 %s) { nodes { title } } }`, after), "CURSOR_FOREIGN after")
	}
	c.want("all", strings.Join(titles, ""), "0123456")
	for args, want := range map[string]string{`first: 0`: "INVALID first", `first: 201`: "LIMIT_EXCEEDED", `after: "x"`: "CURSOR_FOREIGN after"} {
		c.want(args, c.refused("bob", `{ scopes(%s) { nodes { id } } }`, args), want)
	}
}

func TestChannelsOfScopes(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	scope := c.id("ann", `mutation { createScope(input: {title: "glaze", access: {agentIds: ["bob"]}}) { scope { id } } }`)
	in := `mutation { createChannel(input: {scopeId: "` + scope + `", %s}) { channel { id name memberPolicy audit scope { title } } } }`
	made := c.told("bob", in, `name: "tests", memberPolicy: SCOPE, audit: true`)
	if !strings.HasSuffix(made, `"name":"tests","memberPolicy":"SCOPE","audit":true,"scope":{"title":"glaze"}}}}`) {
		t.Errorf("made: %s", made)
	}
	c.want("its name again", c.refused("ann", in, `name: "tests"`), "NAME_TAKEN input.name")
	c.want("no name", c.refused("ann", in, `topic: "x"`), "INVALID input.name")
	c.want("a public one", c.refused("ann", in, `name: "x", visibility: PUBLIC`), "INVALID input.visibility")
	few := c.id("ann", in, `name: "few"`)
	c.want("its channels", c.told("ann", `{ scope(id: "%s") { channels { nodes { name memberPolicy } } } }`, scope), `{"scope":{"channels":{"nodes":[{"name":"tests","memberPolicy":"SCOPE"},{"name":"few","memberPolicy":"EXPLICIT"}]}}}`)
	c.want("those that one may find", c.told("bob", `{ scope(id: "%s") { channels { nodes { name } } } channels(scopeId: "%s") { nodes { name } } }`, scope, scope), `{"scope":{"channels":{"nodes":[{"name":"tests"}]}},"channels":{"nodes":[{"name":"tests"}]}}`)
	c.likeAbsent("bob", "CHANNEL_NOT_FOUND", `{ channel(id: "%s") { name } }`, few)

	some := c.id("ann", `mutation { createChannel(input: {scopeId: "%s", name: "some"}) { channel { id } } }`, scope)
	change := `mutation { updateChannel(input: {channelId: "` + some + `", expectedVersion: %d, memberPolicy: %s}) { channel { name memberPolicy version } } }`
	c.want("open to the scope", c.told("ann", change, 1, "SCOPE"), `{"updateChannel":{"channel":{"name":"some","memberPolicy":"SCOPE","version":2}}}`)
	c.want("and found", c.told("bob", `{ channel(id: "%s") { memberPolicy } }`, some), `{"channel":{"memberPolicy":"SCOPE"}}`)
	c.want("closed to it", c.told("ann", change, 2, "EXPLICIT"), `{"updateChannel":{"channel":{"name":"some","memberPolicy":"EXPLICIT","version":3}}}`)
	c.want("and hidden", c.refused("bob", `{ channel(id: "%s") { memberPolicy } }`, some), "CHANNEL_NOT_FOUND id")
	say := `mutation { publishMessage(input: {scopeId: "` + scope + `", %s, parts: [{text: "one"}]}) { message { sequence channel { name memberPolicy audit } } } }`
	c.want("by its name", c.told("bob", say, `channelName: "tests"`), `{"publishMessage":{"message":{"sequence":1,"channel":{"name":"tests","memberPolicy":"SCOPE","audit":true}}}}`)
	c.want("by a new one", c.told("bob", say, `channelName: "ideas"`), `{"publishMessage":{"message":{"sequence":1,"channel":{"name":"ideas","memberPolicy":"SCOPE","audit":false}}}}`)
	c.want("and the next", c.told("ann", say, `channelName: "ideas"`), `{"publishMessage":{"message":{"sequence":2,"channel":{"name":"ideas","memberPolicy":"SCOPE","audit":false}}}}`)
	c.want("no name", c.refused("bob", say, `format: "x"`), "INVALID input.channelName")
	c.want("an empty one", c.refused("bob", say, `channelName: ""`), "INVALID input.channelName")
	c.want("one that is too long", c.refused("bob", say, `channelName: "`+strings.Repeat("x", 129)+`"`), "LIMIT_EXCEEDED input.channelName")
	c.want("no scope", c.refused("bob", `mutation { publishMessage(input: {channelName: "x", parts: [{text: "x"}]}) { success } }`), "INVALID input.scopeId")
	c.want("to two", c.refused("bob", say, `channelName: "x", to: "ann"`), "INVALID input.channelId")
	c.want("one without access to it", c.refused("bob", say, `channelName: "few"`), "CHANNEL_NOT_FOUND input.channelId")

	c.told("ann", `mutation { endScope(input: {scopeId: "%s", status: COMPLETED}) { scope { id } } }`, scope)
	c.want("closed with it", c.told("bob", `{ scope(id: "%s") { channels { nodes { status closedReason } } } }`, scope), `{"scope":{"channels":{"nodes":[{"status":"CLOSED","closedReason":"its scope has ended"},{"status":"CLOSED","closedReason":"its scope has ended"}]}}}`)
	c.want("another channel", c.refused("bob", in, `name: "late"`), "SCOPE_ENDED input.scopeId")
	c.want("a message", c.refused("bob", say, `channelName: "tests"`), "CHANNEL_CLOSED input.channelId")
}

func TestScopeEvents(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	scope := c.id("ann", `mutation { createScope(input: {access: {everybody: true}}) { scope { id } } }`)
	c.want("without one", c.told("bob", `{ scope(id: "%s") { events { nodes { type } pageInfo { hasNextPage } } verifyEvents { verifiedCount lastHash nextSequence } } }`, scope), `{"scope":{"events":{"nodes":[],"pageInfo":{"hasNextPage":false}},"verifyEvents":{"verifiedCount":0,"lastHash":null,"nextSequence":null}}}`)
	open := c.id("ann", `mutation { createChannel(input: {scopeId: "%s", name: "open", memberPolicy: SCOPE, audit: true}) { channel { id } } }`, scope)
	few := c.id("ann", `mutation { createChannel(input: {scopeId: "%s", name: "few", audit: true}) { channel { id } } }`, scope)
	for n := range 4 {
		c.say("ann", open, fmt.Sprint("open ", n), "")
	}
	c.say("ann", few, "hidden", "")
	type event struct {
		Sequence          int64
		Type, Actor, Hash string
		PreviousHash      *string
		Data, Copy        map[string]any
		Message           *struct{ Text string }
	}
	var events []event
	for after := ""; ; {
		var data struct {
			Scope struct {
				Events struct {
					Nodes    []event
					PageInfo struct {
						HasNextPage bool
						EndCursor   *string
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(c.told("bob", `{ scope(id: "%s") { events(first: 2 %s) { nodes { sequence type actor: actorId hash previousHash data copy message { text } } pageInfo { hasNextPage endCursor } } } }`, scope, after)), &data); err != nil {
			t.Fatal(err)
		}
		events = append(events, data.Scope.Events.Nodes...)
		if !data.Scope.Events.PageInfo.HasNextPage {
			break
		}
		after = `, after: "` + *data.Scope.Events.PageInfo.EndCursor + `"`
	}
	if len(events) != 5 {
		t.Fatalf("the events are %v", events)
	}
	previous := ""
	for i, e := range events {
		if e.Sequence != int64(i+1) || e.Type != "channel_message" || e.Actor != "agent://ann" || (e.PreviousHash == nil) != (i == 0) || e.PreviousHash != nil && *e.PreviousHash != previous {
			t.Errorf("event %d is %+v", i, e)
		}
		if shown := i < 4; (e.Message != nil) != shown || (e.Copy["parts"] != nil) != shown || e.Data["parts"] != nil {
			t.Errorf("of event %d bob is shown %+v, %+v and %v", i, e.Data, e.Copy, e.Message)
		}
		previous = e.Hash
	}
	c.want("checked", c.told("bob", `{ scope(id: "%s") { all: verifyEvents { verifiedCount lastHash nextSequence } some: verifyEvents(fromSequence: 4) { verifiedCount } } }`, scope), `{"scope":{"all":{"verifiedCount":5,"lastHash":"`+previous+`","nextSequence":null},"some":{"verifiedCount":2}}}`)
	c.want("behind a number", c.told("bob", `{ scope(id: "%s") { events(sinceSequence: 3) { nodes { sequence } } } }`, scope), `{"scope":{"events":{"nodes":[{"sequence":4},{"sequence":5}]}}}`)
	for args, want := range map[string]string{`sinceSequence: -1`: "INVALID sinceSequence", `after: "x"`: "CURSOR_FOREIGN after", `after: "0"`: "CURSOR_FOREIGN after", `first: 0`: "INVALID first", `first: 201`: "LIMIT_EXCEEDED"} {
		c.want(args, c.refused("bob", `{ scope(id: "%s") { events(%s) { nodes { sequence } } } }`, scope, args), want)
	}
	c.want("from nowhere", c.refused("bob", `{ scope(id: "%s") { verifyEvents(fromSequence: 9) { verifiedCount } } }`, scope), "INVALID fromSequence")
	c.want("from before the first", c.refused("bob", `{ scope(id: "%s") { verifyEvents(fromSequence: 0) { verifiedCount } } }`, scope), "INVALID fromSequence")

	// One that is not as it was written is found.
	damage := kg.Quad{Subject: kg.IRI("urn:koine:event:" + scope + ":3"), Predicate: kg.IRI(kg.OwnVocabulary + "eventActor"), Graph: kg.IRI(kg.JournalGraphPrefix + "events:" + scope)}
	damage.Object = kg.IRI("agent://ann")
	wrong := damage
	wrong.Object = kg.IRI("agent://bob")
	c.update(kg.Patch{Op: kg.Remove, Quad: damage}, kg.Patch{Op: kg.Add, Quad: wrong})
	result := c.ask("bob", `{ scope(id: "%s") { verifyEvents { verifiedCount } } }`, scope)
	if len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != "LOG_DAMAGED" || !strings.Contains(result.Errors[0].Message, "event 3") {
		t.Errorf("damaged: %s %v", result.Data, result.Errors)
	}
}

// The audit list shows administrators the actions on scopes like those on channels.
func TestScopesInTheAudit(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	scope := c.id("ann", `mutation { createScope(input: {access: {everybody: true}}) { scope { id } } }`)
	c.told("ann", `mutation { createChannel(input: {scopeId: "%s", name: "x", audit: true, memberPolicy: SCOPE}) { channel { id } } }`, scope)
	c.told("bob", `mutation { publishMessage(input: {scopeId: "%s", channelName: "x", parts: [{text: "hello"}]}) { success } }`, scope)
	c.told("ann", `mutation { endScope(input: {scopeId: "%s", status: ABANDONED}) { scope { id } } }`, scope)
	result := c.askAs("root", []string{kg.RoleAdmin}, `{ audit { nodes { kind actor: actorId } } }`)
	c.want("the audit", string(result.Data), `{"audit":{"nodes":[{"kind":"CHANNEL","actor":"agent://ann"},{"kind":"MESSAGE","actor":"agent://bob"},{"kind":"CHANNEL","actor":"agent://ann"},{"kind":"CHANNEL","actor":"agent://ann"}]}}`)
}

// The audit list shows administrators the actions on a channel after its deletion, too:
// author, channel, message and member; other callers see nothing.
func TestDeletedChannelsInTheAudit(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id, other := c.lab("PRIVATE"), c.lab("PRIVATE")
	c.say("ann", other, "elsewhere", "")
	message := c.say("bob", id, "hello", "")
	c.told("ann", `mutation { addChannelMember(input: {channelId: "%s", agentId: "cy"}) { channel { id } } }`, id)
	c.told("ann", `mutation { removeChannelMember(input: {channelId: "%s", agentId: "cy"}) { channel { id } } }`, id)
	c.told("ann", `mutation { deleteChannel(input: {channelId: "%s"}) { channelId } }`, id)
	query := `{ audit(channelId: "%s") { nodes { kind actor: actorId channelActions { action channelId messageId member: memberId } } } }`
	entry := func(kind, actor, action, event, member string) string {
		return fmt.Sprintf(`{"kind":"%s","actor":"agent://%s","channelActions":[{"action":"%s","channelId":"%s","messageId":%s,"member":%s}]}`, kind, actor, action, id, event, member)
	}
	want := []string{ // the newest first
		entry("CHANNEL", "ann", "CREATE", "null", "null"), entry("MESSAGE", "bob", "PUBLISH", `"`+message+`"`, "null"), entry("CHANNEL", "ann", "ADD_MEMBER", "null", `"agent://cy"`),
		entry("CHANNEL", "ann", "REMOVE_MEMBER", "null", `"agent://cy"`), entry("CHANNEL", "ann", "DELETE", "null", "null"),
	}
	slices.Reverse(want)
	result := c.askAs("root", []string{kg.RoleAdmin}, query, id)
	c.want("the audit", string(result.Data), `{"audit":{"nodes":[`+strings.Join(want, ",")+`]}}`)
	c.want("for its owner", c.refused("ann", query, id), "PERMISSION_DENIED")
}

// Every field of scopes and channels can be requested, under a budget too.
func TestEveryFieldOfScopesAndChannels(t *testing.T) {
	c := newConversing(t, limit.Limits{Fields: 1 << 20, Depth: 100, Complexity: 1 << 30, Tokens: 1 << 20, Repeats: 1 << 20})
	scope := c.id("ann", `mutation { createScope(input: {access: {everybody: true}}) { scope { id } } }`)
	c.told("ann", `mutation { createScope(input: {parentId: "%s"}) { scope { id } } }`, scope)
	c.told("ann", `mutation { createChannel(input: {scopeId: "%s", name: "x", audit: true, memberPolicy: SCOPE}) { channel { id } } }`, scope)
	c.told("ann", `mutation { publishMessage(input: {scopeId: "%s", channelName: "x", parts: [{text: "hello"}]}) { success } }`, scope)
	s := loadSchema(t, c.engine.SDL())
	for _, query := range []string{
		`{ scopes` + selectAll(s, "ScopeConnection", map[string]bool{}) + ` }`,
		`{ channels(scopeId: "` + scope + `")` + selectAll(s, "ChannelConnection", map[string]bool{}) + ` }`,
		`query @budget(maxBytes: 100000) { scope(id: "` + scope + `") { title entity { types out(first: 1) { nodes { predicate } } } channels { nodes { name restrictions { nodes { agent: agentId } } scope { kind } } } events { nodes { message { text } } } } }`,
	} {
		if got := c.told("ann", "%s", query); !strings.Contains(got, `"hello"`) {
			t.Errorf("%.60s…: %s", query, got)
		}
	}
	if log := c.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}
