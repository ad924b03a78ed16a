package vectorindex

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
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
