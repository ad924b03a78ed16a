package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
				useEveryTool(t, node.connect(name, sdk, over), ids, func() {
					if err := s.process.Process.Signal(os.Kill); err != nil {
						t.Fatal(err)
					}
					<-s.ended
					s, _ = startServerOn(t, filepath.Join(dir, "data"), "--search", "on", "--policy", filepath.Join(dir, "policy.yaml"), "--listen", strings.TrimPrefix(url, "http://"))
				})
			})
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
