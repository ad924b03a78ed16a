package kg_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/kgtest"
)

// integers are so many quads of one subject and predicate.
func integers(n int) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		for i := range n {
			if !yield(integer(i), nil) {
				return
			}
		}
	}
}

func integer(i int) kg.Quad {
	return kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(i))}
}

func addOne(s *kg.Store, ctx context.Context, q kg.Quad) error {
	_, err := s.Update(ctx, kg.Meta{}, func(tx *kg.Tx) error { return tx.Apply(kg.Patch{Op: kg.Add, Quad: q}) })
	return err
}

// TestLoadBesideReaders proves that snapshots taken while a bulk load is applied under an
// open reader are complete: their scans agree with their revision's counts.
func TestLoadBesideReaders(t *testing.T) {
	slowtest.Long(t)
	s := kgtest.Disk(t, kg.Options{})
	stays, err := s.View(within(t), kg.View{})
	if err != nil {
		t.Fatal(err)
	}
	defer stays.Close()
	loaded := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for more := true; more; {
				select {
				case <-loaded:
					more = false
				default:
				}
				if err := countsFit(t.Context(), s.Store); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	report, err := s.Load(within(t), kg.Meta{}, integers(50_000), kg.LoadOptions{})
	close(loaded)
	readers.Wait()
	if err != nil || !report.Bulk {
		t.Errorf("got %+v, %v, want a bulk load", report, err)
	}
	if n := s.Stats().ReplayedOpen; n != 0 {
		t.Errorf("%d commits count as applied again when the store was opened", n)
	}
}

func countsFit(ctx context.Context, s *kg.Store) error {
	snap, err := s.View(ctx, kg.View{})
	if err != nil {
		return err
	}
	defer snap.Close()
	want, err := snap.Count(kg.Pattern{})
	if err != nil {
		return err
	}
	var n uint64
	for _, err := range snap.MatchIDs(kg.IDPattern{}, nil) {
		if err != nil {
			return err
		}
		n++
	}
	if n != want {
		return fmt.Errorf("at revision %d there are %d statements, the counts say %d", snap.Revision(), n, want)
	}
	return nil
}

// hanging is a source that yields some quads, signals it, and then nothing until it is
// released.
func hanging() (source iter.Seq2[kg.Quad, error], hangs, letGo chan struct{}) {
	hangs, letGo = make(chan struct{}), make(chan struct{})
	return func(yield func(kg.Quad, error) bool) {
		for q := range integers(kg.DefaultLoadCommit + 1) {
			if !yield(q, nil) {
				return
			}
		}
		close(hangs)
		<-letGo
	}, hangs, letGo
}

// TestLoadFromASourceThatHangs proves that giving up a load, or closing the store, does not
// wait for the source, which delays only the caller of Load.
func TestLoadFromASourceThatHangs(t *testing.T) {
	slowtest.Long(t)
	for _, row := range []struct {
		name   string
		online bool
		end    func(t *testing.T, s *kg.Store, cancel func()) error
		code   kg.Code
	}{
		{"given up", false, giveUp, kg.CodeTimeout},
		{"given up, online", true, giveUp, kg.CodeTimeout},
		{"closed", false, func(_ *testing.T, s *kg.Store, _ func()) error { return s.Close() }, kg.CodeClosed},
		{"closed, online", true, func(_ *testing.T, s *kg.Store, _ func()) error { return s.Close() }, kg.CodeClosed},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir, kg.Options{})
			ctx, cancel := context.WithCancel(within(t))
			defer cancel()
			source, hangs, letGo := hanging()
			ended := make(chan error, 1)
			go func() {
				_, err := s.Load(ctx, kg.Meta{}, source, kg.LoadOptions{Online: row.online})
				ended <- err
			}()
			<-hangs
			done := make(chan error, 1)
			go func() { done <- row.end(t, s, cancel) }()
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-within(t).Done():
				t.Error("the store waits for the source")
			}
			close(letGo)
			if err := <-ended; kg.CodeOf(err) != row.code {
				t.Errorf("Load: got %v, want %s", err, row.code)
			}
			mustClose(t, s)
			s = openStore(t, dir, kg.Options{})
			mustCheck(t, s)
		})
	}
}

func giveUp(t *testing.T, s *kg.Store, cancel func()) error {
	cancel()
	return addOne(s, within(t), integer(-1))
}

// TestLoadFromASourceThatPanics proves that the panic is the load's error, and that whole
// commits read before it stay.
func TestLoadFromASourceThatPanics(t *testing.T) {
	slowtest.Long(t)
	for _, online := range []bool{false, true} {
		s := kgtest.Disk(t, kg.Options{})
		source := func(yield func(kg.Quad, error) bool) {
			for q := range integers(kg.DefaultLoadCommit + 1) {
				if !yield(q, nil) {
					return
				}
			}
			panic("at the disco")
		}
		report, err := s.Load(within(t), kg.Meta{}, source, kg.LoadOptions{Online: online})
		if kg.CodeOf(err) != kg.CodeInternal || report.Statements != kg.DefaultLoadCommit {
			t.Errorf("online %v: got %+v, %v", online, report, err)
		}
		if err := addOne(s.Store, within(t), integer(-1)); err != nil {
			t.Error(err)
		}
	}
}

// TestLoadCommitsAreBoundedInBytes proves it for texts in each part of a quad.
func TestLoadCommitsAreBoundedInBytes(t *testing.T) {
	slowtest.Long(t)
	const quads, text = 20, 32 << 10 // 640 KiB, in commits of at least 256
	for _, part := range []string{"subject", "predicate", "object", "graph"} {
		t.Run(part, func(t *testing.T) {
			s := kgtest.Disk(t, kg.Options{}.WithFaults(kg.Faults{LoadCommitBytes: 256 << 10}))
			source := func(yield func(kg.Quad, error) bool) {
				for i := range quads {
					q, long := integer(i), kg.IRI(fmt.Sprint("urn:", i, strings.Repeat("x", text-8)))
					switch part {
					case "subject":
						q.Subject = long
					case "predicate":
						q.Predicate = long
					case "object":
						q.Object = long
					case "graph":
						q.Graph = long
					}
					if !yield(q, nil) {
						return
					}
				}
			}
			report, err := s.Load(within(t), kg.Meta{}, source, kg.LoadOptions{})
			if err != nil || report.Commits != 3 || report.Statements != quads {
				t.Errorf("got %+v, %v, want %d statements in 3 commits", report, err, quads)
			}
		})
	}
}

// TestLoadWaitsForItsTurn proves that a load continues after a full queue, and after a late
// turn.
func TestLoadWaitsForItsTurn(t *testing.T) {
	slowtest.Long(t)
	t.Run("late", func(t *testing.T) {
		s := kgtest.Disk(t, kg.Options{QueueTime: time.Nanosecond})
		if report, err := s.Load(within(t), kg.Meta{}, integers(10), kg.LoadOptions{Online: true}); err != nil || report.Commits != 1 {
			t.Errorf("got %+v, %v, want a commit", report, err)
		}
	})
	t.Run("full", func(t *testing.T) {
		s := kgtest.Disk(t, kg.Options{QueueLength: 1})
		busy, release, read := make(chan struct{}), make(chan struct{}), make(chan struct{})
		others := make(chan error, 2)
		go func() {
			_, err := s.Update(within(t), kg.Meta{}, func(*kg.Tx) error { close(busy); <-release; return nil })
			others <- err
		}()
		<-busy
		go func() { others <- addOne(s.Store, within(t), integer(-1)) }()
		for s.Stats().QueueLength == 0 {
		}
		source := func(yield func(kg.Quad, error) bool) {
			for q := range integers(4 * kg.DefaultLoadCommit) {
				if !yield(q, nil) {
					return
				}
				if q == integer(3*kg.DefaultLoadCommit) { // so that the first batch is handed in
					close(read)
				}
			}
		}
		ended := make(chan error, 1)
		go func() {
			_, err := s.Load(within(t), kg.Meta{}, source, kg.LoadOptions{Online: true})
			ended <- err
		}()
		select {
		case <-read:
		case err := <-ended:
			t.Error("the load ended before there was room")
			ended <- err
		}
		close(release)
		for _, err := range []error{<-others, <-others, <-ended} {
			if err != nil {
				t.Error(err)
			}
		}
		if err := countsFit(within(t), s.Store); err != nil || s.Head().Revision != 41 {
			t.Errorf("at revision %d: %v, want 41", s.Head().Revision, err)
		}
	})
}

// TestLoadIntoAFullDisk proves that a load of which nothing is in the log yet
// leaves the store as it was.
func TestLoadIntoAFullDisk(t *testing.T) {
	var full atomic.Bool
	s := kgtest.Disk(t, kg.Options{FreeBytes: func(string) (uint64, error) {
		if full.Load() {
			return 0, nil
		}
		return 1 << 40, nil
	}})
	source := func(yield func(kg.Quad, error) bool) {
		for q := range integers(3 * kg.DefaultLoadCommit) {
			if !yield(q, nil) {
				return
			}
		}
		full.Store(true)
	}
	report, err := s.Load(within(t), kg.Meta{}, source, kg.LoadOptions{})
	if kg.CodeOf(err) != kg.CodeDiskFull || errors.Is(err, context.Canceled) || report != (kg.LoadReport{}) {
		t.Errorf("got %+v, %v, want %s", report, err, kg.CodeDiskFull)
	}
	full.Store(false)
	if report, err := s.Load(within(t), kg.Meta{}, integers(10), kg.LoadOptions{}); err != nil || !report.Bulk || report.Revision != 1 {
		t.Errorf("later: got %+v, %v, want a bulk load of one commit", report, err)
	}
}

// TestLoadThatTurnsToOwnGraphs proves that a batch which a bulk load cannot take
// goes the way of all updates, also when it is large.
func TestLoadThatTurnsToOwnGraphs(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	const n = 2*kg.DefaultLoadCommit + 5
	source := func(yield func(kg.Quad, error) bool) {
		for i := range n {
			q := integer(i)
			if i >= kg.DefaultLoadCommit+10 {
				q.Graph = kg.SystemGraph
			}
			if !yield(q, nil) {
				return
			}
		}
	}
	report, err := s.Load(within(t), kg.Meta{}, source, kg.LoadOptions{})
	if err != nil || !report.Bulk || report.Statements != n || report.Read != n {
		t.Errorf("got %+v, %v, want a bulk load of %d statements", report, err, n)
	}
	snap, err := s.View(within(t), kg.View{AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	if got, err := snap.Count(kg.Pattern{}); got != n || err != nil {
		t.Errorf("there are %d statements, %v, want %d", got, err, n)
	}
}

// A load counts as one update for each LoadUpdateQuads: Admit is called for the first, and
// Charge for the others, in bulk and beside others.
func TestLoadsAreCharged(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	for _, row := range []struct {
		quads, charged int
	}{{1, 0}, {kg.LoadUpdateQuads, 0}, {kg.LoadUpdateQuads + 1, 1}, {2*kg.LoadUpdateQuads + 1, 2}} {
		for _, m := range []kg.Meta{{Actor: "agent://ann"}, outside("agent://ann")} {
			admitted, charged := 0, 0
			o := tinyLog()
			o.Admit = func(context.Context, kg.Meta) error { admitted++; return nil }
			o.Charge = func(_ context.Context, m kg.Meta) {
				charged++
				if m.Actor != "agent://ann" {
					t.Errorf("%s is charged", m.Actor)
				}
			}
			s := openStore(t, t.TempDir(), o)
			report, err := s.Load(within(t), m, integers(row.quads), kg.LoadOptions{})
			if err != nil || report.Read != uint64(row.quads) || report.Bulk != (m.Principal.Method == "") {
				t.Fatalf("%d quads: %+v, %v", row.quads, report, err)
			}
			if admitted != 1 || charged != row.charged {
				t.Errorf("%d quads, bulk %t: admitted %d times and charged %d, want 1 and %d", row.quads, report.Bulk, admitted, charged, row.charged)
			}
			mustClose(t, s)
		}
	}
}
