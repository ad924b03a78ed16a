package search_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"koine/internal/query/pattern"
	"koine/internal/search"
	"koine/kg"
)

// foundBy returns the hits of a source in a snapshot, in the order of a scan.
func (f *fixture) foundBy(s *kg.Snapshot, query string, scores, resumed bool) (pattern.TextHits, []pattern.TextHit) {
	f.t.Helper()
	source, err := f.Source(query, search.Filter{}, false)
	if err != nil {
		f.t.Fatal(err)
	}
	hits, err := source.Find(f.t.Context(), s, pattern.TextUse{Scores: scores, Resumed: resumed})
	if err != nil {
		f.t.Fatal(err)
	}
	var list []pattern.TextHit
	for hit, err := range hits.Scan(kg.ID{}) {
		if err != nil {
			f.t.Fatal(err)
		}
		list = append(list, hit)
	}
	return hits, list
}

// A source finds in a snapshot the hits of a search when the snapshot was taken, with the same
// scores at that time, whatever was added and removed since; as a scan, from any hit on, and one
// by one. Its state stays the same.
func TestSourceFindsWhatTheSnapshotShows(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	random := rand.New(rand.NewPCG(7, 1))
	vocabulary := strings.Fields("client server http answers log request requests crystal water")
	queries := []string{"client", "http answer", "wat* -log", `"client server"`, `request -"http answers"`, "requested -crystal"}
	written := map[kg.Quad]bool{}
	change := func() {
		var patches []kg.Patch
		for range 1 + random.IntN(8) {
			if random.IntN(3) == 0 && len(written) > 0 {
				quads := slices.SortedFunc(maps.Keys(written), func(a, b kg.Quad) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
				q := quads[random.IntN(len(quads))]
				delete(written, q)
				patches = append(patches, kg.Patch{Op: kg.Remove, Quad: q})
				continue
			}
			var list []string
			for range 1 + random.IntN(4) {
				list = append(list, vocabulary[random.IntN(len(vocabulary))])
			}
			p := text([]string{"", "private:ann", "g"}[random.IntN(3)], fmt.Sprint(random.IntN(12)), fmt.Sprint("p", random.IntN(2)), strings.Join(list, " "))
			written[p.Quad] = true
			patches = append(patches, p)
		}
		f.apply(patches...)
	}
	type held struct {
		snapshot *kg.Snapshot
		want     map[string]map[string]float64
		states   map[string]uint64
	}
	var all []held
	compared, departed := 0, 0
	check := func(h *held, fresh bool) {
		for _, query := range queries {
			hits, list := f.foundBy(h.snapshot, query, fresh, false)
			got := map[string]float64{}
			for i, hit := range list {
				name, err := h.snapshot.Term(hit.ID)
				if err != nil {
					t.Fatal(err)
				}
				got[name.Value()[len("urn:"):]] = hit.Score
				var rest []pattern.TextHit
				for hit := range hits.Scan(hit.ID) {
					rest = append(rest, hit)
				}
				if !slices.Equal(rest, list[i:]) {
					t.Fatalf("%s: from %v: got %v, want %v", query, name, rest, list[i:])
				}
			}
			want := h.want[query]
			if fresh && !maps.Equal(got, want) || !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
				t.Fatalf("revision %d of %d: %s finds %v, want %v", h.snapshot.Revision(), f.store.Head().Revision, query, got, want)
			}
			_, now := f.find("agent://bob", query)
			if compared++; len(now) != len(want) {
				departed++
			}
			for n := range 12 {
				id, known, err := h.snapshot.ID(kg.IRI("urn:" + fmt.Sprint(n)))
				if err != nil {
					t.Fatal(err)
				}
				_, is := want[fmt.Sprint(n)]
				if _, ok, err := hits.Hit(id); known && (ok != is || err != nil) {
					t.Fatalf("revision %d: %s: %d is a hit: %t, %v", h.snapshot.Revision(), query, n, ok, err)
				}
			}
			plain, _ := f.foundBy(h.snapshot, query, false, false)
			if state := plain.State(); fresh {
				h.states[query] = state
			} else if state != h.states[query] {
				t.Fatalf("revision %d: %s has another state", h.snapshot.Revision(), query)
			}
		}
	}
	for range 30 {
		change()
		if err := f.WaitFor(t.Context(), f.store.Head().Revision); err != nil {
			t.Fatal(err)
		}
		s, err := f.store.View(t.Context(), kg.View{Principal: kg.Principal{ID: "agent://bob"}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		h := held{s, map[string]map[string]float64{}, map[string]uint64{}}
		for _, query := range queries {
			names, scores := f.find("agent://bob", query)
			h.want[query] = map[string]float64{}
			for i := range names {
				h.want[query][names[i]] = scores[i]
			}
		}
		check(&h, true)
		if all = append(all, h); len(all) > 5 {
			check(&all[random.IntN(len(all))], false)
		}
	}
	if departed < compared/20 {
		t.Errorf("only %d of %d answers are not those of now", departed, compared)
	}
}

// Past the bound of departures that are remembered, and while the index does not know the snapshot, a source
// says that it cannot answer.
func TestSourceKnowsItsBounds(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	f.apply(text("", "a", "label", "client"), text("g", "b", "label", "client"))
	old, err := f.store.View(t.Context(), kg.View{})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	whole, list := f.foundBy(old, "client", false, false)
	if len(list) != 2 {
		t.Fatalf("got %v", list)
	}
	graph := kg.IRI("urn:g")
	large := func(yield func(kg.Quad, error) bool) { // too large for a commit of single changes
		for n := range 9 {
			if !yield(kg.Quad{Subject: kg.IRI("urn:b"), Predicate: kg.IRI("urn:label"), Object: kg.String(fmt.Sprint(n, strings.Repeat(" ", 1<<20))), Graph: graph}, nil) {
				return
			}
		}
	}
	if report, err := f.store.ReplaceGraph(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://ann"}}, graph, large, kg.ReplaceOptions{}); err != nil || !report.Whole {
		t.Fatal(report, err)
	}
	f.want("agent://bob", "client", "a")
	source, err := f.Source("client", search.Filter{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Find(t.Context(), old, pattern.TextUse{}); kg.CodeOf(err) != kg.CodeOverloaded {
		t.Errorf("a snapshot from before a replacement: got %v", err)
	}
	before, list := f.foundBy(old, "client", false, true)
	if len(list) != 1 || before.State() == whole.State() {
		t.Errorf("resumed, it finds %v with the same state as before: %t", list, before.State() == whole.State())
	}
	if source, err = f.Source("client", search.Filter{}, true); err != nil {
		t.Fatal(err)
	}
	if hits, err := source.Find(t.Context(), old, pattern.TextUse{}); err != nil || hits.State() != before.State() {
		t.Errorf("a view of the past: got %v", err)
	}
	remove := text("", "a", "label", "client")
	remove.Op = kg.Remove
	f.apply(remove)
	f.want("agent://bob", "client", "")
	if after, _ := f.foundBy(old, "client", false, true); after.State() == before.State() {
		t.Error("the state of what is no longer known does not change with texts that go")
	}
}
