package kg_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/kgtest"
)

// TestSweep proves that a Sweep returns for each pattern the same as MatchIDs, for any
// order of the patterns, in views of the present and of the past, with some of the index in
// Badger and some in memory.
func TestSweep(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	s := kgtest.Disk(t, kg.Options{MemTableBytes: kg.MinMemTableBytes})
	const commits = 60
	for i := range commits {
		if i == commits*2/3 {
			s.Reopen() // all so far goes to Badger
		}
		scatter(t, s, dice)
	}
	for _, v := range []kg.View{{}, {At: commits / 2}, {Graphs: []kg.Term{kg.IRI("urn:g1")}}, {MinCertainty: 0.5}, {At: commits / 3, MinCertainty: 0.5}} {
		t.Run(fmt.Sprintf("at %d graphs %v certainty %v", v.At, v.Graphs, v.MinCertainty), func(t *testing.T) {
			snap, err := s.View(t.Context(), v)
			if err != nil {
				t.Fatal(err)
			}
			defer snap.Close()
			for range 40 {
				sweepAsMatched(t, snap, dice)
			}
		})
	}
}

// scatter makes a commit of random patches over few terms.
func scatter(t *testing.T, s *kgtest.Store, dice *rand.Rand) {
	_, err := s.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
		for range 40 {
			p := kg.Patch{Op: kg.Add, Certainty: dice.Float64(), HasCertainty: true, Quad: kg.Quad{
				Subject: scattered("s", 120, dice), Predicate: scattered("p", 6, dice), Object: scattered("s", 40, dice), Graph: kg.DefaultGraph,
			}}
			if dice.IntN(2) == 0 {
				p.Quad.Graph = scattered("g", 2, dice)
			}
			if dice.IntN(3) == 0 {
				p.Quad.Object = kg.String(fmt.Sprintf("a text with the number %d", dice.IntN(30)))
			}
			if dice.IntN(4) == 0 {
				p.Op, p.HasCertainty, p.Certainty = kg.Remove, false, 0
			}
			if err := tx.Apply(p); err != nil && kg.CodeOf(err) != kg.CodeNotFound {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func scattered(kind string, n int, dice *rand.Rand) kg.Term {
	return kg.IRI(fmt.Sprintf("urn:%s%d", kind, dice.IntN(n)))
}

// sweepAsMatched compares one sweep over random patterns of one shape with as
// many scans.
func sweepAsMatched(t *testing.T, snap *kg.Snapshot, dice *rand.Rand) {
	t.Helper()
	patterns := somePatterns(t, snap, dice)
	sweep := snap.Sweep()
	defer sweep.Close()
	for i, p := range patterns {
		want := matched(t, snap, p, nil)
		var after *kg.IDQuad
		if len(want) > 1 && dice.IntN(8) == 0 {
			k := dice.IntN(len(want))
			after, want = &want[k].IDQuad, want[k+1:]
		}
		enough := len(want) + 1
		if dice.IntN(4) == 0 { // go on before its end
			enough = dice.IntN(enough)
			want = want[:enough]
		}
		var got []kg.Row
		for sweep.Seek(p, after); len(got) < enough && sweep.Next(); {
			got = append(got, *sweep.Row())
		}
		if sweep.Err() != nil || !slices.EqualFunc(got, want, func(a, b kg.Row) bool { return a.IDQuad == b.IDQuad }) {
			t.Fatalf("pattern %d of %d, %x behind %v: got %d rows, want %d; %v", i, len(patterns), p, after, len(got), len(want), sweep.Err())
		}
	}
}

// somePatterns takes subjects, or objects, or both ends with a predicate, out
// of the statements: mostly ascending, sometimes not, some of one order only.
func somePatterns(t *testing.T, snap *kg.Snapshot, dice *rand.Rand) (patterns []kg.IDPattern) {
	rows := matched(t, snap, kg.IDPattern{}, nil)
	shape := dice.IntN(5)
	for _, row := range rows {
		if dice.IntN(1+dice.IntN(20)) > 0 {
			continue
		}
		p := [...]kg.IDPattern{
			{Subject: row.Subject}, {Subject: row.Subject, Predicate: row.Predicate}, {Object: row.Object},
			{Predicate: row.Predicate, Object: row.Object}, {Subject: row.Subject, Graph: row.Graph},
		}[shape]
		if dice.IntN(10) == 0 {
			p.Predicate = row.Predicate
		}
		patterns = append(patterns, p)
	}
	if dice.IntN(3) == 0 {
		dice.Shuffle(len(patterns), func(i, j int) { patterns[i], patterns[j] = patterns[j], patterns[i] })
	}
	return patterns
}

func matched(t *testing.T, snap *kg.Snapshot, p kg.IDPattern, after *kg.IDQuad) (rows []kg.Row) {
	t.Helper()
	for row, err := range snap.MatchIDs(p, after) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestSweepIsOneScan proves that patterns of one order are one scan, for any number of
// patterns.
func TestSweepIsOneScan(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	dice := rand.New(rand.NewPCG(1, 2))
	scatter(t, s, dice)
	for _, n := range []int{1, 10, 100} {
		snap, err := s.View(t.Context(), kg.View{})
		if err != nil {
			t.Fatal(err)
		}
		sweep := snap.Sweep()
		for range n {
			id, _, err := snap.ID(scattered("s", 120, dice))
			if err != nil {
				t.Fatal(err)
			}
			sweep.Seek(kg.IDPattern{Subject: id, Predicate: id}, nil)
			sweep.Next()
		}
		sweep.Close()
		if got := snap.Scans(); got != 1 || sweep.Err() != nil {
			t.Errorf("%d patterns: %d scans, want 1; %v", n, got, sweep.Err())
		}
		snap.Close()
	}
}
