package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/internal/slowtest"
	"koine/kg"
)

// nowhere is no channel, and no message.
const nowhere = "0192aaaa-0000-7000-8000-000000000000"

// asIfAbsent proves that an operation that names a channel of others answers as for
// one that is not there.
func (c *conversing) asIfAbsent(code, query, id string) {
	c.t.Helper()
	got, want := c.ask("eve", "%s", strings.ReplaceAll(query, "ID", id)), c.ask("eve", "%s", strings.ReplaceAll(query, "ID", nowhere))
	if fmt.Sprint(got.Errors) != fmt.Sprint(want.Errors) || len(want.Errors) != 1 || want.Errors[0].Extensions["code"] != code || string(got.Data) != string(want.Data) {
		c.t.Errorf("%s:\n got %s %v\nwant %s %v", query, got.Data, got.Errors, want.Data, want.Errors)
	}
}

// TestReceipts proves that acknowledgements are visible at the message, at the channel and
// in the filter, and that only recipients can acknowledge.
func TestReceipts(t *testing.T) {
	slowtest.Long(t)
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	c.told("ann", `mutation { addChannelMember(input: {channelId: "%s", agentId: "cy"}) { channel { id } } }`, id)
	first := c.say("ann", id, "1", "")
	second := c.say("ann", id, "2", `, recipient: "bob"`)
	third := c.say("bob", id, "3", "")
	gone := c.say("ann", id, "4", `, recipient: "bob", messageType: REQUEST, expiresAt: "2026-01-02T00:00:00Z"`)

	shown := `{ channel(id: "` + id + `") { readMarker unread { count hasMore } messages { nodes { receiptStatus } } } }`
	c.want("at first", c.told("bob", "%s", shown), `{"channel":{"readMarker":0,"unread":{"count":2,"hasMore":false},"messages":{"nodes":[{"receiptStatus":"PENDING"},{"receiptStatus":"PENDING"},{"receiptStatus":null},{"receiptStatus":"EXPIRED"}]}}}`)
	c.want("one is read", c.told("bob", `mutation { acknowledgeMessages(input: {channelId: "%s", messageIds: ["%s"]}) { channel { readMarker unread { count } } } }`, id, second), `{"acknowledgeMessages":{"channel":{"readMarker":0,"unread":{"count":1}}}}`)
	c.want("at the message", c.told("cy", `{ message(id: "%s") { recipients: recipientIds withheldReason receiptStatus receipts { nodes { agent: agentId status } } } }`, second),
		`{"message":{"recipients":["agent://bob"],"withheldReason":"ADDRESSED","receiptStatus":null,"receipts":{"nodes":[{"agent":"agent://bob","status":"READ"}]}}}`)
	c.want("all is read", c.told("bob", `mutation { acknowledgeMessages(input: {channelId: "%s", upToSequence: 4, status: READ}) { channel { readMarker unread { count hasMore } } } }`, id), `{"acknowledgeMessages":{"channel":{"readMarker":4,"unread":{"count":0,"hasMore":false}}}}`)
	c.want("then", c.told("bob", "%s", shown), `{"channel":{"readMarker":4,"unread":{"count":0,"hasMore":false},"messages":{"nodes":[{"receiptStatus":"READ"},{"receiptStatus":"READ"},{"receiptStatus":null},{"receiptStatus":"EXPIRED"}]}}}`)
	c.want("at one to everybody", c.told("ann", `{ message(id: "%s") { receiptStatus receipts { nodes { agent: agentId status } } } }`, third), `{"message":{"receiptStatus":"PENDING","receipts":{"nodes":[{"agent":"agent://ann","status":"PENDING"},{"agent":"agent://cy","status":"PENDING"}]}}}`)
	c.want("by what became of them", c.told("bob", `{ channel(id: "%s") { read: messages(where: {status: READ}) { nodes { sequence } } expired: messages(where: {status: EXPIRED}) { nodes { sequence } } } }`, id),
		`{"channel":{"read":{"nodes":[{"sequence":1},{"sequence":2}]},"expired":{"nodes":[{"sequence":4}]}}}`)
	c.told("cy", `mutation { acknowledgeMessages(input: {channelId: "%s", messageIds: ["%s"], status: DELIVERED}) { channel { id } } }`, id, first)
	c.service.Close() // writes pending receipts
	c.want("delivered", c.told("cy", `{ message(id: "%s") { receiptStatus } }`, first), `{"message":{"receiptStatus":"DELIVERED"}}`)

	acknowledge := `mutation { acknowledgeMessages(input: {channelId: "` + id + `", %s}) { channel { id } } }`
	for args, want := range map[string]string{
		`messageIds: ["` + second + `"]`:                            "PERMISSION_DENIED input.messageIds",
		`messageIds: ["` + nowhere + `"]`:                           "INVALID input.messageIds",
		`upToSequence: 5`:                                           "INVALID input.upToSequence",
		`upToSequence: 0`:                                           "INVALID input.upToSequence",
		`upToSequence: 1, messageIds: ["` + first + `"]`:            "INVALID input.upToSequence",
		`status: READ`:                                              "INVALID input.upToSequence",
		`upToSequence: 1, status: PENDING`:                          "INVALID input.status",
		`messageIds: [` + strings.Repeat(`"`+first+`" `, 201) + `]`: "LIMIT_EXCEEDED input.messageIds",
	} {
		c.want(args, c.refused("cy", acknowledge, args), want)
	}
	c.want("one that has expired", c.refused("bob", acknowledge, `messageIds: ["`+gone+`"]`), "MESSAGE_EXPIRED input.messageIds")
	c.asIfAbsent("CHANNEL_NOT_FOUND", `mutation { acknowledgeMessages(input: {channelId: "ID", upToSequence: 1}) { channel { id } } }`, id)

	room := c.id("ann", `mutation { createChannel(input: {kind: ROOM, visibility: PUBLIC}) { channel { id } } }`)
	c.want("of what one may only find", c.told("eve", `{ channel(id: "%s") { kind readMarker unread { count } } }`, room), `{"channel":{"kind":"ROOM","readMarker":null,"unread":null}}`)
	if result := c.ask("bob", `{ channels(first: 200) { nodes { messages(first: 200) { nodes { receipts { nodes { status } } } } } } }`); len(result.Errors) != 1 || result.Errors[0].Extensions["limit"] != "complexity" {
		t.Errorf("the receipts of very many: %v", result.Errors)
	}
}

// TestMessageFilters proves that each bound and each condition is passed on, and
// refused where it cannot be.
func TestMessageFilters(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	ids := []string{
		c.say("ann", id, "1", `, tags: ["red"], threadId: "t", messageType: NOTIFY, contentType: TEXT`),
		c.say("bob", id, "2", `, threadId: "t", messageType: REQUEST, recipient: "ann", contentType: ACTION`),
	}
	ids = append(ids, c.say("ann", id, "3", `, messageType: RESPONSE, correlationId: "`+ids[1]+`"`), c.say("ann", id, "4", `, tags: ["red", "blue"], contentType: STRUCTURED`))
	at := func(n int) string {
		return strings.Split(c.told("bob", `{ message(id: "%s") { time } }`, ids[n-1]), `"`)[5]
	}
	for args, want := range map[string]string{
		`where: {}`:                                                            "1 2 3 4",
		`where: {tag: "red"}`:                                                  "1 4",
		`where: {tag: "red", threadId: "t"}`:                                   "1",
		`where: {threadId: "t"}, order: DESC`:                                  "2 1",
		`where: {messageType: RESPONSE}`:                                       "3",
		`where: {contentType: STRUCTURED}`:                                     "4",
		`where: {forMe: true}`:                                                 "1 3 4",
		`where: {forMe: false}`:                                                "1 2 3 4",
		`where: {recipient: "ann"}`:                                            "2",
		`where: {recipient: null, tag: null}`:                                  "1 2 3 4",
		`where: {status: PENDING}`:                                             "1 3 4",
		`where: {correlationId: "` + ids[1] + `"}`:                             "3",
		`sinceMessageId: "` + ids[0] + `"`:                                     "2 3 4",
		`beforeMessageId: "` + ids[2] + `"`:                                    "1 2",
		`sinceMessageId: "` + ids[0] + `", beforeMessageId: "` + ids[3] + `"`:  "2 3",
		`beforeTime: "` + at(3) + `"`:                                          "1 2 3",
		`sinceTime: "` + at(1) + `", beforeTime: "` + at(4) + `", order: DESC`: "4 3 2 1",
		`beforeTime: "2000-01-01T00:00:00Z"`:                                   "",
		`beforeTime: "2100-01-01T00:00:00Z", first: 2, where: {forMe: true}`:   "1 3",
	} {
		got := c.told("bob", `{ channel(id: "%s") { messages(%s) { nodes { text } } } }`, id, args)
		got = strings.Trim(strings.NewReplacer(`{"channel":{"messages":{"nodes":[`, "", `{"text":"`, "", `"},`, " ", `"}`, "", `]}}}`, "").Replace(got), " ")
		c.want(args, got, want)
	}
	messages := `{ channel(id: "` + id + `") { messages(%s) { nodes { id } } } }`
	for args, want := range map[string]string{
		`sinceMessageId: "` + nowhere + `"`:                                     "INVALID sinceMessageId",
		`beforeMessageId: "` + nowhere + `"`:                                    "INVALID beforeMessageId",
		`sinceMessageId: "` + ids[0] + `", sinceSequence: 1`:                    "INVALID sinceMessageId",
		`beforeMessageId: "` + ids[0] + `", beforeSequence: 1`:                  "INVALID beforeMessageId",
		`beforeMessageId: "` + ids[0] + `", beforeTime: "2026-01-01T00:00:00Z"`: "INVALID beforeMessageId",
		`beforeSequence: 2, beforeTime: "2026-01-01T00:00:00Z"`:                 "INVALID beforeTime",
		`where: {forMe: true, recipient: "ann"}`:                                "INVALID where.forMe",
	} {
		c.want(args, c.refused("bob", messages, args), want)
	}
	if result := c.ask("bob", messages, `where: {colour: "red"}`); len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != "GRAPHQL_VALIDATION_FAILED" {
		t.Errorf("a condition that there is not: %v", result.Errors)
	}
}

// TestEvicted proves that a message whose content was evicted says so, and that a read
// after an evicted message is an error.
func TestEvicted(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	by := channels.Caller{Principal: kg.Principal{ID: kg.CanonicalAgent("ann"), Method: "key"}}
	made, err := c.service.Create(t.Context(), by, channel.Draft{KeepMessages: 1})
	if err != nil {
		t.Fatal(err)
	}
	id := c.say("ann", string(made.ID), "old", "")
	c.say("ann", string(made.ID), "new", "")
	c.want("the older one", c.told("ann", `{ message(id: "%s") { sequence text parts withheldReason } }`, id), `{"message":{"sequence":1,"text":"","parts":[],"withheldReason":"EVICTED"}}`)
	page := func(bound string) string {
		return fmt.Sprintf(`{ channel(id: "%s") { messages%s { nodes { text } } } }`, made.ID, bound)
	}
	for bound, field := range map[string]string{`(sinceSequence: 0)`: "sinceSequence", `(sinceTime: "2020-01-01T00:00:00Z", order: DESC)`: "sinceTime"} {
		c.want(bound, c.refused("ann", "%s", page(bound)), "POSITION_GONE "+field)
		if e := c.ask("ann", "%s", page(bound)).Errors[0].Extensions; e["oldestSequence"] != int64(2) {
			t.Errorf("%s: %v", bound, e)
		}
	}
	for _, bound := range []string{``, `(sinceSequence: 1)`, `(sinceMessageId: "` + id + `")`} {
		c.want(bound, c.told("ann", "%s", page(bound)), `{"channel":{"messages":{"nodes":[{"text":"new"}]}}}`)
	}
}

// TestRetractMessage proves that messages are retracted with their facts, once, by agents
// with the right to.
func TestRetractMessage(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	message := c.say("bob", id, "it is 7", `, patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: 7}, graph: "ex:g"}}]`)
	retract := `mutation { retractMessage(input: {channelId: "` + id + `", messageId: "%s", %s}) { success replayed dryRun withdrawn statementsAffected verificationStatus proposalId message { sequence author: authorId text retracts { id text withheldReason retractedBy { sequence } } } } }`
	facts := `{ statements(where: {predicate: {eq: "ex:p"}}) { totalCount } }`
	withdrawn := `"withdrawn":[{"op":"remove","statement":{"subject":{"id":"https://example.org/s"},"predicate":{"id":"https://example.org/p"},"object":{"value":7,"type":"http://www.w3.org/2001/XMLSchema#integer"},"graph":"https://example.org/g","source":"agent://bob"}}],"statementsAffected":1,"verificationStatus":"Verified","proposalId":null`
	head := c.store.Head()
	c.want("what would be", c.told("bob", retract, message, `withdrawFacts: true, dryRun: true`), `{"retractMessage":{"success":true,"replayed":false,"dryRun":true,`+withdrawn+`,"message":null}}`)
	c.want("the facts stand", c.told("bob", "%s", facts), `{"statements":{"totalCount":1}}`)
	if c.store.Head() != head {
		t.Errorf("a dry run has written")
	}
	result := c.ask("bob", retract, message, `reason: "it is 8", withdrawFacts: true`)
	c.want("taken back", string(result.Data), `{"retractMessage":{"success":true,"replayed":false,"dryRun":false,`+withdrawn+`,"message":{"sequence":2,"author":"agent://bob","text":"it is 8","retracts":{"id":"`+message+`","text":"","withheldReason":"RETRACTED","retractedBy":{"sequence":2}}}}}`)
	if result.Position != c.store.Head() {
		t.Errorf("the position is %v of %v", result.Position, c.store.Head())
	}
	c.want("the facts are gone", c.told("bob", "%s", facts), `{"statements":{"totalCount":0}}`)
	c.want("again, by the owner", c.told("ann", retract, message, `withdrawFacts: true`), `{"retractMessage":{"success":true,"replayed":true,"dryRun":false,"withdrawn":[],"statementsAffected":0,"verificationStatus":"Verified","proposalId":null,"message":{"sequence":2,"author":"agent://bob","text":"it is 8","retracts":{"id":"`+message+`","text":"","withheldReason":"RETRACTED","retractedBy":{"sequence":2}}}}}`)

	own := c.say("ann", id, "mine", "")
	c.told("bob", retract, own, "dryRun: true") // a moderator may
	c.want("none", c.refused("bob", retract, nowhere, ""), "NOT_FOUND input.messageId")
	c.want("too long a reason", c.refused("ann", retract, own, `reason: "`+strings.Repeat("x", 1025)+`"`), "LIMIT_EXCEEDED input.reason")
	c.asIfAbsent("CHANNEL_NOT_FOUND", `mutation { retractMessage(input: {channelId: "ID", messageId: "`+message+`"}) { success } }`, id)
}

// TestRetractWithoutFacts proves that the facts of a message stay if they are not to be
// withdrawn, if the retracting agent may not read them, and if the withdrawal is refused.
func TestRetractWithoutFacts(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	hidden := c.id("bob", `mutation { createChannel(input: {name: "hidden"}) { channel { id } } }`)
	fact := func(p, graph string) string {
		return `, patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:` + p + `"}, object: {value: 7}, graph: "` + graph + `"}}]`
	}
	retract := `mutation { retractMessage(input: {channelId: "` + id + `", messageId: "%s", %s}) { success withdrawn keptCount statementsAffected verificationStatus verificationDetails message { sequence } } }`
	stands := func(p string) {
		t.Helper()
		c.want(p, c.told("bob", `{ statements(where: {predicate: {eq: "ex:%s"}}) { totalCount } }`, p), `{"statements":{"totalCount":1}}`)
	}
	done := func(kept, sequence int) string {
		return fmt.Sprintf(`{"retractMessage":{"success":true,"withdrawn":[],"keptCount":%d,"statementsAffected":0,"verificationStatus":"Verified","verificationDetails":null,"message":{"sequence":%d}}}`, kept, sequence)
	}
	message := c.say("bob", id, "it is 7", fact("p", "ex:g"))
	c.want("the message alone", c.told("bob", retract, message, ""), done(0, 2))
	stands("p")
	message = c.say("bob", id, "and 7 elsewhere", fact("q", "urn:koine:facts:"+hidden))
	c.want("by one who does not read it", c.told("ann", retract, message, `withdrawFacts: true`), done(1, 4))
	stands("q")
	message = c.say("bob", id, "once and for all", fact("fixed", "ex:g"))
	c.want("refused", c.told("bob", retract, message, `withdrawFacts: true`),
		`{"retractMessage":{"success":false,"withdrawn":[{"op":"remove","statement":{"subject":{"id":"https://example.org/s"},"predicate":{"id":"https://example.org/fixed"},"object":{"value":7,"type":"http://www.w3.org/2001/XMLSchema#integer"},"graph":"https://example.org/g","source":"agent://bob"}}],`+
			`"keptCount":0,"statementsAffected":0,"verificationStatus":"Rejected - fixed","verificationDetails":"what is fixed stays","message":null}}`)
	stands("fixed")
	c.want("its message", c.told("ann", `{ message(id: "%s") { text withheldReason } }`, message), `{"message":{"text":"once and for all","withheldReason":null}}`)
}

// TestRetractHeld proves that a message is retracted at once if the withdrawal of its facts
// waits for review.
func TestRetractHeld(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	approve := func(proposal string) {
		t.Helper()
		for _, who := range []string{"rob", "rae"} {
			c.saidTo(who, reviewer, `mutation { reviewProposal(input: {proposalId: "`+proposal+`", decision: APPROVE}) { proposal { id } } }`)
		}
	}
	proposal := func(data string) string {
		t.Helper()
		_, rest, ok := strings.Cut(data, `"proposalId":"`)
		if !ok {
			t.Fatalf("got %s, want a proposal", data)
		}
		return rest[:strings.IndexByte(rest, '"')]
	}
	said := c.told("ann", `mutation { publishMessage(input: {channelId: "%s", parts: [{text: "a rise"}], patches: [{op: add, statement: {subject: {id: "ex:ann"}, predicate: {id: "ex:pay"}, object: {value: 5}, graph: "ex:g"}}]}) { proposalId message { id } } }`, id)
	approve(proposal(said))
	message := strings.Split(said, `"id":"`)[1][:len(nowhere)]
	pay := `{ statements(where: {predicate: {eq: "ex:pay"}}) { totalCount } }`
	c.want("the facts", c.told("ann", "%s", pay), `{"statements":{"totalCount":1}}`)
	held := c.told("ann", `mutation { retractMessage(input: {channelId: "%s", messageId: "%s", withdrawFacts: true}) { success statementsAffected verificationStatus proposalId withdrawn message { retracts { withheldReason } } } }`, id, message)
	if !strings.Contains(held, `"success":true,"statementsAffected":0,"verificationStatus":"Pending Review"`) || !strings.Contains(held, `"withheldReason":"RETRACTED"`) {
		t.Errorf("held: %s", held)
	}
	c.want("they stand", c.told("ann", "%s", pay), `{"statements":{"totalCount":1}}`)
	again := c.told("ann", `mutation { retractMessage(input: {channelId: "%s", messageId: "%s", withdrawFacts: true}) { replayed verificationStatus proposalId } }`, id, message)
	c.want("again", again, `{"retractMessage":{"replayed":true,"verificationStatus":"Pending Review","proposalId":"`+proposal(held)+`"}}`)
	c.want("one waits", c.told("ann", `{ proposals(status: PENDING) { nodes { id } } }`), `{"proposals":{"nodes":[{"id":"`+proposal(held)+`"}]}}`)
	approve(proposal(held))
	c.want("until it is approved", c.told("ann", "%s", pay), `{"statements":{"totalCount":0}}`)
}

// TestRetractHeldLater proves that facts to be withdrawn after their message wait in one
// proposal, for any number of requests, and in another one after the decision.
func TestRetractHeldLater(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	said := c.told("ann", `mutation { publishMessage(input: {channelId: "%s", parts: [{text: "a rise"}], patches: [{op: add, statement: {subject: {id: "ex:ann"}, predicate: {id: "ex:pay"}, object: {value: 5}, graph: "ex:g"}}]}) { proposalId message { id } } }`, id)
	message, proposal := strings.Split(said, `"id":"`)[1][:len(nowhere)], strings.Split(said, `"proposalId":"`)[1][:len(nowhere)]
	review := func(proposal, decision string, who ...string) {
		t.Helper()
		for _, one := range who {
			c.saidTo(one, reviewer, `mutation { reviewProposal(input: {proposalId: "`+proposal+`", decision: `+decision+`}) { proposal { id } } }`)
		}
	}
	review(proposal, "APPROVE", "rob", "rae")
	c.told("ann", `mutation { retractMessage(input: {channelId: "%s", messageId: "%s"}) { success } }`, id, message)
	withdraw := func() string {
		t.Helper()
		held := c.told("ann", `mutation { retractMessage(input: {channelId: "%s", messageId: "%s", withdrawFacts: true}) { replayed statementsAffected verificationStatus verificationDetails proposalId } }`, id, message)
		_, rest, ok := strings.Cut(held, `"proposalId":"`)
		if !ok || !strings.Contains(held, `"replayed":true,"statementsAffected":0,"verificationStatus":"Pending Review"`) {
			t.Fatalf("held: %s", held)
		}
		return rest[:len(nowhere)]
	}
	first := withdraw()
	head := c.store.Head()
	if again := withdraw(); again != first || c.store.Head() != head {
		t.Errorf("the second waits as %s, the first as %s", again, first)
	}
	review(first, "REJECT", "rob")
	if later := withdraw(); later == first {
		t.Errorf("what was rejected waits again as %s", later)
	}
}

// TestRetractPending proves that facts that wait for review do not come after their
// message was taken back.
func TestRetractPending(t *testing.T) {
	for _, facts := range []bool{false, true} {
		c := newConversing(t, limit.Limits{})
		id := c.lab("PRIVATE")
		said := c.told("ann", `mutation { publishMessage(input: {channelId: "%s", parts: [{text: "a rise"}], patches: [{op: add, statement: {subject: {id: "ex:ann"}, predicate: {id: "ex:pay"}, object: {value: 5}, graph: "ex:g"}}]}) { proposalId message { id } } }`, id)
		message := strings.Split(said, `"id":"`)[1][:len(nowhere)]
		proposal := strings.Split(said, `"proposalId":"`)[1][:len(nowhere)]
		for _, dry := range []bool{true, false} {
			c.want("taken back", c.told("ann", `mutation { retractMessage(input: {channelId: "%s", messageId: "%s", withdrawFacts: %t, dryRun: %t}) { success keptCount withdrawn withdrawnProposalId } }`, id, message, facts, dry),
				`{"retractMessage":{"success":true,"keptCount":0,"withdrawn":[],"withdrawnProposalId":"`+proposal+`"}}`)
		}
		c.want("again", c.told("ann", `mutation { retractMessage(input: {channelId: "%s", messageId: "%s", withdrawFacts: %t}) { replayed withdrawnProposalId } }`, id, message, facts), `{"retractMessage":{"replayed":true,"withdrawnProposalId":null}}`)
		for _, who := range []string{"rob", "rae"} {
			req := operation.Request{Query: `mutation { reviewProposal(input: {proposalId: "` + proposal + `", decision: APPROVE}) { proposal { id } } }`, Principal: kg.Principal{ID: kg.CanonicalAgent(who), Roles: []string{kg.RoleReviewer}, Method: "key"}}
			if result := c.engine.Execute(t.Context(), req); len(result.Errors) != 1 {
				t.Errorf("%s approves: %s, %v", who, result.Data, result.Errors)
			}
		}
		c.want("the facts", c.told("ann", `{ statements(where: {predicate: {eq: "ex:pay"}}) { totalCount } }`), `{"statements":{"totalCount":0}}`)
		c.want("the proposal", c.told("ann", `{ proposal(id: "%s") { status } }`, proposal), `{"proposal":{"status":"WITHDRAWN"}}`)
	}
}
