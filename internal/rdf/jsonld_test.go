package rdf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/internal/rdf"
	"koine/internal/slowtest"
	"koine/kg"
)

// manyContexts has a context of n terms around n nodes, each with a small
// context of its own, which are the same or not.
func manyContexts(n int, same bool) []byte {
	var b bytes.Buffer
	b.WriteString(`{"@context":{`)
	for i := range n {
		fmt.Fprintf(&b, `"a%d":"http://x/%d",`, i, i)
	}
	b.WriteString(`"last":"http://x/last"},"@graph":[`)
	for i := range n {
		name := "b"
		if !same {
			name = fmt.Sprint("b", i)
		}
		fmt.Fprintf(&b, `{"@context":{"%s":"http://y/"},"%s":1},`, name, name)
	}
	b.WriteString(`{"last":1}]}`)
	return b.Bytes()
}

// manyNodes is an array of n nodes.
func manyNodes(n int) []byte {
	var b bytes.Buffer
	b.WriteString("[")
	for i := range n {
		fmt.Fprintf(&b, `{"@id":"a:b%d","c:d":"x%d"},`, i, i)
	}
	b.WriteString(`{"@id":"a:b","c:d":1}]`)
	return b.Bytes()
}

// Twice the document takes at most 2.5 times the work. Work is the allocated memory, which
// does not depend on the machine's load.
func TestJSONLDWorkIsLinear(t *testing.T) {
	slowtest.Long(t)
	for name, document := range map[string]func(int) []byte{
		"the same nested context": func(n int) []byte { return manyContexts(n, true) },
		"other nested contexts":   func(n int) []byte { return manyContexts(n, false) },
		"nodes":                   manyNodes,
	} {
		work := func(n int) (bytes, quads uint64) {
			text := document(n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for _, err := range rdf.Read(strings.NewReader(string(text)), rdf.JSONLD, rdf.Options{}) {
				if err != nil {
					t.Fatal(err)
				}
				quads++
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc, quads
		}
		one, quads := work(2000)
		two, _ := work(4000)
		if ratio := float64(two) / float64(one); ratio > 2.5 || quads != 2001 {
			t.Errorf("%s: twice the document allocates %.2f times as much (%d and %d bytes), %d quads", name, ratio, one, two, quads)
		}
	}
}

// The buffer of a document costs at most 12 times its size.
func TestJSONLDHoldsAtMostTwelveTimesTheSize(t *testing.T) {
	for name, text := range map[string][]byte{
		"a context behind the nodes": append(append([]byte(`{"@graph":`), manyNodes(60_000)...), `,"@context":{}}`...),
		"the smallest values":        []byte(`{"urn:p":[` + strings.Repeat("1,", 1<<20) + `1],"@id":"urn:s"}`),
		"empty arrays":               []byte(`{"urn:p":[` + strings.Repeat("[],", 1<<19) + `1],"@id":"urn:s"}`),
	} {
		before := liveHeap()
		held := uint64(0)
		for _, err := range rdf.Read(bytes.NewReader(text), rdf.JSONLD, rdf.Options{}) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			held = liveHeap() - before
			break
		}
		if held < uint64(len(text)) || held > 12*uint64(len(text)) {
			t.Errorf("%s: %d bytes are held of a document of %d", name, held, len(text))
		}
	}
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// repeated is a text between two others, n times.
func repeated(before string, n int, item func(i int) string, after string) io.Reader {
	i := -1
	var rest []byte
	return readerFunc(func(b []byte) (int, error) {
		for len(rest) == 0 {
			switch i++; {
			case i == 0:
				rest = []byte(before)
			case i <= n:
				rest = []byte(item(i))
			case i == n+1:
				rest = []byte(after)
			default:
				return 0, io.EOF
			}
		}
		k := copy(b, rest)
		rest = rest[k:]
		return k, nil
	})
}

// counted counts the bytes read.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += n
	return n, err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A document in streaming order may have any size: little of it is buffered. In any other
// order, the buffer is bounded.
func TestJSONLDInStreamingOrderHasAnySize(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	const n, bound = 100_000, 256 << 10
	node := func(i int) string { return fmt.Sprintf(`,{"@id":"urn:s%d","p":"text %d"}`, i, i) }
	for _, c := range []struct {
		name, before string
		item         func(int) string
		after        string
		quads        int // 0: it is refused
	}{
		{"an array of nodes", `[{"@id":"urn:s","urn:p":1}`, func(i int) string { return strings.ReplaceAll(node(i), `"p"`, `"urn:p"`) }, `]`, n + 1},
		{"context, then graph", `{"@context":{"p":"urn:p"},"@graph":[{"@id":"urn:s","p":1}`, node, `]}`, n + 1},
		{"a named graph", `{"@context":{"p":"urn:p"},"@id":"urn:g","@graph":[{"@id":"urn:s","p":1}`, node, `]}`, n + 1},
		{"a named graph in an array", `[{"@id":"urn:g","@context":{"p":"urn:p"},"@graph":[{"@id":"urn:s","p":1}`, node, `]}]`, 0},
		{"a node of many values", `{"@id":"urn:s","urn:p":[0`, func(i int) string { return fmt.Sprint(",", i) }, `]}`, n + 1},
		{"a node of many properties", `{"@id":"urn:s"`, func(i int) string { return fmt.Sprintf(`,"urn:p%d":%d`, i, i) }, `}`, n},
		{"nodes in a node", `{"@context":{"p":"urn:p"},"@id":"urn:s","p":[{"@id":"urn:o","p":1}`, node, `]}`, 2*n + 2},
		{"a context behind the graph", `{"@graph":[{"@id":"urn:s","urn:p":1}`, node, `],"@context":{"p":"urn:p"}}`, 0},
		{"an @id behind the graph", `{"@context":{"p":"urn:p"},"@graph":[{"@id":"urn:s","p":1}`, node, `],"@id":"urn:g"}`, 0},
		{"an @id behind a property", `{"urn:p":[0`, func(i int) string { return fmt.Sprint(",", i) }, `],"@id":"urn:s"}`, 0},
		{"a property behind the graph", `{"@context":{"p":"urn:p"},"@graph":[{"@id":"urn:s","p":1}`, node, `],"p":1}`, 0},
		{"a scoped type behind a property", `{"@context":{"T":{"@id":"urn:T","@context":{"p":"urn:q"}},"p":"urn:p"},"@id":"urn:s","p":[1`, func(int) string { return ",11111" }, `],"@type":"T"}`, 0},
		{"a list", `{"@id":"urn:s","urn:p":{"@list":[1`, func(i int) string { return fmt.Sprint(",", i) }, `]}}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, limit, quads := liveHeap(), uint64(0), 0
			var failed error
			o := rdf.Options{JSONLD: rdf.JSONLDOptions{MaxBytes: bound}}
			text := &counted{Reader: repeated(c.before, n, c.item, c.after)}
			for _, err := range rdf.Read(text, rdf.JSONLD, o) {
				if failed = err; err != nil {
					break
				}
				if quads++; c.quads > 0 && quads%(n/2) == 0 {
					now := liveHeap()
					limit = max(limit, now-min(before, now))
				}
			}
			if c.quads > 0 && (failed != nil || quads != c.quads) {
				t.Errorf("got %d quads and error %v, want %d", quads, failed, c.quads)
			}
			if c.quads == 0 && (kg.CodeOf(failed) != kg.CodeLimitExceeded || !strings.Contains(failed.Error(), "streaming order") || kg.AsError(failed).Limit != "jsonld-max-bytes") {
				t.Errorf("got %d quads and error %v, want the sentence about streaming order", quads, failed)
			}
			if text.n > 3<<20 && limit > 2<<20 {
				t.Errorf("%d bytes are held of %d", limit, text.n)
			}
		})
	}
}

// An object that becomes certain only behind other entries keeps them.
func TestJSONLDEntriesBeforeTheID(t *testing.T) {
	text := `{"@context":{"i":"@id","g":"@graph"},"@graph":[{"@id":"urn:a","urn:p":1}],"urn:q":2,"@included":{"@id":"urn:b","urn:p":3},"@reverse":{"urn:r":{"@id":"urn:c"}},"@id":"urn:g","urn:last":4%s}`
	g := kg.IRI("urn:g")
	want := []kg.Quad{
		{Subject: kg.IRI("urn:a"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1), Graph: g},
		{Subject: g, Predicate: kg.IRI("urn:q"), Object: kg.Integer(2), Graph: kg.DefaultGraph},
		{Subject: kg.IRI("urn:b"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(3), Graph: kg.DefaultGraph},
		{Subject: kg.IRI("urn:c"), Predicate: kg.IRI("urn:r"), Object: g, Graph: kg.DefaultGraph},
		{Subject: g, Predicate: kg.IRI("urn:last"), Object: kg.Integer(4), Graph: kg.DefaultGraph},
	}
	if got := collect(t, []byte(fmt.Sprintf(text, "")), rdf.JSONLD, rdf.Options{}); !isomorphic(got, want) {
		t.Errorf("got %v", got)
	}
	for _, again := range []string{`,"i":"urn:h"`, `,"g":[]`} {
		if _, err := read([]byte(fmt.Sprintf(text, again)), rdf.JSONLD, rdf.Options{}); err == nil || !strings.Contains(err.Error(), "colliding keywords") {
			t.Errorf("%s behind it: got error %v", again, err)
		}
	}
}

// An object that is not in streaming order may be as long as the bound.
func TestJSONLDAtTheBound(t *testing.T) {
	const text = `{"urn:p":"x","@id":"urn:s"}`
	for _, c := range []struct {
		bound int64
		ok    bool
	}{{int64(len(text)), true}, {int64(len(text)) - 1, false}} {
		quads, err := read([]byte(text), rdf.JSONLD, rdf.Options{JSONLD: rdf.JSONLDOptions{MaxBytes: c.bound}})
		if c.ok != (err == nil && len(quads) == 1) || !c.ok && kg.CodeOf(err) != kg.CodeLimitExceeded {
			t.Errorf("%d bytes with a bound of %d: got %d quads, error %v", len(text), c.bound, len(quads), err)
		}
	}
}

// With any bound, a document gives the same statements or is refused.
func TestJSONLDMeansTheSameHeldOrNot(t *testing.T) {
	streamed := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 7))
		text := []byte(randomDocument(r))
		want, wantErr := read(text, rdf.JSONLD, rdf.Options{Base: "http://base.example/"})
		got, err := read(text, rdf.JSONLD, rdf.Options{Base: "http://base.example/", JSONLD: rdf.JSONLDOptions{MaxBytes: 24}})
		switch {
		case kg.CodeOf(err) == kg.CodeLimitExceeded:
		case (err == nil) != (wantErr == nil):
			t.Errorf("seed %d: held %v, not held %v\n%s", seed, wantErr, err, text)
		case err == nil && !isomorphic(unique(got), unique(want)):
			t.Errorf("seed %d: held %v, not held %v\n%s", seed, want, got, text)
		case err == nil && len(got) > 1:
			streamed++
		}
	}
	if streamed < 40 {
		t.Errorf("only %d documents are read without being held", streamed)
	}
}

// randomDocument is JSON-LD with an entry of each kind here and there.
func randomDocument(r *rand.Rand) string {
	var object func(depth int) string
	value := func(depth int) string {
		switch n := r.IntN(8); {
		case n < 2 && depth > 0:
			return object(depth - 1)
		case n == 2:
			return fmt.Sprint(r.IntN(9))
		case n == 3:
			return `["a",2]`
		case n == 4:
			return `{"@value":"v"}`
		case n == 5:
			return `{"@list":[1,"b"]}`
		}
		return `"t"`
	}
	object = func(depth int) string {
		var entries []string
		add := func(chance int, entry string) {
			if r.IntN(chance) == 0 {
				entries = append(entries, entry)
			}
		}
		add(3, `"@context":{"p":"urn:p","n":{"@id":"urn:n","@type":"@id"}}`)
		add(12, `"@context":{"T":{"@id":"urn:T","@context":{"p":"urn:scoped"}}}`)
		add(3, `"@type":"urn:T"`)
		add(2, fmt.Sprintf(`"@id":"urn:s%d"`, r.IntN(4)))
		add(2, `"p":`+value(depth))
		add(2, `"urn:q":`+value(depth))
		add(3, `"n":"urn:o"`)
		if depth > 0 {
			add(4, `"@graph":[`+object(depth-1)+`]`)
			add(6, `"@included":[`+object(depth-1)+`]`)
			add(6, `"@reverse":{"urn:r":`+object(depth-1)+`}`)
		}
		if r.IntN(3) == 0 {
			r.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		}
		seen := map[string]bool{}
		entries = slices.DeleteFunc(entries, func(e string) bool {
			key, _, _ := strings.Cut(e, ":")
			again := seen[key]
			seen[key] = true
			return again
		})
		return "{" + strings.Join(entries, ",") + "}"
	}
	if r.IntN(2) == 0 {
		return "[" + object(3) + "," + object(3) + "]"
	}
	return object(3)
}

// countedContext ends after so many times that it was asked whether it has.
type countedContext struct {
	context.Context
	left, after int
}

func (c *countedContext) Err() error {
	if c.left--; c.left >= 0 {
		return nil
	}
	c.after++
	return context.Canceled
}

// The end of a context ends the reading, in contexts and in nodes, held or not.
func TestJSONLDEndsWithItsContext(t *testing.T) {
	slowtest.Long(t)
	for name, text := range map[string][]byte{
		"nested contexts": manyContexts(5000, false),
		"one context":     []byte(strings.Split(string(manyContexts(20_000, true)), `,"@graph"`)[0] + `,"@id":"urn:s","last":1}`),
		"nodes":           manyNodes(50_000),
		"values":          []byte(`{"urn:p":[` + strings.Repeat("1,", 100_000) + `1],"@id":"urn:s"}`),
	} {
		whole := &countedContext{Context: context.Background(), left: 1 << 30}
		quads := 0
		for _, err := range rdf.ReadContext(whole, bytes.NewReader(text), rdf.JSONLD, rdf.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			quads++
		}
		checks := 1<<30 - whole.left
		if checks < 20 {
			t.Errorf("%s: the context is asked only %d times", name, checks)
		}
		for _, at := range []int{0, 1, checks / 2, checks - 1} {
			ctx := &countedContext{Context: context.Background(), left: at}
			var failed error
			n := 0
			for _, err := range rdf.ReadContext(ctx, bytes.NewReader(text), rdf.JSONLD, rdf.Options{}) {
				if failed = err; err == nil {
					n++
				}
			}
			if !errors.Is(failed, context.Canceled) || ctx.after > 3 {
				t.Errorf("%s, ended at %d of %d: got %d of %d quads and error %v; asked %d times afterwards", name, at, checks, n, quads, failed, ctx.after)
			}
		}
	}
}

// A statement that cannot be kept is an error with its place, or is counted.
func TestJSONLDStatementsThatCannotBeKept(t *testing.T) {
	const before = "{\"@id\":\"http://x/a\",\n\"http://x/q\":\"kept\",\n"
	for _, c := range []struct{ name, entry, says string }{
		{"a relative IRI", `"http://x/p":{"@id":"rel/b"}`, `at /http:~1~1x~1p: the IRI "rel/b" is relative`},
		{"an item of many", `"http://x/p":[1,{"@id":"rel"}]`, `at /http:~1~1x~1p/1: the IRI "rel"`},
		{"an IRI with a space", `"http://x/p":{"@id":"http://x/ y"}`, `at /http:~1~1x~1p: `},
		{"a blank predicate", `"_:p":1`, `at /_:p: the predicate "_:p" is a blank node`},
		{"a language", `"http://x/p":{"@value":"x","@language":"a b"}`, `"a b" is not a language tag`},
		{"a number", `"http://x/p":9007199254740993`, `at /http:~1~1x~1p: JSON-LD rounds the integer 9007199254740993`},
		{"a number in JSON", `"http://x/p":{"@type":"@json","@value":[9007199254740993]}`, `JSON-LD rounds the integer`},
		{"a type", `"@type":"rel"`, `at /@type: the IRI "rel" is relative`},
	} {
		text := []byte(before + c.entry + "}")
		_, err := read(text, rdf.JSONLD, rdf.Options{Name: "doc"})
		var syntax *rdf.SyntaxError
		if !errors.As(err, &syntax) || syntax.Line != 3 || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want line 3 and %q", c.name, err, c.says)
		}
		var rejected []string
		quads, err := read(text, rdf.JSONLD, rdf.Options{ContinueOnError: true, Rejected: func(e *rdf.SyntaxError) { rejected = append(rejected, e.Error()) }})
		if err != nil || len(rejected) != 1 || !strings.Contains(rejected[0], c.says) || !slices.ContainsFunc(quads, func(q kg.Quad) bool { return q.Object == kg.String("kept") }) {
			t.Errorf("%s, with ContinueOnError: got %d quads, rejected %q, error %v", c.name, len(quads), rejected, err)
		}
	}
}

// Content without a meaning is skipped and reported; a document of which nothing is left is
// refused.
func TestJSONLDTellsWhatItLeavesOut(t *testing.T) {
	var dropped []string
	o := rdf.Options{JSONLD: rdf.JSONLDOptions{Dropped: func(e *rdf.SyntaxError) { dropped = append(dropped, e.Error()) }}}
	quads, err := read([]byte("{\"@id\":\"urn:s\",\"urn:p\":1,\n\"name\":\"x\"}"), rdf.JSONLD, o)
	if err != nil || len(quads) != 1 || len(dropped) != 1 || !strings.HasPrefix(dropped[0], `line 2: at /name: the key "name" means no IRI`) {
		t.Errorf("got %d quads, left out %q, error %v", len(quads), dropped, err)
	}
	dropped = nil
	if _, err := read([]byte(`{"@context":{"name":null},"@id":"urn:s","urn:p":1,"name":"x"}`), rdf.JSONLD, o); err != nil || dropped != nil {
		t.Errorf("a term that is to mean nothing: left out %q, error %v", dropped, err)
	}
	if _, err := read([]byte(`{"@id":"urn:s","name":"x"}`), rdf.JSONLD, o); kg.CodeOf(err) != kg.CodeInvalid || !strings.Contains(err.Error(), "a context may be missing") {
		t.Errorf("nothing is left: got error %v", err)
	}
}

// Contexts come from the document and from the operator, and from nowhere else.
func TestJSONLDContexts(t *testing.T) {
	contexts := &rdf.JSONLDContexts{}
	for iri, text := range map[string]string{
		"https://c.example/a": `{"@context":{"p":"urn:p"}}`,
		"https://c.example/b": `{"@context":["a",{"q":{"@id":"urn:q","@type":"@id"}}]}`,
		"https://c.example/c": `{"@context":"c"}`,
	} {
		if err := contexts.Add(iri, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, text, link string
		quads            int
		says             string
	}{
		{"by its IRI", `{"@context":"https://c.example/a","@id":"urn:s","p":1}`, "", 1, ""},
		{"by way of another", `{"@context":"https://c.example/b","@id":"urn:s","p":1,"q":"urn:o"}`, "", 2, ""},
		{"imported", `{"@context":{"@import":"https://c.example/a","q":"urn:q"},"@id":"urn:s","p":1,"q":2}`, "", 2, ""},
		{"by a Link header", `{"@id":"urn:s","p":1}`, "https://c.example/a", 1, ""},
		{"a Link header, and its own", `{"@context":{"p":"urn:x"},"@id":"urn:s","p":1}`, "https://c.example/a", 1, ""},
		{"itself", `{"@context":"https://c.example/c","@id":"urn:s"}`, "", 0, "includes itself"},
		{"unknown", `{"@context":"https://c.example/none","@id":"urn:s"}`, "", 0, "the context https://c.example/none is unknown, and contexts are never fetched"},
		{"unknown by a Link header", `{"@id":"urn:s"}`, "https://c.example/none", 0, "the context https://c.example/none is unknown"},
	} {
		quads, err := read([]byte(c.text), rdf.JSONLD, rdf.Options{JSONLD: rdf.JSONLDOptions{Contexts: contexts, Context: c.link}})
		if c.says == "" && (err != nil || len(quads) != c.quads) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: got %d quads, error %v", c.name, len(quads), err)
		}
		if strings.HasPrefix(c.name, "unknown") && !strings.Contains(kg.AsError(err).Hint, "--jsonld-context https://c.example/none=FILE") {
			t.Errorf("%s: got hint %q", c.name, kg.AsError(err).Hint)
		}
	}
	for iri, text := range map[string]string{"relative": `{"@context":{}}`, "urn:x": `{}`, "urn:y": `[`, "urn:z": `{"@context":{}} x`} {
		if err := contexts.Add(iri, []byte(text)); err == nil || contexts.Has(iri) {
			t.Errorf("%s %s: is taken", iri, text)
		}
	}
}

// Input that JSON leaves open or that would lose content is refused.
func TestJSONLDRefuses(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"@id":"urn:s","urn:p":`, n) + "1" + strings.Repeat("}", n) }
	chain := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"t%d":"t%d:x",`, i, i+1)
		}
		return fmt.Sprintf(`{"@context":{%s"t%d":"urn:x:"},"@id":"urn:s","urn:p":1}`, b.String(), n)
	}
	keys := func(n int) (s string) {
		for i := range n {
			s += fmt.Sprintf(`,"urn:p%d":1`, i)
		}
		return s
	}
	for _, c := range []struct{ name, text, says string }{
		{"a key twice", `{"@id":"urn:s","urn:p":1,"urn:\u0070":2}`, `the key "urn:p" twice`},
		{"a key of many twice", `{"@id":"urn:s"` + keys(100) + `,"urn:p7":1}`, `the key "urn:p7" twice`},
		{"half a surrogate pair", `{"@id":"urn:s","urn:p":"\ud800x"}`, "surrogate"},
		{"a control character", "{\"@id\":\"urn:s\",\"urn:p\":\"a\x01\"}", "control character"},
		{"a number with a leading zero", `{"@id":"urn:s","urn:p":01}`, "not JSON"},
		{"a comma too many", `{"@id":"urn:s",}`, "not JSON"},
		{"an end too early", `{"@id":"urn:s","urn:p":[1`, "not JSON: unexpected end of the document"},
		{"an order of terms too long", chain(300), "are defined by each other"},
		{"depth", deep(rdf.MaxDepth + 1), "nested more than"},
		{"an array as a value", `{"@id":"urn:s","urn:p":{"@value":[1]}}`, "invalid value object value"},
	} {
		if _, err := read([]byte(c.text), rdf.JSONLD, rdf.Options{}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.says)
		}
	}
	for name, text := range map[string]string{"depth": deep(rdf.MaxDepth - 1), "an order of terms": chain(200), "many keys": `{"@id":"urn:s"` + keys(100) + `}`} {
		if _, err := read([]byte(text), rdf.JSONLD, rdf.Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Numbers keep the value of their text.
func TestJSONLDNumbers(t *testing.T) {
	for text, want := range map[string]kg.Term{
		"1": kg.Integer(1), "-0": kg.Integer(0), "1.0": kg.Integer(1), "1e3": kg.Integer(1000), "9007199254740992": kg.Integer(9007199254740992),
		"0.1": kg.Typed("1.0E-1", kg.XSDDouble), "1e21": kg.Typed("1.0E21", kg.XSDDouble), "0.30000000000000004": kg.Typed("3.0000000000000004E-1", kg.XSDDouble),
		`{"@value":5,"@type":"` + kg.XSDDouble + `"}`: kg.Typed("5.0E0", kg.XSDDouble), `{"@value":[1e-7,1E30,0.5,"\u00e9\u0001"],"@type":"@json"}`: kg.Typed(`[1e-7,1e+30,0.5,"é\u0001"]`, kg.RDF+"JSON"),
	} {
		quads, err := read([]byte(`{"@id":"urn:s","urn:p":`+text+`}`), rdf.JSONLD, rdf.Options{})
		if err != nil || len(quads) != 1 || quads[0].Object != want {
			t.Errorf("%s: got %v, error %v; want %v", text, quads, err, want)
		}
	}
}

// waitingContext ends when its end is awaited.
type waitingContext struct {
	context.Context
	waited bool
}

func (c *waitingContext) Done() <-chan struct{} {
	c.waited = true
	done := make(chan struct{})
	close(done)
	return done
}

func (c *waitingContext) Err() error {
	if c.waited {
		return context.Canceled
	}
	return nil
}

// Documents that hold much take turns, and waiting ends with the context.
func TestJSONLDHoldersTakeTurns(t *testing.T) {
	text := append(append([]byte(`{"@graph":`), manyNodes(60_000)...), `,"@context":{}}`...)
	o := rdf.Options{JSONLD: rdf.JSONLDOptions{Holders: rdf.NewJSONLDHolders(1)}}
	for _, err := range rdf.Read(bytes.NewReader(text), rdf.JSONLD, o) {
		if err != nil {
			t.Fatal(err)
		}
		ctx := &waitingContext{Context: context.Background()}
		var failed error
		for _, err := range rdf.ReadContext(ctx, bytes.NewReader(text), rdf.JSONLD, o) {
			failed = err
		}
		if !errors.Is(failed, context.Canceled) || !ctx.waited {
			t.Errorf("a second document beside the first: got error %v, waited %v", failed, ctx.waited)
		}
		small := rdf.Read(strings.NewReader(`{"urn:p":1,"@id":"urn:s"}`), rdf.JSONLD, o)
		for _, err := range small {
			if err != nil {
				t.Errorf("a small document beside the first: %v", err)
			}
		}
		break
	}
	if got := collect(t, text, rdf.JSONLD, o); len(got) != 60_001 {
		t.Errorf("behind the first: got %d quads", len(got))
	}
}

// An export of any size is read with a small buffer, whatever a node or a graph contains.
func TestJSONLDExportIsReadBack(t *testing.T) {
	var quads []kg.Quad
	for _, g := range []kg.Term{kg.DefaultGraph, kg.IRI("urn:g1"), kg.IRI("urn:g2")} {
		for i := range 4000 {
			quads = append(quads, kg.Quad{Graph: g, Subject: kg.IRI("urn:hub"), Predicate: kg.IRI("urn:p"), Object: kg.String(fmt.Sprint("value ", i))})
		}
		for i := range 4000 {
			quads = append(quads, kg.Quad{Graph: g, Subject: kg.IRI(fmt.Sprint("urn:s", i)), Predicate: kg.IRI("urn:p"), Object: kg.IRI("urn:hub")})
		}
	}
	text := write(t, quads, rdf.JSONLD, rdf.WriteOptions{})
	o := rdf.Options{JSONLD: rdf.JSONLDOptions{MaxBytes: 80 << 10}}
	if got := collect(t, text, rdf.JSONLD, o); !slices.Equal(got, quads) {
		t.Errorf("%d quads became %d", len(quads), len(got))
	}
}

// A few bytes of a document that each make a long IRI do not add up in memory.
func TestJSONLDLongIRIsAreNotKept(t *testing.T) {
	slowtest.Long(t)
	long := "http://x/" + strings.Repeat("v", 400<<10) + "#"
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"keys of a vocabulary": `{"@context":{"@vocab":"` + long + `"},"first":1` + many(120, `,"k%d":1`) + `}`,
		"keys with a prefix":   `{"@context":{"p":"` + long + `"},"p:first":1` + many(120, `,"p:k%d":1`) + `}`,
		"vocabularies":         `{"@context":{"@vocab":"` + long + `"},"@graph":[{"first":null}` + many(120, `,{"@context":{"@vocab":"v%d"},"a":null}`) + `,{"last":1}]}`,
		"bases":                `{"@context":{"@base":"` + long + `"},"@graph":[{"urn:first":null}` + many(120, `,{"@context":{"@base":"b%d"},"urn:a":null}`) + `,{"urn:last":1}]}`,
	} {
		before := int64(liveHeap())
		held, quads := int64(0), 0
		for _, err := range rdf.Read(strings.NewReader(text), rdf.JSONLD, rdf.Options{}) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if quads++; quads == 1 {
				held = int64(liveHeap()) - before
			}
		}
		if quads == 0 || held > 24<<20 {
			t.Errorf("%s: %d bytes are held of a document of %d, with %d quads", name, held, len(text), quads)
		}
	}
	terms := `{"@context":{"p":"` + long + `"` + many(120, `,"t%d":"p:x"`) + `},"t1":1}`
	for _, err := range rdf.Read(strings.NewReader(terms), rdf.JSONLD, rdf.Options{}) {
		if kg.CodeOf(err) != kg.CodeLimitExceeded || !strings.Contains(err.Error(), "the IRIs that a context builds") {
			t.Errorf("a context of long terms: %v", err)
		}
	}
}

// The sum of the IRIs that a document composes of a long vocabulary, prefix or base is
// bounded by the bytes read of the document: otherwise a document of a few mebibytes takes
// hours.
func TestJSONLDJoinedIRIsAreBounded(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	const allowed, allowedPerByte = 256 << 20, 32
	long := "http://x/" + strings.Repeat("v", 500<<10) + "/"
	for name, shape := range map[string]struct{ begin, each, end string }{
		"keys of a vocabulary": {`{"@context":{"@vocab":"` + long + `"},"@id":"urn:s"`, `,"k%06d":null`, `,"urn:p":1}`},
		"keys with a prefix":   {`{"@context":{"p":"` + long + `"},"@id":"urn:s"`, `,"p:k%06d":null`, `,"urn:p":1}`},
		"types":                {`{"@context":{"@vocab":"` + long + `"},"@type":["urn:t"`, `,"k%06d"`, `],"urn:p":1}`},
		"nodes":                {`{"@context":{"@base":"` + long + `"},"urn:p":["1"`, `,{"@id":"k%06d"}`, `]}`},
	} {
		t.Run(name, func(t *testing.T) {
			document := func(n int) string {
				var b strings.Builder
				b.WriteString(shape.begin)
				for i := range n {
					fmt.Fprintf(&b, shape.each, i)
				}
				return b.String() + shape.end
			}
			read := func(n int) (err error) {
				for _, err = range rdf.Read(strings.NewReader(document(n)), rdf.JSONLD, rdf.Options{}) {
				}
				return err
			}
			one := len(long) + len("k000000")
			within := (allowed+allowedPerByte*len(shape.begin))/one - 4 // the first ones are put together twice
			if err := read(within); err != nil {
				t.Errorf("%d IRIs of %d bytes: %v", within, one, err)
			}
			beyond := within + 5 + allowedPerByte*(len(document(within))-len(shape.begin)+1<<16)/one
			err := read(beyond)
			if kg.CodeOf(err) != kg.CodeLimitExceeded || !strings.Contains(err.Error(), "the IRIs that the document builds") {
				t.Errorf("%d IRIs of %d bytes: got %v, want that they are too many", beyond, one, err)
			}
		})
	}
	// Each byte of a long document allows some: an IRI for every few bytes is no fault.
	many := `{"@context":{"@vocab":"http://x/` + strings.Repeat("v", 300) + `#"},"@type":["T"` + strings.Repeat(`,"T"`, 1<<20) + `]}`
	read := 0
	for _, err := range rdf.Read(strings.NewReader(many), rdf.JSONLD, rdf.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		read++
	}
	if read == 0 {
		t.Error("a document of many types has no statement")
	}
}

// A ring of 200,000 blank nodes and a clique of 500 are read in a time that follows their
// statements: their labels are those of the document, and nothing compares them.
func TestJSONLDRingAndClique(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	for _, shape := range []struct{ nodes, links int }{{200_000, 1}, {500, 499}} {
		began, read := time.Now(), 0
		doc := repeated("[", shape.nodes, func(i int) string {
			var b strings.Builder
			for k := range shape.links {
				fmt.Fprintf(&b, `,{"@id":"_:b%d"}`, (i+k+1)%shape.nodes)
			}
			return fmt.Sprintf(`%s{"@id":"_:b%d","urn:p":[%s]}`, strings.Repeat(",", min(i-1, 1)), i%shape.nodes, b.String()[1:])
		}, "]")
		for _, err := range rdf.Read(doc, rdf.JSONLD, rdf.Options{Tag: "x"}) {
			if err != nil {
				t.Fatal(err)
			}
			read++
		}
		if want := shape.nodes * shape.links; read != want {
			t.Errorf("%d nodes with %d links are %d statements, want %d", shape.nodes, shape.links, read, want)
		}
		if took, limit := time.Since(began), slowtest.Slack(2*time.Minute); took > limit {
			t.Errorf("%d nodes with %d links took %s, want at most %s", shape.nodes, shape.links, took, limit)
		}
	}
}

// A document waits for a place to hold much only so long, and is then refused as one that
// may be sent again, not as one with a fault.
func TestJSONLDWaitForAHolderIsBounded(t *testing.T) {
	slowtest.Long(t)
	holders := rdf.NewJSONLDHolders(1)
	holders.Wait = 20 * time.Millisecond
	text := `{"urn:p":[` + strings.Repeat("1,", 1<<20) + `1],"@id":"urn:s"}`
	read := func() (quads int, err error) {
		for _, err := range rdf.Read(strings.NewReader(text), rdf.JSONLD, rdf.Options{JSONLD: rdf.JSONLDOptions{Holders: holders}}) {
			if err != nil {
				return quads, err
			}
			quads++
		}
		return quads, nil
	}
	for _, err := range rdf.Read(strings.NewReader(text), rdf.JSONLD, rdf.Options{JSONLD: rdf.JSONLDOptions{Holders: holders}}) {
		if err != nil {
			t.Fatal(err)
		}
		var syntax *rdf.SyntaxError
		if _, err := read(); kg.CodeOf(err) != kg.CodeOverloaded || errors.As(err, &syntax) || kg.AsError(err).RetryAfter == 0 {
			t.Errorf("while another is held: %v", err)
		}
		break
	}
	if quads, err := read(); err != nil || quads == 0 {
		t.Errorf("behind it: %d quads, %v", quads, err)
	}
}
