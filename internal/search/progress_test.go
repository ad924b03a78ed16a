package search_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"koine/internal/search"
	"koine/kg"
)

// searchNow searches at the head without waiting for the index.
func (f *fixture) searchNow(query string) search.Page {
	f.t.Helper()
	s, err := f.store.View(f.t.Context(), kg.View{Principal: kg.Principal{ID: "agent://ann"}})
	if err != nil {
		f.t.Fatal(err)
	}
	defer s.Close()
	page, err := f.Search(f.t.Context(), s, search.Request{Query: query, First: 10})
	if err != nil {
		f.t.Fatal(err)
	}
	return page
}

// reopen opens the search again, without following the log yet.
func (f *fixture) reopen() {
	f.t.Helper()
	service, err := search.Open(f.store, search.Options{Dir: filepath.Join(f.dir, "search")})
	if err != nil {
		f.t.Fatal(err)
	}
	f.Service = service
}

// An index that is damaged or missing is built anew while searches are answered, and say so.
func TestUnusableIndexIsBuiltAnew(t *testing.T) {
	f := open(t, t.TempDir())
	defer func() { f.close() }()
	var patches []kg.Patch
	for i := range 50 {
		patches = append(patches, text("", fmt.Sprint("s", i), "label", fmt.Sprint("crystal ", i)))
	}
	f.apply(patches...)
	f.want("agent://ann", `"crystal 7"`, "s7")
	damage := func(pattern string, change func([]byte) []byte) func(string) error {
		return func(dir string) error {
			names, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(names) == 0 {
				return fmt.Errorf("no file %s, %w", pattern, err)
			}
			b, err := os.ReadFile(names[0])
			if err != nil {
				return err
			}
			return os.WriteFile(names[0], change(b), 0o600)
		}
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	cut := func(b []byte) []byte { return b[:len(b)/2] }
	for name, spoil := range map[string]func(string) error{
		"segment":         damage("segment-*", flip),
		"cut segment":     damage("segment-*", cut),
		"manifest":        damage("manifest", flip),
		"empty manifest":  damage("manifest", func([]byte) []byte { return nil }),
		"no directory":    os.RemoveAll,
		"no segment":      func(dir string) error { return removeAll(dir, "segment-*") },
		"no manifest":     func(dir string) error { return removeAll(dir, "manifest") },
		"of other stores": damage("manifest", func([]byte) []byte { return manifestOfOther(t) }),
	} {
		t.Run(name, func(t *testing.T) {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if err := spoil(filepath.Join(f.dir, "search")); err != nil {
				t.Fatal(err)
			}
			f.reopen()
			if page := f.searchNow(`"crystal 7"`); !page.Building || page.Revision != 0 || len(page.Hits) > 0 {
				t.Errorf("before it is built, the search answers %+v", page)
			}
			if p := f.Progress(); !p.Building || p.Done != 0 || p.Total != f.store.Stats().Statements || p.Behind != uint64(f.store.Head().Revision) {
				t.Errorf("before it is built, the progress is %+v", p)
			}
			f.Start()
			f.want("agent://ann", `"crystal 7"`, "s7")
			if p := f.Progress(); p.Building || p.CatchingUp || p.Done != p.Total || p.Texts != 50 || p.Behind != 0 || p.Segments == 0 || p.Bytes == 0 {
				t.Errorf("after it is built, the progress is %+v", p)
			}
		})
	}
}

func removeAll(dir, pattern string) error {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	for _, name := range names {
		if err == nil {
			err = os.Remove(name)
		}
	}
	return err
}

// manifestOfOther returns the manifest of an empty index of another store.
func manifestOfOther(t *testing.T) []byte {
	other := open(t, t.TempDir())
	other.apply(text("", "a", "label", "crystal 7"))
	other.want("agent://ann", `"crystal 7"`, "a")
	other.close()
	b, err := os.ReadFile(filepath.Join(other.dir, "search", "manifest"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// An index that is far behind answers with its texts, says how far it is, and catches up.
func TestIndexBehindCatchesUp(t *testing.T) {
	f := open(t, t.TempDir())
	defer func() { f.close() }()
	f.apply(text("", "old", "label", "crystal"))
	f.want("agent://ann", "crystal", "old")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	saved := f.store.Head().Revision
	const commits = 300
	for i := range commits {
		f.apply(text("", fmt.Sprint("s", i), "label", fmt.Sprint("water ", i)))
	}
	f.reopen()
	page := f.searchNow("crystal water")
	if page.Building || page.Revision != saved || len(page.Hits) != 1 {
		t.Errorf("the search answers %+v, and it was saved at %d", page, saved)
	}
	if p := f.Progress(); p.Building || !p.CatchingUp || p.Done != 0 || p.Total != commits || p.Behind != commits || p.Revision != saved {
		t.Errorf("the progress is %+v", p)
	}
	f.Start()
	f.want("agent://ann", `"water 299"`, "s299")
	f.apply(text("", "new", "label", "salt"))
	f.want("agent://ann", "salt", "new")
	if p := f.Progress(); p.CatchingUp || p.Done != commits || p.Total != commits || p.Behind != 0 {
		t.Errorf("the progress is %+v", p)
	}
}

// A search waits for a small index that is being built, so that callers find what they wrote a
// moment after the start; and not for a large one.
func TestSearchesWaitForASmallIndex(t *testing.T) {
	for _, most := range []bool{true, false} {
		f := open(t, t.TempDir())
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		n := search.MaxAwaited
		if !most {
			n++
		}
		var patches []kg.Patch
		for i := range n {
			patches = append(patches, text("", "s", "label", fmt.Sprint("crystal ", i)))
		}
		f.apply(patches...)
		if err := os.RemoveAll(filepath.Join(f.dir, "search")); err != nil {
			t.Fatal(err)
		}
		f.reopen()
		f.MarkFollowing()
		found := make(chan search.Page)
		go func() { found <- f.searchNow("crystal") }()
		if most {
			for f.Waiting() == 0 {
				runtime.Gosched()
			}
			f.Start()
		}
		if page := <-found; page.Building == most || (len(page.Hits) == 1) != most {
			t.Errorf("of %d statements the search answers %d hits at revision %d, building: %v", n, len(page.Hits), page.Revision, page.Building)
		}
		if !most {
			f.Start()
		}
		f.close()
	}
}

// While the index is built, the progress grows, and texts that are there already are found.
func TestProgressWhileBuilding(t *testing.T) {
	f := open(t, t.TempDir())
	defer func() { f.close() }()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var patches []kg.Patch
	for i := range 3 * search.ReadStep {
		patches = append(patches, text("", fmt.Sprint("s", i), "label", fmt.Sprint("crystal ", i)))
	}
	f.apply(patches...)
	if err := os.RemoveAll(filepath.Join(f.dir, "search")); err != nil {
		t.Fatal(err)
	}
	f.reopen()
	var done []uint64
	ctx := looking{t.Context(), func() {
		p := f.Progress()
		if !p.Building || p.Total != 3*search.ReadStep || p.Texts+1 < p.Done || p.Behind != 1 {
			t.Errorf("the progress is %+v", p)
		}
		if page := f.searchNow("crystal"); !page.Building || len(page.Hits) != 10 || page.Revision != 0 {
			t.Errorf("the search answers %d hits at revision %d, building: %v", len(page.Hits), page.Revision, page.Building)
		}
		done = append(done, p.Done)
	}}
	if err := f.BuildIndex(ctx); err != nil {
		t.Fatal(err)
	}
	if p := f.Progress(); p.Building || p.Done != p.Total {
		t.Errorf("after %v the progress is %+v", done, p)
	}
	if !slices.IsSorted(done) || !slices.Equal(slices.Compact(done), []uint64{0, search.ReadStep, 2 * search.ReadStep, 3 * search.ReadStep}) {
		t.Errorf("the progress was %v", done)
	}
	f.Start()
}

// looking is a context that looks around whenever it is asked whether it has ended.
type looking struct {
	context.Context
	look func()
}

func (l looking) Err() error {
	l.look()
	return l.Context.Err()
}
