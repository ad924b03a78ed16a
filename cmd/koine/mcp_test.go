package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"koine/internal/dialect/modelcontext"
)

// modelClient is a client of koine mcp.
type modelClient struct {
	t *testing.T
	*mcp.ClientSession
}

func startMCP(t *testing.T, args ...string) *modelClient {
	t.Helper()
	return connectMCP(t, &mcp.CommandTransport{Command: exec.Command("koine", append([]string{"mcp"}, args...)...)})
}

func connectMCP(t *testing.T, over mcp.Transport) *modelClient {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), over, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	return &modelClient{t, session}
}

// call calls a tool, and returns its text and whether it is an error.
func (c *modelClient) call(tool string, args map[string]any) (text string, failed bool) {
	c.t.Helper()
	r, err := c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		c.t.Fatal(tool, err)
	}
	for _, part := range r.Content {
		text += part.(*mcp.TextContent).Text
	}
	return text, r.IsError
}

func (c *modelClient) want(tool string, args map[string]any, failed bool, want ...string) {
	c.t.Helper()
	text, is := c.call(tool, args)
	for _, w := range want {
		if is != failed || !strings.Contains(text, w) {
			c.t.Errorf("%s(%v) is %q, an error: %v, want %q", tool, args, text, is, w)
		}
	}
}

// readTools is how many tools only read.
const readTools = 13

// A model remembers, recalls and repairs its mistakes by the answers of the tools, over
// both transports.
func TestModelContextTools(t *testing.T) {
	t.Run("standard input and output", func(t *testing.T) {
		_, url := startServer(t, "--prefix", "ex=https://example.org/")
		useTools(t, url, startMCP(t, "--url", url, "--as", "dora"))
		tools, err := startMCP(t, "--url", url, "--as", "eve", "--read-only").ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools.Tools {
			if !tool.Annotations.ReadOnlyHint || tool.Description == "" || tool.InputSchema == nil {
				t.Errorf("%+v", tool)
			}
		}
		if len(tools.Tools) != readTools {
			t.Errorf("%d tools only read", len(tools.Tools))
		}
	})
	t.Run("HTTP", func(t *testing.T) {
		_, url := startServer(t, "--prefix", "ex=https://example.org/")
		useTools(t, url, connectMCP(t, overHTTP(url, "X-Agent-ID", "dora")))
	})
}

// startExamples runs a server for the examples of tools on a data directory: with the demo,
// and a rule that holds updates.
func startExamples(t *testing.T, dir string) (s *server, url string) {
	t.Helper()
	policy := filepath.Join(dir, "policy.yaml")
	rules := "rules:\n  - {name: trust, on: update, when: 'patch.predicate.endsWith(\"/trusted\")', effect: review, message: Trust needs a second agent}\n"
	if err := os.WriteFile(policy, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return startServerOn(t, filepath.Join(dir, "data"), "--demo", "--policy", policy)
}

// prepareExamples makes the agent chen ask dora, and propose, and returns a replacer that
// puts the ids of these into examples of tools.
func prepareExamples(t *testing.T, url string) *strings.Replacer {
	t.Helper()
	chen := startMCP(t, "--url", url, "--as", "chen")
	var asked, proposed struct{ ID, Channel, Proposal string }
	chen.structured("ask", map[string]any{"to": "dora", "text": "Which cell did run 8 use?", "seconds": 1}, &asked)
	chen.structured("remember", map[string]any{"facts": "finding:2 lab:trusted true [0.8]", "why": "two runs"}, &proposed)
	if asked.ID == "" || asked.Channel == "" || proposed.Proposal == "" {
		t.Fatal(asked, proposed)
	}
	const some = "01a21897-bba5-765f-81bf-c4e6af5fb099"
	return strings.NewReplacer(`{"proposal": "`+some, `{"proposal": "`+proposed.Proposal, some, asked.ID, "chan:direct:3d0dd91bae166f8dd520d8f4", asked.Channel)
}

// structured calls a tool and decodes its structured answer.
func (c *modelClient) structured(tool string, args map[string]any, into any) {
	c.t.Helper()
	r, err := c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil || r.IsError {
		c.t.Fatal(tool, args, err, r)
	}
	text, err := json.Marshal(r.StructuredContent)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		c.t.Fatal(err)
	}
}

// The examples in the descriptions of tools work as they stand, and a wrong call is answered
// with its repair.
func TestExamplesOfTools(t *testing.T) {
	_, url := startExamples(t, t.TempDir())
	ids := prepareExamples(t, url)
	c := startMCP(t, "--url", url, "--as", "dora")
	c.want("inbox", nil, false, "in chan:direct:", " #1 chen to dora, request (id ", "): Which cell did run 8 use?\n")
	c.want("proposals", nil, false, " by chen, pending, 0 of 1 approvals (two runs); held: trust: ", "Trust needs a second agent\n  add finding:2 lab:trusted true [0.8]\n")
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		_, example, _ := strings.Cut(tool.Description, "\nExample: ")
		var arguments map[string]any
		if err := json.Unmarshal([]byte(ids.Replace(example)), &arguments); err != nil {
			t.Errorf("%s has no example: %v", tool.Name, err)
			continue
		}
		if text, failed := c.call(tool.Name, arguments); failed {
			t.Errorf("%s %s: %s", tool.Name, example, text)
		}
		c.want(tool.Name, map[string]any{"unheard": 1}, true, `there is no argument "unheard"`, example)
		for name := range arguments {
			wrong := maps.Clone(arguments)
			wrong[name] = map[string]any{}
			c.want(tool.Name, wrong, true, name+" is {}; it must be ", example)
		}
		if required, _ := tool.InputSchema.(map[string]any)["required"].([]any); len(required) > 0 {
			c.want(tool.Name, map[string]any{}, true, fmt.Sprintf("the argument %q is missing", required[0]), example)
		}
	}
	c.want("recal", map[string]any{"topic": "x"}, true, `there is no tool "recal"; did you mean "recall"?`)
	c.want("xyzzy", nil, true, `there is no tool "xyzzy"; the tools are recall, search`)
	c.want("recall", map[string]any{"topics": "x"}, true, `there is no argument "topics"; did you mean "topic"?`)
	// A name that does not occur is answered with the nearest.
	c.want("query", map[string]any{"query": `{ statements(where: {predicate: {eq: "lab:suportedBy"}}) { totalCount } }`}, false, `{"statements":{"totalCount":0}}`, "\n# ", "demo/supportedBy")
	c.want("history", map[string]any{"name": "lab:prussian-wite"}, false, "Did you mean one of these?\n", "lab:prussian-white (Prussian white)")
	c.want("history", map[string]any{"name": "lab:xyzzy"}, false, "Search for its name.")
	// The facts that are read are those that were written.
	c.want("recall", map[string]any{"topic": "lab:run-9"}, false, "lab:quality \"doubtful\" [0.4, by dora], \"good\"")
	c.want("correct", map[string]any{"facts": "lab:run-9 lab:quality \"bad\", \"old\"", "why": "measured again"}, false, "revision")
	c.want("recall", map[string]any{"topic": "lab:run-9"}, false, "lab:quality \"bad\", \"old\"\n")
	c.want("retract", map[string]any{"facts": "lab:run-9 lab:quality \"old\""}, false, "Retracted 1 of 1")
	c.want("why", map[string]any{"fact": "lab:run-9 lab:quality \"bad\""}, false, "Stated by:\ndora, 20", "(measured again)", "replace by dora")
	c.want("why", map[string]any{"fact": "lab:run-9 lab:quality \"none\""}, true, "nobody states the fact")
	c.want("history", map[string]any{"name": "lab:run-9", "limit": 1}, false, "dora, 20", ": remove\n  lab:run-9 lab:quality \"old\"", "# more: call again with after")
	c.want("history", map[string]any{"name": "lab:run-9", "limit": 101}, true, "limit is 101; it must be from 1 to 100")
	c.want("contradictions", nil, false, "There are no contradictions.")
	c.want("remember", map[string]any{"facts": "lab:quality a owl:FunctionalProperty\nlab:run-9 lab:quality \"fine\" [0.3]"}, false, "Remembered with 2 new statements")
	c.want("contradictions", nil, false, "lab:run-9 lab:quality \"bad\"", "lab:run-9 lab:quality \"fine\" [0.3, by dora]")
}

// Agents ask and answer each other, and messages leave the inbox when they are answered or acknowledged.
func TestConversationTools(t *testing.T) {
	_, url := startServer(t, "--prefix", "lab=https://lab.example/")
	dora, chen := connectMCP(t, overHTTP(url, "X-Agent-ID", "dora")), startMCP(t, "--url", url, "--as", "chen")
	type message struct{ ID, Channel, Text, Request string }
	type page struct {
		Items []message
		Next  string
	}
	type asked struct {
		Key, ID  string
		Answered bool
		Answer   *message
	}
	question := map[string]any{"to": "chen", "text": "Which cell?", "seconds": 1}
	var first, again asked
	dora.structured("ask", question, &first)
	if first.Answered || first.Key == "" {
		t.Fatalf("%+v", first)
	}
	answered := make(chan asked, 1)
	go func() {
		var a asked
		dora.structured("ask", map[string]any{"to": "chen", "text": "Which cell?", "seconds": 60, "key": first.Key}, &a)
		answered <- a
	}()
	var inbox page
	chen.structured("inbox", nil, &inbox)
	if len(inbox.Items) != 1 || inbox.Items[0].ID != first.ID {
		t.Fatalf("%+v", inbox)
	}
	chen.want("answer", map[string]any{"request": first.ID, "text": "Cell 8.", "facts": "lab:run-8 lab:used lab:cell-8 [0.9]"}, false, "Published as #2 in chan:direct:")
	if again = <-answered; again.ID != first.ID || again.Answer == nil || again.Answer.Text != "Cell 8." || again.Answer.Request != first.ID {
		t.Errorf("%+v %+v", again, again.Answer)
	}
	chen.want("inbox", nil, false, "Nothing new.")
	chen.want("inbox", map[string]any{"all": true}, false, "Which cell?")
	// The fact is in the graph of their channel, and its shown form is taken as it is.
	var history struct{ Items []struct{ Fact string } }
	dora.structured("history", map[string]any{"name": "lab:run-8"}, &history)
	if len(history.Items) != 1 || !strings.HasPrefix(history.Items[0].Fact, "@graph ") {
		t.Fatalf("%+v", history)
	}
	dora.want("why", map[string]any{"fact": history.Items[0].Fact}, false, "chen [0.9]", "in message "+again.Answer.ID)
	// Pages, without acknowledged messages.
	for n := range 5 {
		chen.want("say", map[string]any{"to": "dora", "text": fmt.Sprintf("message %d", n)}, false, "Published")
	}
	var all, one page
	dora.structured("inbox", nil, &all)
	dora.want("acknowledge", map[string]any{"channel": all.Items[2].Channel, "messages": []string{all.Items[2].ID}}, false, "Acknowledged 1")
	var texts []string
	for next := ""; ; next = one.Next {
		one = page{}
		dora.structured("inbox", map[string]any{"limit": 2, "after": next}, &one)
		for _, m := range one.Items {
			texts = append(texts, m.Text)
		}
		if len(one.Items) > 2 {
			t.Errorf("a page of 2 has %d", len(one.Items))
		}
		if one.Next == "" {
			break
		}
	}
	if got, want := strings.Join(texts, "|"), "Cell 8.|message 0|message 2|message 3|message 4"; got != want {
		t.Errorf("the inbox has %s, want %s", got, want)
	}
	channel := all.Items[0].Channel
	dora.want("read", map[string]any{"channel": channel, "limit": 1}, false, "message 4", "# more")
	dora.want("read", map[string]any{"channel": channel, "since": 2, "limit": 1}, false, "message 0")
	dora.want("say", map[string]any{"text": "x"}, true, "to and channel are missing")
	// A long text is cut between two characters, and a list of changes and sources ends.
	for text, want := range map[string]string{
		strings.Repeat("x", modelcontext.MaxTextBytes):         strings.Repeat("x", modelcontext.MaxTextBytes) + "\n",
		strings.Repeat("x", modelcontext.MaxTextBytes-1) + "é": strings.Repeat("x", modelcontext.MaxTextBytes-1) + "…\n# cut; query { message(id: ",
	} {
		chen.want("say", map[string]any{"to": "dora", "text": text}, false, "Published")
		dora.want("read", map[string]any{"channel": channel, "limit": 1}, false, "): "+want)
	}
	for n := range modelcontext.MaxParts + 1 {
		source := connectMCP(t, overHTTP(url, "X-Agent-ID", fmt.Sprintf("source%d", n)))
		source.want("remember", map[string]any{"facts": "lab:shared a lab:Thing"}, false, "Remembered")
		if n < modelcontext.MaxParts-1 {
			continue
		}
		text, _ := dora.call("why", map[string]any{"fact": "lab:shared a lab:Thing"})
		if left := strings.Contains(text, "\n# 1 more sources\n"); left != (n == modelcontext.MaxParts) {
			t.Errorf("with %d sources: %s", n+1, text)
		}
	}
	// Others learn no more of a channel than of one that does not exist.
	eve := startMCP(t, "--url", url, "--as", "eve")
	hidden, _ := eve.call("read", map[string]any{"channel": channel})
	absent, _ := eve.call("read", map[string]any{"channel": channel[:len(channel)-1] + "x"})
	if strings.ReplaceAll(hidden, channel, "") != strings.ReplaceAll(absent, channel[:len(channel)-1]+"x", "") {
		t.Errorf("a hidden channel is %q, an absent one %q", hidden, absent)
	}
	eve.want("answer", map[string]any{"request": first.ID, "text": "x"}, true, "")
	eve.want("inbox", map[string]any{"all": true}, false, "Nothing new.")
}

// The list of resources has the channels that the caller may read, a page at a time.
func TestResourcesArePaged(t *testing.T) {
	_, url := startServer(t)
	const channels = 101
	for n := range channels {
		askGraphQL(t, url, "dora", fmt.Sprintf(`mutation { createChannel(input: {name: "channel %d"}) { channel { id } } }`, n))
	}
	for name, want := range map[string][]int{"dora": {102, 1}, "eve": {2}} {
		c := startMCP(t, "--url", url, "--as", name)
		var pages []int
		seen := map[string]bool{}
		for cursor := ""; ; {
			l, err := c.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, len(l.Resources))
			for _, r := range l.Resources {
				seen[r.URI] = true
			}
			if cursor = l.NextCursor; cursor == "" {
				break
			}
		}
		total := 0
		for _, n := range want {
			total += n
		}
		if !slices.Equal(pages, want) || len(seen) != total {
			t.Errorf("%s: pages of %v, %d resources, want %v", name, pages, len(seen), want)
		}
	}
}

// The streams of MCP end with their credential, those of sessions with the session.
func TestModelContextStreamsEndWithTheirCredential(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	post := func(key, body string, headers ...string) *http.Response {
		t.Helper()
		method := http.MethodPost
		if body == "" {
			method = http.MethodGet
		}
		r, err := http.NewRequestWithContext(t.Context(), method, k.url+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i, more := 0, append(headers, "Authorization", "Bearer "+key, "Content-Type", "application/json", "Accept", "application/json, text/event-stream"); i < len(more); i += 2 {
			r.Header.Set(more[i], more[i+1])
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	first, id := k.create(`{agentId: "dora"}`)
	second, _ := k.create(`{agentId: "dora"}`)
	begun := post(first, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	session := begun.Header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatal(begun.Status)
	}
	listening := `{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["koine://vocabulary"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	streams := map[string]*http.Response{
		"of a session": post(first, "", "Mcp-Session-Id", session),
		"listening":    post(first, listening, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"),
	}
	for name, stream := range streams {
		if stream.StatusCode != http.StatusOK || stream.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatal(name, stream.Status)
		}
	}
	k.graphql(k.admin, `mutation { revokeApiKey(input: {keyId: "`+id+`"}) { key { state } } }`)
	for name, stream := range streams {
		if _, err := io.ReadAll(stream.Body); err != nil {
			t.Errorf("%s ends with %v", name, err)
		}
	}
	eventually(t, "the session has ended", func() bool {
		return post(second, `{"jsonrpc":"2.0","id":3,"method":"ping"}`, "Mcp-Session-Id", session).StatusCode == http.StatusNotFound
	})
	if line := `msg="stream ended" transport=mcp reason=UNAUTHENTICATED`; strings.Count(k.s.log.String(), line) != 2 {
		t.Errorf("the log does not have %q twice", line)
	}
}

// overHTTP is the transport of a client that sends a header with each request.
func overHTTP(url, name, value string) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: withHeader{name, value}}}
}

type withHeader struct{ name, value string }

func (h withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(h.name, h.value)
	return http.DefaultTransport.RoundTrip(r)
}

// A client goes on after the server was killed between two calls, and a key that was revoked
// ends its access.
func TestModelContextAcrossAKill(t *testing.T) {
	dir := t.TempDir()
	s, url := startServerOn(t, dir, "--prefix", "ex=https://example.org/")
	over := connectMCP(t, overHTTP(url, "X-Agent-ID", "dora"))
	piped := startMCP(t, "--url", url, "--as", "dora")
	for i, c := range []*modelClient{over, piped, over, piped} {
		c.want("remember", map[string]any{"facts": fmt.Sprintf("ex:run%d (Run %d of the cell)", i, i)}, false, "Remembered with 1 new statements")
		if err := s.process.Process.Signal(os.Kill); err != nil {
			t.Fatal(err)
		}
		<-s.ended
		s, _ = startServerOn(t, dir, "--listen", strings.TrimPrefix(url, "http://"))
		for n := range i + 1 {
			c.want("search", map[string]any{"query": "cell run"}, false, fmt.Sprintf("ex:run%d (Run %d of the cell)", n, n))
		}
	}
}

func useTools(t *testing.T, url string, c *modelClient) {
	c.want("recall", map[string]any{"topic": "lovelace"}, false, "Nothing is known")
	c.want("remember", map[string]any{"facts": "Ada wrote Note G"}, true, `line 1: "Ada" is neither prefix:name nor an IRI`)
	c.want("remember", map[string]any{"facts": ""}, true, "write a subject at the beginning of a line")
	c.want("remember", map[string]any{"facts": "(Ada Lovelace) ex:wrote ex:note-g"}, false, "Remembered with 2 new statements in revision", "(Ada Lovelace) is new: urn:uuid:")
	c.want("retract", map[string]any{"facts": "(Ada Lovelace) ex:wrote ex:note-g\n(Ada Lovelace) rdfs:label \"Ada Lovelace\""}, false, "Retracted 2 of 2")
	facts := map[string]any{"why": "a book", "facts": "ex:ada (Ada Lovelace)\n  a ex:Person\n  ex:born 1815-12-10\nex:note-g (Note G)\n  ex:about \"Bernoulli numbers\"@en, \"a machine\" [0.5]\n"}
	c.want("remember", facts, false, "Remembered with 6 new statements in revision")
	c.want("remember", facts, false, "Remembered with 0 new statements in revision", "; 6 of the facts were known")
	c.want("remember", map[string]any{"facts": "(Ada Lovelace) ex:wrote (Note G)"}, false, "Remembered with 1 new statements", "(Note G) is ex:note-g")
	c.want("recall", map[string]any{"topic": "bernoulli"}, false, "ex:note-g (Note G)\n  ex:about \"Bernoulli numbers\"@en, \"a machine\" [0.5, by dora]\n", "ex:ada\n  ex:wrote ex:note-g (Note G)")
	c.want("recall", map[string]any{"topic": "bernoulli", "maxTokens": 3}, true, "it must be from 50 to 50000")
	c.want("search", map[string]any{"query": "lovelase"}, false, "ex:ada (Ada Lovelace)\n")
	c.want("search", map[string]any{"query": "machine", "limit": 101}, true, "it must be from 1 to 100")
	c.want("vocabulary", nil, false, "@prefix ex: <https://example.org/>", "ex:Person 1\n", "ex:about 2\n")
	c.want("query", map[string]any{"query": "{ stats { statements } }"}, false, `{"stats":{"statements":7}}`)
	c.want("query", map[string]any{"query": "{ stats { statement } }"}, true, "statements")
	c.want("query", map[string]any{"query": "mutation { x: createChannel(input: {}) { channel { id } } }"}, true, "the tool only reads")
	// A fact that was removed is written again, though the call is the same.
	if out, err := exec.Command("koine", "update", "remove", "ex:ada", "rdf:type", "ex:Person", "--as", "dora", "--url", url).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	c.want("remember", facts, false, "Remembered with 1 new statements", "; 5 of the facts were known")
	c.want("query", map[string]any{"query": `{ entity(iri: "ex:ada") { types } }`}, false, "https://example.org/Person")
	// A new word is defined, and used in triples.
	triples := map[string]any{"triples": []any{[]any{"Ada Lovelace", "corresponded with", "Mary Somerville"}}}
	c.want("remember", triples, true, `no predicate is called "corresponded with"`, `define "corresponded with" as a new predicate`)
	c.want("define", map[string]any{"label": "corresponded with"}, false, "(corresponded with) is new: urn:uuid:")
	c.want("remember", triples, false, "(Ada Lovelace) is ex:ada\n(Mary Somerville) is new: urn:uuid:")
	c.want("remember", map[string]any{"facts": "ex:born a owl:FunctionalProperty\nex:ada ex:born 1816-12-10"}, false, "Contradiction: https://example.org/born may have at most one value", "1816-12-10")
	// A label that two entities have is told with both.
	c.want("remember", map[string]any{"facts": "ex:other (Note G)\n"}, false, "Remembered with 1 new statements")
	c.want("remember", map[string]any{"facts": "(Ada Lovelace) ex:wrote (Note G)"}, true, "ex:note-g", "ex:other")
}

// An agent's private graph and messages change no byte of the answers of others, by any tool,
// resource or prompt: they are those of a store without.
func TestOutsidersReadTheSameByTools(t *testing.T) {
	answers := func(secret bool) map[string]string {
		k := startKnowing(t, "--auth", "keys", "--demo", "--search", "on")
		key, _ := k.create(`{agentId: "eve"}`)
		eve := connectMCP(t, overHTTP(k.url, "Authorization", "Bearer "+key))
		k.graphql(key, `mutation { createGraph(input: {iri: "agent://eve/private", visibility: PRIVATE}) { graph { iri } } }`)
		if secret {
			eve.want("remember", map[string]any{"facts": "@graph <agent://eve/private>\nlab:batch-3 lab:secretly lab:hidden\nlab:hidden (Water in the crystal)\n  a lab:Hidden\n  lab:about \"water in the crystal, impure salt, batch, prussian\""}, false, "Remembered")
			eve.want("say", map[string]any{"to": "mallory", "text": "water in the crystal, impure salt"}, false, "Published")
		}
		eve.want("recall", map[string]any{"topic": "lab:hidden"}, false, map[bool]string{true: "lab:hidden (Water in the crystal)", false: "Nothing is known"}[secret])
		key, _ = k.create(`{agentId: "outsider"}`)
		c := connectMCP(t, overHTTP(k.url, "Authorization", "Bearer "+key))
		out := map[string]string{}
		tools, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools.Tools {
			if !tool.Annotations.ReadOnlyHint {
				continue
			}
			_, example, _ := strings.Cut(tool.Description, "\nExample: ")
			var arguments map[string]any
			if err := json.Unmarshal([]byte(example), &arguments); err != nil {
				t.Fatal(err)
			}
			text, failed := c.call(tool.Name, arguments)
			out[tool.Name] = fmt.Sprint(failed, text)
		}
		for _, words := range []string{"hidden", "secretly", "water", "prussian crystal"} {
			out["search "+words], _ = c.call("search", map[string]any{"query": words})
			out["recall "+words], _ = c.call("recall", map[string]any{"topic": words})
			out["history "+words], _ = c.call("history", map[string]any{"name": "lab:" + words[:4] + "-x"})
		}
		out["history"], _ = c.call("history", map[string]any{"name": "lab:batch-3"})
		for _, uri := range []string{"koine://vocabulary", "koine://entity/lab:batch-3", "koine://entity/lab:hidden"} {
			r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if out[uri] = fmt.Sprint(err); err == nil {
				out[uri] = r.Contents[0].Text
			}
		}
		for _, name := range []string{"brief", "record"} {
			r, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name, Arguments: map[string]string{"topic": "water in the crystal"}})
			if err != nil {
				t.Fatal(err)
			}
			out["prompt "+name] = r.Messages[0].Content.(*mcp.TextContent).Text
		}
		return out
	}
	with, without := answers(true), answers(false)
	varies := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|after "[^"]+"|[0-9a-f-]{36}|online|idle|offline`)
	for name, text := range without {
		if a, b := varies.ReplaceAllString(with[name], "…"), varies.ReplaceAllString(text, "…"); a != b {
			t.Errorf("%s: with others' data\n%s\nwithout\n%s", name, a, b)
		}
	}
	if len(without) < 25 {
		t.Errorf("%d answers", len(without))
	}
}
