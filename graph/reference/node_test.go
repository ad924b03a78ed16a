package reference

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// node is a process with graphql-js.
type node struct {
	t   testing.TB
	in  *json.Encoder
	out *bufio.Reader
	err strings.Builder
}

// startNode starts graphql-js with a schema.
func startNode(t testing.TB, sdl string) *node {
	t.Helper()
	if _, err := os.Stat("node_modules/.package-lock.json"); err != nil {
		t.Fatalf("%v: run scripts/install-test-tools.sh", err)
	}
	n := &node{t: t}
	command := exec.CommandContext(t.Context(), "node", "reference.mjs")
	command.Stderr = &n.err
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
	n.in, n.out = json.NewEncoder(stdin), bufio.NewReaderSize(stdout, 1<<20)
	n.call(map[string]any{"sdl": sdl}, &struct{}{})
	return n
}

func (n *node) call(request, into any) {
	n.t.Helper()
	if err := n.in.Encode(request); err != nil {
		n.t.Fatalf("node: %v\n%s", err, &n.err)
	}
	line, err := n.out.ReadBytes('\n')
	if err != nil {
		n.t.Fatalf("node: %v\n%s", err, &n.err)
	}
	var failed struct{ Failure string }
	if err := json.Unmarshal(line, &failed); err != nil || failed.Failure != "" {
		n.t.Fatalf("node: %v %s", err, failed.Failure)
	}
	if err := json.Unmarshal(line, into); err != nil {
		n.t.Fatal(err)
	}
}

// examined is what graphql-js says of a document.
type examined struct {
	Verdict  string // "invalid", "unknown", "refused" or "valid"
	Messages []string
	Plain    string   // the plain form
	Pieces   []string // an operation for each root field of the plain form
}

func (n *node) examine(text, operation string, variables json.RawMessage) (e examined) {
	n.t.Helper()
	n.call(map[string]any{"document": text, "operationName": operation, "variables": string(variables)}, &e)
	return e
}

// executed is the answer of graphql-js to the document examined last.
type executed struct {
	Data    string
	Errors  []failure
	Missing []string // fields of which the plain answer has no value
}

// execute executes the document, given the answer to its plain form.
func (n *node) execute(plain answer) (e executed) {
	n.t.Helper()
	errors := plain.errors
	if errors == nil {
		errors = []failure{}
	}
	n.call(map[string]any{"answer": map[string]any{"data": plain.data, "errors": errors}}, &e)
	return e
}
