package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"koine/client"
	"koine/internal/servertest"
	"koine/internal/slowtest"
)

const document = "../../docs/first-agent.md"

func TestMain(m *testing.M) { servertest.Main(m) }

// The document shows the three programs as they are.
func TestDocument(t *testing.T) {
	for _, program := range []struct{ file, language, from string }{
		{"agent.py", "python", ""},
		{"agent.ts", "typescript", ""},
		{"main.go", "go", "func run("},
	} {
		want := read(t, program.file)
		if program.from != "" {
			want = want[strings.Index(want, program.from):]
		}
		if shown := block(t, program.language); shown != want {
			t.Errorf("the %s of %s is not %s", program.language, document, program.file)
		}
	}
}

func TestGo(t *testing.T) {
	slowtest.Long(t)
	s := servertest.Start(t, "--demo")
	var out strings.Builder
	if err := run(within(t), s.URL, client.Options{}, &out); err != nil {
		t.Fatal(err)
	}
	asShown(t, out.String())
}

func TestPython(t *testing.T) {
	slowtest.Long(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("NOT RUN: %v: run scripts/install-test-tools.sh", err)
	}
	asShown(t, execute(t, python, "agent.py"))
}

// The compiler is that of the playground: it checks the types, and writes JavaScript.
func TestTypeScript(t *testing.T) {
	if testing.Short() {
		t.Skip("a test with node; -short leaves it out")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("NOT RUN: %v: run scripts/install-test-tools.sh", err)
	}
	compiler, err := filepath.Abs("../../web/node_modules/typescript/bin/tsc")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(compiler); err != nil {
		t.Fatalf("NOT RUN: %v: run scripts/install-test-tools.sh", err)
	}
	dir := t.TempDir()
	types, err := filepath.Abs("../../web/node_modules/@types")
	if err != nil {
		t.Fatal(err)
	}
	compile := exec.CommandContext(within(t), node, compiler, "--strict", "--target", "es2022", "--module", "es2022",
		"--moduleResolution", "bundler", "--lib", "es2023,dom,dom.iterable,dom.asynciterable", "--typeRoots", types, "--types", "node",
		"--skipLibCheck", "--outDir", dir, "agent.ts")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script := filepath.Join(dir, "agent.mjs")
	if err := os.Rename(filepath.Join(dir, "agent.js"), script); err != nil {
		t.Fatal(err)
	}
	asShown(t, execute(t, node, script))
}

// execute runs a program against a server of its own.
func execute(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	s := servertest.Start(t, "--demo")
	cmd := exec.CommandContext(within(t), name, arguments...)
	cmd.Env = append(os.Environ(), "KOINE_URL="+s.URL)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// asShown fails unless a program prints the output of the document.
func asShown(t *testing.T, got string) {
	t.Helper()
	if want := block(t, "text"); got != want {
		t.Errorf("got\n%s\n%s shows\n%s", got, document, want)
	}
}

// block is the one block of a kind in the document.
func block(t *testing.T, kind string) string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, document), "\n```"+kind+"\n")
	body, rest, closed := strings.Cut(rest, "```")
	if !ok || !closed || strings.Contains(rest, "\n```"+kind+"\n") {
		t.Fatalf("%s has not one block of %s", document, kind)
	}
	return body
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
