package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
)

// Agents work on an intent: its state and status change by version, its parts are leased, its
// tasks end, and who has no access sees nothing.
func TestIntents(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	const create = `mutation { createIntent(input: {title: "Q1", description: "the numbers", status: ACTIVE, state: {phase: 1}, access: {agentIds: ["agent://bob"]}}) { intent { intentId } } }`
	var made struct {
		CreateIntent struct{ Intent struct{ IntentID string } }
	}
	if err := json.Unmarshal([]byte(c.told("ann", create)), &made); err != nil {
		t.Fatal(err)
	}
	id := made.CreateIntent.Intent.IntentID
	for _, row := range []struct {
		by, query, want string
	}{
		{"bob", `mutation { patchIntentState(input: {intentId: "ID", expectedVersion: 1, patches: [{op: SET, path: "found/rows", value: 7}]}) { intent { state version } } }`, `{"patchIntentState":{"intent":{"state":{"found":{"rows":7},"phase":1},"version":2}}}`},
		{"bob", `mutation { patchIntentState(input: {intentId: "ID", expectedVersion: 1, patches: [{op: SET, path: "a", value: 7}]}) { intent { version } } }`, `VERSION_CONFLICT`},
		{"gus", `mutation { patchIntentState(input: {intentId: "ID", expectedVersion: 2, patches: [{op: SET, path: "a", value: 7}]}) { intent { version } } }`, `SCOPE_NOT_FOUND`},
		{"bob", `mutation { assignAgent(input: {intentId: "ID", agentId: "gus"}) { intent { version } } }`, `PERMISSION_DENIED`},
		{"bob", `mutation { acquireLease(input: {intentId: "ID", scope: "draft"}) { lease { scope agentId } } }`, `{"acquireLease":{"lease":{"scope":"draft","agentId":"agent://bob"}}}`},
		{"ann", `mutation { acquireLease(input: {intentId: "ID", scope: "draft"}) { lease { scope } } }`, `LEASE_HELD`},
		{"ann", `mutation { acquireLease(input: {intentId: "ID", scope: "other", seconds: 0}) { lease { scope } } }`, `INVALID`},
		{"bob", `mutation { createIntentTask(input: {intentId: "ID", name: "fetch", externalId: "t1", input: {from: "db"}}) { task { name status version input } } }`, `{"createIntentTask":{"task":{"name":"fetch","status":"PENDING","version":1,"input":{"from":"db"}}}}`},
		{"bob", `mutation { requestAccess(input: {intentId: "ID", agentId: "gus", level: READ, reason: "to see"}) { request { status level agent { id } } } }`, `{"requestAccess":{"request":{"status":"PENDING","level":"READ","agent":{"id":"agent://gus"}}}}`},
		{"gus", `{ intent(id: "ID") { title } }`, `SCOPE_NOT_FOUND`},
		{"gus", `{ intents { totalCount nodes { title } } }`, `{"intents":{"totalCount":0,"nodes":[]}}`},
		{"ann", `mutation { grantAccess(input: {intentId: "ID", agentId: "gus", level: READ}) { grant { level agentId expiresAt } } }`, `{"grantAccess":{"grant":{"level":"READ","agentId":"agent://gus","expiresAt":null}}}`},
		{"gus", `{ intent(id: "ID") { title description status confidence leases { nodes { scope agent { id } } totalCount } tasks { name externalId } grants { level } accessRequests { totalCount } scope { title } } }`,
			`{"intent":{"title":"Q1","description":"the numbers","status":"ACTIVE","confidence":0,"leases":{"nodes":[{"scope":"draft","agent":{"id":"agent://bob"}}],"totalCount":1},"tasks":[{"name":"fetch","externalId":"t1"}],"grants":[{"level":"READ"}],"accessRequests":{"totalCount":1},"scope":{"title":"Q1"}}}`},
		{"bob", `mutation { removeAgent(input: {agentId: "bob"}) { agentId } }`, `{"removeAgent":{"agentId":"agent://bob"}}`},
		{"ann", `mutation { acquireLease(input: {intentId: "ID", scope: "draft"}) { lease { agentId } } }`, `{"acquireLease":{"lease":{"agentId":"agent://ann"}}}`},
		{"gus", `mutation { setIntentStatus(input: {intentId: "ID", expectedVersion: 2, status: COMPLETED}) { intent { status } } }`, `PERMISSION_DENIED`},
		{"ann", `mutation { createPortfolio(input: {name: "year"}) { portfolio { name status intents { role } } } }`, `{"createPortfolio":{"portfolio":{"name":"year","status":"ACTIVE","intents":[]}}}`},
		{"ann", `mutation { setIntentStatus(input: {intentId: "ID", expectedVersion: 2, status: COMPLETED, reason: "done"}) { intent { status version leases { totalCount } tasks { status } scope { status endReason } } } }`,
			`{"setIntentStatus":{"intent":{"status":"COMPLETED","version":3,"leases":{"totalCount":0},"tasks":[{"status":"COMPLETED"}],"scope":{"status":"COMPLETED","endReason":"done"}}}}`},
		{"ann", `{ intents(status: COMPLETED) { totalCount nodes { intentId } } }`, fmt.Sprintf(`{"intents":{"totalCount":1,"nodes":[{"intentId":%q}]}}`, id)},
		{"ann", `{ intents(status: ACTIVE) { totalCount } }`, `{"intents":{"totalCount":0}}`},
	} {
		result := c.ask(row.by, "%s", strings.ReplaceAll(row.query, `"ID"`, `"`+id+`"`))
		got := string(result.Data)
		if len(result.Errors) > 0 {
			got = fmt.Sprint(result.Errors[0].Extensions["code"])
		}
		c.want(row.query, got, row.want)
	}
}

const intentChanges = `subscription { e: intentChanged(%s) { kind: __typename ... on IntentChange { event { type actorId } before { state status } after { state status } intent { version } position } ... on MessagePublished { message { text } position } ... on Resync { reason } } }`

// A subscription tells the events and messages of an intent, and resumes after any of them.
func TestIntentChanged(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	var made struct {
		CreateIntent struct{ Intent struct{ IntentID string } }
	}
	if err := json.Unmarshal([]byte(c.told("ann", `mutation { createIntent(input: {title: "Q1", access: {agentIds: ["agent://bob"]}}) { intent { intentId } } }`)), &made); err != nil {
		t.Fatal(err)
	}
	id := made.CreateIntent.Intent.IntentID
	query := fmt.Sprintf(intentChanges, `intentId: "`+id+`"`)
	live := c.hear(t, "bob", query, operation.Resume{})
	c.told("ann", `mutation { patchIntentState(input: {intentId: "%s", expectedVersion: 1, patches: [{op: SET, path: "a", value: 1}]}) { intent { version } } }`, id)
	c.told("bob", `mutation { publishMessage(input: {scopeId: "%s", channelName: "progress", parts: [{type: "text", text: "begun"}]}) { message { sequence } } }`, id)
	c.told("ann", `mutation { assignAgent(input: {intentId: "%s", agentId: "bob"}) { intent { version } } }`, id)
	c.told("ann", `mutation { setIntentStatus(input: {intentId: "%s", expectedVersion: 2, status: COMPLETED}) { intent { version } } }`, id)
	type event struct {
		E struct {
			Kind, Position string
			Event          struct{ Type, ActorID string }
			Before, After  *struct {
				State  json.RawMessage
				Status *string
			}
			Message struct{ Text string }
		}
	}
	read := func(f *tail, want ...string) (positions []kg.Position) {
		t.Helper()
		for _, w := range want {
			e, data := f.event()
			var got event
			if err := json.Unmarshal([]byte(data), &got); err != nil {
				t.Fatal(err)
			}
			said := got.E.Message.Text
			if got.E.Kind == "IntentChange" {
				said = got.E.Event.Type + " by " + got.E.Event.ActorID
			}
			if got.E.Before != nil {
				said += fmt.Sprintf(" %s %s", got.E.Before.State, got.E.After.State)
				if got.E.After.Status != nil {
					said += " " + *got.E.Before.Status + " " + *got.E.After.Status
				}
			}
			if said != w || got.E.Position != c.store.FormatPosition(e.Position) {
				t.Fatalf("got %s, want %s", data, w)
			}
			positions = append(positions, e.Position)
		}
		return positions
	}
	want := []string{"state_patched by agent://ann {} {\"a\":1}", "begun", "agent_assigned by agent://ann", "status_changed by agent://ann {} {} DRAFT COMPLETED"}
	positions := read(live, want...)
	for i, at := range positions[:len(positions)-1] {
		read(c.hear(t, "bob", query, operation.Resume{Start: operation.After, After: at}), want[i+1:]...)
	}
	read(c.hear(t, "bob", query, operation.Resume{Start: operation.Earliest}), append([]string{"intent_created by agent://ann"}, want...)...)
	// What bob is assigned to, without its messages.
	read(c.hear(t, "bob", strings.ReplaceAll(intentChanges, "(%s)", ""), operation.Resume{Start: operation.Earliest}), want[2], want[3])
	for _, who := range []string{"gus", "eve"} {
		if _, err := c.engine.Subscribe(t.Context(), operation.Request{Query: query, Principal: kg.Principal{ID: kg.CanonicalAgent(who), Method: "key"}}); kg.CodeOf(err) != kg.CodeScopeNotFound {
			t.Errorf("%s follows an intent of others: %v", who, err)
		}
	}
}
