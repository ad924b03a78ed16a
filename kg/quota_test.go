package kg_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// outside is a caller within the limit that may act for all agents.
func outside(id kg.AgentID) kg.Meta {
	return kg.Meta{Principal: kg.Principal{ID: id, Method: "key", ActFor: []kg.AgentID{kg.Anybody}}}
}

func backs(t *testing.T, s *kg.Store, who kg.AgentID, want uint64) {
	t.Helper()
	if got, err := s.SourceStatements(who); err != nil || got != want {
		t.Errorf("%s backs %d, %v, want %d", who, got, err, want)
	}
}

// overShare checks that an error reports a source beyond its quota.
func overShare(t *testing.T, err error, parts ...string) {
	t.Helper()
	e := kg.AsError(err)
	if err == nil || e.Code != kg.CodeLimitExceeded || e.Limit != kg.LimitStatements || e.Hint == "" {
		t.Fatalf("got %v (%+v), want %s for %q", err, e, kg.CodeLimitExceeded, kg.LimitStatements)
	}
	for _, part := range parts {
		if !strings.Contains(e.Message, part) {
			t.Errorf("it says %q, want %q in it", e.Message, part)
		}
	}
}

// naiveSourceStatements counts the statements of each source by reading everything.
func naiveSourceStatements(t *testing.T, s *kg.Store) map[kg.AgentID]uint64 {
	t.Helper()
	snap, err := s.View(within(t), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true, Doubted: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	counts := map[kg.AgentID]uint64{}
	for st, err := range snap.Match(kg.Pattern{}) {
		if err != nil {
			t.Fatal(err)
		}
		if kg.IsOwnGraph(st.Graph) && (st.Predicate != kg.Parts || !strings.HasPrefix(st.Graph.Value(), kg.JournalGraphPrefix)) {
			continue
		}
		for _, a := range st.Assertions {
			counts[a.Source]++
		}
	}
	return counts
}

// saidInJournals counts the Parts that the source backs in journals.
func saidInJournals(t *testing.T, s *kg.Store, source kg.AgentID) (n uint64) {
	t.Helper()
	snap, err := s.View(within(t), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for st, err := range snap.Match(kg.Pattern{Predicate: kg.Parts}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(st.Graph.Value(), kg.JournalGraphPrefix) && slices.ContainsFunc(st.Assertions, func(a kg.Assertion) bool { return a.Source == source }) {
			n++
		}
	}
	return n
}

var backers = []kg.AgentID{"agent://a0", "agent://a1", "agent://a2", "agent://a3"}

// checkSourceStatements compares the store's counts with those.
func checkSourceStatements(t *testing.T, when string, s *kg.Store) {
	t.Helper()
	want := naiveSourceStatements(t, s)
	var most uint64
	for _, who := range backers {
		if got, err := s.SourceStatements(who); err != nil || got != want[who] {
			t.Fatalf("%s: %s backs %d, %v, want %d", when, who, got, err, want[who])
		}
		most = max(most, want[who])
	}
	for who, n := range want {
		if got, err := s.SourceStatements(who); err != nil || got != n {
			t.Fatalf("%s: %s backs %d, %v, want %d", when, who, got, err, n)
		}
		most = max(most, n)
	}
	if st := s.Stats(); st.Sources != uint64(len(want)) || st.MostSourceStatements != most {
		t.Fatalf("%s: %d sources with at most %d, want %d with %d", when, st.Sources, st.MostSourceStatements, len(want), most)
	}
}

// randomBacking is an update of statements that many share and take from each
// other, in the default graph, another one, and one of koine's own.
func randomBacking(r *rand.Rand) []kg.Patch {
	var out []kg.Patch
	for range 1 + r.IntN(8) {
		p := kg.Patch{
			Op:     []kg.Op{kg.Add, kg.Add, kg.Add, kg.Remove, kg.Replace}[r.IntN(5)],
			Source: backers[r.IntN(len(backers))],
			Quad: kg.Quad{
				Subject: kg.IRI(fmt.Sprintf("urn:s%d", r.IntN(4))), Predicate: []kg.Term{kg.IRI("urn:p0"), kg.IRI("urn:p1"), kg.Parts}[r.IntN(3)],
				Object: kg.Integer(int64(r.IntN(4))),
				Graph:  []kg.Term{kg.DefaultGraph, kg.IRI("urn:g"), kg.IRI(kg.OwnGraphPrefix + "agents"), kg.IRI(kg.JournalGraphPrefix + "j")}[r.IntN(4)],
			},
		}
		if p.Op == kg.Remove && r.IntN(2) == 0 {
			p.Source = "" // regardless of its source
		} else if p.Op != kg.Remove && r.IntN(2) == 0 {
			p.Certainty, p.HasCertainty = float64(1+r.IntN(9))/10, true
		}
		out = append(out, p)
	}
	return out
}

// TestBackedIsTrue proves that the counts by source equal those of the statements, after
// every operation of a store.
func TestBackedIsTrue(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 4))
			dir, o := filepath.Join(t.TempDir(), "data"), tinyLog()
			s := openStore(t, dir, o)
			if seed%2 == 1 { // one whose index is built in one piece
				if report, err := s.Load(within(t), kg.Meta{Actor: backers[0]}, integers(100), kg.LoadOptions{CommitQuads: 30}); err != nil || !report.Bulk {
					t.Fatalf("Load: %+v, %v", report, err)
				}
				checkSourceStatements(t, "after a load in bulk", s)
			}
			steps := 0
			work := func() {
				for range 12 {
					steps++
					_, err := s.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
						for _, p := range randomBacking(r) {
							if err := tx.ApplyOwn(p); err != nil {
								return err
							}
						}
						if steps%5 == 0 {
							return errors.New("thought better of it")
						}
						return nil
					})
					if err != nil && steps%5 != 0 {
						t.Fatal(err)
					}
					checkSourceStatements(t, fmt.Sprint("update ", steps), s)
				}
			}
			reopen := func(when string, rebuild bool) {
				mustClose(t, s)
				o.Rebuild = rebuild
				s = openStore(t, dir, o)
				checkSourceStatements(t, when, s)
				mustCheck(t, s)
			}
			work()
			reopen("reopened", false)
			work()
			reopen("rebuilt from the log", true)
			work()
			if err := s.Maintenance().CutLog(within(t), s.Head().Revision); err != nil {
				t.Fatal(err)
			}
			work()
			reopen("rebuilt from a checkpoint", true)
			work()
			if report, err := s.Load(within(t), kg.Meta{Actor: backers[1]}, integers(50), kg.LoadOptions{}); err != nil || report.Bulk {
				t.Fatalf("Load: %+v, %v", report, err)
			}
			checkSourceStatements(t, "after a load", s)
			var backup bytes.Buffer
			if _, err := s.Maintenance().Backup(within(t), &backup, kg.BackupOptions{}); err != nil {
				t.Fatal(err)
			}
			want := naiveSourceStatements(t, s)
			inJournals := saidInJournals(t, s, backers[2]) // is not erased by its source
			mustClose(t, s)
			if _, err := kg.Erase(within(t), dir, kg.EraseOptions{Source: backers[2]}); err != nil {
				t.Fatal(err)
			}
			o.Rebuild = false
			s = openStore(t, dir, o)
			checkSourceStatements(t, "erased", s)
			backs(t, s, backers[2], inJournals)
			mustCheck(t, s)
			dir = filepath.Join(t.TempDir(), "restored")
			if _, err := kg.Restore(within(t), dir, []io.Reader{&backup}, kg.RestoreOptions{}); err != nil {
				t.Fatal(err)
			}
			s = openStore(t, dir, o)
			checkSourceStatements(t, "restored", s)
			for who, n := range want {
				backs(t, s, who, n)
			}
			work()
		})
	}
}

func TestShareOfASource(t *testing.T) {
	t.Parallel()
	o := tinyLog()
	o.MaxSourceStatements = 5
	dir := t.TempDir()
	s := openStore(t, dir, o)
	do := func(m kg.Meta, patches ...kg.Patch) error {
		_, err := s.Update(within(t), m, apply(patches))
		return err
	}
	must := func(m kg.Meta, patches ...kg.Patch) {
		t.Helper()
		if err := do(m, patches...); err != nil {
			t.Fatal(err)
		}
	}
	add := func(n ...int) (out []kg.Patch) {
		for _, i := range n {
			out = append(out, kg.Patch{Op: kg.Add, Quad: integer(i)})
		}
		return out
	}
	remove := func(n ...int) []kg.Patch {
		out := add(n...)
		for i := range out {
			out[i].Op = kg.Remove
		}
		return out
	}
	ann, bob := outside("agent://ann"), outside("agent://bob")

	must(ann, add(1, 2, 3, 4)...)
	overShare(t, do(ann, add(5, 6)...), "agent://ann backs 4", "may back 5", "add 2")
	backs(t, s, "agent://ann", 4) // nothing of it is made
	must(ann, add(5)...)          // up to the bound
	overShare(t, do(ann, add(6)...))
	if st := s.Stats(); st.QuotaRefusals != 2 || st.MaxSourceStatements != 5 || st.MostSourceStatements != 5 {
		t.Errorf("the numbers say %d refused, %d of %d", st.QuotaRefusals, st.MostSourceStatements, st.MaxSourceStatements)
	}

	// Statements that it backs already, and an update that removes as many as it adds, are
	// accepted.
	must(ann, kg.Patch{Op: kg.Add, Quad: integer(5), Certainty: 0.5, HasCertainty: true})
	must(ann, append(remove(1), add(7)...)...)
	must(ann, append(add(8), remove(7)...)...)
	backs(t, s, "agent://ann", 5)

	// Each source has its own quota, whoever writes for it.
	must(bob, add(1, 2, 3, 4, 5)...)
	speaking := kg.Patch{Op: kg.Add, Quad: integer(9), Source: "agent://ann"}
	overShare(t, do(bob, speaking), "agent://ann")
	speaking.Source = "agent://cleo"
	must(bob, speaking)
	dry := ann
	dry.DryRun = true
	overShare(t, do(dry, add(9)...))

	// A retraction is accepted, by any agent; it frees the quota.
	must(bob, kg.Patch{Op: kg.Remove, Quad: integer(5)}) // ann's and bob's
	backs(t, s, "agent://ann", 4)
	backs(t, s, "agent://bob", 4)
	replace := kg.Patch{Op: kg.Replace, Quad: integer(10)}
	must(ann, replace) // the only one that is left of all of them
	backs(t, s, "agent://ann", 1)
	backs(t, s, "agent://bob", 0)

	// This process, and work on the directory, are not bounded.
	must(kg.Meta{Principal: kg.Principal{ID: "agent://ann", Method: kg.MethodLocal}}, add(11, 12, 13, 14, 15, 16)...)
	backs(t, s, "agent://ann", 7)
	overShare(t, do(ann, add(17)...))
	must(ann, remove(11)...) // still past the bound
	overShare(t, do(ann, add(17)...))

	// A restart changes nothing.
	mustClose(t, s)
	s = openStore(t, dir, o)
	backs(t, s, "agent://ann", 6)
	overShare(t, do(ann, add(17)...))
	mustClose(t, s)
	o.MaxSourceStatements = 0
	s = openStore(t, dir, o)
	must(ann, add(17)...)
}

// Koine's own graphs count for no source: an agent without quota can still get a policy, a
// key, or a proposal.
func TestOwnGraphsAreNobodysShare(t *testing.T) {
	t.Parallel()
	o := tinyLog()
	o.MaxSourceStatements = 1
	s := openStore(t, t.TempDir(), o)
	_, err := s.Update(within(t), outside("agent://ann"), func(tx *kg.Tx) error {
		for i := range 5 {
			q := integer(i)
			q.Graph = kg.SystemGraph
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	backs(t, s, "agent://ann", 0)
}

// Concurrent writers cannot exceed the bound.
func TestShareUnderConcurrency(t *testing.T) {
	t.Parallel()
	o := tinyLog()
	o.MaxSourceStatements = 20
	s := openStore(t, t.TempDir(), o)
	var done sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for w := range 8 {
		done.Go(func() {
			for i := range 10 {
				_, err := s.Update(within(t), outside("agent://ann"), func(tx *kg.Tx) error {
					return tx.Apply(kg.Patch{Op: kg.Add, Quad: integer(100*w + i)})
				})
				if err == nil {
					mu.Lock()
					made++
					mu.Unlock()
				} else if kg.CodeOf(err) != kg.CodeLimitExceeded {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	done.Wait()
	if made != 20 {
		t.Errorf("%d updates were made, want 20", made)
	}
	backs(t, s, "agent://ann", 20)
}

// A load from outside ends at the bound; the statements before it stay.
func TestShareOfALoad(t *testing.T) {
	t.Parallel()
	o := tinyLog()
	o.MaxSourceStatements = 2_500
	s := openStore(t, t.TempDir(), o)
	report, err := s.Load(within(t), outside("agent://ann"), integers(5_000), kg.LoadOptions{})
	overShare(t, err)
	if report.Statements != 2_000 {
		t.Errorf("%d statements were loaded, want the 2000 of the commits before", report.Statements)
	}
	backs(t, s, "agent://ann", 2_000)
}

// A check finds a count that differs from the statements, wrong or missing, and a repair
// corrects it.
func TestRepairOfCountsBySource(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	for name, spoil := range map[string]func(row string) (put, gone []string){
		"missing": func(row string) (put, gone []string) { return nil, []string{row} },
		"too many": func(row string) (put, gone []string) {
			return []string{row[:strings.Index(row, "= ")] + "= 0163"}, nil // 99, in revision 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir, tinyLog())
			for i := range 3 {
				if err := addOne(s, within(t), integer(i)); err != nil {
					t.Fatal(err)
				}
			}
			backs(t, s, kg.Anonymous, 3)
			rows, err := s.IndexRows()
			if err != nil {
				t.Fatal(err)
			}
			head := s.Head().Revision
			mustClose(t, s)
			i := slices.IndexFunc(rows, func(row string) bool { return strings.HasPrefix(row, "34") })
			if i < 0 {
				t.Fatal("the index has no count by source")
			}
			put, gone := spoil(rows[i])
			if err := kg.ApplyRows(dir, tinyLog(), put, gone, head); err != nil {
				t.Fatal(err)
			}
			s = openStore(t, dir, tinyLog())
			report, err := s.Maintenance().Check(within(t), kg.CheckOptions{})
			if err != nil || report.Total != 1 || !strings.Contains(report.Problems[0], "count: key 34") {
				t.Errorf("Check: %+v, %v", report, err)
			}
			mustClose(t, s)
			if r, err := repair(t, dir); err != nil || len(r.Done) != 1 || !r.Check.Clean() {
				t.Errorf("Repair: %+v, %v", r, err)
			}
			s = openStore(t, dir, tinyLog())
			backs(t, s, kg.Anonymous, 3)
		})
	}
}

// TestCountingOnce proves that a directory of an earlier format is counted when it is first
// opened, which the log reports, and never again.
func TestCountingOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unpack(t, "testdata/format-1.tar.gz", dir)
	for _, counts := range []bool{true, false, false} {
		var said bytes.Buffer
		o := tinyLog()
		o.Logger = slog.New(slog.NewTextHandler(&said, nil))
		s := openStore(t, dir, o)
		if got := strings.Contains(said.String(), "counting the statements of each source"); got != counts {
			t.Errorf("counted: %t, want %t; the log says\n%s", got, counts, said.String())
		}
		checkSourceStatements(t, "open", s)
		mustClose(t, s)
	}
}

// A word that koine has an id for without a number cannot be an agent: an assertion stores
// its source by number, and would belong to another one.
func TestSequenceIsNoAgent(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir(), tinyLog())
	name, ordered := kg.AgentID(kg.Sequence.Value()), kg.AgentID(kg.Ordered(3).Value())
	for _, m := range []kg.Meta{outside(name), outside(ordered), {Actor: name}, {Principal: kg.Principal{ID: name, Method: "open"}}} {
		_, err := s.Update(within(t), m, apply([]kg.Patch{{Op: kg.Add, Quad: integer(1)}}))
		if kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("%+v: got %v, want %s", m, err, kg.CodeInvalid)
		}
	}
	_, err := s.Update(within(t), outside("agent://ann"), apply([]kg.Patch{{Op: kg.Add, Quad: integer(1), Source: name}}))
	if kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("as a source: got %v, want %s", err, kg.CodeInvalid)
	}
}
