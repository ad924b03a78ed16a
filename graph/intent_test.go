package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"koine/graph/limit"
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
