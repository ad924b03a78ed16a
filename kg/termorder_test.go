package kg_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"koine/kg"
)

// longTerms makes a closed store with long IRIs and literals, of which the index of each layout has
// some in tables and some that only the log has.
func longTerms(t *testing.T) (dir string, terms []kg.Term) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	s := openStore(t, dir, smallOptions())
	long := strings.Repeat("0123456789", 6)
	for i := range 200 {
		terms = append(terms, kg.IRI("urn:"+long+fmt.Sprint(i)), kg.String(long+fmt.Sprint("text", i)), kg.LangString(fmt.Sprint(i)+long+long, "en"))
	}
	for part := range slices.Chunk(terms, 90) {
		addTerms(t, s, part)
	}
	mustClose(t, s)
	return dir, terms
}

func addTerms(t *testing.T, s *kg.Store, terms []kg.Term) {
	t.Helper()
	if _, err := s.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
		for _, o := range terms {
			if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: o}}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// hasTerms reports the first term of which the store does not find the statement.
func hasTerms(t *testing.T, s *kg.Store, terms []kg.Term) {
	t.Helper()
	v, err := s.View(t.Context(), kg.View{Principal: tester})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, o := range terms {
		if n, err := v.Count(kg.Pattern{Object: o, Predicate: kg.IRI("urn:p")}); n != 1 || err != nil {
			t.Fatalf("%d statements with %s, %v", n, o, err)
		}
	}
}

// An index with long terms under their hash alone is upgraded in one go when it is opened, and says so
// in one line. It then has the keys of one that was never otherwise, wherever the upgrade
// was stopped before.
func TestOrderOfLongTerms(t *testing.T) {
	dir, terms := longTerms(t)
	s := openStore(t, dir, smallOptions())
	want := rowsOf(t, s)
	mustClose(t, s)
	if n, err := kg.HashTerms(dir, smallOptions()); n < len(terms) || err != nil {
		t.Fatalf("%d long terms, %v; want at least %d", n, err, len(terms))
	}

	var moments []string
	var log bytes.Buffer
	o := smallOptions().WithFaults(kg.Faults{UpgradeStep: func(step string) error {
		moments = append(moments, filepath.Join(t.TempDir(), step))
		copyTree(t, dir, moments[len(moments)-1], nil)
		return nil
	}})
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s = openStore(t, dir, o)
	hasTerms(t, s, terms)
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "upgraded the dictionary of the index") || s.Stats().ReplayedOpen != 0 {
		t.Errorf("the log has %d lines, and %d commits were replayed:\n%s", n, s.Stats().ReplayedOpen, log.String())
	}
	for _, m := range moments {
		s := openStore(t, m, smallOptions())
		if !slices.Equal(rowsOf(t, s), want) {
			t.Errorf("the index that was copied before its upgrade was %s has other keys", filepath.Base(m))
		}
		mustCheck(t, s)
		mustClose(t, s)
	}
	if len(moments) != 3 {
		t.Errorf("%d steps, want 3", len(moments))
	}
	for range 2 {
		if !slices.Equal(rowsOf(t, s), want) {
			t.Error("the upgraded index has other keys")
		}
		mustCheck(t, s)
		mustClose(t, s)
		log.Reset()
		s = openStore(t, dir, o)
		if log.Len() > 0 {
			t.Errorf("the second start says:\n%s", log.String())
		}
	}
}

// An index with long terms under their hash alone is read as it is where nothing can be written, and
// written to where there is no space for the upgrade.
func TestLongTermsByHash(t *testing.T) {
	dir, terms := longTerms(t)
	if _, err := kg.HashTerms(dir, smallOptions()); err != nil {
		t.Fatal(err)
	}
	o := smallOptions()
	o.ReadOnly = true
	s := openStore(t, dir, o)
	hasTerms(t, s, terms)
	if text := checkText(t, s); !strings.Contains(text, "Total:0") {
		t.Error(text)
	}
	if s.Stats().ReplayedOpen != 0 {
		t.Errorf("%d commits were replayed", s.Stats().ReplayedOpen)
	}
	mustClose(t, s)

	s = openStore(t, dir, smallOptions().WithFaults(kg.Faults{UpgradeStep: func(step string) error {
		if step == "removed" {
			return unix.ENOSPC
		}
		return nil
	}}))
	more := []kg.Term{kg.IRI("urn:" + strings.Repeat("new", 30)), kg.String(strings.Repeat("new", 40))}
	addTerms(t, s, more)
	all := append(slices.Clone(terms), more...)
	addTerms(t, s, all) // no term gets a second number
	hasTerms(t, s, all)
	mustCheck(t, s)
	mustClose(t, s)

	s = openStore(t, dir, smallOptions())
	hasTerms(t, s, all)
	mustCheck(t, s)
	want := rowsOf(t, s)
	mustClose(t, s)
	o = smallOptions()
	o.Rebuild = true
	s = openStore(t, dir, o)
	if !slices.Equal(rowsOf(t, s), want) {
		t.Error("the upgraded index has other keys than one that was rebuilt")
	}
}
