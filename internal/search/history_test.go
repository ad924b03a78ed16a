package search_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"koine/internal/search"
	"koine/kg"
)

// reopenWith opens the search again, and follows the log.
func (f *fixture) reopenWith(history bool) {
	f.t.Helper()
	if err := f.Close(); err != nil {
		f.t.Fatal(err)
	}
	service, err := search.Open(f.store, search.Options{Dir: filepath.Join(f.dir, "search"), History: history})
	if err != nil {
		f.t.Fatal(err)
	}
	f.Service = service
	f.Start()
}

// findAt returns the hits at a revision, "-" before those whose texts are all removed, and whether the
// history was searched.
func (f *fixture) findAt(agent kg.AgentID, query string, at kg.Revision) (names []string, scores []float64, history bool) {
	f.t.Helper()
	if err := f.WaitFor(f.t.Context(), f.store.Head().Revision); err != nil {
		f.t.Fatal(err)
	}
	if err := f.WaitForHistory(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	s, err := f.store.View(f.t.Context(), kg.View{Principal: kg.Principal{ID: agent}, At: at})
	if err != nil {
		f.t.Fatal(err)
	}
	defer s.Close()
	page, err := f.Search(f.t.Context(), s, search.Request{Query: query, First: 100, Past: true})
	if err != nil {
		f.t.Fatal(err)
	}
	if page.Building {
		f.t.Fatal("the index is being built")
	}
	for _, h := range page.Hits {
		name := h.Subject.Value()[len("urn:"):]
		removed := 0
		for _, m := range h.Matches {
			if m.Removed {
				removed++
			}
		}
		if removed == len(h.Matches) {
			name = "-" + name
		}
		names, scores = append(names, name), append(scores, h.Score)
	}
	return names, scores, page.History
}

func (f *fixture) wantAt(agent kg.AgentID, query string, at kg.Revision, want string) {
	f.t.Helper()
	if names, scores, history := f.findAt(agent, query, at); strings.Join(names, " ") != want || !history {
		f.t.Errorf("at %d, %s finds %q %v by %q, want %q; history: %v", at, agent, names, scores, query, want, history)
	}
}

func (f *fixture) remove(graph, subject, predicate, value string) {
	f.t.Helper()
	p := text(graph, subject, predicate, value)
	p.Op = kg.Remove
	f.apply(p)
}

// Views of the past find the texts of the present that they show, and with a history those that
// went since. A history that is turned on later reads the log.
func TestViewsOfThePast(t *testing.T) {
	f := open(t, t.TempDir())
	defer func() { f.close() }()
	f.apply(text("", "a", "label", "crystal water"))         // 1
	f.apply(text("", "b", "label", "crystal"))               // 2
	f.remove("", "a", "label", "crystal water")              // 3
	f.apply(text("private:ann", "p", "label", "crystal"))    // 4
	f.remove("private:ann", "p", "label", "crystal")         // 5
	f.apply(text("", "back", "label", "crystal of the sea")) // 6
	f.remove("", "back", "label", "crystal of the sea")      // 7
	f.apply(text("", "back", "label", "crystal of the sea")) // 8
	f.want("agent://ann", "crystal", "b back")
	if names, _, history := f.findAt("agent://ann", "crystal", 2); history || strings.Join(names, " ") != "b" {
		t.Errorf("without a history, the past finds %q; history: %v", names, history)
	}
	for round, reopen := range []func(){
		func() { f.reopenWith(true) },
		func() { f.reopenWith(true) },
		func() { f.reopenWith(false); f.reopenWith(true) },
	} {
		reopen()
		f.wantAt("agent://bob", "crystal", 1, "-a")
		f.wantAt("agent://bob", "crystal", 2, "b -a")
		f.wantAt("agent://bob", "crystal", 3, "b")
		f.wantAt("agent://ann", "crystal", 4, "-p b")
		f.wantAt("agent://bob", "crystal", 4, "b")
		f.wantAt("agent://bob", "crystal", 6, "b back")
		f.wantAt("agent://bob", "crystal", 7, "b")
		f.wantAt("agent://bob", "crystal -water", 2, "b")
		f.want("agent://ann", "crystal", "b back")
		if round == 0 { // changes while the history is kept
			f.apply(text("g", "w", "label", "salt"))
			at := f.store.Head().Revision
			f.remove("g", "w", "label", "salt")
			f.wantAt("agent://bob", "salt", at, "-w")
			f.apply(text("g", "w", "label", "salt"))
			f.wantAt("agent://bob", "salt", at, "w")
			f.want("agent://bob", "salt", "w")
		}
		if n := f.HistoryTexts(); n != 2 {
			t.Errorf("the history has %d texts, want those of a and p", n)
		}
	}
}

// The content of a graph that was replaced is kept, that of a deleted one is not.
func TestHistoryOfGraphs(t *testing.T) {
	f := open(t, t.TempDir())
	defer func() { f.close() }()
	f.reopenWith(true)
	graph := kg.IRI("urn:g")
	large := func(content string) kg.Revision {
		quads := func(yield func(kg.Quad, error) bool) {
			for i := range kg.MaxPatches + 1 {
				if !yield(kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:", content, i)), Predicate: kg.IRI("urn:label"), Object: kg.String(fmt.Sprint(content, " ", i)), Graph: graph}, nil) {
					return
				}
			}
		}
		r, err := f.store.ReplaceGraph(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://ann"}}, graph, quads, kg.ReplaceOptions{})
		if err != nil || !r.Whole {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Revision
	}
	first := large("salt")
	second := large("water")
	for range 2 {
		f.wantAt("agent://bob", `"salt 7"`, first, "-salt7")
		f.wantAt("agent://bob", `"water 7"`, second, "water7")
		f.want("agent://bob", `"salt 7"`, "")
		f.reopenWith(false)
		f.reopenWith(true)
	}
	f.apply(text("", "a", "label", "salt"))
	at := f.store.Head().Revision
	if _, err := f.store.DropGraph(t.Context(), kg.Meta{Principal: kg.SystemPrincipal()}, graph, kg.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	f.wantAt("agent://bob", "salt water", at, "a")
	if n := f.HistoryTexts(); n != 0 {
		t.Errorf("the history has %d texts of a deleted graph", n)
	}
}

// A history changes no score of the present, and texts that a caller may not read change none of
// the past.
func TestHistoryChangesNothing(t *testing.T) {
	plain, kept, own := open(t, t.TempDir()), open(t, t.TempDir()), open(t, t.TempDir())
	for _, f := range []*fixture{plain, kept, own} {
		defer f.close()
	}
	kept.reopenWith(true)
	own.reopenWith(true)
	random := rand.New(rand.NewPCG(3, 1))
	vocabulary := strings.Fields("client server http answer log request crystal water")
	type statement struct{ graph, subject, predicate, value string }
	there := map[statement]bool{}
	removed := false
	for round := range 8 {
		for range 30 {
			st := statement{[]string{"", "private:ann"}[random.IntN(2)], fmt.Sprint(random.IntN(6)), "p", vocabulary[random.IntN(4)] + " " + vocabulary[random.IntN(8)]}
			p := text(st.graph, st.subject, st.predicate, st.value)
			if there[st] {
				p.Op, removed = kg.Remove, true
			}
			there[st] = !there[st]
			plain.apply(p)
			kept.apply(p)
			if st.graph == "" {
				own.apply(p)
			} else { // the revisions stay the same
				own.applyAs("agent://carl", text("private:carl", "x", "p", fmt.Sprint("filler ", random.Int())))
			}
		}
		at := plain.store.Head().Revision - 20
		for _, query := range []string{"client", "http answer", "wat*", "requst", `"client server"`, "log -water"} {
			names, scores := kept.find("agent://bob", query)
			wantNames, wantScores := plain.find("agent://bob", query)
			if !reflect.DeepEqual(names, wantNames) || !reflect.DeepEqual(scores, wantScores) {
				t.Fatalf("round %d: %s finds %v %v with a history, and %v %v without", round, query, names, scores, wantNames, wantScores)
			}
			names, scores, _ = kept.findAt("agent://bob", query, at)
			wantNames, wantScores, _ = own.findAt("agent://bob", query, at)
			if !reflect.DeepEqual(names, wantNames) || !reflect.DeepEqual(scores, wantScores) {
				t.Fatalf("round %d: at %d %s finds %v %v, and without Ann's texts %v %v", round, at, query, names, scores, wantNames, wantScores)
			}
		}
	}
	if !removed {
		t.Error("no text was removed")
	}
}
