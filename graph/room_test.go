package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"koine/channels"
	"koine/graph"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
)

// askAs is ask for one with roles.
func (c *conversing) askAs(name string, roles []string, query string, args ...any) operation.Result {
	c.t.Helper()
	req := operation.Request{Query: fmt.Sprintf(query, args...), Principal: kg.Principal{ID: kg.CanonicalAgent(name), Roles: roles, Method: "key"}}
	return c.engine.Execute(context.Background(), req)
}

// room creates a channel of ann's with these members of a role each.
func (c *conversing) room(input string) string {
	c.t.Helper()
	return c.id("ann", `mutation { createChannel(input: {name: "r" %s}) { channel { id } } }`, input)
}

// likeAbsent fails unless both answers are the same to the byte, and have the code.
func (c *conversing) likeAbsent(who, code, query, id string) {
	c.t.Helper()
	got, want := c.ask(who, query, id), c.ask(who, query, nowhere)
	a, _ := json.Marshal(got.Errors)
	b, _ := json.Marshal(want.Errors)
	if string(a) != string(b) || !strings.Contains(string(a), `"`+code+`"`) || string(got.Data) != string(want.Data) {
		c.t.Errorf("%s:\n got %s %s\nwant %s %s", query, got.Data, a, want.Data, b)
	}
}

func TestChannelSettings(t *testing.T) {
	c := newConversingWith(t, limit.Limits{}, channels.Options{MaxMembers: 9})
	const shown = `{ kind topic maxMembers expireAfterSeconds keepMessages audit scopeId scope { id } memberPolicy status closedAt closedReason limits { messagesPerMinute streams messageBytes } rights { discover join read post manage } }`
	id := c.room(`, kind: ROOM, topic: "t", visibility: PUBLIC, expireAfterSeconds: 315360000, keepMessages: 5, maxMembers: 4, limits: {messagesPerMinute: 3, messageBytes: 100}, rights: {post: MODERATORS}, members: [{agentId: "ola", role: OBSERVER}]`)
	c.want("as it was made", c.told("ola", `{ channel(id: "%s") `+shown+` }`, id), `{"channel":{"kind":"ROOM","topic":"t","maxMembers":4,"expireAfterSeconds":315360000,"keepMessages":5,"audit":false,"scopeId":null,"scope":null,"memberPolicy":null,"status":"OPEN","closedAt":null,"closedReason":null,`+
		`"limits":{"messagesPerMinute":3,"streams":null,"messageBytes":100},"rights":{"discover":"EVERYBODY","join":"EVERYBODY","read":"MEMBERS","post":"MODERATORS","manage":"MODERATORS"}}}`)
	for who, want := range map[string]string{"ola": `"2035-12-30T00:00:`, "eve": "null"} { // eve only finds it
		if got := c.told(who, `{ channel(id: "%s") { expiresAt expireAfterSeconds } }`, id); !strings.HasPrefix(got, `{"channel":{"expiresAt":`+want) || !strings.Contains(got, "315360000") {
			t.Errorf("for %s it expires: %s", who, got)
		}
	}
	update := `mutation { updateChannel(input: {channelId: "` + id + `", expectedVersion: %d, %s}) { channel ` + shown + ` } }`
	c.want("changed", c.told("ann", update, 1, `expireAfterSeconds: 0, keepMessages: 0, maxMembers: 0, limits: {streams: 2}, rights: {manage: OWNERS}, topic: ""`), `{"updateChannel":{"channel":{"kind":"ROOM","topic":null,"maxMembers":null,"expireAfterSeconds":null,"keepMessages":null,"audit":false,"scopeId":null,"scope":null,"memberPolicy":null,"status":"OPEN","closedAt":null,"closedReason":null,`+
		`"limits":{"messagesPerMinute":null,"streams":2,"messageBytes":null},"rights":{"discover":"EVERYBODY","join":"EVERYBODY","read":"MEMBERS","post":"MEMBERS","manage":"OWNERS"}}}}`)
	for change, want := range map[string]string{
		`expireAfterSeconds: -5`:                  "INVALID input.expireAfterSeconds",
		`expireAfterSeconds: 315360001`:           "LIMIT_EXCEEDED input.expireAfterSeconds",
		`expireAfterSeconds: 9223372036854775807`: "LIMIT_EXCEEDED input.expireAfterSeconds",
		`keepMessages: -1`:                        "INVALID input.keepMessages",
		`limits: {streams: -1}`:                   "INVALID input.limits.streams",
		`limits: {messagesPerMinute: 6001}`:       "LIMIT_EXCEEDED input.limits.messagesPerMinute",
		`rights: {manage: EVERYBODY}`:             "INVALID input.rights.manage",
		`maxMembers: 1`:                           "LIMIT_EXCEEDED input.maxMembers",
		`maxMembers: 10`:                          "LIMIT_EXCEEDED input.maxMembers",
		`audit: true`:                             "INVALID input.audit",
	} {
		c.want(change, c.refused("ann", strings.Replace(update, "expectedVersion: %d, %s", "expectedVersion: 2, %s", 1), change), want)
		if change != `maxMembers: 1` {
			c.want("made with "+change, c.refused("ann", `mutation { createChannel(input: {visibility: PUBLIC, %s}) { channel { id } } }`, change), want)
		}
	}
	for _, change := range []string{`limits: {}`, `keepMessages: 1`, `expireAfterSeconds: 9`, `rights: {}`, `audit: true`} {
		c.want("by an observer: "+change, c.refused("ola", update, 2, change), "PERMISSION_DENIED")
	}
	c.want("a policy outside of a scope", c.refused("ann", `mutation { createChannel(input: {memberPolicy: SCOPE}) { channel { id } } }`), "INVALID input.memberPolicy")
	c.want("a direct one", c.refused("ann", `mutation { createChannel(input: {kind: DIRECT}) { channel { id } } }`), "INVALID input.kind")
	c.want("an observer publishes", c.refused("ola", `mutation { publishMessage(input: {channelId: "%s", parts: [{text: "x"}]}) { success } }`, id), "PERMISSION_DENIED")
}

func TestCloseChannel(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	c.say("ann", id, "one", "")
	closing := `mutation { closeChannel(input: {channelId: "%s", reason: "done"}) { channel { status closedReason messageCount } } }`
	c.want("by a moderator", c.refused("bob", closing, id), "PERMISSION_DENIED")
	c.want("a long reason", c.refused("ann", `mutation { closeChannel(input: {channelId: "%s", reason: "%s"}) { channel { id } } }`, id, strings.Repeat("x", channels.MaxReasonRunes+1)), "LIMIT_EXCEEDED input.reason")
	result := c.ask("ann", closing, id)
	if string(result.Data) != `{"closeChannel":{"channel":{"status":"CLOSED","closedReason":"done","messageCount":1}}}` || result.Position != c.store.Head() {
		t.Errorf("closed: %s %v, at %v of %v", result.Data, result.Errors, result.Position, c.store.Head())
	}
	c.want("again", c.refused("ann", closing, id), "CHANNEL_CLOSED input.channelId")
	c.want("published", c.refused("bob", `mutation { publishMessage(input: {channelId: "%s", parts: [{text: "x"}]}) { success } }`, id), "CHANNEL_CLOSED input.channelId")
	if got := c.told("bob", `{ channel(id: "%s") { status closedAt closedReason messages { nodes { text } } } }`, id); !strings.Contains(got, `"status":"CLOSED","closedAt":"2026-01-01T`) || !strings.Contains(got, `"text":"one"`) {
		t.Errorf("read on: %s", got)
	}
	c.likeAbsent("eve", "CHANNEL_NOT_FOUND", closing, id)
}

func TestJoinAndLeave(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.room(`, kind: ROOM, visibility: PUBLIC, maxMembers: 3`)
	join := `mutation { joinChannel(input: {channelId: "%s" %s}) { channel { members { nodes { agent: agentId role } } } } }`
	c.want("a member", c.told("bob", join, id, ""), `{"joinChannel":{"channel":{"members":{"nodes":[{"agent":"agent://ann","role":"OWNER"},{"agent":"agent://bob","role":"MEMBER"}]}}}}`)
	c.want("as an owner", c.refused("cy", join, id, `, role: OWNER`), "INVALID input.role")
	c.want("an observer", c.told("cy", join, id, `, role: OBSERVER`), `{"joinChannel":{"channel":{"members":{"nodes":[{"agent":"agent://ann","role":"OWNER"},{"agent":"agent://bob","role":"MEMBER"},{"agent":"agent://cy","role":"OBSERVER"}]}}}}`)
	c.want("a full one", c.refused("dee", join, id, ""), "LIMIT_EXCEEDED input.agentId")
	leave := `mutation { leaveChannel(input: {channelId: "%s"}) { channelId channel { name messageCount members { nodes { agent: agentId } } } } }`
	c.want("left what one still finds", c.told("bob", leave, id), `{"leaveChannel":{"channelId":"`+id+`","channel":{"name":"r","messageCount":0,"members":{"nodes":[]}}}}`)
	c.want("left again", c.refused("bob", leave, id), "PERMISSION_DENIED")
	c.want("the last owner", c.refused("ann", leave, id), "LAST_OWNER input.agentId")

	private := c.lab("PRIVATE")
	c.want("left for good", c.told("bob", leave, private), `{"leaveChannel":{"channelId":"`+private+`","channel":null}}`)
	c.likeAbsent("bob", "CHANNEL_NOT_FOUND", leave, private)
	c.likeAbsent("eve", "CHANNEL_NOT_FOUND", strings.ReplaceAll(join, " %s}", "}"), private)
	public := c.lab("PUBLIC")
	c.want("without an invitation", c.refused("eve", join, public, ""), "PERMISSION_DENIED")
}

func TestInvitations(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	const mine = `{ channels(invited: true) { nodes { id name members { nodes { agent: agentId } } invitations { nodes { agent: agentId invitedBy: invitedById } } } } }`
	invite := `mutation { inviteAgent(input: {channelId: "%s", agentId: "%s"}) { channel { version invitations { nodes { agent: agentId invitedBy: invitedById } } } } }`
	c.want("by a moderator", c.refused("bob", invite, id, "cy"), "PERMISSION_DENIED")
	c.want("nobody", c.refused("ann", invite, id, ""), "INVALID input.agentId")
	c.want("invited", c.told("ann", invite, id, "cy"), `{"inviteAgent":{"channel":{"version":1,"invitations":{"nodes":[{"agent":"agent://cy","invitedBy":"agent://ann"}]}}}}`)
	c.told("ann", invite, id, "dee")
	c.want("its own", c.told("cy", mine), `{"channels":{"nodes":[{"id":"`+id+`","name":"lab","members":{"nodes":[]},"invitations":{"nodes":[{"agent":"agent://cy","invitedBy":"agent://ann"}]}}]}}`)
	c.want("a member", c.told("bob", mine), `{"channels":{"nodes":[]}}`)
	c.want("all of them", c.told("bob", `{ channel(id: "%s") { invitations { nodes { agent: agentId } } } }`, id), `{"channel":{"invitations":{"nodes":[{"agent":"agent://cy"},{"agent":"agent://dee"}]}}}`)
	c.want("not read yet", c.refused("cy", `{ channel(id: "%s") { messages { nodes { id } } } }`, id), "PERMISSION_DENIED")
	c.want("to read who is kept out", c.told("cy", `{ channel(id: "%s") { restrictions { nodes { agent: agentId } } } }`, id), `{"channel":{"restrictions":null}}`)
	c.want("accepted", c.told("cy", `mutation { answerInvitation(input: {channelId: "%s", answer: ACCEPT}) { channel { members { nodes { agent: agentId } } invitations { nodes { agent: agentId } } } } }`, id), `{"answerInvitation":{"channel":{"members":{"nodes":[{"agent":"agent://ann"},{"agent":"agent://bob"},{"agent":"agent://cy"}]},"invitations":{"nodes":[{"agent":"agent://dee"}]}}}}`)
	c.want("declined", c.told("dee", `mutation { answerInvitation(input: {channelId: "%s", answer: DECLINE}) { channelId channel { id } } }`, id), `{"answerInvitation":{"channelId":"`+id+`","channel":null}}`)
	c.told("ann", invite, id, "dee")
	withdraw := `mutation { withdrawInvitation(input: {channelId: "%s", agentId: "dee"}) { channel { invitations { nodes { agent: agentId } } } } }`
	c.want("withdrawn by a member", c.refused("bob", withdraw, id), "PERMISSION_DENIED")
	c.want("withdrawn", c.told("ann", withdraw, id), `{"withdrawInvitation":{"channel":{"invitations":{"nodes":[]}}}}`)
	c.want("withdrawn again", c.refused("ann", withdraw, id), "NOT_FOUND input.agentId")
	public := c.lab("PUBLIC")
	c.want("accepted without one", c.refused("eve", `mutation { answerInvitation(input: {channelId: "%s", answer: ACCEPT}) { channel { id } } }`, public), "NOT_FOUND input.agentId")
	c.want("declined without one", c.refused("eve", `mutation { answerInvitation(input: {channelId: "%s", answer: DECLINE}) { channelId } }`, public), "NOT_FOUND input.agentId")
	for _, query := range []string{
		`mutation { inviteAgent(input: {channelId: "%s", agentId: "x"}) { channel { id } } }`, withdraw,
		`mutation { answerInvitation(input: {channelId: "%s", answer: ACCEPT}) { channel { id } } }`, `mutation { answerInvitation(input: {channelId: "%s", answer: DECLINE}) { channelId } }`,
	} {
		c.likeAbsent("eve", "CHANNEL_NOT_FOUND", query, id)
	}
}

func TestBansAndMutes(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.room(`, visibility: PUBLIC, members: [{agentId: "mod", role: MODERATOR}, {agentId: "bob"}]`)
	const ban, mute = `restrictAgent(input: {kind: BAN`, `restrictAgent(input: {kind: MUTE`
	const unban, unmute = `liftRestriction(input: {kind: BAN`, `liftRestriction(input: {kind: MUTE`
	change := `mutation { %s, channelId: "` + id + `", agentId: "%s" %s}) { channel { id } restrictions { nodes { agent: agentId kind until } } } }`
	listed := func(list string) string {
		return `{"channel":{"id":"` + id + `"},"restrictions":{"nodes":[` + list + `]}}`
	}
	banned, muted := `{"agent":"agent://bob","kind":"BAN","until":null}`, `{"agent":"agent://cy","kind":"MUTE","until":"2036-01-01T00:00:00.000Z"}`
	c.want("banned", c.told("mod", change, ban, "bob", ""), `{"restrictAgent":`+listed(banned)+`}`)
	c.want("muted", c.told("mod", change, mute, "cy", `, until: "2036-01-01T00:00:00Z"`), `{"restrictAgent":`+listed(banned+`,`+muted)+`}`)
	c.want("banned from what all see", c.refused("bob", `{ channel(id: "%s") { id } }`, id), "CHANNEL_NOT_FOUND id")
	c.want("the list", c.told("eve", `{ channel(id: "%s") { restrictions { nodes { agent: agentId kind } } } }`, id), `{"channel":{"restrictions":{"nodes":[{"agent":"agent://bob","kind":"BAN"},{"agent":"agent://cy","kind":"MUTE"}]}}}`)
	c.want("an end that has passed", c.refused("mod", change, ban, "eve", `, until: "2020-01-01T00:00:00Z"`), "INVALID input.until")
	c.want("an owner", c.refused("mod", change, ban, "ann", ""), "PERMISSION_DENIED input.agentId")
	for _, what := range []string{ban, mute, unban, unmute} {
		c.want(what+" by an outsider", c.refused("eve", change, what, "bob", ""), "PERMISSION_DENIED")
		c.want(what+" nobody", c.refused("mod", change, what, "", ""), "INVALID input.agentId")
		c.want(what+" nowhere", c.refused("mod", `mutation { %s, agentId: "x"}) { restrictions { nodes { agent: agentId } } } }`, what), "INVALID input.channelId")
		c.want(what+" both", c.refused("mod", change, what, "x", ", everywhere: true"), "INVALID input.channelId")
		c.want(what+" everywhere", c.refused("ann", `mutation { %s, everywhere: true, agentId: "x"}) { restrictions { nodes { agent: agentId } } } }`, what), "PERMISSION_DENIED")
		c.likeAbsent("eve", "CHANNEL_NOT_FOUND", `mutation { `+what+`, channelId: "%s", agentId: "x"}) { restrictions { nodes { agent: agentId } } } }`, c.lab("PRIVATE"))
	}
	c.want("a reason", c.told("mod", change, ban, "why", `, justification: "noise"`)[:17], `{"restrictAgent":`)
	c.want("in the audit trail", string(c.askAs("root", []string{kg.RoleAdmin}, `{ audit(first: 1, kinds: [CHANNEL]) { nodes { justification } } }`).Data), `{"audit":{"nodes":[{"justification":"noise"}]}}`)
	c.want("too long a reason", c.refused("mod", change, ban, "why", `, justification: "`+strings.Repeat("x", channels.MaxReasonRunes+1)+`"`), "LIMIT_EXCEEDED input.justification")
	c.told("mod", change, unban, "why", "")
	c.want("unbanned", c.told("mod", change, unban, "bob", ""), `{"liftRestriction":`+listed(muted)+`}`)
	c.want("unmuted", c.told("mod", change, unmute, "cy", ""), `{"liftRestriction":`+listed("")+`}`)
	c.want("there again", c.told("bob", `{ channel(id: "%s") { name } }`, id), `{"channel":{"name":"r"}}`)

	admin := []string{kg.RoleAdmin}
	whole := `mutation { restrictAgent(input: {everywhere: true, agentId: "bob", kind: BAN}) { channel { id } restrictions { nodes { agent: agentId kind } } } }`
	result := c.askAs("root", admin, "%s", whole)
	c.want("from the whole server", string(result.Data), `{"restrictAgent":{"channel":null,"restrictions":{"nodes":[{"agent":"agent://bob","kind":"BAN"}]}}}`)
	c.want("the list of the server", string(c.askAs("root", admin, `{ globalRestrictions { nodes { agent: agentId kind until } } }`).Data), `{"globalRestrictions":{"nodes":[{"agent":"agent://bob","kind":"BAN","until":null}]}}`)
	c.want("for others", c.refused("ann", `{ globalRestrictions { nodes { agent: agentId } } }`), "PERMISSION_DENIED")
	c.want("banned there", c.refused("bob", `{ channel(id: "%s") { name } }`, id), "CHANNEL_NOT_FOUND id")
	c.want("free", string(c.askAs("root", admin, `mutation { liftRestriction(input: {everywhere: true, agentId: "bob", kind: BAN}) { restrictions { nodes { agent: agentId } } } }`).Data), `{"liftRestriction":{"restrictions":{"nodes":[]}}}`)
}

func TestRemoveAgent(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	one, two := c.lab("PRIVATE"), c.lab("PUBLIC")
	remove := `mutation { removeAgent(input: {agentId: "bob"}) { agent: agentId channelCount } }`
	c.want("by another", c.refused("ann", "%s", remove), "PERMISSION_DENIED")
	c.want("nobody", c.refused("ann", `mutation { removeAgent(input: {agentId: ""}) { channelCount } }`), "INVALID input.agentId")
	result := c.ask("bob", "%s", remove)
	c.want("itself", string(result.Data), `{"removeAgent":{"agent":"agent://bob","channelCount":2}}`)
	if result.Position != c.store.Head() {
		t.Errorf("the position is %v of %v", result.Position, c.store.Head())
	}
	for _, id := range []string{one, two} {
		c.want("who is left", c.told("ann", `{ channel(id: "%s") { members { nodes { agent: agentId } } } }`, id), `{"channel":{"members":{"nodes":[{"agent":"agent://ann"}]}}}`)
	}
	c.want("by an administrator, again", string(c.askAs("root", []string{kg.RoleAdmin}, "%s", remove).Data), `{"removeAgent":{"agent":"agent://bob","channelCount":0}}`)
}

// A caller reads its own bounds, and they hold.
func TestTiersOfCallers(t *testing.T) {
	c := newConversingWith(t, limit.Limits{}, channels.Options{Tier: channels.Free, Tiers: map[string]channels.Tier{
		"partner": channels.Standard, "batch": {Name: "batch", MessagesPerMinute: 1, Channels: 500},
	}})
	tier := `{ me { tier { name messagesPerMinute streams channels messageBytes } } }`
	for roles, want := range map[string]string{
		"":              `"name":"free","messagesPerMinute":60,"streams":2,"channels":10,"messageBytes":65536`,
		"partner":       `"name":"standard","messagesPerMinute":600,"streams":10,"channels":100,"messageBytes":65536`,
		"batch":         `"name":"batch","messagesPerMinute":1,"streams":null,"channels":500,"messageBytes":null`,
		"batch partner": `"name":"batch or standard","messagesPerMinute":600,"streams":null,"channels":500,"messageBytes":null`,
	} {
		result := c.askAs("ann", strings.Fields(roles), "%s", tier)
		c.want(roles, string(result.Data), `{"me":{"tier":{`+want+`}}}`)
	}
	id := c.lab("PRIVATE")
	publish := `mutation { publishMessage(input: {channelId: "` + id + `", parts: [{text: "x"}]}) { success } }`
	c.askAs("ann", []string{"batch"}, "%s", publish)
	result := c.askAs("ann", []string{"batch"}, "%s", publish)
	if len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != "RATE_LIMITED" || result.Errors[0].Extensions["limit"] != "messagesPerMinute" {
		t.Errorf("too fast: %s %v", result.Data, result.Errors)
	}
	b := newBench(t, graph.Options{})
	if r := b.execute(tier, ""); len(r.Errors) != 0 || string(r.Data) != `{"me":{"tier":null}}` {
		t.Errorf("where there are no channels: %s %v", r.Data, r.Errors)
	}
}
