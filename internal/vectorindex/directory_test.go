package vectorindex

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"koine/internal/sealed"
	"koine/internal/slowtest"
	"koine/kg"
)

// A directory with a file that is changed, cut or missing is refused as a whole.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	x := mustOpen(t, dir, "")
	r := rand.New(rand.NewPCG(6, 6))
	k := randomKey(r, 9)
	x.Put(k, "a", randomVector(r, 5, "uniform"))
	x.Put(randomKey(r, 9), "a", randomVector(r, 5, "uniform"))
	x.Remove(k)
	if err := x.Save("x"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, want error) {
			t.Helper()
			if x, place, unusable, err := Open(dir); err != nil || !errors.Is(unusable, want) || place != "" || x.Len() != 0 {
				t.Errorf("%s %s: %q, %v, %v", e.Name(), what, place, unusable, err)
			}
		}
		for i := range whole {
			changed := bytes.Clone(whole)
			changed[i] ^= 0x10
			if err := os.WriteFile(path, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			check("changed", sealed.ErrDamaged)
		}
		if err := os.WriteFile(path, whole[:len(whole)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		check("cut", sealed.ErrDamaged)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		check("missing", fs.ErrNotExist)
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustOpen(t, dir, "x")
}

// Searches, changes and saves go on at once, and nothing is lost.
func TestConcurrentUse(t *testing.T) {
	const dimension = 4096
	each := slowtest.Size(700, 500) // of which a chunk has 819
	dir := t.TempDir()
	x := mustOpen(t, dir, "")
	var writers, others sync.WaitGroup
	stop := make(chan struct{})
	for w := range 2 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 7))
			for i := range each {
				k := Key{Owner: uint64(w*each + i), Subject: Subject{Order: uint64(w*each + i)}}
				x.Put(k, "a", randomVector(r, dimension, "few"))
				if i%3 == 0 {
					x.Remove(k)
				}
			}
		})
	}
	repeat := func(act func() error) {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := act(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all := Rights{Readable: func(_, _ kg.ID) bool { return true }}
	query := randomVector(rand.New(rand.NewPCG(8, 8)), dimension, "few")
	repeat(func() error { return x.Save("x") })
	repeat(func() error {
		_, err := x.Search(context.Background(), &Request{Rights: all, Model: "a", Vector: query, First: 5})
		return err
	})
	writers.Wait()
	close(stop)
	others.Wait()
	if err := x.Save("end"); err != nil {
		t.Fatal(err)
	}
	if n, want := mustOpen(t, dir, "end").Len(), 2*(each-(each+2)/3); n != want {
		t.Errorf("%d vectors after all, want %d", n, want)
	}
}

// The files of a save are those of one save, also while others follow.
func TestOpenFilesBesideSaves(t *testing.T) {
	const each, size = 3, 4 // vectors of a save, and numbers of a vector
	dir := t.TempDir()
	if files, err := OpenFiles(dir); len(files) != 0 || err != nil {
		t.Errorf("nothing saved: %d files, %v", len(files), err)
	}
	x := mustOpen(t, dir, "")
	if err := x.Save("0"); err != nil {
		t.Fatal(err)
	}
	if files, err := OpenFiles(dir); len(files) != 0 || err != nil {
		t.Errorf("no vectors: %d files, %v", len(files), err)
	}
	key := func(save, n int) Key { return Key{Owner: uint64(save*each + n)} }
	put := func(save int) error {
		for n := range each {
			x.Put(key(save, n), "a", make([]float32, size))
		}
		x.Remove(key(save, 0))
		return x.Save(strconv.Itoa(save))
	}
	if err := put(1); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		for save := 2; ; save++ {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if err := put(save); err != nil {
				ended <- err
				return
			}
		}
	}()
	copied, seen := filepath.Join(t.TempDir(), "copied"), map[string]bool{}
	for len(seen) < 20 {
		err := os.RemoveAll(copied)
		if err == nil {
			err = os.Mkdir(copied, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		var files []*os.File
		for range 100 { // most of them while nothing is replaced
			closeAll(files)
			if files, err = OpenFiles(dir); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range files {
			content, err := io.ReadAll(f)
			if err = cmp.Or(err, f.Close()); err == nil {
				err = os.WriteFile(filepath.Join(copied, filepath.Base(f.Name())), content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		c, place, unusable, err := Open(copied)
		if err != nil || unusable != nil {
			t.Fatal(err, unusable)
		}
		if save, err := strconv.Atoi(place); err != nil || c.Len() != save*(each-1) {
			t.Fatalf("%d vectors of save %q", c.Len(), place)
		}
		c.Clear()
		seen[place] = true
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	// A file that stays away is an error, and not an endless search for it.
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != sealed.ManifestName {
			err = cmp.Or(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if files, err := OpenFiles(dir); len(files) != 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %d files, %v", len(files), err)
	}
}
