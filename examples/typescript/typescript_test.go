package typescript

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/internal/servertest"
	"koine/internal/slowtest"
)

func TestMain(m *testing.M) { servertest.Main(m) }

// The sources of the program.
var sources = []string{"package.json", "tsconfig.json", "codegen.ts", "scalars.ts", "operations.graphql", "main.ts"}

// said is what the program prints for the demo.
const said = `Drying the cell changes nothing: NaN
Lot 12 of the manganese salt is impure: NaN
Prussian white: 121
Water in the crystal costs capacity: NaN
Water in the crystal costs capacity: agent://chen, agent://dora, 0.85, true, true
number number string string
finding 2 Drying the cell changes nothing
true 1
`

// The types are generated from the schema that a server serves, the program compiles
// strictly with them, and what it prints shows that the values are of those types.
func TestProgram(t *testing.T) {
	dir := workspace(t)
	s := servertest.Start(t, "--demo")
	run(t, dir, s.URL, "@graphql-codegen/cli/esm/bin.js", "--config", "codegen.ts")
	made, err := os.ReadFile(filepath.Join(dir, "generated/koine.ts"))
	if err != nil || strings.Contains(string(made), "any;") {
		t.Fatalf("%v, or a type that is any:\n%s", err, regexp.MustCompile(`.*any;`).Find(made))
	}
	run(t, dir, s.URL, "typescript/bin/tsc", "--strict")
	if got := execute(t, dir, s.URL, filepath.Join(dir, "build/main.js")); got != said {
		t.Errorf("got\n%s\nwant\n%s", got, said)
	}
}

// What does not fit the schema does not compile: neither a value of another type, nor a
// null that is not expected, nor an operation with an unknown field.
func TestWrongPrograms(t *testing.T) {
	s := servertest.Start(t, "--demo")
	for _, x := range []struct{ name, file, from, to, want string }{
		{"a revision as a text", "main.ts", "const revision: number = s.revision", "const revision: string = s.revision", "TS2322"},
		{"a time as a number", "main.ts", "const recorded: string = s.recordedAt", "const recorded: number = s.recordedAt", "TS2322"},
		{"a value that is not tested", "main.ts", `typeof m.capacity === "number" ? m.capacity : NaN`, "m.capacity", "TS2322"},
		{"an operator that does not exist", "main.ts", `{ eq: "lab:Finding" }`, `{ equals: "lab:Finding" }`, "TS2353"},
		{"a scalar that is not mapped", "scalars.ts", `  Moment: "number | string",`, "", "Moment"},
		{"a field that does not exist", "operations.graphql", "nodes { iri label types", "nodes { iri lable types", "lable"},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := workspace(t)
			file := filepath.Join(dir, x.file)
			text, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(text), x.from) {
				t.Fatalf("%s has no %s: %v", x.file, x.from, err)
			}
			if err := os.WriteFile(file, []byte(strings.Replace(string(text), x.from, x.to, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := command(t, dir, s.URL, "@graphql-codegen/cli/esm/bin.js", "--config", "codegen.ts").CombinedOutput()
			if err == nil {
				out, err = command(t, dir, s.URL, "typescript/bin/tsc").CombinedOutput()
			}
			if err == nil || !strings.Contains(string(out), x.want) {
				t.Errorf("got %v, want %s:\n%s", err, x.want, out)
			}
		})
	}
}

// The map has each scalar of the schema, and nothing else.
func TestScalars(t *testing.T) {
	s := servertest.Start(t)
	resp, err := http.Get(s.URL + "/graphql/schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	schema, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	names := func(text []byte, pattern string) (found []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			found = append(found, string(m[1]))
		}
		slices.Sort(found)
		return found
	}
	text, err := os.ReadFile("scalars.ts")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(text, `(?m)^  (\w+):`), names(schema, `(?m)^scalar (\w+)`); !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("scalars.ts has %v, the schema %v", got, want)
	}
}

// workspace is a directory with the sources and the packages.
func workspace(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a test with node; -short leaves it out")
	}
	packages, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(packages, ".package-lock.json")); err != nil {
		t.Fatalf("NOT RUN: %v: run scripts/install-test-tools.sh", err)
	}
	dir := t.TempDir()
	if err := os.Symlink(packages, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// command is a program of node_modules, or the file of an absolute path.
func command(t *testing.T, dir, url, program string, arguments ...string) *exec.Cmd {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("NOT RUN: %v: run scripts/install-test-tools.sh", err)
	}
	if !filepath.IsAbs(program) {
		program = filepath.Join("node_modules", program)
	}
	ctx, cancel := context.WithTimeout(t.Context(), slowtest.Slack(2*time.Minute))
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, node, append([]string{program}, arguments...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "KOINE_URL="+url, "CI=true")
	return cmd
}

func run(t *testing.T, dir, url, program string, arguments ...string) {
	t.Helper()
	if out, err := command(t, dir, url, program, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

func execute(t *testing.T, dir, url, program string) string {
	t.Helper()
	out, err := command(t, dir, url, program).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	return string(out)
}
