package kg_test

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// longLiterals are statements with literals of n bytes in a graph.
func longLiterals(graph string, literals, n int) []kg.Quad {
	quads := make([]kg.Quad, literals)
	for i := range quads {
		text := fmt.Sprint(graph, i, strings.Repeat("x", n))[:n]
		quads[i] = kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI(fmt.Sprint("urn:p:", i)), Object: kg.String(text), Graph: kg.IRI(graph)}
	}
	return quads
}

func sequence(quads []kg.Quad) func(func(kg.Quad, error) bool) {
	return func(yield func(kg.Quad, error) bool) {
		for _, q := range quads {
			if !yield(q, nil) {
				return
			}
		}
	}
}

func statementsOf(t *testing.T, s *kg.Store) (quads []kg.Quad) {
	t.Helper()
	v, err := s.View(t.Context(), kg.View{Principal: tester, AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for st, err := range v.Match(kg.Pattern{}) {
		if err != nil {
			t.Fatal(err)
		}
		quads = append(quads, st.Quad)
	}
	slices.SortFunc(quads, func(a, b kg.Quad) int {
		return strings.Compare(a.Graph.Name()+a.Predicate.Name(), b.Graph.Name()+b.Predicate.Name())
	})
	return quads
}

// TestLongestLiterals writes the longest literals there can be as updates, in bulk and as
// the content of a graph, with the smallest memtables. They are read from the index, from
// one that is built from the log or from a checkpoint, and from a backup, by a store that
// takes shorter ones only.
func TestLongestLiterals(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	meta := kg.Meta{Principal: kg.SystemPrincipal()}
	longest := kg.Options{LiteralBytes: kg.MaxLiteralBytes, MemTableBytes: kg.MinMemTableBytes}
	s := openStore(t, dir, longest)
	loaded := longLiterals("urn:bulk", 2, kg.MaxLiteralBytes)
	if report, err := s.Load(within(t), meta, sequence(loaded), kg.LoadOptions{}); err != nil || !report.Bulk || report.Statements != 2 {
		t.Fatalf("Load in bulk: %+v, %v", report, err)
	}
	online := longLiterals("urn:online", 1, kg.MaxLiteralBytes)
	if report, err := s.Load(within(t), meta, sequence(online), kg.LoadOptions{Online: true}); err != nil || report.Bulk || report.Statements != 1 {
		t.Fatalf("Load: %+v, %v", report, err)
	}
	replaced := longLiterals("urn:replaced", 2, kg.MaxLiteralBytes)
	if report, err := s.ReplaceGraph(within(t), meta, kg.IRI("urn:replaced"), sequence(replaced), kg.ReplaceOptions{}); err != nil || !report.Whole || report.Added != 2 {
		t.Fatalf("ReplaceGraph: %+v, %v", report, err)
	}
	few := longLiterals("urn:replaced", 1, 4<<20)
	few[0].Predicate = kg.IRI("urn:p:few")
	// The removals are too much for one commit, as the additions were.
	if report, err := s.ReplaceGraph(within(t), meta, kg.IRI("urn:replaced"), sequence(few), kg.ReplaceOptions{}); err != nil || !report.Whole || report.Added != 1 || report.Removed != 2 {
		t.Fatalf("ReplaceGraph by less: %+v, %v", report, err)
	}
	want := slices.Concat(loaded, online, few)
	same := func(how string, s *kg.Store) {
		t.Helper()
		if got := statementsOf(t, s); !slices.Equal(got, want) {
			t.Errorf("%s: %d statements, want %d, or others", how, len(got), len(want))
		}
	}
	same("as written", s)
	for _, q := range longLiterals("urn:more", 1, kg.MaxLiteralBytes+1) {
		for how, write := range map[string]func() error{
			"an update": func() error {
				_, err := s.Update(within(t), meta, func(tx *kg.Tx) error { return tx.Apply(kg.Patch{Op: kg.Add, Quad: q}) })
				return err
			},
			"a graph": func() error {
				_, err := s.ReplaceGraph(within(t), meta, q.Graph, sequence([]kg.Quad{q}), kg.ReplaceOptions{})
				return err
			},
			"a load": func() error {
				_, err := s.Load(within(t), meta, sequence([]kg.Quad{q}), kg.LoadOptions{})
				return err
			},
		} {
			if err := write(); kg.CodeOf(err) != kg.CodeLimitExceeded || kg.AsError(err).Limit != "max-literal" {
				t.Errorf("%s with a byte more: %v", how, err)
			}
		}
	}
	if _, err := s.Maintenance().Checkpoint(within(t)); err != nil {
		t.Fatal(err)
	}
	var backup bytes.Buffer
	if _, err := s.Maintenance().Backup(within(t), &backup, kg.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)

	s = openStore(t, dir, kg.Options{LiteralBytes: kg.MinLiteralBytes})
	same("opened again", s)
	if _, err := s.Update(within(t), meta, func(tx *kg.Tx) error { return tx.Apply(kg.Patch{Op: kg.Add, Quad: few[0]}) }); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("a literal longer than Options.LiteralBytes: %v", err)
	}
	mustClose(t, s)
	again := filepath.Join(t.TempDir(), "again")
	copyTree(t, dir, again, nil)
	remove(t, again, "checkpoints")
	for how, in := range map[string]string{"built from a checkpoint": dir, "built from the log": again} {
		s = openStore(t, in, kg.Options{Rebuild: true, LiteralBytes: kg.MinLiteralBytes, MemTableBytes: kg.MinMemTableBytes})
		same(how, s)
		mustCheck(t, s)
		mustClose(t, s)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	if _, err := kg.Restore(within(t), restored, []io.Reader{&backup}, kg.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, restored, kg.Options{LiteralBytes: kg.MinLiteralBytes})
	same("restored", s)
	mustClose(t, s)
}

// TestLiteralBytesOption has its bounds.
func TestLiteralBytesOption(t *testing.T) {
	for n, ok := range map[int]bool{0: true, kg.MinLiteralBytes: true, kg.MinLiteralBytes - 1: false, kg.MaxLiteralBytes: true, kg.MaxLiteralBytes + 1: false, -1: false} {
		s, err := kg.Open(filepath.Join(t.TempDir(), "data"), kg.Options{LiteralBytes: n, ReserveBytes: 1})
		if (err == nil) != ok {
			t.Errorf("LiteralBytes %d: %v", n, err)
		}
		if err == nil {
			mustClose(t, s)
		}
	}
}

// TestLoadOfMuchTextIsInBulk: the statements received before the choice of the load path
// are bounded by their text too.
func TestLoadOfMuchTextIsInBulk(t *testing.T) {
	t.Parallel()
	const stand, literals, text = 100, 17, 64 << 10 // fewer than stand, and more than 1 MiB
	s := openStore(t, filepath.Join(t.TempDir(), "data"), kg.Options{}.WithFaults(kg.Faults{BulkFromBytes: 1 << 20}))
	meta := kg.Meta{Principal: kg.SystemPrincipal()}
	if _, err := s.Load(within(t), meta, manyQuads(stand), kg.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	report, err := s.Load(within(t), meta, sequence(longLiterals("urn:g", literals, text)), kg.LoadOptions{})
	if err != nil || !report.Bulk || report.Statements != literals {
		t.Errorf("%+v, %v", report, err)
	}
}
