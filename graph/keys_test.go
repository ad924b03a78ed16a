package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/operation"
	"koine/kg"
)

var (
	root    = kg.Principal{ID: "agent://root", Roles: []string{kg.RoleAdmin}, ActFor: []kg.AgentID{kg.Anybody}, Method: "key"}
	nobody  = kg.Principal{ID: "agent://dora", Roles: []string{"x"}, Method: "key"}
	theKey  = regexp.MustCompile(`^ak_(live|test)_([0-9A-Za-z]{12})_[0-9A-Za-z]{43}$`)
	keyPart = `{ id mode name agent: agentId roles actFor: actForIds state createdBy: createdById expiresAt revokedAt replacedBy }`
)

// runAs runs an operation as a principal.
func (b *bench) runAs(p kg.Principal, query string) operation.Result {
	return b.engine.Execute(context.Background(), operation.Request{Query: query, Principal: p})
}

func (b *bench) dataAs(p kg.Principal, query string, into any) {
	b.t.Helper()
	result := b.runAs(p, query)
	if len(result.Errors) > 0 {
		b.t.Fatalf("%s: %v", query, result.Errors)
	}
	if err := json.Unmarshal(result.Data, into); err != nil {
		b.t.Fatal(err)
	}
}

type keyAnswer struct {
	ID, Mode, Name, Agent, State, CreatedBy string
	Roles, ActFor                           []string
	ExpiresAt, RevokedAt, ReplacedBy        *string
}

func TestAPIKeyFields(t *testing.T) {
	b := newBench(t, graph.Options{})
	var made struct {
		M struct {
			Key    keyAnswer
			Secret string
		}
	}
	b.dataAs(root, `mutation { m: createApiKey(input: {agentId: "dora", name: "laptop", roles: ["reviewer"], actFor: ["chen", "*"], mode: TEST, lifetimeSeconds: 3153600000}) { key `+keyPart+` secret } }`, &made)
	k := made.M.Key
	if m := theKey.FindStringSubmatch(made.M.Secret); m == nil || m[1] != "test" || m[2] != k.ID {
		t.Errorf("the secret is %q, the id %q", made.M.Secret, k.ID)
	}
	if k.Mode != "TEST" || k.Name != "laptop" || k.Agent != "agent://dora" || fmt.Sprint(k.Roles, k.ActFor) != "[reviewer] [* agent://chen]" || k.State != "ACTIVE" || k.CreatedBy != "agent://root" || k.ExpiresAt == nil || k.RevokedAt != nil {
		t.Errorf("the key is %+v", k)
	}
	var rotated struct {
		M struct {
			Key, Replaced keyAnswer
			Secret        string
		}
	}
	b.dataAs(root, `mutation { m: rotateApiKey(input: {keyId: "`+k.ID+`", overlapSeconds: 60}) { key `+keyPart+` secret replaced `+keyPart+` } }`, &rotated)
	if r := rotated.M; r.Replaced.ID != k.ID || *r.Replaced.ReplacedBy != r.Key.ID || r.Key.Name != "laptop" || !theKey.MatchString(r.Secret) || r.Secret == made.M.Secret {
		t.Errorf("rotated: %+v", r)
	}
	var revoked struct{ M struct{ Key keyAnswer } }
	b.dataAs(root, `mutation { m: revokeApiKey(input: {keyId: "`+k.ID+`"}) { key `+keyPart+` } }`, &revoked)
	if k := revoked.M.Key; k.State != "REVOKED" || k.RevokedAt == nil {
		t.Errorf("revoked: %+v", revoked.M)
	}
	var list struct {
		All, Good, Page, Hers, Others struct {
			Nodes      []keyAnswer
			TotalCount int
		}
	}
	page := `{ nodes ` + keyPart + ` totalCount }`
	b.dataAs(root, `{ all: apiKeys(includeEnded: true) `+page+` good: apiKeys `+page+` page: apiKeys(includeEnded: true, last: 1) `+page+` hers: apiKeys(agentId: "dora") `+page+` others: apiKeys(agentId: "chen") `+page+` }`, &list)
	if len(list.All.Nodes) != 2 || list.All.Nodes[0].ID != k.ID || len(list.Good.Nodes) != 1 || len(list.Page.Nodes) != 1 || list.Page.TotalCount != 2 ||
		list.Page.Nodes[0].ID != rotated.M.Key.ID || len(list.Hers.Nodes) != 1 || len(list.Others.Nodes) != 0 {
		t.Errorf("the lists are %+v", list)
	}
}

func TestAPIKeyRefusals(t *testing.T) {
	b := newBench(t, graph.Options{})
	for _, row := range []struct {
		as          kg.Principal
		query, code string
		field       string
	}{
		{nobody, `mutation { createApiKey(input: {agentId: "dora"}) { secret } }`, "PERMISSION_DENIED", ""},
		{nobody, `mutation { rotateApiKey(input: {keyId: "000000000000"}) { secret } }`, "PERMISSION_DENIED", ""},
		{nobody, `mutation { revokeApiKey(input: {keyId: "000000000000"}) { key { id } } }`, "PERMISSION_DENIED", ""},
		{nobody, `{ apiKeys { nodes { id } } }`, "PERMISSION_DENIED", ""},
		{root, `mutation { createApiKey(input: {agentId: "a b"}) { secret } }`, "INVALID", "input.agentId"},
		{root, `mutation { createApiKey(input: {agentId: "a", lifetimeSeconds: 0}) { secret } }`, "INVALID", "input.lifetimeSeconds"},
		{root, `mutation { createApiKey(input: {agentId: "a", lifetimeSeconds: 9223372036854775807}) { secret } }`, "INVALID", "input.lifetimeSeconds"},
		{root, `mutation { createApiKey(input: {agentId: "a", roles: ["a b"]}) { secret } }`, "INVALID", "input.roles"},
		{root, `mutation { rotateApiKey(input: {keyId: "000000000000"}) { secret } }`, "NOT_FOUND", "input.keyId"},
		{root, `mutation { rotateApiKey(input: {keyId: "000000000000", overlapSeconds: 99999999}) { secret } }`, "INVALID", "input.overlapSeconds"},
		{root, `mutation { revokeApiKey(input: {keyId: "nothing"}) { key { id } } }`, "NOT_FOUND", "input.keyId"},
		{root, `{ apiKeys(after: "nothing") { nodes { id } } }`, "CURSOR_FOREIGN", "after"},
		{root, `{ apiKeys(first: 1001) { nodes { id } } }`, "LIMIT_EXCEEDED", ""},
		{nobody, `mutation { updateAgent(input: {agentId: "chen", name: "x"}) { agent { id } } }`, "PERMISSION_DENIED", ""},
		{root, `mutation { updateAgent(input: {agentId: "nobody-knows", name: "x"}) { agent { id } } }`, "NOT_FOUND", "input.agentId"},
		{root, `{ agents(first: 1001) { nodes { id } } }`, "LIMIT_EXCEEDED", ""},
	} {
		result := b.runAs(row.as, row.query)
		if len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != row.code || row.field != "" && result.Errors[0].Extensions["field"] != row.field {
			t.Errorf("%s: got %v, %s; want %s at %s", row.query, result.Errors, result.Data, row.code, row.field)
		}
	}
}

func TestAgentFields(t *testing.T) {
	b := newBench(t, graph.Options{})
	for _, name := range []string{"dora", "chen"} {
		if r := b.runAs(root, `mutation { createApiKey(input: {agentId: "`+name+`", roles: ["x"]}) { secret } }`); len(r.Errors) > 0 {
			t.Fatal(r.Errors)
		}
	}
	want := func(as kg.Principal, query, want string) {
		t.Helper()
		if r := b.runAs(as, query); len(r.Errors) > 0 || strings.TrimSpace(string(r.Data)) != want {
			t.Errorf("%s: got %s, %v; want %s", query, r.Data, r.Errors, want)
		}
	}
	want(nobody, `{ agents { nodes { id name owner: ownerId roles status } } }`,
		`{"agents":{"nodes":[{"id":"agent://chen","name":null,"owner":null,"roles":["x"],"status":"ACTIVE"},{"id":"agent://dora","name":null,"owner":null,"roles":["x"],"status":"ACTIVE"}]}}`)
	want(nobody, `{ agents(last: 1) { nodes { id } } agent(id: "chen") { id } nothing: agent(id: "nothing") { id } }`,
		`{"agents":{"nodes":[{"id":"agent://dora"}]},"agent":{"id":"agent://chen"},"nothing":null}`)
	want(nobody, `{ me { id actingFor: actingForId roles actFor: actForIds method agent { id } } }`,
		`{"me":{"id":"agent://dora","actingFor":"agent://dora","roles":["x"],"actFor":[],"method":"key","agent":{"id":"agent://dora"}}}`)
	want(root, `{ me { id actFor: actForIds agent { id } } }`, `{"me":{"id":"agent://root","actFor":["*"],"agent":null}}`)
	// The number of statements of an agent is visible to itself and to administrators.
	want(nobody, `{ me { statementCount maxStatements } agents { nodes { id statementCount } } }`,
		`{"me":{"statementCount":0,"maxStatements":null},"agents":{"nodes":[{"id":"agent://chen","statementCount":null},{"id":"agent://dora","statementCount":0}]}}`)
	for range 2 {
		_, err := b.store.Update(t.Context(), kg.Meta{Principal: nobody}, func(tx *kg.Tx) error {
			for _, object := range []int64{1, 2} {
				if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(object)}}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want(nobody, `{ me { statementCount agent { statementCount } } }`, `{"me":{"statementCount":2,"agent":{"statementCount":2}}}`)
	want(root, `{ me { statementCount } agents { nodes { id statementCount } } }`, `{"me":{"statementCount":0},"agents":{"nodes":[{"id":"agent://chen","statementCount":0},{"id":"agent://dora","statementCount":2}]}}`)
	want(nobody, `mutation { updateAgent(input: {agentId: "dora", name: "Dora"}) { agent { id name } } }`, `{"updateAgent":{"agent":{"id":"agent://dora","name":"Dora"}}}`)
	want(root, `mutation { updateAgent(input: {agentId: "dora", ownerId: "chen", status: SUSPENDED}) { agent { name owner: ownerId status } } }`,
		`{"updateAgent":{"agent":{"name":"Dora","owner":"agent://chen","status":"SUSPENDED"}}}`)
	want(root, `mutation { updateAgent(input: {agentId: "dora", name: "", ownerId: ""}) { agent { name owner: ownerId status } } }`, `{"updateAgent":{"agent":{"name":null,"owner":null,"status":"SUSPENDED"}}}`)
	for _, query := range []string{
		`mutation { updateAgent(input: {agentId: "dora", status: ACTIVE}) { agent { id } } }`, `mutation { updateAgent(input: {agentId: "dora", ownerId: "dora"}) { agent { id } } }`,
	} {
		if r := b.runAs(nobody, query); len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != "PERMISSION_DENIED" {
			t.Errorf("%s: got %s, %v", query, r.Data, r.Errors)
		}
	}
}
