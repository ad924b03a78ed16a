package remember_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"koine/internal/compact"
	"koine/internal/names"
	"koine/internal/remember"
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
		LabelPredicates: []string{kg.RDFSLabel, "https://schema.org/name"},
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

// What a caller may not read is no candidate, takes no name and changes no answer.
func TestOthersLabelsDoNotCount(t *testing.T) {
	answer := func(lines string) string {
		f := newFixture(t)
		f.NewNames = ex + "id/"
		if lines != "" {
			f.must(kg.Principal{ID: "agent://bob"}, lines)
		}
		return f.must(ann, "(Ada)\n  a ex:Person\n  ex:wrote (Note G)\n") + f.must(ann, "(Ada) ex:knows ex:bob")
	}
	hidden := "@graph ex:private\n(Ada)\n  a ex:Person\n  ex:wrote (Note G)\nex:other (Note G)\n"
	if got, want := answer(hidden), answer(""); got != want {
		t.Errorf("got %s beside a private graph, and %s without", got, want)
	}
	f := newFixture(t)
	f.want(f.refused(ann, "@graph ex:private\n(Ada) ex:knows ex:bob"), "GRAPH_NOT_FOUND [0].graph: there is no graph <https://example.org/private>")
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
	f.want(f.refused(ann, most.String()+"(one more) ex:p 1"), "LIMIT_EXCEEDED [1000]: the request has more than 1000 labels; send the rest in another request")
	if _, err := f.Remember(t.Context(), remember.Request{Meta: kg.Meta{Principal: ann}}); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("without facts: got %v", err)
	}
	_, err := f.Remember(t.Context(), remember.Request{Meta: kg.Meta{Principal: ann}, Facts: make([]compact.Fact, compact.MaxFacts+1)})
	if kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("past the limit of facts: got %v", err)
	}
	f.want(f.refused(ann, "ex:a ex:p ex:b\nex:a ex:p ex:c [by bob]"), `INVALID [1]: the source and the time of a fact are you and now: leave "by" and "at" out`)
	f.want(f.refused(ann, "(Ada) (wrote) ex:b"), `INVALID : no predicate or class has the label "wrote"; write its name, such as rdfs:label`)
}
