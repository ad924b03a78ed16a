package rdf_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"koine/internal/rdf"
	"koine/internal/slowtest"
	"koine/kg"
)

var jsonldSeed = flag.Uint64("jsonld.seed", 0, "seed of the comparison with jsonld.js; 0 takes a new one")

// Random documents mean the same to koine as to jsonld.js. KOINE_JSONLD_JS is
// the directory where it is installed (npm install jsonld), KOINE_JSONLD_DOCUMENTS
// how many documents there are.
func TestJSONLDAgainstJSONLDJS(t *testing.T) {
	directory := os.Getenv("KOINE_JSONLD_JS")
	if directory == "" {
		t.Skip("KOINE_JSONLD_JS is not set: npm package jsonld is not compared with")
	}
	n, seed := 300, uint64(1)
	if text := os.Getenv("KOINE_JSONLD_DOCUMENTS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		seed = rand.Uint64N(1 << 32)
	}
	if *jsonldSeed != 0 {
		seed = *jsonldSeed
	}
	t.Logf("repeat %d documents with -jsonld.seed=%d", n, seed)
	const base = "http://base.example/d/doc"
	var documents []string
	for i := range n {
		documents = append(documents, (&jsonldMaker{Rand: rand.New(rand.NewPCG(seed, uint64(i)))}).document())
	}
	answers := jsonldJS(t, directory, base, documents)
	failed, same := 0, 0
	for i, a := range answers {
		got, err := read([]byte(documents[i]), rdf.JSONLD, rdf.Options{Base: base, ContinueOnError: true})
		if err != nil && strings.Contains(err.Error(), "a context may be missing") {
			got, err = nil, nil
		}
		switch {
		case a.Error != "" && err != nil:
			failed++
			continue
		case a.Error != "" && strings.Contains(documents[i], `"@none":`):
			continue // jsonld.js looks into an entry @none of a node; the specification has none
		case a.Error == "" && err == nil:
			want, wantErr := read([]byte(a.Quads), rdf.NQuads, rdf.Options{ContinueOnError: true})
			if wantErr == nil && isomorphic(unique(got), unique(want)) {
				if len(want) > 0 {
					same++
				}
				continue
			}
		}
		t.Errorf("document %d: error %v, jsonld.js %q\n%s\nkoine:\n%sjsonld.js:\n%s", i, err, a.Error, documents[i], write(t, got, rdf.NQuads, rdf.WriteOptions{}), a.Quads)
	}
	t.Logf("%d documents mean the same, %d are refused by both", same, failed)
	if same < n/2 {
		t.Errorf("only %d of %d documents have statements", same, n)
	}
}

// Damaged documents are read or refused, buffered or not, and read ones can be stored.
func TestJSONLDDamaged(t *testing.T) {
	slowtest.Long(t)
	n := uint64(1500)
	if text := os.Getenv("KOINE_JSONLD_DOCUMENTS"); text != "" {
		n = 20_000
	}
	words := []string{"@id", "@type", "@list", "@graph", "@value", "@context", "@reverse", "@none", "@set", "@included", "@nest", "@index", "@language"}
	whole := 0
	for seed := range n {
		r := rand.New(rand.NewPCG(seed, 99))
		text := (&jsonldMaker{Rand: r}).document()
		for range 1 + r.IntN(4) {
			i, j := r.IntN(len(text)), r.IntN(len(text))
			switch r.IntN(4) {
			case 0:
				text = text[:i] + string([]byte{byte(r.IntN(256))}) + text[i+1:]
			case 1:
				text = text[:i] + text[min(len(text), i+r.IntN(20)):] + " "
			case 2:
				text = text[:i] + text[j:min(len(text), j+r.IntN(40))] + text[i:]
			case 3:
				text = strings.Replace(text, words[r.IntN(len(words))], words[r.IntN(len(words))], 1)
			}
		}
		for _, bound := range []int64{0, 40} {
			quads, err := read([]byte(text), rdf.JSONLD, rdf.Options{Base: "http://b.example/", ContinueOnError: true, JSONLD: rdf.JSONLDOptions{MaxBytes: bound}})
			if err == nil {
				whole++
			}
			for _, q := range quads {
				for _, term := range []kg.Term{q.Subject, q.Predicate, q.Object, q.Graph} {
					if err := term.Valid(); err != nil {
						t.Fatalf("seed %d: %v\n%s", seed, err, text)
					}
				}
			}
		}
	}
	if whole == 0 {
		t.Error("no document is read")
	}
}

type jsonldJSAnswer struct{ Quads, Error string }

func jsonldJS(t *testing.T, directory, base string, documents []string) (answers []jsonldJSAnswer) {
	t.Helper()
	in, err := json.Marshal(documents)
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join("testdata", "jsonldjs.cjs"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("node", script, base)
	command.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(directory, "node_modules"))
	command.Stdin, command.Stderr = strings.NewReader(string(in)), os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(documents) {
		t.Fatalf("got %d answers, error %v", len(answers), err)
	}
	return answers
}

// jsonldMaker makes documents of which most are valid. For a term with a context of its own
// (sco), jsonld.js applies that context again in @included; the specification has no
// property there. So nodes in it have none.
type jsonldMaker struct {
	*rand.Rand
	scoped int // terms with a context of their own around
}

func (m *jsonldMaker) one(odds ...string) string { return odds[m.IntN(len(odds))] }

func (m *jsonldMaker) object(entries ...string) string {
	seen := map[string]bool{}
	var out []string
	for _, e := range entries {
		key := strings.SplitN(e, `"`, 3)
		if e != "" && !seen[key[1]] {
			seen[key[1]] = true
			out = append(out, e)
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

func (m *jsonldMaker) perhaps(odds int, entry func() string) string {
	if m.IntN(odds) > 0 {
		return ""
	}
	return entry()
}

var jsonldTerms = []string{"p", "q", "iri", "voc", "num", "list", "set", "lang", "idx", "idm", "typ", "gra", "grx", "gri", "rev", "nst", "de", "nol", "js", "prx", "sco", "none"}

// definition defines a term in one of its ways.
func (m *jsonldMaker) definition(term string) string {
	id := `"@id":"http://v.example/` + term + `"`
	switch term {
	case "p", "q":
		return m.one(`"http://v.example/p"`, `"ex:p"`, `{`+id+`,"@type":"xsd:integer"}`)
	case "iri":
		return `{` + id + `,"@type":"@id"}`
	case "voc":
		return `{` + id + `,"@type":"@vocab"}`
	case "num":
		return `{` + id + `,"@type":"http://www.w3.org/2001/XMLSchema#double"}`
	case "list":
		return `{` + id + `,"@container":"@list"` + m.one("", `,"@type":"@id"`) + `}`
	case "set":
		return `{` + id + `,"@container":"@set"}`
	case "lang":
		return `{` + id + `,"@container":` + m.one(`"@language"`, `["@language","@set"]`) + `}`
	case "idx":
		return `{` + id + `,"@container":"@index"}`
	case "prx":
		return `{` + id + `,"@container":"@index","@index":"http://v.example/key"}`
	case "idm":
		return `{` + id + `,"@container":"@id"}`
	case "typ":
		return `{` + id + `,"@container":"@type"}`
	case "gra":
		return `{` + id + `,"@container":"@graph"}`
	case "grx":
		return `{` + id + `,"@container":["@graph","@index"]}`
	case "gri":
		return `{` + id + `,"@container":["@graph","@id"]}`
	case "rev":
		return `{"@reverse":"http://v.example/rev"}`
	case "nst":
		return `"@nest"`
	case "de":
		return `{` + id + `,"@language":"de"}`
	case "nol":
		return `{` + id + `,"@language":null}`
	case "js":
		return `{` + id + `,"@type":"@json"}`
	case "none":
		return `null`
	}
	return `{` + id + `,"@context":` + m.one(`{"p":"http://scoped.example/p"}`, `{"@vocab":"http://scoped.example/"}`, `{"@propagate":false,"q":"http://scoped.example/q"}`, `null`) + `}`
}

func (m *jsonldMaker) context() string {
	entries := []string{`"ex":"http://ex.example/"`, `"xsd":"http://www.w3.org/2001/XMLSchema#"`}
	for _, t := range jsonldTerms {
		if m.IntN(3) > 0 {
			entries = append(entries, `"`+t+`":`+m.definition(t))
		}
	}
	if m.IntN(3) == 0 {
		entries = append(entries, `"@vocab":`+m.one(`"http://vocab.example/"`, `"ex:voc#"`, `null`, `""`))
	}
	if m.IntN(4) == 0 {
		entries = append(entries, `"@language":`+m.one(`"en"`, `null`))
	}
	if m.IntN(5) == 0 {
		entries = append(entries, `"@base":`+m.one(`"http://other.example/x/"`, `"sub/"`))
	}
	if m.IntN(2) == 0 {
		entries = append(entries, `"T":{"@id":"ex:T","@context":`+m.one(`{"p":"http://typed.example/p"}`, `{"q":{"@id":"http://typed.example/q","@type":"@id"}}`, `{"@propagate":true,"@vocab":"http://typed.example/"}`)+`}`)
	}
	if m.IntN(3) == 0 {
		entries = append(entries, `"id":"@id","type":"@type"`)
	}
	m.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	return m.object(entries...)
}

func (m *jsonldMaker) nestedContext() string {
	return m.one(`null`, `{"p":"http://nested.example/p"}`, `{"iri":null}`, `[{"@vocab":"http://nested.example/"},{"list":{"@id":"http://nested.example/list","@container":"@set"}}]`, `{"@language":"fr"}`)
}

func (m *jsonldMaker) id() string {
	return m.one(`"http://a.example/a"`, `"ex:b"`, `"_:x"`, `"_:y"`, `"rel"`, `"#frag"`, `"../up"`, `""`)
}

func (m *jsonldMaker) scalar() string {
	return m.one(`"text"`, `"rel"`, `"ex:c"`, `1`, `2.5`, `-0`, `1e3`, `true`, `false`, `null`, `""`, `"_:x"`, `"p"`)
}

func (m *jsonldMaker) value(depth int) string {
	switch m.IntN(10) {
	case 0, 1, 2:
		if depth > 0 {
			return m.node(depth - 1)
		}
	case 3:
		return `{"@value":` + m.one(`"v"`, `"v","@language":"en-GB"`, `"1","@type":"xsd:integer"`, `5,"@type":"http://www.w3.org/2001/XMLSchema#double"`, `true`, `null`, `{"b":[1,null],"a":"é"},"@type":"@json"`, `"x","@index":"i"`) + `}`
	case 4:
		return `{"@list":[` + m.scalar() + `,` + m.scalar() + `]}`
	case 5:
		return `[` + m.scalar() + `,` + m.scalar() + `]`
	case 6:
		return `{"@set":[` + m.scalar() + `]}`
	case 7:
		return `{"@id":` + m.id() + `}`
	}
	return m.scalar()
}

func (m *jsonldMaker) property(term string, depth int) string {
	value := ""
	if term == "sco" {
		m.scoped++
		defer func() { m.scoped-- }()
	}
	node := func() string {
		if depth > 0 {
			return m.node(depth - 1)
		}
		return `{"@id":` + m.id() + `}`
	}
	switch term {
	case "lang":
		value = m.one(`{"en":"a","de":["b","c"]}`, `{"@none":"x","fr":null}`, `"plain"`)
	case "idx":
		value = m.one(`{"a":"x","b":[1,2]}`, `{"a":`+node()+`}`, `"plain"`)
	case "prx", "idm", "grx", "gri", "gra":
		if term[0] == 'g' { // of a graph without statements, jsonld.js leaves out the name too
			inner := node
			node = func() string { return strings.TrimSuffix(inner(), "}") + `,"ex:in":1}` }
		}
		key := m.one(`"http://a.example/k"`, `"ex:k"`, `"rel"`, `"@none"`)
		if term == "gra" {
			value = m.one(node(), `[`+node()+`,`+node()+`]`)
		} else {
			value = `{` + key + `:` + node() + `}`
		}
	case "typ":
		value = `{` + m.one(`"ex:T"`, `"T"`, `"@none"`, `"http://a.example/T"`) + `:` + node() + `}`
	case "rev":
		value = m.one(node(), `[`+node()+`]`, `"rel"`)
	case "nst":
		value = m.object(`"p":`+m.value(0), `"ex:n":`+m.value(0))
	case "num": // jsonld.js makes NaN of a string, and 0 of -0
		value = m.one("1", "2.5", `{"@value":7}`, "[1e30,true]")
	case "js":
		value = m.one(`{"x":[1,2.50,"\u0001"]}`, `"s"`, `null`, `[]`)
	default:
		value = m.value(depth)
	}
	return `"` + term + `":` + value
}

func (m *jsonldMaker) node(depth int) string {
	return m.nodeWith(m.perhaps(8, func() string { return `"@context":` + m.nestedContext() }), depth)
}

func (m *jsonldMaker) nodeWith(context string, depth int) string {
	entries := []string{
		context,
		m.perhaps(2, func() string { return `"@id":` + m.id() }),
		m.perhaps(3, func() string { return `"@type":` + m.one(`"T"`, `["T","ex:U"]`, `"rel"`, `"_:t"`) }),
	}
	for range 1 + m.IntN(4) {
		if m.IntN(4) == 0 {
			entries = append(entries, m.one(`"http://a.example/p"`, `"ex:q"`, `"unknown"`)+`:`+m.value(depth))
		} else {
			entries = append(entries, m.property(jsonldTerms[m.IntN(len(jsonldTerms))], depth))
		}
	}
	if depth > 0 {
		entries = append(entries,
			m.perhaps(8, func() string { return `"@graph":[` + m.node(depth-1) + `]` }),
			m.perhaps(10, func() string {
				included := `"@included":` + strings.TrimSuffix(m.node(depth-1), "}") + `,"ex:in":2}`
				if m.scoped > 0 {
					return ""
				}
				return included
			}),
			m.perhaps(8, func() string { return `"@reverse":{"` + m.one("p", "ex:r", "iri") + `":` + m.node(depth-1) + `}` }))
	}
	if m.IntN(3) == 0 {
		m.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	}
	return m.object(entries...)
}

func (m *jsonldMaker) document() string {
	switch m.IntN(4) {
	case 0:
		return fmt.Sprintf(`{"@context":%s,"@graph":[%s,%s]}`, m.context(), m.node(2), m.node(2))
	case 1:
		return fmt.Sprintf(`[{"@context":%s,"ex:o":%s}]`, m.context(), m.node(2))
	}
	return m.nodeWith(`"@context":`+m.context(), 2)
}
