package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/scope"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/internal/slowtest"
	"koine/kg"
)

// asked are operations about objects hidden from eve, with part of the answer that she gets
// to any of them. A field about channels, messages, scopes or tasks gets a row here:
// {channel}, {message}, {scope} and {task} stand for the hidden ones, {agora} for a channel
// that she is a member of. (TestOutsidersOfEveryField requests every field of the schema
// that takes an id, also one without a row, but without meaningful arguments.)
var asked = []struct{ operation, told string }{
	{`{ channel(id: "{channel}") { name } }`, "CHANNEL_NOT_FOUND"},
	{`{ a: channel(id: "{channel}") { messages { nodes { text } } } b: channel(id: "{agora}") { name } }`, "CHANNEL_NOT_FOUND"},
	{`{ message(id: "{message}") { text channel { name } replies { nodes { text } } } }`, "NOT_FOUND"},
	{`{ channels { nodes { id name } } }`, `"agora"`},
	{`{ channels(memberId: "bob") { nodes { id name } } }`, `"agora"`},
	{`{ channel(id: "{channel}") { unread { count } readMarker } }`, "CHANNEL_NOT_FOUND"},
	{`{ channel(id: "{agora}") { messages(sinceMessageId: "{message}") { nodes { text } } } }`, "INVALID"},
	{`{ channel(id: "{agora}") { messages(beforeMessageId: "{message}") { nodes { text } } } }`, "INVALID"},
	{`{ channel(id: "{agora}") { messages(where: {correlationId: "{message}"}) { nodes { text } } } }`, `"nodes":[]`},
	{`{ channel(id: "{channel}") { status closedAt limits { streams } invitations { nodes { agent: agentId } } restrictions { nodes { agent: agentId } } scope { title } } }`, "CHANNEL_NOT_FOUND"},
	{`{ channels(scopeId: "{scope}") { nodes { id name } } }`, "SCOPE_NOT_FOUND"},
	{`{ channels(invited: true) { nodes { id name } } }`, `"nodes":[]`},
	{`{ scope(id: "{scope}") { title channels { nodes { name } } events { nodes { data } } verifyEvents { verifiedCount } tasks { nodes { title } } } }`, "SCOPE_NOT_FOUND"},
	{`{ scopes(parentId: "{scope}") { nodes { title } } }`, `"nodes":[]`},
	{`{ scopes { nodes { title } } }`, `"nodes":[]`},
	{`{ inbox { nodes { text } pageInfo { hasNextPage } } }`, `"nodes":[]`},
	{`{ globalRestrictions { nodes { agent: agentId } } }`, "PERMISSION_DENIED"},
	{`{ audit(channelId: "{channel}") { nodes { channelActions { channelId } } } }`, "PERMISSION_DENIED"},
	{`{ entity(iri: "urn:koine:channel:{channel}") { asChannel { name } types } }`, `"entity":null`},
	{`{ entity(iri: "urn:koine:channel:{channel}", view: {allGraphs: true}) { asChannel { name } types } }`, `"entity":null`},
	{`{ entity(iri: "urn:koine:message:{message}", view: {allGraphs: true}) { asMessage { text } types } }`, `"entity":null`},
	{`{ entity(iri: "urn:koine:scope:{scope}", view: {allGraphs: true}) { types } }`, `"entity":null`},
	{`{ graph(iri: "urn:koine:graph:channel:{channel}") { iri } }`, `"graph":null`},
	{`{ graph(iri: "urn:koine:graph:journal:messages:{channel}") { iri } }`, `"graph":null`},
	{`{ graph(iri: "urn:koine:facts:{channel}") { iri } }`, `"graph":null`},
	{`{ statements(view: {graphs: ["urn:koine:graph:journal:messages:{channel}", "urn:koine:facts:{channel}"]}) { totalCount } }`, ""},
	{`{ match(pattern: {triples: [{s: "urn:koine:message:{message}", p: "?p", o: "?o"}]}, view: {allGraphs: true}) { totalCount } }`, `"totalCount":0`},
	{`{ match(pattern: {triples: [{s: "?m", p: "koine:replyTo", o: "urn:koine:message:{message}"}]}, view: {allGraphs: true}) { totalCount } }`, `"totalCount":0`},
	{`{ changes(where: {subject: {eq: "urn:koine:message:{message}"}}, view: {allGraphs: true}) { nodes { op } } }`, `"nodes":[]`},

	{`mutation { updateChannel(input: {channelId: "{channel}", expectedVersion: 1, name: "x"}) { channel { id } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { deleteChannel(input: {channelId: "{channel}"}) { channelId } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { addChannelMember(input: {channelId: "{channel}", agentId: "eve"}) { channel { id } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { removeChannelMember(input: {channelId: "{channel}", agentId: "bob"}) { channel { id } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { removeChannelMember(input: {channelId: "{channel}", agentId: "eve"}) { channel { id } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { publishMessage(input: {channelId: "{channel}", parts: [{text: "x"}]}) { success } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { publishMessage(input: {channelId: "{channel}", replyToId: "{message}", parts: [{text: "x"}]}) { success } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { publishMessage(input: {channelId: "{agora}", replyToId: "{message}", parts: [{text: "x"}]}) { success } }`, "INVALID"},
	{`mutation { publishMessage(input: {channelId: "{agora}", messageType: RESPONSE, correlationId: "{message}", parts: [{text: "x"}]}) { success } }`, "INVALID"},
	{`mutation { retractMessage(input: {channelId: "{channel}", messageId: "{message}"}) { success } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { retractMessage(input: {channelId: "{channel}", messageId: "{message}", withdrawFacts: true, dryRun: true}) { success } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { retractMessage(input: {channelId: "{agora}", messageId: "{message}"}) { success } }`, "NOT_FOUND"},
	{`mutation { acknowledgeMessages(input: {channelId: "{channel}", upToSequence: 1}) { channel { id } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { acknowledgeMessages(input: {channelId: "{channel}", upToSequence: 99, status: DELIVERED}) { channel { id } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { acknowledgeMessages(input: {channelId: "{channel}", messageIds: ["{message}"]}) { channel { id } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { acknowledgeMessages(input: {channelId: "{agora}", messageIds: ["{message}"]}) { channel { id } } }`, "INVALID"},
	{`mutation { closeChannel(input: {channelId: "{channel}"}) { channel { id } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { joinChannel(input: {channelId: "{channel}"}) { channel { id } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { leaveChannel(input: {channelId: "{channel}"}) { channelId } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { inviteAgent(input: {channelId: "{channel}", agentId: "eve"}) { channel { id } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { withdrawInvitation(input: {channelId: "{channel}", agentId: "bob"}) { channel { id } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { answerInvitation(input: {channelId: "{channel}", answer: ACCEPT}) { channel { id } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { answerInvitation(input: {channelId: "{channel}", answer: DECLINE}) { channelId } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { restrictAgent(input: {channelId: "{channel}", agentId: "bob", kind: BAN}) { restrictions { nodes { agent: agentId } } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { liftRestriction(input: {channelId: "{channel}", agentId: "eve", kind: BAN}) { restrictions { nodes { agent: agentId } } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { restrictAgent(input: {channelId: "{channel}", agentId: "bob", kind: MUTE}) { restrictions { nodes { agent: agentId } } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { liftRestriction(input: {channelId: "{channel}", agentId: "eve", kind: MUTE}) { restrictions { nodes { agent: agentId } } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { createScope(input: {parentId: "{scope}"}) { scope { id } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { updateScope(input: {scopeId: "{scope}", expectedVersion: 1, title: "x"}) { scope { id } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { endScope(input: {scopeId: "{scope}", status: COMPLETED}) { scope { id } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { createChannel(input: {name: "plans", scopeId: "{scope}"}) { channel { id } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { publishMessage(input: {scopeId: "{scope}", channelName: "plans", parts: [{text: "x"}]}) { success } }`, "SCOPE_NOT_FOUND"},
	{`mutation { ask(input: {timeoutSeconds: 1, message: {channelId: "{channel}", recipient: "bob", parts: [{text: "x"}]}}) { timedOut } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { ask(input: {timeoutSeconds: 1, message: {channelId: "{channel}", recipient: "bob", parts: [{text: "x"}]}, wait: ALL}) { responses { id } } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { ask(input: {timeoutSeconds: 1, message: {channelId: "{agora}", replyToId: "{message}", recipient: "bob", parts: [{text: "x"}]}}) { timedOut } }`, "INVALID"},
	{`mutation { sendSignal(input: {channelId: "{channel}", kind: "typing"}) { sent } }`, "CHANNEL_NOT_FOUND"},
	{`mutation { sendSignal(input: {channelId: "{agora}", kind: "reaction", data: {messageId: "{message}", reaction: "+1"}}) { sent } }`, `"code":`},
	{`mutation { createGraph(input: {iri: "urn:koine:graph:channel:{channel}"}) { revision } }`, `"code":`},
	{`mutation { setGraphPolicy(input: {iri: "urn:koine:graph:journal:messages:{channel}", readers: ["agent://eve"]}) { revision } }`, `"code":`},
	{`mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: 1}, graph: "urn:koine:facts:{channel}"}}]}) { success } }`, `"code":`},

	{`{ task(id: "{task}") { status { state } messages { nodes { text } } artifacts { text } parent { id } subtasks { totalCount } } }`, "TASK_NOT_FOUND"},
	{`{ tasks { totalCount nodes { id } } t: tasks(parentId: "{task}") { totalCount } }`, `"totalCount":0`},
	{`{ entity(iri: "urn:koine:task:{task}", view: {allGraphs: true}) { asTask { id } types } a: entity(iri: "urn:koine:artifact:{task}/a", view: {allGraphs: true}) { types } }`, `"entity":null`},
	{`mutation { sendMessage(input: {taskId: "{task}", parts: [{text: "x"}]}) { replayed } }`, "TASK_NOT_FOUND"},
	{`mutation { reportTask(input: {taskId: "{task}", state: WORKING}) { task { id } } }`, "TASK_NOT_FOUND"},
	{`mutation { cancelTask(input: {taskId: "{task}"}) { task { id } } }`, "TASK_NOT_FOUND"},
	{`mutation { deleteTask(input: {taskId: "{task}"}) { taskId } }`, "TASK_NOT_FOUND"},
	{`subscription { taskChanged(id: "{task}") { __typename } }`, "TASK_NOT_FOUND"},
	{`subscription { taskChanged(id: "{task}", resume: "earliest") { __typename } }`, "TASK_NOT_FOUND"},

	{`subscription { messagePublished(where: {channelId: "{channel}"}) { __typename } }`, "CHANNEL_NOT_FOUND"},
	{`subscription { messagePublished(where: {channelId: "{channel}"}, sinceSequence: 0) { __typename } }`, "CHANNEL_NOT_FOUND"},
	{`subscription { messagePublished(where: {channelId: "{channel}"}, sinceSequence: 99) { __typename } }`, "CHANNEL_NOT_FOUND"},
	{`subscription { messagePublished(where: {channelId: "{channel}"}, resume: "snapshot") { __typename } }`, "CHANNEL_NOT_FOUND"},
	{`{ intent(id: "{scope}") { title } }`, "SCOPE_NOT_FOUND"},
	{`mutation { patchIntentState(input: {intentId: "{scope}", expectedVersion: 1, patches: [{op: SET, path: "a", value: 1}]}) { intent { title } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { setIntentStatus(input: {intentId: "{scope}", expectedVersion: 1, status: COMPLETED}) { intent { title } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { assignAgent(input: {intentId: "{scope}", agentId: "eve"}) { intent { title } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { unassignAgent(input: {intentId: "{scope}", agentId: "ann"}) { intent { title } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { grantAccess(input: {intentId: "{scope}", agentId: "eve", level: READ}) { grant { grantId } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { revokeAccess(input: {intentId: "{scope}", grantId: "x"}) { grant { grantId } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { requestAccess(input: {intentId: "{scope}", level: READ}) { request { requestId } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { decideAccessRequest(input: {intentId: "{scope}", requestId: "x", approve: true}) { request { requestId } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { acquireLease(input: {intentId: "{scope}", scope: "x"}) { lease { leaseId } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { renewLease(input: {intentId: "{scope}", leaseId: "x"}) { lease { leaseId } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { releaseLease(input: {intentId: "{scope}", leaseId: "x"}) { lease { leaseId } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { createIntentTask(input: {intentId: "{scope}", name: "x"}) { task { taskId } } }`, "SCOPE_NOT_FOUND"},
	{`mutation { updateIntentTask(input: {taskId: "{scope}", expectedVersion: 1}) { task { taskId } } }`, "SCOPE_NOT_FOUND"},
	{`subscription { intentChanged(intentId: "{scope}") { __typename } }`, "SCOPE_NOT_FOUND"},
	{`subscription { intentChanged(intentId: "{scope}", resume: "earliest") { __typename } }`, "SCOPE_NOT_FOUND"},
	{`subscription { channelChanged(channelId: "{channel}") { __typename } }`, "CHANNEL_NOT_FOUND"},
	{`subscription { channelChanged(channelId: "{channel}", resume: "earliest") { __typename } }`, "CHANNEL_NOT_FOUND"},
	{`subscription { signalSent(channelId: "{channel}") { __typename } }`, "CHANNEL_NOT_FOUND"},
	{`subscription { messagePublished(where: {scopeId: "{scope}"}) { __typename } }`, "SCOPE_NOT_FOUND"},
}

// secret is a set of objects hidden from eve: a channel, a message in it, a scope, and a
// task, "" where an absent one would be the same.
type secret struct{ name, channel, message, scope, task string }

// outsiders is a server with objects hidden from eve.
type outsiders struct {
	*conversing
	agora   string
	absent  secret
	secrets []secret
}

func newOutsiders(t *testing.T) *outsiders {
	c := newConversing(t, limit.Limits{})
	o := &outsiders{conversing: c, absent: secret{"absent", "0192aaaa-0000-7000-8000-000000000001", "0192aaaa-0000-7000-8000-000000000002", "0192aaaa-0000-7000-8000-000000000003", "0192aaaa-0000-7000-8000-000000000004"}}
	o.agora = c.id("ann", `mutation { createChannel(input: {name: "agora", members: [{agentId: "eve"}, {agentId: "bob"}]}) { channel { id } } }`)
	said := func(id string) string {
		first := c.id("ann", `mutation { publishMessage(input: {channelId: "%s", messageType: REQUEST, recipient: "bob", parts: [{text: "secret"}]}) { message { id } } }`, id)
		c.say("bob", id, "facts", `, replyToId: "`+first+`", patches: [{op: add, statement: {subject: {id: "ex:a"}, predicate: {id: "ex:hides"}, object: {value: 1}}}]`)
		return first
	}
	private := c.lab("PRIVATE")
	closed := c.lab("PRIVATE")
	deleted := c.lab("PUBLIC")
	left := c.id("ann", `mutation { createChannel(input: {members: [{agentId: "bob"}, {agentId: "eve"}]}) { channel { id } } }`)
	banned := c.lab("PUBLIC")
	direct := string(channel.DirectID("agent://ann", "agent://bob"))
	o.secrets = []secret{{name: "private", channel: private}, {name: "closed", channel: closed}, {name: "deleted", channel: deleted}, {name: "left", channel: left}, {name: "for others, because she is banned", channel: banned}, {name: "of two others", channel: direct}}
	c.told("ann", `mutation { publishMessage(input: {to: "bob", parts: [{text: "psst"}]}) { success } }`)
	for i := range o.secrets {
		o.secrets[i].message = said(o.secrets[i].channel)
	}
	c.told("ann", `mutation { deleteChannel(input: {channelId: "%s"}) { channelId } }`, deleted)
	c.told("ann", `mutation { restrictAgent(input: {channelId: "%s", agentId: "eve", kind: BAN}) { restrictions { nodes { agent: agentId } } } }`, banned)
	c.told("ann", `mutation { removeChannelMember(input: {channelId: "%s", agentId: "eve"}) { channel { id } } }`, left)
	ann := channels.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}
	if _, err := c.service.CloseChannel(t.Context(), ann, channel.ID(closed), "done"); err != nil {
		t.Fatal(err)
	}
	// A scope that eve has no access to, and its channel, to which she would have.
	scope, err := c.service.Scopes().Create(t.Context(), ann, scope.Draft{Title: "hidden", Access: scope.Access{Agents: []kg.AgentID{"agent://bob"}}})
	if err != nil {
		t.Fatal(err)
	}
	within, err := c.service.CreateIn(t.Context(), ann, scope.ID, channel.Draft{Name: "plans", MemberPolicy: channel.ByScope})
	if err != nil {
		t.Fatal(err)
	}
	o.secrets = append(o.secrets, secret{name: "in a scope", channel: string(within.ID), message: said(string(within.ID)), scope: string(scope.ID)})
	// They exist for agents with access.
	for _, s := range o.secrets {
		if r := c.ask("bob", `{ channel(id: "%s") { messageCount } message(id: "%s") { text } }`, s.channel, s.message); (len(r.Errors) == 0) != (s.name != "deleted") {
			t.Fatalf("%s: bob is told %s, %v", s.name, r.Data, r.Errors)
		}
	}
	task, _ := c.asks("a secret", "")
	c.reports(task, `, state: WORKING, artifacts: [{id: "a", parts: [{text: "hidden"}]}]`)
	o.secrets = append(o.secrets, secret{name: "of the two of a task", task: task})
	return o
}

// told is everything that eve learns from an operation about one of the secrets: data,
// complete errors, hints, and the number of statements read. Ids that she gave herself are
// put back.
func (o *outsiders) told(s secret, operation string) string {
	for _, part := range []struct{ was, absent *string }{{&s.channel, &o.absent.channel}, {&s.message, &o.absent.message}, {&s.scope, &o.absent.scope}, {&s.task, &o.absent.task}} {
		if *part.was == "" {
			*part.was = *part.absent
		}
	}
	pairs := []string{"{channel}", s.channel, "{message}", s.message, "{scope}", s.scope, "{task}", s.task, "{agora}", o.agora}
	text := o.answer(strings.NewReplacer(pairs...).Replace(operation))
	for i := 0; i < len(pairs); i += 2 {
		pairs[i], pairs[i+1] = pairs[i+1], pairs[i]
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func (o *outsiders) answer(query string) string {
	req := operation.Request{Query: query, Principal: kg.Principal{ID: "agent://eve", Method: "key"}}
	if !strings.HasPrefix(query, "subscription") {
		r := o.engine.Execute(context.Background(), req)
		errs, _ := json.Marshal(r.Errors)
		more, _ := json.Marshal([]any{r.Hints, r.Cuts, r.Sources, r.StatementsRead})
		return fmt.Sprintf("%s\n%s\n%s", r.Data, errs, more)
	}
	sub, err := o.engine.Subscribe(o.t.Context(), req)
	if err == nil {
		sub.Close()
		return "established"
	}
	if invalid := (*operation.InvalidError)(nil); errors.As(err, &invalid) {
		errs, _ := json.Marshal(invalid.Errors)
		return string(errs)
	}
	text, _ := json.Marshal(kg.AsError(err))
	return string(text)
}

// TestOutsiders proves that every answer to eve about a hidden object equals that about one
// that never existed: to the byte, errors included.
func TestOutsiders(t *testing.T) {
	o := newOutsiders(t)
	for _, row := range asked {
		want := o.told(o.absent, row.operation)
		if !strings.Contains(want, row.told) {
			t.Errorf("%s:\n of what is not there eve is told %s\nwant %s", row.operation, want, row.told)
		}
		for _, s := range o.secrets {
			if got := o.told(s, row.operation); got != want {
				t.Errorf("%s of what is %s:\n got %s\nwant %s", row.operation, s.name, got, want)
			}
		}
	}
	if log := o.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}

// eavesdropped are subscriptions of eve to hidden objects. A statement about the message,
// or one in the agora, is the last that she receives.
var eavesdropped = []string{
	`subscription { e: entityChanged(iri: "urn:koine:message:{message}", depth: 1, resume: "snapshot", view: {allGraphs: true}) { ... on EntityChange { changes { statement { predicate } } entity { types } } } }`,
	`subscription { e: statementChanged(where: {subject: {eq: "urn:koine:message:{message}"}}, resume: "snapshot", view: {allGraphs: true}) { ... on StatementChange { statement { predicate } } } }`,
	`subscription { e: statementChanged(where: {predicate: {in: ["koine:author", "koine:replyTo", "koine:retracts", "ex:hides", "ex:end"]}}, view: {allGraphs: true}) { ... on StatementChange { statement { predicate } } } }`,
	`subscription { e: matchChanged(pattern: {triples: [{s: "urn:koine:message:{message}", p: "?p", o: "?o"}]}, resume: "snapshot", view: {allGraphs: true}) { ... on MatchChange { added { values } snapshotEnd } } }`,
	`subscription { e: messagePublished(where: {inbox: true}) { ... on MessagePublished { message { text } } } }`,
	`subscription { e: messagePublished(where: {joined: true}) { ... on MessagePublished { message { text } } } }`,
	`subscription { e: statementChanged(where: {predicate: {in: ["koine:taskState", "koine:taskMail", "koine:taskArtifactChunk", "ex:end"]}}, view: {allGraphs: true}) { ... on StatementChange { statement { predicate } } } }`,
	`subscription { e: matchChanged(pattern: {triples: [{s: "?m", p: "ex:end|koine:replyTo|koine:author", o: "?o"}]}, view: {allGraphs: true}) { ... on MatchChange { added { value(var: "o") } } } }`,
}

// TestOutsidersHearNothing proves that subscriptions to hidden objects deliver nothing when
// they change, not even that they changed.
func TestOutsidersHearNothing(t *testing.T) {
	for _, query := range eavesdropped {
		o := newOutsiders(t)
		heard := func(s secret, says bool) (events []string) {
			t.Helper()
			f := o.hear(t, "eve", strings.NewReplacer("{message}", s.message, "{task}", s.task).Replace(query), operation.Resume{})
			switch {
			case says && s.channel == "":
				o.reports(s.task, `, state: INPUT_REQUIRED, message: [{text: "hush"}], artifacts: [{id: "b", parts: [{text: "x"}]}]`)
			case says:
				o.say("bob", s.channel, "hush", `, replyToId: "`+s.message+`", patches: [{op: add, statement: {subject: {id: "ex:b"}, predicate: {id: "ex:hides"}, object: {value: "`+s.channel+`"}, graph: "urn:koine:facts:`+s.channel+`"}}]`)
			}
			if strings.Contains(query, "Published") { // those that eve may read are told
				o.say("bob", o.agora, "end", "")
			}
			o.conversing.told("eve", `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "urn:koine:message:%s"}, predicate: {id: "ex:end"}, object: {value: "end"}}}]}) { success } }`, s.message)
			for len(events) == 0 || !strings.Contains(events[len(events)-1], "end") {
				_, data := f.event()
				events = append(events, data)
			}
			f.stop()
			return events
		}
		want := heard(o.absent, false)
		for _, s := range o.secrets {
			says := s.name != "deleted" && s.name != "closed"
			if got := heard(s, says); !slices.Equal(got, want) {
				t.Errorf("%s of what is %s:\n got %q\nwant %q", query, s.name, got, want)
			}
		}
	}
}

// TestOutsidersOfEveryField proves the same of every field of the schema that takes
// an id, with any arguments that fit its types.
func TestOutsidersOfEveryField(t *testing.T) {
	slowtest.Long(t)
	o := newOutsiders(t)
	schema := loadSchema(t, o.engine.SDL())
	fields := 0
	for _, kind := range []struct {
		word string
		of   *ast.Definition
	}{{"query", schema.Query}, {"mutation", schema.Mutation}, {"subscription", schema.Subscription}} {
		for _, f := range kind.of.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			for _, id := range []string{"{channel}", "{message}", "{scope}", "{task}", "urn:koine:task:{task}", "urn:koine:task:{task}/message/1", "urn:koine:artifact:{task}/a", "urn:koine:channel:{channel}", "urn:koine:message:{message}", "urn:koine:scope:{scope}", "urn:koine:graph:journal:messages:{channel}", "urn:koine:facts:{channel}"} {
				w := &askingWriter{schema: schema, id: id}
				operation := kind.word + " { " + f.Name + w.arguments(f.Arguments) + selectionOf(schema, f.Type) + " }"
				if !w.asks {
					continue
				}
				want := o.told(o.absent, operation)
				if strings.Contains(want, "GRAPHQL_") {
					t.Logf("the test does not know how to ask %s: %s", operation, want)
					continue
				}
				fields++
				for _, s := range o.secrets {
					if got := o.told(s, operation); anyID.ReplaceAllString(got, "…") != anyID.ReplaceAllString(want, "…") {
						t.Errorf("%s of what is %s:\n got %s\nwant %s", operation, s.name, got, want)
					}
				}
			}
		}
	}
	if fields < 150 {
		t.Errorf("%d operations were asked", fields)
	}
}

// selectionOf is the shortest selection of a type.
func selectionOf(schema *ast.Schema, t *ast.Type) string {
	if schema.Types[t.Name()].IsCompositeType() {
		return " { __typename }"
	}
	return ""
}

// askingWriter writes arguments: all that must be there, and all that may be an id.
type askingWriter struct {
	schema *ast.Schema
	id     string
	asks   bool // there was one
}

func (w *askingWriter) arguments(list ast.ArgumentDefinitionList) string {
	var out []string
	for _, a := range list {
		if text := w.argument(a.Name, a.Type, a.DefaultValue != nil); text != "" {
			out = append(out, a.Name+": "+text)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "(" + strings.Join(out, ", ") + ")"
}

// argument is a value, "" for one that need not be there.
func (w *askingWriter) argument(name string, t *ast.Type, optional bool) string {
	def := w.schema.Types[t.Name()]
	isID := def.Name == "ID" || def.Name == "IRI" && strings.HasPrefix(w.id, "urn:")
	if (!t.NonNull || optional) && !isID && (def.Kind != ast.InputObject || !w.holdsID(def)) {
		return ""
	}
	text := ""
	switch {
	case isID:
		text, w.asks = fmt.Sprintf("%q", w.id), true
	case def.Kind == ast.Enum:
		text = def.EnumValues[0].Name
	case def.Kind == ast.InputObject:
		var parts []string
		for _, f := range def.Fields {
			if part := w.argument(f.Name, f.Type, f.DefaultValue != nil); part != "" {
				parts = append(parts, f.Name+": "+part)
			}
		}
		text = "{" + strings.Join(parts, ", ") + "}"
	default:
		text = map[string]string{
			"Int": "1", "Long": "1", "Revision": "1", "Float": "0.5", "Boolean": "true", "String": `"x"`, "IRI": `"ex:x"`, "JSON": "{}",
			"DateTime": `"2027-01-01T00:00:00Z"`, "Moment": `"2027-01-01T00:00:00Z"`, "Path": `"ex:p"`, "PatternTerm": `"ex:x"`, "PatternPath": `"ex:p"`,
		}[def.Name]
	}
	if t.Elem != nil {
		text = "[" + text + "]"
	}
	return text
}

// holdsID reports whether an input has a member that may be an id.
func (w *askingWriter) holdsID(def *ast.Definition) bool {
	for _, f := range def.Fields {
		if name := f.Type.Name(); name == "ID" || name == "IRI" && strings.HasPrefix(w.id, "urn:") {
			return true
		}
	}
	return false
}
