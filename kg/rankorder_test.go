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

// valueTerms makes a closed store with literals of all kinds. Of some predicates, only the past has
// statements.
func valueTerms(t *testing.T) (dir string, terms []kg.Term) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	s := openStore(t, dir, smallOptions())
	for i := range 120 {
		terms = append(terms, kg.Typed(fmt.Sprintf("%d.5", i-60), kg.XSDDecimal), kg.Typed(fmt.Sprintf("2020-01-01T00:00:%02d.5+01:00", i%60), kg.XSDDateTime),
			kg.String(fmt.Sprint("a longer text ", i)), kg.Typed(fmt.Sprint("five", i), kg.XSDDecimal), kg.Integer(int64(i)))
	}
	for part := range slices.Chunk(terms, 90) {
		addTerms(t, s, part)
	}
	for i, o := range []kg.Term{kg.Typed("99.25", kg.XSDDecimal), kg.Typed("2021-01-01T00:00:00+02:00", kg.XSDDateTime), kg.String("another longer text")} {
		q := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI(fmt.Sprint("urn:removed", i)), Object: o, Graph: kg.DefaultGraph}
		for _, op := range []kg.Op{kg.Add, kg.Remove} {
			if _, err := s.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error { return tx.Apply(kg.Patch{Op: op, Quad: q}) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	mustClose(t, s)
	return dir, terms
}

// An index without the order of the values gets it in one go when it is opened, and says so in one
// line. It then has the keys of one that was never otherwise, wherever the upgrade was stopped before.
func TestOrderOfValues(t *testing.T) {
	dir, terms := valueTerms(t)
	s := openStore(t, dir, smallOptions())
	want := rowsOf(t, s)
	mustCheck(t, s)
	mustClose(t, s)
	if n, err := kg.UnrankTerms(dir, smallOptions()); n < 180 || err != nil {
		t.Fatalf("%d keys, %v; want at least 180", n, err)
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
	if len(moments) != 1 {
		t.Errorf("%d steps, want 1", len(moments))
	}
	for _, m := range moments {
		s := openStore(t, m, smallOptions())
		if !slices.Equal(rowsOf(t, s), want) {
			t.Errorf("the index that was copied before its upgrade was %s has other keys", filepath.Base(m))
		}
		mustCheck(t, s)
		mustClose(t, s)
	}
	if !slices.Equal(rowsOf(t, s), want) {
		t.Error("the upgraded index has other keys")
	}
	if !ranksOf(t, s) {
		t.Error("the upgraded index has no order of values")
	}
	mustCheck(t, s)
	mustClose(t, s)
	log.Reset()
	s = openStore(t, dir, o)
	if log.Len() > 0 {
		t.Errorf("the second start says:\n%s", log.String())
	}
	mustClose(t, s)
	o.Rebuild = true
	s = openStore(t, dir, o)
	if !slices.Equal(rowsOf(t, s), want) {
		t.Error("the index has other keys than one that was rebuilt")
	}
	mustCheck(t, s)
}

// ranksOf reports whether the store knows the order of its values.
func ranksOf(t *testing.T, s *kg.Store) bool {
	t.Helper()
	v, err := s.View(t.Context(), kg.View{Principal: tester})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	return kg.HasRanks(v)
}

// An index without the order of the values is read as it is where nothing can be written, and written to
// where there is no space for the upgrade.
func TestValuesWithoutOrder(t *testing.T) {
	dir, terms := valueTerms(t)
	if _, err := kg.UnrankTerms(dir, smallOptions()); err != nil {
		t.Fatal(err)
	}
	o := smallOptions()
	o.ReadOnly = true
	s := openStore(t, dir, o)
	hasTerms(t, s, terms)
	if text := checkText(t, s); !strings.Contains(text, "Total:0") || s.Stats().ReplayedOpen != 0 || ranksOf(t, s) {
		t.Errorf("%s, %d commits replayed", text, s.Stats().ReplayedOpen)
	}
	mustClose(t, s)

	s = openStore(t, dir, smallOptions().WithFaults(kg.Faults{UpgradeStep: func(string) error { return unix.ENOSPC }}))
	more := []kg.Term{kg.Typed("7.125", kg.XSDDecimal), kg.String("yet another longer text")}
	addTerms(t, s, more)
	all := append(slices.Clone(terms), more...)
	hasTerms(t, s, all)
	if ranksOf(t, s) {
		t.Error("the index has an order of values without space for it")
	}
	mustCheck(t, s)
	mustClose(t, s)

	s = openStore(t, dir, smallOptions())
	hasTerms(t, s, all)
	if !ranksOf(t, s) {
		t.Error("the upgraded index has no order of values")
	}
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

// The check misses no key of the order of values, and finds those that are too many.
func TestCheckOfValues(t *testing.T) {
	for _, damage := range []struct {
		name, prefix, says string
		add                bool
	}{
		{"a value is not in order", "03", "is not in the order of the values", false},
		{"a value is in order twice", "03", "in the order of the values", true},
		{"a kind is not recorded", "36", "is not recorded", false},
	} {
		t.Run(damage.name, func(t *testing.T) {
			dir, _ := valueTerms(t)
			s := openStore(t, dir, smallOptions())
			var row string
			for _, r := range rowsOf(t, s) {
				if strings.HasPrefix(r, damage.prefix) && (row == "" || damage.prefix == "36" && strings.HasSuffix(strings.TrimSuffix(r, " = "), "00")) {
					row = r
				}
			}
			at := s.Head().Revision
			mustClose(t, s)
			gone, rows := []string{row}, []string(nil)
			if damage.add {
				key, _, _ := strings.Cut(row, " = ")
				gone, rows = nil, []string{key[:len(key)-1] + "f = "}
			}
			if err := kg.ApplyRows(dir, smallOptions(), rows, gone, at); err != nil {
				t.Fatal(err)
			}
			s = openStore(t, dir, smallOptions())
			if text := checkText(t, s); !strings.Contains(text, damage.says) {
				t.Errorf("without %s the check says %s", row, text)
			}
		})
	}
}
