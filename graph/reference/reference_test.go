package reference

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/slowtest"
)

var onlySeed = flag.Uint64("reference.seed", 0, "the seed of the only document that is compared with graphql-js")

// documents is the number of documents that a test compares.
func documents(t *testing.T, ordinary int) (n int, first uint64) {
	t.Helper()
	slowtest.Long(t)
	if *onlySeed != 0 {
		return 1, *onlySeed
	}
	text := os.Getenv("KOINE_GRAPHQL_DOCUMENTS")
	if text == "" {
		return ordinary, 1 // the same in every run
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n, rand.Uint64()
}

func schemaOf(t testing.TB, w *world) *ast.Schema {
	t.Helper()
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphqls", Input: w.engine.SDL()})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func decodeVariables(t testing.TB, text string) (v map[string]any) {
	t.Helper()
	if text == "" {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestAgainstGraphQLJS compares the answers to random documents.
func TestAgainstGraphQLJS(t *testing.T) {
	slowtest.WithoutRace(t)
	n, first := documents(t, 4000)
	w := newWorld(t)
	schema := schemaOf(t, w)
	js := startNode(t, w.engine.SDL())
	counts := map[string]int{}
	for i := range n {
		compareAnswers(t, w, js, newDocument(schema, first+uint64(i), false), first+uint64(i), counts)
	}
	t.Logf("%v", counts)
	js.logCoverage(t, "")
}

// logCoverage logs the fields whose names begin so that no document asked for, and those that
// had no value.
func (n *node) logCoverage(t *testing.T, prefix string) {
	t.Helper()
	var c struct{ Unasked, Empty []string }
	n.call(map[string]any{"coverage": true}, &c)
	others := func(name string) bool { return !strings.HasPrefix(name, prefix) }
	c.Unasked, c.Empty = slices.DeleteFunc(c.Unasked, others), slices.DeleteFunc(c.Empty, others)
	t.Logf("no document asked for %d fields: %v", len(c.Unasked), c.Unasked)
	t.Logf("%d fields were null always: %v", len(c.Empty), c.Empty)
}

func compareAnswers(t *testing.T, w *world, js *node, doc document, seed uint64, counts map[string]int) {
	t.Helper()
	text, variables := w.named(doc.text), w.named(string(doc.variables))
	a := w.request(w.engine, doc.by, text, decodeVariables(t, variables))
	a.name = doc.operation
	got := w.ask(a)
	e := js.examine(text, doc.operation, json.RawMessage(variables))
	report := func(format string, args ...any) {
		t.Helper()
		t.Errorf("-reference.seed=%d, as %s\n%s\n%s\n"+format, append([]any{seed, doc.by.ID, text, variables}, args...)...)
	}
	plain := func() answer { return w.ask(w.request(w.wide, doc.by, e.Plain, nil)) }
	judge(js, text, got, e, plain, unsealed, counts, report)
}

// judge compares koine's answer to the document examined last with that of graphql-js over the
// answer to its plain form. Both are compared as same has them. It reports whether they agree.
func judge(js *node, text string, got answer, e examined, plainAnswer func() answer, same func(string) string, counts map[string]int, report func(string, ...any)) bool {
	js.t.Helper()
	counts[e.Verdict]++
	if slices.Contains(got.codes, "INTERNAL") {
		if name := knownDifference(text, got, e, executed{}); name != "" {
			counts[name]++
		} else {
			report("an internal error: %s %v", got.data, got.errors)
		}
		return false
	}
	if e.Verdict == "invalid" {
		if e.Messages[0] == "Maximum introspection depth exceeded" && got.kind != "valid" {
			counts["limit"]++
			return true
		}
		report("made an invalid document: %q", e.Messages)
		return false
	}
	if e.Verdict == "refused" {
		if name := knownDifference(text, got, e, executed{}); name != "" {
			counts[name]++
		} else if got.kind == "valid" || got.data != "" {
			report("koine executes it: %s %v\ngraphql-js refuses it: %q", got.data, got.errors, e.Messages)
		} else {
			return true
		}
		return false
	}
	if slices.Contains(got.codes, "LIMIT_EXCEEDED") && got.kind != "valid" {
		counts["limit"]++
		return true
	}
	plain := plainAnswer()
	if plain.kind != "valid" || plain.data == "" {
		if name := cmp.Or(knownDifference(text, plain, e, executed{}), knownDifference(text, got, e, executed{})); name != "" {
			counts[name]++
		} else if plain.kind != got.kind || got.data != "" {
			report("koine answers %s %s %v\n, the plain form is refused: %v\n%s", got.kind, got.data, got.errors, plain.errors, e.Plain)
		}
		counts["refused before execution"]++
		return false
	}
	if got.kind != "valid" {
		if name := knownDifference(text, got, e, executed{}); name != "" {
			counts[name]++
			return false
		}
		report("koine refuses it: %v %v\n%s", got.kind, got.errors, e.Plain)
		return false
	}
	want := js.execute(plain)
	if len(want.Missing) > 0 {
		js.t.Fatalf("%s: the plain form lacks %v\n%s", text, want.Missing, e.Plain)
	}
	counts["bytes"] += len(want.Data)
	if len(want.Errors) > 0 {
		counts["with errors"]++
	}
	if name := knownDifference(text, got, e, want); name != "" {
		counts[name]++
		return false
	}
	if same(got.data) != same(want.Data) {
		report("koine:      %s\n%v\ngraphql-js: %s\n%v\nplain: %s\n%s %v", got.data, got.errors, want.Data, want.Errors, e.Plain, plain.data, plain.errors)
		return false
	}
	if text := differentErrors(got, want); text != "" {
		report("%s: %s\nkoine's errors: %v\ngraphql-js:     %v\n%s\n%v", text, got.data, got.errors, want.Errors, e.Plain, plain.errors)
		return false
	}
	return true
}

// differentErrors says which errors differ. Where an error has made a value null, graphql-js
// leaves the rest of that value out, while koine may report further errors of it.
func differentErrors(got answer, want executed) string {
	wanted := map[string]bool{}
	for _, path := range paths(want.Errors) {
		wanted[path] = true
	}
	rest := map[string]bool{}
	for _, f := range got.errors {
		rest[pathOf(f)] = true
	}
	for path := range wanted {
		if !rest[path] {
			return "no error at " + path
		}
		delete(rest, path)
	}
	var data any
	if err := json.Unmarshal([]byte(cmp.Or(got.data, "null")), &data); err != nil {
		return err.Error()
	}
	for _, f := range got.errors {
		at := nullAbove(data, f.Path)
		within := func(path string) bool { return strings.HasPrefix(path+"/", at+"/") }
		if rest[pathOf(f)] && (at == pathOf(f) || !slices.ContainsFunc(slices.Collect(maps.Keys(wanted)), within)) {
			return "an error more at " + pathOf(f)
		}
	}
	return ""
}

// nullAbove is the first place on a path that is null.
func nullAbove(data any, path []any) string {
	at := ""
	for _, step := range path {
		switch v := data.(type) {
		case nil:
			return at
		case map[string]any:
			data = v[fmt.Sprint(step)]
		case []any:
			i, ok := step.(float64)
			if !ok || int(i) >= len(v) {
				return "?"
			}
			data = v[int(i)]
		}
		at += fmt.Sprint("/", step)
	}
	return at
}

// TestVerdictsAgainstGraphQLJS compares whether documents with a few changed tokens are valid.
func TestVerdictsAgainstGraphQLJS(t *testing.T) {
	slowtest.WithoutRace(t)
	n, first := documents(t, 7000)
	w := newWorld(t)
	schema := schemaOf(t, w)
	js := startNode(t, w.engine.SDL())
	counts := map[string]int{}
	for i := range n {
		seed := first + uint64(i)
		doc := newOperation(schema, []ast.Operation{ast.Query, ast.Mutation, ast.Query, ast.Subscription}[i%4], seed, false)
		doc.text = mutate(rand.New(rand.NewPCG(seed, 20)), w.named(doc.text))
		compareVerdicts(t, w, js, doc, seed, counts)
	}
	t.Logf("%v", counts)
}

// compareVerdicts executes a document without variables, as one who may read nothing: what is
// valid is refused later, if at all.
func compareVerdicts(t *testing.T, w *world, js *node, doc document, seed uint64, counts map[string]int) {
	t.Helper()
	a := w.request(w.engine, eve, doc.text, nil)
	a.name = doc.operation
	got := w.ask(a)
	e := js.examine(doc.text, doc.operation, nil)
	valid := !slices.Contains(invalidCodes, got.kind) || refusedVariables(got)
	counts["valid: "+strconv.FormatBool(valid)]++
	if e.Verdict == "unknown" || valid == (e.Verdict != "invalid") || slices.Contains(got.codes, "LIMIT_EXCEEDED") {
		return
	}
	if name := knownVerdict(valid, got, e); name != "" {
		counts[name]++
		return
	}
	t.Errorf("-reference.seed=%d: koine says %v %v, graphql-js %s %q\n%s", seed, valid, got.errors, e.Verdict, e.Messages, doc.text)
}

// TestKnownDifferences checks that each of the known differences is still there.
func TestKnownDifferences(t *testing.T) {
	slowtest.Long(t)
	w := newWorld(t)
	js := startNode(t, w.engine.SDL())
	counts := map[string]int{}
	for _, d := range differences {
		compareAnswers(t, w, js, document{text: d.example, variables: json.RawMessage(d.variables), by: root}, 0, counts)
		if counts[d.name] != 1 {
			t.Errorf("%s: its example is not different; take it out of the known differences", d.name)
		}
	}
	clear(counts)
	for _, d := range verdicts {
		compareVerdicts(t, w, js, document{text: d.example}, 0, counts)
		if counts[d.name] != 1 {
			t.Errorf("%s: its example is not different; take it out of the known verdicts", d.name)
		}
	}
}

// invalidCodes are the codes of documents that are not executed because of what they say.
var invalidCodes = []string{"GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED"}

// refusedVariables reports whether a document was valid and its variables were not.
func refusedVariables(a answer) bool {
	return slices.ContainsFunc(a.errors, func(f failure) bool { return strings.HasPrefix(f.Message, "variable $") })
}

// unsealed is data without the cursors, which are sealed anew each time.
func unsealed(data string) string { return sealed.ReplaceAllString(data, "CURSOR") }
