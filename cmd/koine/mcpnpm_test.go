package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"koine/internal/slowtest"
)

// nodeDir has the npm packages of the tests of MCP.
const nodeDir = "../../internal/dialect/modelcontext/clients"

// needNode skips a test with -short, and fails it where the npm packages are missing.
func needNode(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a test with node; -short leaves it out")
	}
	if _, err := os.Stat(nodeDir + "/node_modules/.package-lock.json"); err != nil {
		t.Fatalf("%v: run scripts/install-test-tools.sh", err)
	}
}

// nodeClients is a process with clients of the TypeScript SDKs.
type nodeClients struct {
	t   *testing.T
	in  *json.Encoder
	out *bufio.Reader
	id  int
}

func startNodeClients(t *testing.T) *nodeClients {
	t.Helper()
	needNode(t)
	command := exec.CommandContext(t.Context(), "node", "drive.mjs")
	command.Dir, command.Stderr = nodeDir, os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("node: %v", err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = command.Wait()
	})
	return &nodeClients{t: t, in: json.NewEncoder(stdin), out: bufio.NewReaderSize(stdout, 1<<20)}
}

// do runs an operation of drive.mjs and decodes its result.
func (n *nodeClients) do(operation map[string]any, into any) error {
	n.t.Helper()
	n.id++
	operation["id"] = n.id
	if err := n.in.Encode(operation); err != nil {
		n.t.Fatalf("node: %v", err)
	}
	line, err := n.out.ReadBytes('\n')
	if err != nil {
		n.t.Fatalf("node: %v", err)
	}
	var answer struct {
		ID     int
		Error  string
		Result json.RawMessage
	}
	if err := json.Unmarshal(line, &answer); err != nil || answer.ID != n.id {
		n.t.Fatalf("node: %v %s", err, line)
	}
	if answer.Error != "" {
		return fmt.Errorf("%s", answer.Error)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer.Result, into)
}

// npmClient is a client of a TypeScript SDK.
type npmClient struct {
	*nodeClients
	name string
}

// connect opens a client: over standard input and output if over has a command, over HTTP if it has a url.
func (n *nodeClients) connect(name string, sdk int, over map[string]any) *npmClient {
	n.t.Helper()
	over["name"], over["sdk"] = name, sdk
	var opened struct{ Server struct{ Name string } }
	if err := n.do(map[string]any{"connect": over}, &opened); err != nil || opened.Server.Name == "" {
		n.t.Fatalf("connect %v: %v %+v", over, err, opened)
	}
	return &npmClient{n, name}
}

func (c *npmClient) run(method string, into any, with ...any) error {
	c.t.Helper()
	return c.do(map[string]any{"client": c.name, "call": method, "with": with}, into)
}

// npmTool is a tool as a client lists it.
type npmTool struct {
	Name, Description string
	Annotations       map[string]any
	OutputSchema      any
}

func (c *npmClient) tools() []npmTool {
	c.t.Helper()
	var listed struct{ Tools []npmTool }
	if err := c.run("listTools", &listed); err != nil {
		c.t.Fatal(err)
	}
	return listed.Tools
}

// called is the result of a tool.
type called struct {
	Content           []struct{ Type, Text string }
	StructuredContent any
	IsError           bool
}

func (c *npmClient) use(tool string, arguments any) (r called) {
	c.t.Helper()
	if err := c.run("callTool", &r, map[string]any{"name": tool, "arguments": arguments}); err != nil {
		c.t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	return r
}

// The clients of both generations of the TypeScript SDK use every tool over both transports,
// with the example in its description, while the server is killed between two calls.
func TestToolsThroughNPM(t *testing.T) {
	slowtest.WithoutRace(t)
	node := startNodeClients(t)
	for _, sdk := range []int{1, 2} {
		for _, transport := range []string{"stdio", "http"} {
			name := fmt.Sprintf("%s %d", transport, sdk)
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				s, url := startExamples(t, dir)
				ids := prepareExamples(t, url)
				over := map[string]any{"url": url + "/mcp", "headers": map[string]string{"X-Agent-ID": "dora"}}
				if transport == "stdio" {
					over = map[string]any{"command": "koine", "args": []string{"mcp", "--url", url, "--as", "dora"}}
				}
				c := node.connect(name, sdk, over)
				useResources(t, c)
				useEveryTool(t, c, ids, func() {
					if err := s.process.Process.Signal(os.Kill); err != nil {
						t.Fatal(err)
					}
					<-s.ended
					s, _ = startServerOn(t, filepath.Join(dir, "data"), "--policy", filepath.Join(dir, "policy.yaml"), "--listen", strings.TrimPrefix(url, "http://"))
				})
			})
		}
	}
}

// With tokens, a client that is refused is told where it gets one.
func TestMCPTellsTheIssuer(t *testing.T) {
	secret := []byte("a-secret-of-at-least-thirty-two-bytes")
	jwks := filepath.Join(t.TempDir(), "jwks.json")
	set := `{"keys":[{"kty":"oct","kid":"s","k":"` + base64.RawURLEncoding.EncodeToString(secret) + `"}]}`
	if err := os.WriteFile(jwks, []byte(set), 0o600); err != nil {
		t.Fatal(err)
	}
	node := startNodeClients(t)
	const issuer = "https://id.example/realm"
	for _, public := range []string{"", "https://koine.example/"} {
		_, url := startServer(t, "--auth", "jwt", "--jwks", jwks, "--jwt-issuer", issuer, "--jwt-audience", "a", "--jwt-algorithm", "HS256", "--public-url", public)
		base := url
		if public != "" {
			base = "https://koine.example"
		}
		for _, path := range []string{"/mcp", "/graphql"} {
			response, err := http.Post(url+path, "application/json", strings.NewReader(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			want := `Bearer realm="koine"`
			if path == "/mcp" {
				want += `, resource_metadata="` + base + `/.well-known/oauth-protected-resource/mcp"`
			}
			if got := response.Header.Get("WWW-Authenticate"); response.StatusCode != http.StatusUnauthorized || got != want {
				t.Errorf("%s: %d %s, want %s", path, response.StatusCode, got, want)
			}
		}
		for path, resource := range map[string]string{"/mcp": base + "/mcp", "": base} {
			var found struct {
				Resource string   `json:"resource"`
				Servers  []string `json:"authorization_servers"`
			}
			if err := node.do(map[string]any{"discover": url + path}, &found); err != nil || found.Resource != resource || len(found.Servers) != 1 || found.Servers[0] != issuer {
				t.Errorf("%s: %+v %v", path, found, err)
			}
		}
		token := signHS256(secret, map[string]any{"iss": issuer, "aud": "a", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix()})
		for sdk := 1; sdk <= 2; sdk++ {
			c := node.connect(fmt.Sprint(sdk, public), sdk, map[string]any{"url": url + "/mcp", "headers": map[string]string{"Authorization": "Bearer " + token}})
			if r := c.use("query", map[string]any{"query": "{ me { id } }"}); r.Content[0].Text != `{"me":{"id":"agent://ann"}}` {
				t.Errorf("%+v", r)
			}
		}
	}
	_, url := startServer(t, "--auth", "keys")
	if response, err := http.Get(url + "/.well-known/oauth-protected-resource"); err != nil || response.StatusCode != http.StatusNotFound {
		t.Errorf("without tokens: %+v %v", response, err)
	}
}

// Clients of both generations are told that a resource has changed, over both transports: by
// a subscription of their session, or by a stream. Others' changes that they may not see
// tell them nothing.
func TestResourcesAreWatched(t *testing.T) {
	node := startNodeClients(t)
	_, url := startServer(t, "--prefix", "ex=https://example.org/")
	writer := connectMCP(t, overHTTP(url, "X-Agent-ID", "chen"))
	var said struct{ Channel string }
	writer.structured("say", map[string]any{"to": "dora", "text": "hello"}, &said)
	for _, sdk := range []int{1, 2} {
		for _, transport := range []string{"stdio", "http"} {
			name := fmt.Sprintf("%s %d", transport, sdk)
			over := map[string]any{"url": url + "/mcp", "headers": map[string]string{"X-Agent-ID": "dora"}}
			if transport == "stdio" {
				over = map[string]any{"command": "koine", "args": []string{"mcp", "--url", url, "--as", "dora"}}
			}
			c := node.connect(name, sdk, over)
			entity, channel := "koine://entity/ex:watched", "koine://channel/"+said.Channel
			if sdk == 1 {
				for _, uri := range []string{entity, channel, "koine://vocabulary"} {
					if err := c.run("subscribeResource", nil, map[string]any{"uri": uri}); err != nil {
						t.Fatal(name, err)
					}
				}
				if err := c.run("subscribeResource", nil, map[string]any{"uri": "koine://channel/none"}); err == nil || !strings.Contains(err.Error(), "not found") {
					t.Error(name, err)
				}
			} else if err := c.run("listen", nil, map[string]any{"resourceSubscriptions": []string{entity, channel, "koine://vocabulary"}}); err != nil {
				t.Fatal(name, err)
			}
			writer.want("say", map[string]any{"to": "eve", "text": "a secret of " + name}, false, "Published")
			writer.want("remember", map[string]any{"facts": fmt.Sprintf("ex:watched ex:by %q", name)}, false, "Remembered with 1 new")
			writer.want("say", map[string]any{"to": "dora", "text": "news for " + name}, false, "Published")
			for _, uri := range []string{entity, "koine://vocabulary", channel} {
				if err := c.do(map[string]any{"client": name, "updated": uri}, nil); err != nil {
					t.Error(name, err)
				}
			}
		}
	}
}

// An agent that loses access to a channel is told of no more messages in it.
func TestWatchedResourceEndsWithItsAccess(t *testing.T) {
	node := startNodeClients(t)
	_, url := startServer(t, "--prefix", "ex=https://example.org/")
	var made struct {
		Data struct {
			CreateChannel struct{ Channel struct{ ID string } }
		}
	}
	if err := json.Unmarshal([]byte(askGraphQL(t, url, "chen", `mutation { createChannel(input: {members: [{agentId: "dora"}]}) { channel { id } } }`)), &made); err != nil {
		t.Fatal(err)
	}
	id := made.Data.CreateChannel.Channel.ID
	writer := connectMCP(t, overHTTP(url, "X-Agent-ID", "chen"))
	for _, sdk := range []int{1, 2} {
		name := fmt.Sprint("client ", sdk)
		c := node.connect(name, sdk, map[string]any{"url": url + "/mcp", "headers": map[string]string{"X-Agent-ID": "dora"}})
		entity, channel := "koine://entity/ex:watched", "koine://channel/"+id
		if sdk == 2 {
			if err := c.run("listen", nil, map[string]any{"resourceSubscriptions": []string{entity, channel}}); err != nil {
				t.Fatal(err)
			}
		} else {
			for _, uri := range []string{entity, channel} {
				if err := c.run("subscribeResource", nil, map[string]any{"uri": uri}); err != nil {
					t.Fatal(err)
				}
			}
		}
		writer.want("say", map[string]any{"channel": id, "text": "before"}, false, "Published")
		if err := c.do(map[string]any{"client": name, "updated": channel}, nil); err != nil {
			t.Fatal(err)
		}
		askGraphQL(t, url, "chen", `mutation { removeChannelMember(input: {channelId: "`+id+`", agentId: "dora"}) { channel { id } } }`)
		var rest []string
		for n := range 4 {
			writer.want("say", map[string]any{"channel": id, "text": "a secret"}, false, "Published")
			writer.want("remember", map[string]any{"facts": fmt.Sprintf("ex:watched ex:by \"%s %d\"", name, n)}, false, "Remembered with 1 new")
			if err := c.do(map[string]any{"client": name, "updated": entity}, &rest); err != nil {
				t.Fatal(err)
			}
		}
		if len(rest) > 1 { // the end of the access may be one
			t.Errorf("%s is told of %q", name, rest)
		}
		if err := c.run("readResource", nil, map[string]any{"uri": channel}); err == nil || !strings.Contains(err.Error(), "not found") {
			t.Error(err)
		}
		askGraphQL(t, url, "chen", `mutation { addChannelMember(input: {channelId: "`+id+`", agentId: "dora"}) { channel { id } } }`)
	}
}

// A long call reports its progress, and ends when it is cancelled, in both generations and
// over both transports.
func TestLongCallsThroughNPM(t *testing.T) {
	slowtest.WithoutRace(t)
	node := startNodeClients(t)
	_, url := startServer(t)
	_, metrics := ask(t, http.MethodGet, url+"/metrics", "dora", "")
	_, idle, _ := strings.Cut(metrics, "\nkoine_store_watchers ")
	idle, _, _ = strings.Cut(idle, "\n")
	for _, sdk := range []int{1, 2} {
		for _, transport := range []string{"stdio", "http"} {
			name := fmt.Sprintf("%s %d", transport, sdk)
			over := map[string]any{"url": url + "/mcp", "headers": map[string]string{"X-Agent-ID": "dora"}}
			if transport == "stdio" {
				over = map[string]any{"command": "koine", "args": []string{"mcp", "--url", url, "--as", "dora"}}
			}
			c := node.connect(name, sdk, over)
			var long struct {
				Progress int
				Result   *called
				Stopped  string
			}
			if err := c.do(map[string]any{"client": name, "tool": "ask", "arguments": map[string]any{"to": "chen", "text": "?", "seconds": 3}}, &long); err != nil || long.Result == nil || long.Result.IsError || long.Progress < 2 {
				t.Errorf("%s: %+v %v", name, long, err)
			}
			began := time.Now()
			long.Result = nil
			if err := c.do(map[string]any{"client": name, "tool": "ask", "arguments": map[string]any{"to": "chen", "text": "?", "seconds": 60}, "stopAfter": 1500}, &long); err != nil || long.Stopped == "" {
				t.Errorf("%s: %+v %v", name, long, err)
			}
			// The server waits for the answer no longer, long before the 60 seconds.
			eventually(t, name+": the call has ended", func() bool {
				_, text := ask(t, http.MethodGet, url+"/metrics", "dora", "")
				return strings.Contains(text, fmt.Sprintf("\nkoine_store_watchers %s\n", idle))
			})
			if took := time.Since(began); took > 50*time.Second {
				t.Errorf("%s: it ended after %v", name, took)
			}
		}
	}
}

// useEveryTool calls each tool with its example, and has the server killed before every fourth.
func useEveryTool(t *testing.T, c *npmClient, ids *strings.Replacer, kill func()) {
	for i, tool := range c.tools() {
		if i%4 == 3 {
			kill()
		}
		_, example, ok := strings.Cut(tool.Description, "\nExample: ")
		var arguments any
		if err := json.Unmarshal([]byte(ids.Replace(example)), &arguments); err != nil || !ok {
			t.Errorf("%s has no example: %v", tool.Name, err)
		}
		r := c.use(tool.Name, arguments)
		if r.IsError || r.StructuredContent == nil || tool.OutputSchema == nil || tool.Annotations["readOnlyHint"] == nil {
			t.Errorf("%s %s: %+v %+v", tool.Name, example, r, tool)
		}
	}
}

// useResources reads each kind of resource and each prompt.
func useResources(t *testing.T, c *npmClient) {
	t.Helper()
	var templates struct {
		ResourceTemplates []struct{ URITemplate string }
	}
	if err := c.run("listResourceTemplates", &templates); err != nil || len(templates.ResourceTemplates) != 2 {
		t.Errorf("%+v %v", templates, err)
	}
	type resource struct{ URI, Text string }
	var listed struct{ Resources []resource }
	if err := c.run("listResources", &listed); err != nil || len(listed.Resources) != 2 {
		t.Errorf("%+v %v", listed, err)
	}
	for uri, want := range map[string]string{
		"koine://vocabulary":           "lab:supportedBy ",
		"koine://schema":               "type Query {",
		"koine://entity/lab:batch-3":   "lab:madeFrom lab:salt-12",
		"koine://entity/lab%3Abatch-3": "lab:madeFrom lab:salt-12",
		"koine://entity/https%3A%2F%2Fkoine.example%2Fdemo%2Fbatch-3": "lab:madeFrom lab:salt-12",
		"koine://channel/" + c.directChannel():                        "Which cell did run 8 use?",
	} {
		var read struct{ Contents []resource }
		if err := c.run("readResource", &read, map[string]any{"uri": uri}); err != nil || len(read.Contents) != 1 || read.Contents[0].URI != uri || !strings.Contains(read.Contents[0].Text, want) {
			t.Errorf("%s: %+v %v, want %s", uri, read, err, want)
		}
	}
	for _, uri := range []string{"koine://entity/lab:none", "koine://entity/batch", "koine://channel/chan:direct:3d0dd91bae166f8dd520d8f4", "koine://other", "file:///etc/passwd"} {
		if err := c.run("readResource", nil, map[string]any{"uri": uri}); err == nil || !strings.Contains(err.Error(), "not found") && !strings.Contains(err.Error(), "batch") {
			t.Errorf("%s: %v", uri, err)
		}
	}
	var prompts struct{ Prompts []struct{ Name string } }
	if err := c.run("listPrompts", &prompts); err != nil || len(prompts.Prompts) != 2 {
		t.Errorf("%+v %v", prompts, err)
	}
	for name, want := range map[string]string{"brief": "finding:1", "record": "lab:supportedBy "} {
		var got struct {
			Messages []struct{ Content struct{ Text string } }
		}
		if err := c.run("getPrompt", &got, map[string]any{"name": name, "arguments": map[string]any{"topic": "water in the crystal"}}); err != nil || len(got.Messages) != 1 || !strings.Contains(got.Messages[0].Content.Text, want) {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

// directChannel returns the channel of the first message in the inbox.
func (c *npmClient) directChannel() string {
	c.t.Helper()
	inbox := c.use("inbox", map[string]any{})
	items, _ := inbox.StructuredContent.(map[string]any)["items"].([]any)
	if len(items) == 0 {
		c.t.Fatalf("%+v", inbox)
	}
	channel, _ := items[0].(map[string]any)["channel"].(string)
	return channel
}

// koine mcp --tools memory is used like the reference memory server: the tools are the same,
// and the same calls have the same answers, over a kill of the server.
func TestMemoryIsTheReference(t *testing.T) {
	node := startNodeClients(t)
	dir := t.TempDir()
	s, url := startServerOn(t, dir)
	ours := node.connect("koine", 1, map[string]any{"command": "koine", "args": []string{"mcp", "--tools", "memory", "--url", url, "--as", "dora"}})
	theirs := node.connect("reference", 1, map[string]any{"command": "node", "args": []string{"node_modules/@modelcontextprotocol/server-memory/dist/index.js"}, "env": map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}})
	listed := func(c *npmClient) map[string]map[string]any {
		var l struct{ Tools []map[string]any }
		if err := c.run("listTools", &l); err != nil {
			t.Fatal(err)
		}
		tools := map[string]map[string]any{}
		for _, tool := range l.Tools {
			delete(tool, "execution") // it says that tools are no tasks, as without it
			tools[tool["name"].(string)] = tool
		}
		return tools
	}
	if diff := cmp.Diff(listed(theirs), listed(ours)); diff != "" {
		t.Error(diff)
	}
	// The resource is the same, and its changes are told.
	sameResource := func() {
		t.Helper()
		type resource struct{ URI, Name, Title, Description, MimeType, Text string }
		var lists, texts [2]struct{ Resources, Contents []resource }
		for i, c := range []*npmClient{theirs, ours} {
			if err := c.run("listResources", &lists[i]); err != nil {
				t.Error(err)
			}
			if err := c.run("readResource", &texts[i], map[string]any{"uri": "memory://knowledge-graph"}); err != nil {
				t.Error(err)
			}
		}
		if diff := cmp.Diff([]any{lists[0], texts[0]}, []any{lists[1], texts[1]}); diff != "" || len(texts[0].Contents) != 1 {
			t.Error(diff)
		}
	}
	sameResource()
	for _, c := range []*npmClient{theirs, ours} {
		if err := c.run("subscribeResource", nil, map[string]any{"uri": "memory://knowledge-graph"}); err != nil {
			t.Error(err)
		}
		c.use("create_entities", map[string]any{"entities": []any{map[string]any{"name": "first", "entityType": "x", "observations": []string{"y"}}}})
		if err := c.do(map[string]any{"client": c.name, "updated": "memory://knowledge-graph"}, nil); err != nil {
			t.Error(err)
		}
	}
	defer sameResource()
	for i, call := range []struct{ tool, arguments string }{
		{"read_graph", `{}`},
		{"add_observations", `{"observations":[{"entityName":"Ada","contents":["x"]}]}`},
		{"create_entities", `{"entities":[{"name":"Ada Lovelace","entityType":"person","observations":["writes programs","zeal & <wit>","born in 1815"]},{"name":"Note G","entityType":"text / note","observations":[]}]}`},
		{"create_entities", `{"entities":[{"name":"Ada Lovelace","entityType":"other","observations":["not taken"]},{"name":"Köln: 100% #1?","entityType":"","observations":["日本","a"]}]}`},
		{"create_entities", `{"entities":[]}`},
		{"create_relations", `{"relations":[{"from":"Note G","to":"Ada Lovelace","relationType":"is by"},{"from":"Ada Lovelace","to":"Note G","relationType":"wrote"},{"from":"Ghost","to":"Note G","relationType":"haunts"}]}`},
		{"create_relations", `{"relations":[{"from":"Ada Lovelace","to":"Note G","relationType":"wrote"},{"from":"Ada Lovelace","to":"Nobody","relationType":"knows"}]}`},
		{"read_graph", `{}`},
		{"add_observations", `{"observations":[{"entityName":"Ada Lovelace","contents":["born in 1815","aunt of nobody"]},{"entityName":"Note G","contents":["Bernoulli numbers"]}]}`},
		{"add_observations", `{"observations":[{"entityName":"Note G","contents":["lost"]},{"entityName":"Nobody","contents":["x"]}]}`},
		{"search_nodes", `{"query":"BERNOULLI"}`},
		{"search_nodes", `{"query":"Person"}`},
		{"search_nodes", `{"query":"köln"}`},
		{"search_nodes", `{"query":"no such words"}`},
		{"open_nodes", `{"names":["Köln: 100% #1?","Nobody"]}`},
		{"open_nodes", `{"names":["Note G"]}`},
		{"delete_observations", `{"deletions":[{"entityName":"Ada Lovelace","observations":["zeal & <wit>","never said"]},{"entityName":"Nobody","observations":["x"]}]}`},
		{"delete_relations", `{"relations":[{"from":"Note G","to":"Ada Lovelace","relationType":"is by"},{"from":"a","to":"b","relationType":"c"}]}`},
		{"read_graph", `{}`},
		{"delete_entities", `{"entityNames":["Note G","Nobody at all"]}`},
		{"read_graph", `{}`},
		{"create_entities", `{"entities":[{"name":"Note G","entityType":"again","observations":["new"]}]}`},
		{"read_graph", `{}`},
	} {
		if i%8 == 7 {
			if err := s.process.Process.Signal(os.Kill); err != nil {
				t.Fatal(err)
			}
			<-s.ended
			s, _ = startServerOn(t, dir, "--listen", strings.TrimPrefix(url, "http://"))
		}
		var arguments any
		if err := json.Unmarshal([]byte(call.arguments), &arguments); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(theirs.use(call.tool, arguments), ours.use(call.tool, arguments)); diff != "" {
			t.Errorf("%s %s: - reference, + koine\n%s", call.tool, call.arguments, diff)
		}
	}
}
