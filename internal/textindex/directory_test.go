package textindex

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"koine/internal/sealed"
	"koine/internal/textindex/words"
	"koine/kg"
)

func answers(t *testing.T, x *Index) (out [][]Hit) {
	t.Helper()
	for _, text := range queries {
		q, err := ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		hits, err := x.Search(context.Background(), &Request{Query: q, First: 20, Readable: func(g, _ kg.ID) bool { return g[8]%4 != 1 }})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, hits)
	}
	return out
}

func open(t *testing.T, dir, place string) *Index {
	t.Helper()
	x, at, unusable, err := Open(dir)
	if err != nil || unusable != nil || at != place {
		t.Fatalf("opened at %q, want %q: %v, %v", at, place, unusable, err)
	}
	return x
}

// An index that is opened again has the state of the last Save, and its place.
func TestSavedIndexIsOpened(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(5, 5))
	w := &world{open(t, dir, ""), map[key]Text{}}
	for _, place := range []string{"a", "b", "c", "d"} {
		w.change(random, 100)
		want := answers(t, w.index)
		if err := w.index.Save(place); err != nil {
			t.Fatal(err)
		}
		w.index.Add(Text{Value: "cell water crystal"}) // not saved
		w.index = open(t, dir, place)
		if got := answers(t, w.index); !reflect.DeepEqual(got, want) {
			t.Fatalf("after %s the answers are\n%v\nand not\n%v", place, got, want)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) > 1+2*len(w.index.segments) {
		t.Errorf("%d files for %d segments, %v", len(files), len(w.index.segments), err)
	}
}

// A file that is damaged or missing makes the index empty, and never a wrong answer.
func TestDamagedIndexIsEmpty(t *testing.T) {
	dir := t.TempDir()
	w := &world{open(t, dir, ""), map[key]Text{}}
	random := rand.New(rand.NewPCG(6, 6))
	for range 3 {
		w.change(random, 100)
		if err := w.index.Save("x"); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		kinds[f.Name()[:7]] = true
		flipped := append([]byte(nil), content...)
		flipped[len(flipped)/2] ^= 0x20
		for _, bad := range [][]byte{flipped, content[:len(content)/2], {}, nil} {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if bad != nil {
				if err := os.WriteFile(path, bad, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			x, place, unusable, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if unusable == nil || place != "" || len(answers(t, x)[0]) > 0 {
				t.Errorf("%s with %d bytes: opened at %q, %v", f.Name(), len(bad), place, unusable)
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !kinds["segment"] || !kinds["removed"] || !kinds["manifes"] {
		t.Errorf("the files are %v", kinds)
	}
	open(t, dir, "x")
}

// Searches, changes and saves at once leave the index that the changes alone leave.
func TestChangesBesideSearches(t *testing.T) {
	dir := t.TempDir()
	x := open(t, dir, "")
	done := make(chan struct{})
	var others sync.WaitGroup
	q, err := ParseQuery("cell water")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := x.Search(context.Background(), &Request{Query: q, First: 5, Readable: func(_, _ kg.ID) bool { return true }}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	others.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := x.Save("at"); err != nil {
				t.Error(err)
				return
			}
		}
	})
	random := rand.New(rand.NewPCG(9, 9))
	texts := map[key]Text{}
	for range 3000 {
		text := randomText(random, 200, 4)
		k := key{text.Subject, text.Ref}
		if before, ok := texts[k]; ok {
			x.Remove(before)
			delete(texts, k)
		} else {
			x.Add(text)
			texts[k] = text
		}
	}
	close(done)
	others.Wait()
	if err := x.Save("end"); err != nil {
		t.Fatal(err)
	}
	plainly := New()
	for _, text := range texts {
		plainly.Add(text)
	}
	if got, want := answers(t, open(t, dir, "end")), answers(t, plainly); !reflect.DeepEqual(got, want) {
		t.Errorf("the answers are\n%v\nand not\n%v", got, want)
	}
}

// A kill between two files of a Save, or within one, leaves the state of this Save or of the one
// before, and files that the next Save removes.
func TestKilledSave(t *testing.T) {
	killed := errors.New("killed")
	written := map[string]bool{} // kinds of files after which a Save ended
	for step := 1; ; step++ {
		dir := t.TempDir()
		random := rand.New(rand.NewPCG(8, 8))
		w := &world{open(t, dir, ""), map[key]Text{}}
		w.change(random, 200)
		if err := w.index.Save("before"); err != nil {
			t.Fatal(err)
		}
		before := answers(t, w.index)
		w.change(random, 100)
		after := answers(t, w.index)
		if reflect.DeepEqual(before, after) {
			t.Fatal("the changes change no answer")
		}
		files, want, place := 0, before, "before"
		w.index.wrote = func(name string) error {
			if files++; files < step {
				return nil
			}
			if name == sealed.ManifestName {
				want, place = after, "after"
			}
			written[name[:7]] = true
			return killed
		}
		err := w.index.Save("after")
		if err == nil { // it has fewer files
			break
		}
		if !errors.Is(err, killed) {
			t.Fatal(err)
		}
		for _, name := range []string{sealed.ManifestName, "segment-00000099", "removed-00000099"} {
			if err := os.WriteFile(filepath.Join(dir, name+".new"), []byte("a part of"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		x := open(t, dir, place)
		if got := answers(t, x); !reflect.DeepEqual(got, want) {
			t.Fatalf("killed after %d files, the answers are\n%v\nand not\n%v", step, got, want)
		}
		x.Add(Text{Subject: Subject{1, id(2, 999)}, Ref: Ref{id(2, 1000), id(2, 2000), id(4, 1)}, Language: words.Other, Value: "another"})
		want = answers(t, x)
		if err := x.Save("again"); err != nil {
			t.Fatal(err)
		}
		if got := answers(t, open(t, dir, "again")); !reflect.DeepEqual(got, want) {
			t.Fatalf("killed after %d files, and saved again, the answers are\n%v\nand not\n%v", step, got, want)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 1+2*len(x.segments) {
			t.Errorf("%d files for %d segments are left, %v", len(entries), len(x.segments), err)
		}
	}
	if !written["segment"] || !written["removed"] || !written["manifes"] {
		t.Errorf("a Save ended after %v", written)
	}
}

// A settled index has the same answers in one segment. A merge that is made in a file at once is
// kept by the Saves beside it, and its file goes when it is merged again.
func TestSettledIndex(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(11, 11))
	w := &world{open(t, dir, ""), map[key]Text{}}
	w.change(random, 300)
	if err := w.index.Save("a"); err != nil {
		t.Fatal(err)
	}
	w.change(random, 300)
	want := answers(t, w.index)
	if len(w.index.segments) < 3 || !w.index.Settle() || len(w.index.segments) != 1 {
		t.Fatalf("%d segments are settled", len(w.index.segments))
	}
	if w.index.Settle() {
		t.Error("a settled index is settled again")
	}
	if got := answers(t, w.index); !reflect.DeepEqual(got, want) {
		t.Fatalf("settled, the answers are\n%v\nand not\n%v", got, want)
	}
	merged, err := w.index.mergeInFile(w.index.segments)
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	if err := w.index.Save("b"); err != nil || !has(merged.file.Name) {
		t.Errorf("the file of a merge is there beside a Save: %v, %v", has(merged.file.Name), err)
	}
	w.index.segments[0] = merged
	if got := answers(t, w.index); !reflect.DeepEqual(got, want) {
		t.Fatalf("merged in a file, the answers are\n%v\nand not\n%v", got, want)
	}
	if err := w.index.Save("c"); err != nil {
		t.Fatal(err)
	}
	if got := answers(t, open(t, dir, "c")); !reflect.DeepEqual(got, want) {
		t.Fatalf("saved, the answers are\n%v\nand not\n%v", got, want)
	}
	again, err := w.index.mergeInFile(w.index.segments)
	if err != nil {
		t.Fatal(err)
	}
	w.index.names.freeName(again.file.Name)
	if err := w.index.Save("d"); err != nil || has(again.file.Name) {
		t.Errorf("the file of a merge that is not used is there: %v, %v", has(again.file.Name), err)
	}
}
