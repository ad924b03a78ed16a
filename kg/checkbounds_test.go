package kg_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"koine/internal/extsort"
	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/internal/wal/waltest"
)

// numbered is a closed store with journals, one of which lacks a number, with many added
// and removed statements.
func numbered(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := openStore(t, dir, tinyLog())
	w := newWorker(21, "w")
	w.owns = true
	w.work(t, s, 40)
	_, err := s.Update(within(t), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
		for i, n := range []int64{1, 2, 3, 5, 7} {
			for _, graph := range []string{"x", "y"} {
				if graph == "y" && n > 3 {
					continue
				}
				q := kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s", i)), Predicate: kg.Sequence, Object: kg.Integer(n), Graph: kg.IRI(kg.JournalGraphPrefix + graph)}
				if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.work(t, s, 40)
	mustClose(t, s)
	return dir
}

// editRows changes the index of a closed store: edit gives the rows to put and to take
// away.
func editRows(edit func(rows []string) (put, gone []string)) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		s := openStore(t, dir, tinyLog())
		rows, err := s.IndexRows()
		if err != nil {
			t.Fatal(err)
		}
		head := s.Head().Revision
		mustClose(t, s)
		put, gone := edit(rows)
		if err := kg.ApplyRows(dir, tinyLog(), put, gone, head); err != nil {
			t.Fatal(err)
		}
	}
}

// thirdOf is each third row under a prefix.
func thirdOf(rows []string, prefix string) (third []string) {
	n := 0
	for _, row := range rows {
		if strings.HasPrefix(row, prefix) {
			if n%3 == 0 {
				third = append(third, row)
			}
			n++
		}
	}
	return third
}

// spoil changes each third row under a prefix: it is missing, has another value, or a stray
// one is added.
func spoil(how, prefix string) func(*testing.T, string) {
	return editRows(func(rows []string) (put, gone []string) {
		for _, row := range thirdOf(rows, prefix) {
			key, value, _ := strings.Cut(row, " = ")
			last := map[bool]string{true: "2", false: "1"}[strings.HasSuffix(value, "1")]
			switch how {
			case "missing":
				gone = append(gone, row)
			case "changed":
				put = append(put, row[:len(row)-1]+last)
			case "extra":
				put = append(put, key[:len(key)-2]+"7f = "+value)
			}
		}
		return put, gone
	})
}

// bringBack puts statements into SPOG that were removed, as the past has them.
func bringBack(rows []string) (put, gone []string) {
	for _, row := range rows {
		if quad, past := strings.CutPrefix(row, "18"); past {
			_, value, _ := strings.Cut(quad, " = ")
			key := "10" + quad[:72] + " = "
			if !slices.ContainsFunc(rows, func(r string) bool { return strings.HasPrefix(r, key) }) {
				put = append(put, key+value)
			}
		}
	}
	return put, nil
}

// agedRows makes statements exist since the first revision, with the same assertions.
func agedRows(rows []string) (put, gone []string) {
	for _, row := range thirdOf(rows, "10") {
		key, value, _ := strings.Cut(row, " = ")
		put = append(put, key+" = "+value[:2]+"01"+value[4:]) // behind the version
	}
	return put, nil
}

// oneNumber has terms share the number of the first of them.
func oneNumber(rows []string) (put, gone []string) {
	third := thirdOf(rows, "0100")
	_, number, _ := strings.Cut(third[0], " = ")
	for _, row := range third {
		key, _, _ := strings.Cut(row, " = ")
		put = append(put, key+" = "+number)
	}
	return put, nil
}

// A check has the same result with its data in memory or in files, for stores without
// faults and with damage in any part, and leaves no file.
func TestCheckBounds(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	t.Parallel()
	dir := numbered(t)
	spoils := map[string]func(*testing.T, string){
		"nothing": func(*testing.T, string) {},
		"a fifth": spoilIndex,
		"log": func(t *testing.T, dir string) {
			paths := filesOf(t, filepath.Join(dir, "log", "*.wal"))
			if err := waltest.Flip(paths[len(paths)/2], 200, 1); err != nil {
				t.Fatal(err)
			}
		},
		"cut": func(t *testing.T, dir string) { cutLog(t, dir, 50) },
		"cut, a fifth": func(t *testing.T, dir string) {
			spoilIndex(t, dir)
			cutLog(t, dir, 50)
		},
		"aged":               editRows(agedRows),
		"one number":         editRows(oneNumber),
		"removed, but there": editRows(bringBack),
		"cut, removed, but there": func(t *testing.T, dir string) {
			editRows(bringBack)(t, dir)
			cutLog(t, dir, 10)
		},
	}
	// The orders, the past, last changes and counts; the dictionary by its texts and its
	// numbers.
	says := map[string][]string{
		"nothing":                 {"has number 5 where 4 comes next"},
		"log":                     {"log: the log is damaged"},
		"missing 10":              {"order 11: ", " is not in SPOG", "index: lacks ", "the log makes ", " says "},
		"changed 10":              {"is backed otherwise than the log says"},
		"extra 10":                {"order 11: ", " keys for ", "the log makes "},
		"missing 14":              {"order 14: "},
		"extra 12":                {"order 12: ", " is not in SPOG"},
		"missing 18":              {"past order 11: ", " is not what the log says", "intervals of the past, the log makes "},
		"extra 1b":                {"past order 13: ", " keys for "},
		"missing 20":              {"last change of ", "last changes, the log makes "},
		"changed 20":              {"last change of ", ", the log says "},
		"missing 30":              {"count: key 30", "is missing, there are "},
		"extra 34":                {"count: key 34"},
		"changed 31":              {"count: key 31"},
		"missing 0100":            {"has no way back", "the dictionary lacks "},
		"missing 02":              {"comes next"},
		"missing 32":              {"the language or datatype of "},
		"cut, removed, but there": {"which the log removed"},
		"removed, but there":      {"which the log removed"},
		"aged":                    {"is backed otherwise than the log says"},
		"one number":              {" is found under number ", "index: lacks "},
	}
	for name := range says {
		if how, prefix, _ := strings.Cut(name, " "); spoils[name] == nil {
			spoils[name] = spoil(how, prefix)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spoils)) {
		t.Run(name, func(t *testing.T) {
			spoiled := filepath.Join(t.TempDir(), "spoiled")
			copyTree(t, dir, spoiled, nil)
			spoils[name](t, spoiled)
			check := func(SortBytes, counted int) string {
				s := openStore(t, spoiled, tinyLog()) // with nothing in its caches
				defer mustClose(t, s)
				r, err := s.Maintenance().Check(within(t), kg.CheckOptions{MaxProblems: 1 << 20}.WithBounds(SortBytes, counted))
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range says[name] {
					if !slices.ContainsFunc(r.Problems, func(q string) bool { return strings.Contains(q, p) }) {
						t.Errorf("at %d, %d: nothing says %q: %s", SortBytes, counted, p, strings.Join(r.Problems, "\n"))
					}
				}
				slices.Sort(r.Problems)
				return fmt.Sprint(r.Revision, r.Statements, r.Past, r.Terms, r.Entries, r.Total, "\n", strings.Join(r.Problems, "\n"))
			}
			want := check(0, 0)
			for _, bound := range [][2]int{{1, 1}, {1000, 5}} {
				if got := check(bound[0], bound[1]); got != want {
					t.Errorf("at %v: %s\nin memory: %s", bound, got, want)
				}
			}
			noTemps(t, spoiled)
		})
	}
}

// A check tells of each checkStep keys and changes, also of those within one entry of the log:
// that is when its caller gives back the pages of the index that the step has read. Without that
// they grow with the index.
func TestCheckStepsWithinEntries(t *testing.T) {
	t.Parallel()
	const changes = 10 * kg.CheckStep
	s := openStore(t, t.TempDir(), tinyLog())
	defer mustClose(t, s)
	_, err := s.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) (err error) {
		for i := 0; i < changes && err == nil; i++ {
			q := kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s", i)), Predicate: kg.IRI("urn:p"), Object: kg.IRI(fmt.Sprint("urn:o", i))}
			err = tx.Apply(kg.Patch{Op: kg.Add, Quad: q})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	steps := make(map[string]int)
	r, err := s.Maintenance().Check(within(t), kg.CheckOptions{Progress: func(part string, _ uint64) { steps[part]++ }})
	if err != nil || !r.Clean() {
		t.Fatal(r, err)
	}
	for _, part := range []string{"statements", "other orders", "terms by number", "log", "index beside the log", "last changes"} {
		if steps[part] < changes/kg.CheckStep {
			t.Errorf("%s: told %d times of %d changes, want every %d", part, steps[part], changes, kg.CheckStep)
		}
	}
}

func noTemps(t *testing.T, dir string) {
	t.Helper()
	if left, err := filepath.Glob(filepath.Join(dir, "sorting-*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left behind, %v", left, err)
	}
}

// A check whose context ends, that has no space for its files, or cannot create them ends
// with that error, and leaves nothing behind; the file of a killed check is removed when
// the store is opened.
func TestCheckEnds(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	dir := numbered(t)
	temp := filepath.Join(dir, strings.ReplaceAll(extsort.TempPattern, "*", "1"))
	if err := os.WriteFile(temp, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := tinyLog()
	free := uint64(1 << 40)
	o.FreeBytes = func(string) (uint64, error) { return free, nil }
	s := openStore(t, dir, o)
	noTemps(t, dir)
	ctx, cancel := context.WithCancel(within(t))
	cancel()
	files := kg.CheckOptions{}.WithBounds(1, 1)
	if r, err := s.Maintenance().Check(ctx, files); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("cancelled: %+v, %v", r, err)
	}
	free = 0
	if r, err := s.Maintenance().Check(within(t), files); kg.CodeOf(err) != kg.CodeDiskFull || r != nil {
		t.Errorf("without room: %+v, %v", r, err)
	}
	if r, err := s.Maintenance().Check(within(t), kg.CheckOptions{}); err != nil || r.Total != 1 {
		t.Errorf("without room, in memory: %+v, %v", r, err)
	}
	noTemps(t, dir)
}
