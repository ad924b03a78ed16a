package client_test

import (
	"os"
	"strings"
	"testing"
)

// The Go in the README is that of an example, which is run.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, behind, _ := strings.Cut(string(readme), "```go\n")
	shown, _, ok := strings.Cut(behind, "```")
	if !ok || !strings.Contains(string(examples), "{\n"+shown+"}\n") {
		t.Errorf("no function in example_test.go is\n%s", shown)
	}
}
