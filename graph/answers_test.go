package graph_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"
	"golang.org/x/tools/txtar"

	"koine/graph"
	"koine/internal/operation"
)

var updateGolden = flag.Bool("update", false, "write what the engine answers into testdata")

// TestAnswers runs the operations of testdata/answers on the team's graph and compares
// their answers to the byte. Each file is one topic: cases of NAME.graphql, maybe
// NAME.variables.json, and NAME.json, the answer.
func TestAnswers(t *testing.T) {
	files, err := filepath.Glob("testdata/answers/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	b := newBench(t, graph.Options{})
	b.team()
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runArchive(t, b, archive)
			if *updateGolden {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func runArchive(t *testing.T, b *bench, archive *txtar.Archive) {
	find := func(name string) *txtar.File {
		for i := range archive.Files {
			if archive.Files[i].Name == name {
				return &archive.Files[i]
			}
		}
		return nil
	}
	for _, f := range archive.Files {
		name, ok := strings.CutSuffix(f.Name, ".graphql")
		if !ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			variables := ""
			if v := find(name + ".variables.json"); v != nil {
				variables = string(v.Data)
			}
			got := answer(t, b.execute(string(f.Data), variables))
			if b.engine.Kind(&operation.Request{Query: string(f.Data)}) == ast.Query { // with plans that were kept
				if diff := cmp.Diff(string(got), string(answer(t, b.execute(string(f.Data), variables)))); diff != "" {
					t.Errorf("asked again, the answer differs (-first +second):\n%s", diff)
				}
			}
			want := find(name + ".json")
			if *updateGolden {
				if want == nil {
					archive.Files = append(archive.Files, txtar.File{Name: name + ".json"})
					want = &archive.Files[len(archive.Files)-1]
				}
				want.Data = got
				return
			}
			if want == nil {
				t.Fatalf("no answer for %s: run with -update and look at what it writes", name)
			}
			if diff := cmp.Diff(string(want.Data), string(got)); diff != "" {
				t.Errorf("the answer differs (-want +got):\n%s", diff)
			}
		})
	}
}

// answer is a result as people read it.
func answer(t *testing.T, r operation.Result) []byte {
	t.Helper()
	var out struct {
		Errors any             `json:"errors,omitempty"`
		Data   json.RawMessage `json:"data,omitempty"`
	}
	if len(r.Errors) > 0 {
		out.Errors = r.Errors
	}
	out.Data = r.Data
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(out); err != nil {
		t.Fatalf("%v in %s", err, r.Data)
	}
	return b.Bytes()
}
