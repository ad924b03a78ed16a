package a2a_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"koine/internal/wiretest"
	"koine/kg"
)

// definitions returns the compiled definitions of the published schema.
func definitions(t *testing.T) func(name string) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for _, of := range []string{"knowledge", "channels"} {
		raw, err := os.ReadFile("schemas/" + of + ".json")
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource("urn:koine:schema:"+of+":1", doc); err != nil {
			t.Fatal(err)
		}
	}
	return func(name string) *jsonschema.Schema {
		t.Helper()
		of := "knowledge"
		if rest, ok := strings.CutPrefix(name, "channels:"); ok {
			of, name = "channels", rest
		}
		s, err := compiler.Compile("urn:koine:schema:" + of + ":1#/$defs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func validate(schema *jsonschema.Schema, text string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

var schemaNames = map[string]struct{ request, response string }{
	"knowledge/query":     {"KnowledgeQueryRequest", "KnowledgeQueryResponse"},
	"knowledge/update":    {"KnowledgeUpdateRequest", "KnowledgeUpdateResponse"},
	"knowledge/subscribe": {"KnowledgeSubscribeRequest", "KnowledgeSubscriptionEvent"},

	"channels/create":       {"channels:ChannelsCreateRequest", "channels:ChannelsCreateResponse"},
	"channels/get":          {"channels:ChannelsGetRequest", "channels:ChannelsGetResponse"},
	"channels/list":         {"channels:ChannelsListRequest", "channels:ChannelsListResponse"},
	"channels/update":       {"channels:ChannelsUpdateRequest", "channels:ChannelsUpdateResponse"},
	"channels/delete":       {"channels:ChannelsDeleteRequest", "channels:ChannelsDeleteResponse"},
	"channels/addMember":    {"channels:ChannelsAddMemberRequest", "channels:ChannelsAddMemberResponse"},
	"channels/removeMember": {"channels:ChannelsRemoveMemberRequest", "channels:ChannelsRemoveMemberResponse"},
	"channels/publish":      {"channels:ChannelsPublishRequest", "channels:ChannelsPublishResponse"},
	"channels/history":      {"channels:ChannelsHistoryRequest", "channels:ChannelsHistoryResponse"},
	"channels/stream":       {"channels:ChannelsStreamRequest", "channels:ChannelsStreamEvent"},
}

// Every answer in the conversations, and every accepted request, matches the published
// schema. Masked values are restored first.
func TestConversationsFollowTheSchema(t *testing.T) {
	define := definitions(t)
	whole := strings.NewReplacer("<position>", "p", "<uuid>", "0a0a0a0a-0a0a-5a0a-8a0a-0a0a0a0a0a0a", "<token>", "t", "<ms>", "1.5", "<n>", "1")
	requests, answers := 0, 0
	for _, x := range wiretest.Exchanges(t) {
		request, answer := x.Step, x.Answer
		if at := strings.Index(request, "\n\n"); at >= 0 {
			request = request[at+2:]
		}
		_, answer, _ = strings.Cut(answer, "\n")
		for method, names := range schemaNames {
			if !strings.HasPrefix(request, "{") || !strings.Contains(request, `"method":"`+method+`"`) || answer == "" {
				continue
			}
			answers++
			if err := validate(define(names.response), whole.Replace(answer)); err != nil {
				t.Errorf("%s, the answer to %s: %v", x.File, x.Name, err)
			}
			if strings.Contains(answer, `"result":`) {
				requests++
				if err := validate(define(names.request), request); err != nil {
					t.Errorf("%s, %s: %v", x.File, x.Name, err)
				}
			}
		}
	}
	if requests < 80 || answers < 180 {
		t.Errorf("only %d requests and %d answers were looked at", requests, answers)
	}
}

// Events, too: of changes, of a snapshot, and the last one.
func TestEventsFollowTheSchema(t *testing.T) {
	s := newTestServer(t)
	define := definitions(t)
	event, result := define("KnowledgeSubscriptionEvent"), define("KnowledgeGraphChangeEvent")
	s.post(t, `{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"justification":"j","taskId":"t","sessionId":"s","mutations":[
		{"op":"add","statement":{"subject":{"id":"a b","type":"foaf:Person"},"predicate":{"id":"urn:p"},"object":{"id":"urn:o","type":"urn:T"},"graph":"urn:g","certainty":0.5,"provenance":{"sourceAgentId":"x","more":[1]}}}]}}`)
	sub := s.subscribe(t, `{"koine":{"snapshot":true}}`)
	feed := s.changes(t, "?resume=earliest")
	s.set(t, kg.Add, "urn:s", kg.LangString("hi", "en"), "agent://x")
	s.set(t, kg.Replace, "urn:s", kg.Double(1.5), "agent://x")
	s.set(t, kg.Add, "urn:s", kg.Double(1.5), "agent://y")
	s.set(t, kg.Remove, "urn:s", kg.Double(1.5), "agent://x")
	s.set(t, kg.Remove, "urn:s", kg.Double(1.5), "")
	check := func(sub *subscriber, schema *jsonschema.Schema, n int) {
		t.Helper()
		for range n {
			block := sub.block()
			_, data, ok := strings.Cut(block, "data: ")
			if !ok {
				t.Fatalf("no data in %q", block)
			}
			if err := validate(schema, data); err != nil {
				t.Errorf("%s: %v", data, err)
			}
		}
	}
	id := s.channel(t, `{}`)
	s.say(t, "ann", id, "hello")
	check(s.follow(t, "ann", id, `,"sinceSequence":0`), define("channels:ChannelsStreamEvent"), 1)
	check(sub, event, 3+5)
	check(feed, result, 3+5)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.streams.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	check(sub, event, 1)
	check(feed, define("JSONRPCError"), 1)
}

// The snapshot of an entity or a pattern has one of its statements; an empty one has
// only a position.
func TestSnapshotsFollowTheSchema(t *testing.T) {
	s := newTestServer(t)
	event := definitions(t)("KnowledgeSubscriptionEvent")
	s.set(t, kg.Add, "urn:s", kg.LangString("hi", "en"), "agent://x")
	s.set(t, kg.Add, "urn:t", kg.IRI("urn:s"), "agent://x")
	for query, data := range map[string]string{
		`subscription { entityChanged(iri: "urn:s") { ... on EntityChange { entity { iri } } } }`:                                                                                         `{"entityChanged":{"entity":{"iri":"urn:s"}}}`,
		`subscription { entityChanged(iri: "urn:s", depth: 2) { ... on EntityChange { entity { iri } } } }`:                                                                               `{"entityChanged":{"entity":{"iri":"urn:s"}}}`,
		`subscription { matchChanged(pattern: {triples: [{s: "?s", p: "?p", o: "urn:s"}]}) { ... on MatchChange { added { values } } } }`:                                                 `{"matchChanged":{"added":[{"values":["urn:t","urn:p"]}]}}`,
		`subscription { matchChanged(pattern: {triples: [{s: "urn:t", p: "<urn:p>", o: "?a"}, {s: "?a", p: "<urn:p>", o: "?b"}]}) { ... on MatchChange { added { value(var: "b") } } } }`: `{"matchChanged":{"added":[{"value":"hi"}]}}`,
	} {
		block := s.subscribeTo(t, query, `{"koine":{"snapshot":true}}`).block()
		_, text, _ := strings.Cut(block, "data: ")
		if err := validate(event, text); err != nil || !strings.Contains(text, data) || !strings.Contains(text, `"snapshotEnd":true`) || strings.Contains(text, `"source"`) {
			t.Errorf("%s: %v: %s", query, err, block)
		}
	}
	if block := s.subscribeTo(t, `subscription { entityChanged(iri: "urn:nothing") { ... on EntityChange { entity { iri } } } }`, `{"koine":{"snapshot":true}}`).block(); strings.Contains(block, "data:") || !strings.HasPrefix(block, "id: ") {
		t.Errorf("of nothing: %s", block)
	}
}

// The schema also rejects requests that the server refuses for their structure.
func TestSchemaRefuses(t *testing.T) {
	patch := definitions(t)("KnowledgeGraphPatch")
	const ok = `{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":1},"certainty":1}}`
	if err := validate(patch, ok); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"op":"add"`, `"op":"upsert"`},
		{`{"value":1}`, `{"value":1,"id":"urn:o"}`},
		{`{"value":1}`, `{"value":null}`},
		{`{"value":1}`, `{"value":[1]}`},
		{`{"value":1}`, `{"id":"urn:o","language":"en"}`},
		{`"certainty":1`, `"certainty":1.2`},
		{`"certainty":1`, `"confidence":1`},
		{`{"id":"urn:s"}`, `"urn:s"`},
		{`"predicate":{"id":"urn:p"},`, ``},
	} {
		if text := strings.Replace(ok, change[0], change[1], 1); validate(patch, text) == nil {
			t.Errorf("passes: %s", text)
		}
	}
}
