package search_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/search"
	"koine/kg"
)

// private lets agents read the graphs and the messages of channels with their name, and
// everybody all other graphs.
type private struct{}

func (private) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	owner, ok := strings.CutPrefix(strings.TrimPrefix(graph.Value(), kg.JournalGraphPrefix+"messages:"), "urn:private:")
	return !ok || string(p.ID) == "agent://"+owner || p.ID == kg.SystemPrincipal().ID
}

type fixture struct {
	t     *testing.T
	dir   string
	store *kg.Store
	now   atomic.Pointer[time.Time] // of commits; nil for the clock's
	*search.Service
}

// clock is the time of commits.
func (f *fixture) clock() time.Time {
	if now := f.now.Load(); now != nil {
		return *now
	}
	return time.Now()
}

func open(t *testing.T, dir string) *fixture {
	t.Helper()
	return openWith(t, search.Options{Dir: filepath.Join(dir, "search")})
}

func openWith(t *testing.T, o search.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: filepath.Dir(o.Dir)}
	var err error
	if f.store, err = kg.Open(filepath.Join(f.dir, "data"), kg.Options{Clock: f.clock, Governor: kg.Governor{Access: private{}}}); err != nil {
		t.Fatal(err)
	}
	if f.Service, err = search.Open(f.store, o); err != nil {
		t.Fatal(err)
	}
	f.Start()
	return f
}

func (f *fixture) close() {
	f.t.Helper()
	if err := f.Close(); err != nil {
		f.t.Fatal(err)
	}
	if err := f.store.Close(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) apply(patches ...kg.Patch) {
	f.t.Helper()
	f.applyAs("agent://ann", patches...)
}

func (f *fixture) applyAs(agent kg.AgentID, patches ...kg.Patch) {
	f.t.Helper()
	if _, err := f.store.Update(f.t.Context(), kg.Meta{Principal: kg.Principal{ID: agent}}, func(tx *kg.Tx) error {
		for _, p := range patches {
			if err := tx.Apply(p); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
}

func text(graph, subject, predicate, value string) kg.Patch {
	q := kg.Quad{Subject: kg.IRI("urn:" + subject), Predicate: kg.IRI("urn:" + predicate), Object: kg.String(value), Graph: kg.DefaultGraph}
	if graph != "" {
		q.Graph = kg.IRI("urn:" + graph)
	}
	return kg.Patch{Op: kg.Add, Quad: q}
}

// find returns the hits of an agent with their scores, at the head.
func (f *fixture) find(agent kg.AgentID, query string) (names []string, scores []float64) {
	f.t.Helper()
	if err := f.WaitFor(f.t.Context(), f.store.Head().Revision); err != nil {
		f.t.Fatal(err)
	}
	s, err := f.store.View(f.t.Context(), kg.View{Principal: kg.Principal{ID: agent}})
	if err != nil {
		f.t.Fatal(err)
	}
	defer s.Close()
	page, err := f.Search(f.t.Context(), s, search.Request{Query: query, First: 100})
	if err != nil {
		f.t.Fatal(err)
	}
	if page.Building || page.Revision < s.Revision() {
		f.t.Fatalf("the index knows revision %d of %d", page.Revision, s.Revision())
	}
	for _, h := range page.Hits {
		names, scores = append(names, h.Subject.Value()[len("urn:"):]), append(scores, h.Score)
	}
	return names, scores
}

func (f *fixture) want(agent kg.AgentID, query, want string) {
	f.t.Helper()
	if names, scores := f.find(agent, query); strings.Join(names, " ") != want {
		f.t.Errorf("%s finds %q %v by %q, want %q", agent, names, scores, query, want)
	}
}

func TestSearch(t *testing.T) {
	f := open(t, t.TempDir())
	defer func() { f.close() }()
	f.apply(text("", "a", "label", "HTTP client"), text("", "b", "label", "HTTP server"), text("", "b", "comment", "It answers each client in turn, and logs what the client asked for"),
		text("private:ann", "c", "label", "A client of Ann's"))
	f.want("agent://ann", "http client", "a b c")
	f.want("agent://bob", "http client", "a b")
	f.want("agent://bob", "clint", "a b")
	f.want("agent://bob", `client -server`, "a")
	remove := text("", "a", "label", "HTTP client")
	remove.Op = kg.Remove
	f.apply(remove)
	f.want("agent://bob", "http client", "b")
	// A restart continues where the index was saved.
	dir := f.dir
	f.close()
	f = open(t, dir)
	f.apply(text("", "d", "label", "client client"))
	f.want("agent://bob", "client", "d b")
	// A graph that is replaced is indexed anew.
	graph := kg.IRI("urn:g")
	for _, content := range []string{"one client", "two clients"} {
		quads := func(yield func(kg.Quad, error) bool) {
			yield(kg.Quad{Subject: kg.IRI("urn:" + content[:3]), Predicate: kg.IRI("urn:label"), Object: kg.LangString(content, "en"), Graph: graph}, nil)
		}
		if _, err := f.store.ReplaceGraph(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://ann"}}, graph, quads, kg.ReplaceOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.want("agent://bob", "client", "d two b")
	// A large content replaces a graph as a whole.
	large := func(yield func(kg.Quad, error) bool) {
		for i := range kg.MaxPatches + 1 {
			yield(kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:two", i)), Predicate: kg.IRI("urn:label"), Object: kg.LangString(fmt.Sprint("two clients ", i), "en"), Graph: graph}, nil)
		}
	}
	if r, err := f.store.ReplaceGraph(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://ann"}}, graph, large, kg.ReplaceOptions{}); err != nil || !r.Whole {
		t.Fatalf("%+v, %v", r, err)
	}
	f.want("agent://bob", `"clients 7"`, "two7")
	f.apply(text("", "e", "label", "salt"))
	f.want("agent://bob", "salt", "e")
	// Without its directory the index is built anew.
	f.close()
	if err := os.RemoveAll(filepath.Join(dir, "search")); err != nil {
		t.Fatal(err)
	}
	f = open(t, dir)
	f.want("agent://bob", `"clients 7"`, "two7")
}

// The texts of a graph that was deleted are gone from the index, for the statistics too, also where the
// name is used again.
func TestDeletedGraphsAreForgotten(t *testing.T) {
	f, own := open(t, t.TempDir()), open(t, t.TempDir())
	defer f.close()
	defer own.close()
	f.apply(text("", "a", "label", "crystal"), text("", "b", "label", "crystal water"))
	own.apply(text("", "a", "label", "crystal"), text("", "b", "label", "crystal water"))
	f.apply(text("g", "c", "label", "crystal crystal"), text("g", "d", "label", "crystal"))
	f.want("agent://ann", "crystal", "c d a b")
	if _, err := f.store.DropGraph(t.Context(), kg.Meta{Principal: kg.SystemPrincipal()}, kg.IRI("urn:g"), kg.DropOptions{Anew: true}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		names, scores := f.find("agent://ann", "crystal")
		wantNames, wantScores := own.find("agent://ann", "crystal")
		if !reflect.DeepEqual(names, wantNames) || !reflect.DeepEqual(scores, wantScores) {
			t.Errorf("%v %v are found, and %v %v without the graph", names, scores, wantNames, wantScores)
		}
		f.apply(text("g", "e", "label", "salt"))
		own.apply(text("g", "e", "label", "salt"))
	}
	if n := f.Progress().Texts; n != 3 {
		t.Errorf("the index has %d texts", n)
	}
}

// Texts that an agent may not read change no score of its answers, while texts come and go.
func TestOthersChangeNothing(t *testing.T) {
	both, own := open(t, t.TempDir()), open(t, t.TempDir())
	defer both.close()
	defer own.close()
	random := rand.New(rand.NewPCG(1, 1))
	vocabulary := strings.Fields("client server http answer log request crystal water")
	for round := range 8 {
		for range 20 {
			var list []string
			for range 1 + random.IntN(6) {
				list = append(list, vocabulary[random.IntN(len(vocabulary))])
			}
			p := text([]string{"", "private:ann", "g"}[random.IntN(3)], fmt.Sprint(random.IntN(12)), fmt.Sprint("p", random.IntN(2)), strings.Join(list, " "))
			both.apply(p)
			if p.Quad.Graph != kg.IRI("urn:private:ann") {
				own.apply(p)
			}
		}
		both.apply(text("private:ann", "x", "label", strings.Repeat("client water requests ", 500)))
		for _, query := range []string{"client", "http answer", "wat*", "requst", `"client server"`} {
			gotNames, gotScores := both.find("agent://bob", query)
			wantNames, wantScores := own.find("agent://bob", query)
			if !reflect.DeepEqual(gotNames, wantNames) || !reflect.DeepEqual(gotScores, wantScores) {
				t.Fatalf("round %d: %s finds %v %v, and without Ann's texts %v %v", round, query, gotNames, gotScores, wantNames, wantScores)
			}
		}
	}
}

// A search finds what was written before it, however long commits gather otherwise. Commits
// without texts, also the last ones, do not hold it up.
func TestSearchDoesNotWaitForMoreCommits(t *testing.T) {
	f := openWith(t, search.Options{Dir: filepath.Join(t.TempDir(), "search"), FollowEvery: time.Hour})
	defer f.close()
	link := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:a"), Predicate: kg.IRI("urn:p"), Graph: kg.DefaultGraph}}
	want := ""
	for n := range 20 {
		f.apply(text("", fmt.Sprintf("a%02d", n), "label", "client"))
		want += fmt.Sprintf(" a%02d", n)
		for range n % 3 {
			link.Quad.Object = kg.IRI(fmt.Sprint("urn:", f.store.Head().Revision))
			f.apply(link)
		}
		names, _ := f.find("agent://bob", "client")
		slices.Sort(names)
		if got := " " + strings.Join(names, " "); got != want {
			t.Fatalf("after %d texts: %s, want%s", n+1, got, want)
		}
	}
}

// A graph that is replaced as a whole, and one that is dropped, take their texts with them.
func TestGraphsAreReplacedAndDropped(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	graph, meta := kg.IRI("urn:g"), kg.Meta{Principal: kg.Principal{ID: "agent://ann"}}
	f.apply(text("g", "old", "label", "client"), text("", "other", "label", "client"))
	f.want("agent://bob", "client", "old other")
	many := func(yield func(kg.Quad, error) bool) {
		for n := range kg.MaxPatches + 1 {
			value := "server"
			if n == 77 {
				value = "a client"
			}
			if !yield(kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s", n)), Predicate: kg.IRI("urn:label"), Object: kg.String(value), Graph: graph}, nil) {
				return
			}
		}
	}
	r, err := f.store.ReplaceGraph(t.Context(), meta, graph, many, kg.ReplaceOptions{})
	if err != nil || !r.Whole {
		t.Fatalf("replaced %+v, %v", r, err)
	}
	f.want("agent://bob", "client", "other s77")
	f.apply(text("", "after", "label", "client"))
	f.want("agent://bob", "client", "other after s77")
	if _, err := f.store.DropGraph(t.Context(), meta, graph, kg.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	f.want("agent://bob", "client", "other after")
	if size := f.Progress().Size; size.Texts != 2 {
		t.Errorf("the index has %d texts, want 2", size.Texts)
	}
}
