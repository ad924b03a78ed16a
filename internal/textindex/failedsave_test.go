package textindex

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
)

// A Save that fails loses no removal: the next one writes all of them, whichever file failed.
func TestSaveAfterAFailedOne(t *testing.T) {
	full := errors.New("full")
	for step := 1; ; step++ {
		dir := t.TempDir()
		random := rand.New(rand.NewPCG(8, 8))
		w := &world{open(t, dir, ""), map[key]Text{}}
		for _, place := range []string{"one", "two"} { // more than one segment
			w.change(random, 200)
			if err := w.index.Save(place); err != nil {
				t.Fatal(err)
			}
		}
		w.change(random, 100)
		files := 0
		w.index.wrote = func(string) error {
			if files++; files == step {
				return full
			}
			return nil
		}
		err := w.index.Save("failed")
		if err == nil { // it has fewer files
			if step < 4 {
				t.Errorf("a Save wrote %d files only", files)
			}
			return
		}
		if !errors.Is(err, full) {
			t.Fatal(err)
		}
		want := answers(t, w.index)
		if err := w.index.Save("again"); err != nil {
			t.Fatal(err)
		}
		if got := answers(t, open(t, dir, "again")); !reflect.DeepEqual(got, want) {
			t.Fatalf("file %d failed, and what was saved again is\n%v\nand not\n%v", step, got, want)
		}
	}
}
