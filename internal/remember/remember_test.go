package remember_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"koine/internal/compact"
	"koine/internal/names"
	"koine/internal/remember"
	"koine/internal/shapes"
	"koine/kg"
)

const ex = "https://example.org/"

var (
	ann     = kg.Principal{ID: "agent://ann"}
	private = kg.IRI(ex + "private") // of bob
)

// closedGraph lets nobody but bob use the private graph.
type closedGraph struct{ kg.AllowAll }

func (closedGraph) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return graph != private || p.ID == "agent://bob"
}

type fixture struct {
	*testing.T
	*remember.Rememberer
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	store, err := kg.Open(t.TempDir(), kg.Options{FreeBytes: func(string) (uint64, error) { return 1 << 40, nil }, Governor: kg.Governor{Access: closedGraph{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	prefixes, err := kg.NewPrefixes(map[string]string{"ex": ex})
	if err != nil {
		t.Fatal(err)
	}
	return fixture{t, &remember.Rememberer{
		Store: store, Names: names.NewJudge(store, names.Strict), Prefixes: prefixes,
		LabelPredicates: []string{kg.RDFSLabel, "https://schema.org/name"}, Shapes: &shapes.Set{},
	}}
}

func (f fixture) try(by kg.Principal, lines string) (remember.Answer, error) {
	f.Helper()
	facts, err := compact.Read(lines, f.Prefixes)
	if err != nil {
		f.Fatal(err)
	}
	return f.Remember(f.Context(), remember.Request{Meta: kg.Meta{Principal: by}, Facts: facts})
}

// must remembers lines and describes the entities of their labels.
func (f fixture) must(by kg.Principal, lines string) string {
	f.Helper()
	a, err := f.try(by, lines)
	if err != nil {
		f.Fatalf("%s: %v", lines, err)
	}
	var out []string
	for _, e := range a.Entities {
		text := e.Label + "=" + f.Prefixes.Shorten(e.Term.Name())
		if e.Made {
			text += " made"
		}
		out = append(out, text)
	}
	return fmt.Sprintf("%s; %d changes, %d known", strings.Join(out, ", "), a.Affected, len(a.Known))
}

// refused returns the code, the field and the message of the error.
func (f fixture) refused(by kg.Principal, lines string) string {
	f.Helper()
	before := f.Store.Head().Revision
	a, err := f.try(by, lines)
	if err == nil {
		f.Fatalf("%s: got %+v, want an error", lines, a.Entities)
	}
	if now := f.Store.Head().Revision; now != before {
		f.Errorf("%s: refused, but revision %d follows %d", lines, now, before)
	}
	e := kg.AsError(err)
	return fmt.Sprintf("%s %s: %s", e.Code, e.Field, e.Message)
}

func (f fixture) want(got, want string) {
	f.Helper()
	if got != want {
		f.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAnEntityIsFoundOrMade(t *testing.T) {
	f := newFixture(t)
	f.NewNames = ex + "id/"
	first := "(Ada Lovelace)\n  a ex:Person\n  ex:wrote (Note G)\n"
	f.want(f.must(ann, first), "Ada Lovelace=https://example.org/id/ada-lovelace made, Note G=https://example.org/id/note-g made; 4 changes, 0 known")
	head := f.Store.Head().Revision
	f.want(f.must(ann, first), "Ada Lovelace=https://example.org/id/ada-lovelace, Note G=https://example.org/id/note-g; 0 changes, 2 known")
	if now := f.Store.Head().Revision; now != head {
		t.Errorf("the repetition made revision %d", now)
	}
	// Another class is another entity; the name is taken.
	f.want(f.must(ann, "(Ada Lovelace)\n  a ex:Ship\n"), "Ada Lovelace=https://example.org/id/ada-lovelace-2 made; 2 changes, 0 known")
	f.want(f.must(ann, "(Ada Lovelace)\n  a ex:Person\n  ex:born 1815\n"), "Ada Lovelace=https://example.org/id/ada-lovelace; 1 changes, 1 known")
	f.want(f.refused(ann, "(Ada Lovelace) ex:born 1816"), `INVALID : 2 entities have the label "Ada Lovelace"; write the name of the one that you mean, or its class: `+
		`https://example.org/id/ada-lovelace a ex:Person; https://example.org/id/ada-lovelace-2 a ex:Ship`)
	// An entity without a class has the class that it is given; so does a label in a
	// language or by another property.
	f.want(f.must(ann, "(Note G)\n  a ex:Note\n"), "Note G=https://example.org/id/note-g; 1 changes, 0 known")
	f.must(ann, `ex:zoe <https://schema.org/name> "Zoé"@fr`)
	f.want(f.must(ann, "(Zoé) ex:knows (Note G)"), "Zoé=ex:zoe, Note G=https://example.org/id/note-g; 1 changes, 0 known")
	// A label that the request itself gives.
	f.want(f.must(ann, "ex:new (Note G)\n(Note G) ex:follows ex:zoe"), "Note G=ex:new; 2 changes, 0 known")
}

func TestANewNameIsAUUIDByDefault(t *testing.T) {
	f := newFixture(t)
	a, err := f.try(ann, "(Ada) ex:knows ex:bob")
	if err != nil || len(a.Entities) != 1 || !strings.HasPrefix(a.Entities[0].Term.Value(), "urn:uuid:") || a.Entities[0].Term.Value()[len("urn:uuid:")+14] != '7' {
		t.Errorf("got %+v and %v, want a UUID of version 7", a.Entities, err)
	}
	f.NewNames = ex
	if a, err = f.try(ann, "(***) ex:knows ex:bob"); err != nil || !strings.HasPrefix(a.Entities[0].Term.Value(), "urn:uuid:") {
		t.Errorf("a label without letters: got %+v and %v", a.Entities, err)
	}
}

// An entity that a caller may not read is no candidate, takes no name and changes no answer.
func TestOthersLabelsDoNotCount(t *testing.T) {
	answer := func(lines string) string {
		f := newFixture(t)
		f.NewNames = ex + "id/"
		if lines != "" {
			f.must(kg.Principal{ID: "agent://bob"}, lines)
		}
		return f.refused(ann, "ex:ada\n  (wrotte) ex:bob") + f.must(ann, "(Ada)\n  a ex:Person\n  ex:wrote (Note G)\n") + f.must(ann, "(Ada) ex:knows ex:bob") +
			f.triples(`[["Ada", "wrote", "Note A"], ["Ada", "wrotte", "text"]]`)
	}
	hidden := "@graph ex:private\n(Ada)\n  a ex:Person\n  ex:wrote (Note G)\nex:other (Note G)\nex:wrote a owl:FunctionalProperty\nex:secret ex:wrotte 1\n"
	if got, want := answer(hidden), answer(""); got != want {
		t.Errorf("got %s beside a private graph, and %s without", got, want)
	}
	f := newFixture(t)
	f.want(f.refused(ann, "@graph ex:private\n(Ada) ex:knows ex:bob"), "GRAPH_NOT_FOUND facts[0].graph: there is no graph <https://example.org/private>")
}

// Writers at the same time make one entity: the label is looked up within the commit.
func TestManyWritersMakeOneEntity(t *testing.T) {
	f := newFixture(t)
	const writers, labels = 16, 5
	for n := range labels {
		lines := fmt.Sprintf("(Ada %d)\n  a ex:Person\n", n)
		facts, err := compact.Read(lines, f.Prefixes)
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		begin := make(chan struct{})
		terms, made := make([]kg.Term, writers), make([]bool, writers)
		for w := range writers {
			wait.Go(func() {
				<-begin
				a, err := f.Remember(t.Context(), remember.Request{Meta: kg.Meta{Principal: kg.Principal{ID: kg.AgentID(fmt.Sprint("agent://w", w))}}, Facts: facts})
				if err != nil {
					t.Error(err)
					return
				}
				terms[w], made[w] = a.Entities[0].Term, a.Entities[0].Made
			})
		}
		close(begin)
		wait.Wait()
		makers := 0
		for w := range writers {
			if terms[w] != terms[0] {
				t.Errorf("%s: writer %d got %s, the first %s", lines, w, terms[w], terms[0])
			}
			if made[w] {
				makers++
			}
		}
		if makers != 1 {
			t.Errorf("%s: %d writers made the entity", lines, makers)
		}
	}
}

func TestBoundsOfARequest(t *testing.T) {
	f := newFixture(t)
	var most strings.Builder
	for n := range remember.MaxLabels {
		fmt.Fprintf(&most, "(L%d) ex:p 1\n", n)
	}
	f.must(ann, most.String())
	f.want(f.refused(ann, most.String()+"(one more) ex:p 1"), "LIMIT_EXCEEDED facts[1000]: the request has more than 1000 labels; send the rest in another request")
	if _, err := f.Remember(t.Context(), remember.Request{Meta: kg.Meta{Principal: ann}}); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("without facts: got %v", err)
	}
	_, err := f.Remember(t.Context(), remember.Request{Meta: kg.Meta{Principal: ann}, Facts: make([]compact.Fact, compact.MaxFacts+1)})
	if kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("past the limit of facts: got %v", err)
	}
	f.want(f.refused(ann, "ex:a ex:p ex:b\nex:a ex:p ex:c [by bob]"), `INVALID facts[1]: the source and the time of a fact are you and now: leave "by" and "at" out`)
}

func TestWordsOfTheVocabulary(t *testing.T) {
	f := newFixture(t)
	f.must(ann, "ex:acme ex:worksAt ex:x\nex:p1 (has author)@en\n  a rdf:Property\nex:ada ex:wrote ex:note\n  a ex:BookAuthor")
	for word, want := range map[string]string{"works at": "ex:worksAt", "Works_At": "ex:worksAt", "Has Author": "ex:p1", "wrote": "ex:wrote"} {
		a, err := f.try(ann, fmt.Sprintf("ex:ada\n  (%s) ex:new\n  (is a) (book author)", word))
		if err != nil || f.Prefixes.Shorten(a.Facts[0].Predicate.Value()) != want || a.Facts[1].Object.Value() != ex+"BookAuthor" {
			t.Errorf("%s: got %+v and %v, want %s", word, a.Facts, err, want)
		}
	}
	f.want(f.refused(ann, "ex:ada\n  (wrotte) ex:b"), `INVALID facts[0]: no predicate is called "wrotte"; the nearest are ex:wrote. Use an existing one, or define "wrotte" as a new predicate`)
	f.want(f.refused(ann, "ex:ada ex:wrote ex:b\n  a (Xylophone)"), `INVALID facts[1]: no class is called "Xylophone"; the nearest are rdf:Property, ex:BookAuthor. Use an existing one, or define "Xylophone" as a new class`)
	f.must(ann, "ex:ada <https://other.example/wrote> 1")
	f.want(f.refused(ann, "ex:ada\n  (wrote) ex:b"), `INVALID facts[0]: several of the vocabulary are called "wrote"; write the name of the predicate that you mean: ex:wrote; https://other.example/wrote`)
}

func TestContradictionsOfNewFacts(t *testing.T) {
	f := newFixture(t)
	f.must(ann, "ex:born a owl:FunctionalProperty\nex:bob ex:born 1, 2\nex:ada ex:born 1815")
	a, err := f.try(ann, "ex:ada ex:born 1816\n  ex:knows ex:bob")
	if err != nil || len(a.Contradictions) != 1 || a.Contradictions[0].About.Value() != ex+"ada" || a.Contradictions[0].Total != 2 {
		t.Errorf("got %+v and %v, want the two births of ada", a.Contradictions, err)
	}
}

// put writes the facts about the entity with a key in place of the others.
func (f fixture) put(facts string, key *remember.Key) string {
	f.Helper()
	list, err := compact.Read(facts, f.Prefixes)
	if err != nil {
		f.Fatal(err)
	}
	if key != nil {
		for i := range list {
			list[i].Subject = compact.Ref{}
		}
	}
	a, err := f.Remember(f.Context(), remember.Request{Meta: kg.Meta{Principal: ann}, Facts: list, Replace: true, Key: key})
	if err != nil {
		f.Fatal(err)
	}
	return fmt.Sprint(a.Affected, " ", len(a.Known), " ", a.Entities)
}

func TestReplacingByKey(t *testing.T) {
	f := newFixture(t)
	f.NewNames = ex + "id/"
	key := &remember.Key{Predicate: kg.IRI(ex + "isbn"), Value: kg.String("978 1")}
	const facts = "ex:any ex:title \"A\", \"B\"\n  a ex:Book"
	f.want(f.put(facts, key), "4 0 [{978 1 <https://example.org/id/978-1> true}]")
	f.want(f.put(facts, key), "0 3 [{978 1 <https://example.org/id/978-1> false}]")
	f.want(f.put("ex:any ex:title \"B\", \"C\"\n  a ex:Novel", key), "3 1 [{978 1 <https://example.org/id/978-1> false}]")
	f.want(f.put("(978 1) ex:title \"D\"", nil), "2 0 [{978 1 <https://example.org/id/978-1-2> true}]")
}

// triples remembers triples of JSON and describes the facts, or the error.
func (f fixture) triples(text string) string {
	f.Helper()
	var triples [][]json.RawMessage
	if err := json.Unmarshal([]byte(text), &triples); err != nil {
		f.Fatal(err)
	}
	return f.described(remember.Request{Meta: kg.Meta{Principal: ann}, Triples: triples})
}

func (f fixture) described(q remember.Request) string {
	f.Helper()
	a, err := f.Remember(f.Context(), q)
	if err != nil {
		e := kg.AsError(err)
		return fmt.Sprintf("%s %s: %s", e.Code, e.Field, e.Message)
	}
	var out []string
	for _, q := range a.Facts {
		var terms []string
		for _, t := range []kg.Term{q.Subject, q.Predicate, q.Object} {
			text := t.String()
			if t.Kind() == kg.KindIRI {
				text = f.Prefixes.Shorten(t.Value())
			}
			terms = append(terms, strings.ReplaceAll(text, ex+"id/", "id/"))
		}
		out = append(out, strings.Join(terms, " "))
	}
	return strings.Join(out, "; ")
}

func TestTriplesInWords(t *testing.T) {
	f := newFixture(t)
	f.NewNames = ex + "id/"
	f.want(f.triples(`[["Ada Lovelace", "wrote", "Note G"]]`), `INVALID triples[0]: no predicate is called "wrote". Use an existing one, or define "wrote" as a new predicate`)
	for _, made := range []bool{true, false} {
		a, err := f.Define(t.Context(), remember.Definition{Meta: kg.Meta{Principal: ann}, Label: "wrote", Comment: "is the author of", Graph: kg.DefaultGraph})
		if err != nil || a.Entities[0].Term.Value() != ex+"id/wrote" || a.Entities[0].Made != made {
			t.Fatalf("got %+v and %v, want id/wrote, made: %v", a.Entities, err, made)
		}
	}
	if _, err := f.Define(t.Context(), remember.Definition{Meta: kg.Meta{Principal: ann}, Label: "Person", Class: true, Graph: kg.DefaultGraph}); err != nil {
		t.Fatal(err)
	}
	f.must(ann, "ex:x ex:motto \"all is well\"")
	const facts = `[["Ada Lovelace", "is a", "Person"], ["Ada Lovelace", "wrote", "Note G"], ["(Note G)", "motto", "It weaves"], ["ex:ada", "ex:born", 1815],
		["Note G", "ex:seen", "1843-09-01"], ["Note G", "ex:about", "\"Bernoulli\"@en"], ["Note G", "ex:by", "ex:ada"], ["Note G", "ex:good", true]]`
	want := `id/ada-lovelace rdf:type id/person; id/ada-lovelace id/wrote id/note-g; id/note-g ex:motto "It weaves"; ex:ada ex:born "1815"^^<http://www.w3.org/2001/XMLSchema#integer>; ` +
		`id/note-g ex:seen "1843-09-01"^^<http://www.w3.org/2001/XMLSchema#date>; id/note-g ex:about "Bernoulli"@en; id/note-g ex:by ex:ada; id/note-g ex:good "true"^^<http://www.w3.org/2001/XMLSchema#boolean>`
	f.want(f.triples(facts), want)
	head := f.Store.Head().Revision
	f.want(f.triples(facts), want)
	if now := f.Store.Head().Revision; now != head {
		t.Errorf("the repetition made revision %d", now)
	}
	f.want(f.triples(`[["a", "b"]]`), `INVALID triples[0]: a triple has 2 parts; write three: ["Ada Lovelace", "wrote", "Note G"]`)
	f.want(f.triples(`[["a", "motto", ""]]`), `INVALID triples[0]: part 3 of the triple is empty`)
	f.want(f.triples(`[[1, "motto", "x"]]`), `INVALID triples[0]: part 1 of the triple is "1"^^<http://www.w3.org/2001/XMLSchema#integer>, and not a label or a name`)
	f.want(f.triples(`[["ex:a", "ex:p", "ex:b"], ["ex:a", "foo:p", "ex:b"]]`), `UNKNOWN_PREFIX triples[1].predicate: foo:p: foo is neither a registered prefix nor a known URI scheme`)
}

func TestWordsDefinedInTheRequest(t *testing.T) {
	f := newFixture(t)
	q := remember.Request{Meta: kg.Meta{Principal: ann}, Define: []string{"wrote", "Person", "not used"}, NewNames: "ex:id/", Triples: [][]json.RawMessage{
		{[]byte(`"Ada"`), []byte(`"wrote"`), []byte(`"Note G"`)}, {[]byte(`"Ada"`), []byte(`"is a"`), []byte(`"Person"`)}, {[]byte(`"Ada"`), []byte(`"wrote"`), []byte(`"Note A"`)},
	}}
	for _, more := range []string{"; id/wrote rdf:type rdf:Property; id/person rdf:type rdfs:Class", ""} {
		f.want(f.described(q), "id/ada id/wrote id/note-g; id/ada rdf:type id/person; id/ada id/wrote id/note-a"+more)
	}
	q.NewNames = "nowhere:x/"
	f.want(f.described(q), "UNKNOWN_PREFIX newNames: nowhere:x/: nowhere is neither a registered prefix nor a known URI scheme")
}

func TestJSONLD(t *testing.T) {
	f := newFixture(t)
	f.NewNames = ex + "id/"
	try := func(document string) string {
		facts, err := f.ReadJSONLD([]byte(document), kg.DefaultGraph)
		if err != nil {
			return kg.AsError(err).Message
		}
		return f.described(remember.Request{Meta: kg.Meta{Principal: ann}, Facts: facts})
	}
	const document = `[{"@id": "ex:ada", "label": "Ada", "ex:wrote": {"label": "Note G", "@type": "ex:Note"}}, {"schema:name": "Note G", "@type": "ex:Note", "ex:year": 1843}]`
	for range 2 {
		f.want(try(document), `ex:ada rdfs:label "Ada"; ex:ada ex:wrote id/note-g; id/note-g rdf:type ex:Note; id/note-g rdf:type ex:Note; id/note-g ex:year "1843"^^<http://www.w3.org/2001/XMLSchema#integer>`)
	}
	f.want(try(`{"@id": "ex:ada", "ex:knows": {"ex:age": 3}}`), `JSON-LD: a node has neither an @id nor a label; give it a label, such as "label": "Note G", so that it can be found again`)
	if got := try(`{"@id": "ex:ada", "wrote": 3}`); !strings.Contains(got, "wrote") {
		t.Errorf("a key without a meaning: %s", got)
	}
	if got := try(`{"@context": "https://schema.org/", "name": "x"}`); !strings.HasPrefix(got, "JSON-LD: ") {
		t.Errorf("a remote context: %s", got)
	}
	if got := try("{"); !strings.HasPrefix(got, "JSON-LD: ") {
		t.Errorf("not JSON: %s", got)
	}
	if got := try("{" + strings.Repeat(" ", remember.MaxDocumentBytes) + "}"); !strings.Contains(got, "more than the limit") {
		t.Errorf("past the limit: %s", got)
	}
}
