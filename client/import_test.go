package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"koine/internal/slowtest"
)

// importing is the command in docs/first-agent.md and the package's documentation by which
// another module imports the package.
const importing = "go mod edit -require koine@v0.0.0 -replace koine=../koine -replace github.com/dgraph-io/badger/v4=../koine/internal/third_party/badger -replace github.com/r3labs/sse/v2=../koine/internal/third_party/r3labs-sse"

// Another module builds with the package, with the documented command, from the sources of
// this one.
func TestImportedFromAnotherModule(t *testing.T) {
	slowtest.Long(t)
	for _, document := range []string{"../docs/first-agent.md", "doc.go"} {
		if text, err := os.ReadFile(document); err != nil || !strings.Contains(string(text), importing+"\n") {
			t.Errorf("%s does not say %q: %v", document, importing, err)
		}
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	requirements := read(t, "../go.mod")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(requirements, "module example.org/mine"))
	write(t, filepath.Join(dir, "go.sum"), read(t, "../go.sum"))
	write(t, filepath.Join(dir, "main.go"), "package main\n\nimport \"koine/client\"\n\nfunc main() { _, _ = client.Environment() }\n")
	for _, command := range []string{strings.ReplaceAll(importing, "../koine", root), "go build -mod=mod -o mine ."} {
		words := strings.Fields(command)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
