package kg

import (
	"fmt"
	"slices"
	"testing"

	"koine/kg/internal/index"
)

// openingKV counts the cursors that are open at one time, and all that were opened.
type openingKV struct {
	index.KV
	open, most, opened int
}

type openCursor struct {
	index.Cursor
	of *openingKV
}

func (c *openingKV) Scan(prefix []byte) index.Cursor {
	c.open, c.opened = c.open+1, c.opened+1
	c.most = max(c.most, c.open)
	return &openCursor{c.KV.Scan(prefix), c}
}

func (c *openCursor) Close() {
	c.of.open--
	c.Cursor.Close()
}

// TestVersionsOfManyGenerations shows that the history of a graph that was replaced many
// times has the iterators of one scan open at a time, reads the generations of the
// requested revisions and no others, and returns the same in pieces of any size.
func TestVersionsOfManyGenerations(t *testing.T) {
	s := openStore(t, t.TempDir(), smallWhole())
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	const generations, window = 30, 60
	var revisions []Revision
	for i := range generations { // each loses one of those before, and has a new one
		revisions = append(revisions, replaceWith(t, s, m, wholeQuads(i, i+window)).Revision)
	}
	versions := func(at Revision, p Pattern) (lines []string, kv *openingKV) {
		t.Helper()
		v, err := s.View(t.Context(), View{At: at, AllGraphs: true})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		kv = &openingKV{KV: v.kv}
		v.kv = kv
		ids, _, err := v.PatternIDs(p)
		if err != nil {
			t.Fatal(err)
		}
		for version, err := range v.Versions(ids, nil) {
			if err != nil {
				t.Fatal(err)
			}
			q, err := v.Quad(version.Row)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprint(q.Object.Value(), " ", version.From, "-", version.To))
		}
		slices.Sort(lines)
		if kv.open != 0 {
			t.Errorf("%d cursors stay open", kv.open)
		}
		return lines, kv
	}
	want := func(newest int) (lines []string) { // as of the generation
		for i := range newest + window {
			from, to := revisions[max(0, i-window+1)], Revision(0)
			if i < newest {
				to = revisions[i+1]
			}
			lines = append(lines, fmt.Sprint(wholeQuad(i).Object.Value(), " ", from, "-", to))
		}
		slices.Sort(lines)
		return lines
	}
	for _, p := range []Pattern{{Graph: wholeGraph}, {}} {
		got, kv := versions(0, p)
		if w := want(generations - 1); !slices.Equal(got, w) {
			t.Errorf("%v has the versions\n%q, want\n%q", p, got, w)
		}
		if kv.most > 2 { // the present, and the past
			t.Errorf("%v has %d cursors open at a time", p, kv.most)
		}
	}
	const early = 2
	got, kv := versions(revisions[early], Pattern{Graph: wholeGraph})
	if w := want(early); !slices.Equal(got, w) {
		t.Errorf("at an early revision there are the versions\n%q, want\n%q", got, w)
	}
	// The graph before, and three generations, each in pieces of 8, 16, 32 and the rest.
	if most := 2 * (1 + (early+1)*4); kv.opened > most {
		t.Errorf("at an early revision %d cursors are opened, want at most %d", kv.opened, most)
	}
}
