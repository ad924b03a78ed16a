package kg_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

var (
	cutSeed = flag.Uint64("kg.cutseed", 0, "seed of TestApplyCutShortAtRandom (0: a new one for each run)")
	cutRuns = flag.Int("kg.cutruns", 1, "how many stores TestApplyCutShortAtRandom makes")
)

// TestApplyCutShortAtRandom shows that an index which has a part of the keys of later
// revisions, once or twice over, gets those of the log: after updates, bulk loads, and
// replacements and deletions of the graphs that they write to.
func TestApplyCutShortAtRandom(t *testing.T) {
	slowtest.WithoutRace(t)
	t.Parallel()
	seed := *cutSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	for i := range *cutRuns {
		t.Run(fmt.Sprint("seed ", seed+uint64(i)), func(t *testing.T) { cutShortAtRandom(t, seed+uint64(i)) })
	}
}

func cutShortAtRandom(t *testing.T, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 4))
	o := smallLog(kg.Faults{BulkFrom: 1, WholeFrom: 20, WholeCommit: 12})
	dir, early := t.TempDir(), filepath.Join(t.TempDir(), "early")
	s := openStore(t, dir, o)
	w := newWorker(seed, "w")
	task := 0
	changeAtRandom := func() {
		task++
		graph := exchange{n: dice.IntN(2)}.graph()
		var err error
		switch dice.IntN(10) {
		case 0:
			_, err = s.Load(within(t), kg.Meta{Principal: tester}, loadedQuads(graph, task), kg.LoadOptions{})
		case 1:
			_, err = s.DropGraph(within(t), kg.Meta{Principal: kg.SystemPrincipal()}, graph, kg.DropOptions{Anew: dice.IntN(2) == 0})
		case 2, 3, 4:
			e := exchange{n: 1 + dice.IntN(8), size: []int{3, 10, 15, 60}[dice.IntN(4)]}
			e.task = fmt.Sprintf("x.replace/%d.%d/%d", task, e.n, e.size)
			_, err = e.replace(within(t), s)
		case 5, 6:
			e := exchange{task: fmt.Sprint(task), n: dice.IntN(8), size: 1 + dice.IntN(4)}
			_, err = s.Update(within(t), kg.Meta{Principal: tester}, apply(patchesOf(e.quads())))
		default:
			w.work(t, s, 1+dice.IntN(4))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var states []indexState
	for range 4 {
		for range 2 + dice.IntN(8) {
			changeAtRandom()
		}
		nothingStray(t, s)
		rows, err := s.IndexRows()
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, indexState{rows, s.Head().Revision})
		if len(states) == 1 {
			mustClose(t, s)
			copyTree(t, filepath.Join(dir, "index"), early, nil)
			s = openStore(t, dir, o)
		}
	}
	last := states[len(states)-1]
	want := make(map[kg.Revision][]string)
	for _, state := range states {
		want[state.head] = statements(t, s, state.head)
	}
	mustClose(t, s)
	agrees := func(t *testing.T, s *kg.Store) {
		t.Helper()
		if text := checkText(t, s); !strings.Contains(text, "Total:0") {
			t.Errorf("the check says %s", text)
		}
		for r, lines := range want {
			equalLines(t, fmt.Sprint("revision ", r), lines, statements(t, s, r))
		}
	}
	for range 6 {
		first := 1 + dice.IntN(len(states)-1)
		second := first + dice.IntN(len(states)-first)
		cuts := []cutWrite{states[0].cutWriteOf(states[first], cutWrite{}, dice)}
		if dice.IntN(2) == 1 {
			cuts = append(cuts, states[0].cutWriteOf(states[second], cuts[0], dice))
		}
		compacted := dice.IntN(3) == 0
		t.Run(fmt.Sprint(cuts, ", compacted ", compacted), func(t *testing.T) {
			again := filepath.Join(t.TempDir(), "again")
			copyTree(t, dir, again, inIndex)
			copyTree(t, early, filepath.Join(again, "index"), nil)
			for _, c := range cuts {
				if err := kg.ApplyRows(again, o, c.put, c.gone, c.version); err != nil {
					t.Fatal(err)
				}
				if compacted {
					if err := kg.DropOldVersions(again, o, c.version); err != nil {
						t.Fatal(err)
					}
				}
			}
			s := openStore(t, again, readOnly(o))
			agrees(t, s)
			mustClose(t, s)
			s = openStore(t, again, o)
			nothingStray(t, s)
			rows, err := s.IndexRows()
			if err != nil {
				t.Fatal(err)
			}
			equalLines(t, "the index", last.rows, rows)
			agrees(t, s)
		})
	}
}

// loadedQuads are enough statements for a replay of their load in bulk.
func loadedQuads(graph kg.Term, task int) func(func(kg.Quad, error) bool) {
	var quads []kg.Quad
	for i := range 2_100 {
		quads = append(quads, kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:r:", i/3)), Predicate: kg.IRI(fmt.Sprint("urn:p", i%3)), Object: kg.String(fmt.Sprint("load ", task, " ", i)), Graph: graph})
	}
	return quadSeq(quads)
}

// indexState is the content of an index at a revision.
type indexState struct {
	rows []string
	head kg.Revision
}

// cutWrite is the first part of the keys of a flush.
type cutWrite struct {
	put, gone []string
	version   kg.Revision
}

func (c cutWrite) String() string {
	return fmt.Sprintf("%d put and %d removed in %d", len(c.put), len(c.gone), c.version)
}

// cutWriteOf returns the first part of the writes that make another state of this one, mostly
// up to the records of generations. Of an earlier cut the process had all keys in memory again,
// from the log, so that its writes put or remove each of them too.
func (s indexState) cutWriteOf(next indexState, earlier cutWrite, dice *rand.Rand) cutWrite {
	keyOf := func(row string) string { key, _, _ := strings.Cut(row, " = "); return key }
	again := slices.Concat(earlier.put, earlier.gone)
	put := rowsWithout(next.rows, rowsWithout(s.rows, again, keyOf), func(row string) string { return row })
	gone := rowsWithout(slices.Concat(rowsWithout(s.rows, again, keyOf), again), next.rows, keyOf)
	all := slices.Sorted(slices.Values(slices.Concat(put, gone)))
	last := keyOf(all[max(0, len(all)-1-dice.IntN(10))])
	if dice.IntN(2) == 0 {
		last = keyOf(all[dice.IntN(len(all))])
	}
	c := cutWrite{version: next.head}
	for _, row := range put {
		if keyOf(row) <= last {
			c.put = append(c.put, row)
		}
	}
	for _, row := range gone {
		if keyOf(row) <= last {
			c.gone = append(c.gone, row)
		}
	}
	return c
}
