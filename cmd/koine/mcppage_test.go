package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// pageServer is an entry of a client's configuration, in the forms of all clients.
type pageServer struct {
	Command                 any // a string, or a list with its arguments
	Args                    []string
	Env                     map[string]string
	URL, ServerURL, HTTPURL string
	Headers                 map[string]string
}

// Each configuration and command of docs/mcp.md works as it stands, with the address and the
// key of a server of the test.
func TestMCPPage(t *testing.T) {
	node := startNodeClients(t)
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, open := startServer(t)
	guarded := startKnowing(t, "--auth", "keys")
	key, _ := guarded.create(`{agentId: "dora"}`)
	clients, commands := 0, 0
	connect := func(block string, s pageServer) {
		clients++
		over := map[string]any{"url": cmp.Or(s.URL, s.ServerURL, s.HTTPURL), "headers": s.Headers}
		if s.Command != nil {
			over = map[string]any{"command": s.Command, "args": s.Args, "env": s.Env}
			if list, ok := s.Command.([]any); ok {
				over["command"], over["args"] = list[0], list[1:]
			}
		}
		c := node.connect(fmt.Sprint("client ", clients), 1, over)
		tools := c.tools()
		if tools[0].Name == "add_observations" {
			return // --tools memory
		}
		if r := c.use("query", map[string]any{"query": "{ me { actingForId } }"}); r.Content[0].Text != `{"me":{"actingForId":"agent://dora"}}` {
			t.Errorf("%s is not dora: %+v", block, r)
		}
	}
	for _, block := range regexp.MustCompile("(?s)```(\\w*)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		language, text := block[1], block[2]
		server := open
		for _, shown := range regexp.MustCompile(`\w+…`).FindAllString(text, -1) {
			if beginning := strings.TrimSuffix(shown, "…"); !strings.HasPrefix(key, beginning) {
				t.Errorf("the page shows the key %s, and keys begin with %.8s", shown, key)
			}
			server, text = guarded.url, strings.ReplaceAll(text, shown, key)
		}
		text = strings.ReplaceAll(text, "http://127.0.0.1:8080", server)
		switch {
		case language == "json":
			var groups map[string]map[string]pageServer
			if err := json.Unmarshal([]byte(text), &groups); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			for _, group := range groups {
				for _, s := range group {
					connect(text, s)
				}
			}
		case language == "toml":
			var s pageServer
			for line := range strings.Lines(text) {
				name, value, _ := strings.Cut(line, " = ")
				into := map[string]any{"command": &s.Command, "args": &s.Args}[name]
				if into == nil {
					continue
				}
				if err := json.Unmarshal([]byte(value), into); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
			connect(text, s)
		case strings.HasPrefix(text, "claude ") || strings.HasPrefix(text, "npx "):
			for line := range strings.Lines(text) {
				commands++
				words := shellWords(t, line)
				if words[0] == "claude" {
					connect(line, claudeServer(t, words[3:]))
					continue
				}
				command := exec.Command("node", append([]string{"node_modules/@modelcontextprotocol/inspector/cli/build/cli.js"}, words[2:]...)...)
				command.Dir = nodeDir
				out, err := command.CombinedOutput()
				if err != nil || !strings.Contains(string(out), `"name": "recall"`) && !strings.Contains(string(out), "Nothing is known about") {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
			}
		}
	}
	if clients < 14 || commands != 4 {
		t.Errorf("the page has %d configurations, and %d commands", clients, commands)
	}
}

// claudeServer returns the entry that "claude mcp add" makes of its arguments.
func claudeServer(t *testing.T, words []string) (s pageServer) {
	t.Helper()
	s.Headers = map[string]string{}
	for len(words) > 0 && strings.HasPrefix(words[0], "--") {
		if name, value, ok := strings.Cut(words[1], ": "); ok && words[0] == "--header" {
			s.Headers[name] = value
		} else if words[0] != "--transport" || words[1] != "http" {
			t.Fatalf("an unknown option %s", words[0])
		}
		words = words[2:]
	}
	if words[1] == "--" {
		s.Command, s.Args = words[2], words[3:]
	} else {
		s.URL = words[1]
	}
	return s
}

// shellWords returns the words of a command line, as a shell does.
func shellWords(t *testing.T, line string) []string {
	t.Helper()
	out, err := exec.Command("sh", "-c", `printf '%s\n' `+line).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}
