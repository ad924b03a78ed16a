package client_test

import (
	"os"
	"strings"
	"testing"
)

// The Go in docs/doors.md is that of an example, which is run.
func TestDoors(t *testing.T) {
	document, err := os.ReadFile("../docs/doors.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, behind, _ := strings.Cut(string(document), "```go\n")
	shown, _, ok := strings.Cut(behind, "```")
	if !ok || !strings.Contains(string(examples), "{\n"+shown+"}\n") {
		t.Errorf("no function in example_test.go is\n%s", shown)
	}
}
