package kg_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/kgtest"
)

// asked is a kg.VersionedAccess that counts the calls for Read.
type asked struct {
	version *atomic.Uint64
	allowed atomic.Pointer[func(p kg.Principal, graph kg.Term) bool]
	asked   atomic.Int64
}

func newAsked(version *atomic.Uint64) *asked {
	a := &asked{version: version}
	a.let(func(kg.Principal, kg.Term) bool { return true })
	return a
}

// let gives other answers, without a word of it.
func (a *asked) let(allowed func(kg.Principal, kg.Term) bool) { a.allowed.Store(&allowed) }

func (a *asked) Version() *atomic.Uint64 { return a.version }

func (a *asked) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	if right != kg.Read {
		return true
	}
	a.asked.Add(1)
	return (*a.allowed.Load())(p, graph)
}

func numberedGraph(i int) kg.Term { return kg.IRI(fmt.Sprint("urn:graph:", i)) }

// inGraphs is a store with one statement in each of so many graphs.
func inGraphs(t *testing.T, n int, o kg.Options) *kgtest.Store {
	t.Helper()
	s := kgtest.Disk(t, o)
	_, err := s.Load(within(t), kg.Meta{}, func(yield func(kg.Quad, error) bool) {
		for i := range n {
			if !yield(kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(i)), Graph: numberedGraph(i)}, nil) {
				return
			}
		}
	}, kg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// counted is the number of statements that the principal reads, by a scan and by
// the counts, which must agree.
func counted(t *testing.T, s *kgtest.Store, v kg.View) int {
	t.Helper()
	snap, err := s.View(within(t), v)
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	return countedIn(t, snap)
}

func countedIn(t *testing.T, snap *kg.Snapshot) int {
	t.Helper()
	scanned := 0
	for _, err := range snap.Match(kg.Pattern{Subject: kg.IRI("urn:s")}) {
		if err != nil {
			t.Fatal(err)
		}
		scanned++
	}
	n, err := snap.Count(kg.Pattern{Predicate: kg.IRI("urn:p")})
	if err != nil || int(n) != scanned {
		t.Fatalf("%d statements are counted, %v, and %d read", n, err, scanned)
	}
	return scanned
}

func reads(p kg.Principal) kg.View { return kg.View{Principal: p} }

// TestAnswersAreKept: a second read makes no call, unless its principal differs or the
// version has changed.
func TestAnswersAreKept(t *testing.T) {
	version := new(atomic.Uint64)
	access := newAsked(version)
	s := inGraphs(t, 10, kg.Options{Governor: kg.Governor{Access: access}})
	ann := kg.Principal{ID: "agent://ann", Method: "key"}
	scribe := kg.Principal{ID: "agent://ann", Method: "key", Roles: []string{"scribe"}}
	token := kg.Principal{ID: "agent://ann", Method: "jwt"}
	bob := kg.Principal{ID: "agent://bob", Method: "key"}
	odd := func(p kg.Principal, graph kg.Term) bool {
		n := int(graph.Value()[len(graph.Value())-1] - '0')
		return n%2 == 1 || p.HasRole("scribe")
	}
	access.let(odd)
	for i, row := range []struct {
		name  string
		view  kg.View
		sees  int
		asked int64
	}{
		{"the first read", reads(ann), 5, 10},
		{"the same again", reads(ann), 5, 0},
		{"with a role", reads(scribe), 10, 10},
		{"without it", reads(ann), 5, 0},
		{"with it", reads(scribe), 10, 0},
		{"by another method", reads(token), 5, 10},
		{"another's", reads(bob), 5, 10},
		{"of named graphs", kg.View{Principal: ann, Graphs: []kg.Term{numberedGraph(0), numberedGraph(1)}}, 1, 0},
		{"of the past", kg.View{Principal: ann, At: s.Head().Revision}, 5, 0},
	} {
		before := access.asked.Load()
		if sees := counted(t, s, row.view); sees != row.sees {
			t.Errorf("%d %s: sees %d, want %d", i, row.name, sees, row.sees)
		}
		if asked := access.asked.Load() - before; asked != row.asked {
			t.Errorf("%d %s: asked %d times, want %d", i, row.name, asked, row.asked)
		}
	}

	access.let(func(kg.Principal, kg.Term) bool { return false })
	version.Add(1)
	for _, p := range []kg.Principal{ann, scribe, token, bob} {
		if sees := counted(t, s, reads(p)); sees != 0 {
			t.Errorf("%v under the next version: sees %d", p, sees)
		}
	}
	if n, _ := s.Kept(); n != 4 {
		t.Errorf("%d readers are kept, want the 4 of this version", n)
	}
}

// TestReadUnderWay: if answers change while a snapshot is open, the new ones decide its
// next reads.
func TestReadUnderWay(t *testing.T) {
	version := new(atomic.Uint64)
	access := newAsked(version)
	s := inGraphs(t, 10, kg.Options{Governor: kg.Governor{Access: access}})
	snap, err := s.View(within(t), reads(stranger))
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	if n := countedIn(t, snap); n != 10 {
		t.Fatalf("sees %d, want 10", n)
	}
	access.let(func(_ kg.Principal, graph kg.Term) bool { return graph == numberedGraph(3) })
	version.Add(1)
	if n := countedIn(t, snap); n != 1 {
		t.Errorf("sees %d after the change, want 1", n)
	}
	if n := counted(t, s, reads(stranger)); n != 1 {
		t.Errorf("the next sees %d, want 1", n)
	}
}

// TestNothingIsKept of an Access without a version, nor of koine's own graphs.
func TestNothingIsKept(t *testing.T) {
	slowtest.Long(t)
	t.Run("without a version", func(t *testing.T) {
		access := newAsked(nil)
		s := inGraphs(t, 10, kg.Options{Governor: kg.Governor{Access: access}})
		for range 2 {
			before := access.asked.Load()
			if n := counted(t, s, reads(stranger)); n != 10 {
				t.Errorf("sees %d", n)
			}
			if n := access.asked.Load() - before; n != 10 {
				t.Errorf("asked %d times, want 10", n)
			}
		}
		access.let(func(kg.Principal, kg.Term) bool { return false })
		if n := counted(t, s, reads(stranger)); n != 0 {
			t.Errorf("sees %d of what it may not", n)
		}
	})
	t.Run("own graphs", func(t *testing.T) {
		access := newAsked(new(atomic.Uint64))
		s := inGraphs(t, 3, kg.Options{Governor: kg.Governor{Access: access}})
		own := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String("own"), Graph: kg.IRI(kg.PendingGraphPrefix + "x")}
		if _, err := s.Update(within(t), kg.Meta{Principal: stranger}, func(tx *kg.Tx) error { return tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: own}) }); err != nil {
			t.Fatal(err)
		}
		all, pending := kg.View{Principal: stranger, AllGraphs: true}, kg.View{Principal: stranger, IncludePending: true}
		named := kg.View{Principal: stranger, Graphs: []kg.Term{own.Graph, numberedGraph(1)}}
		for _, shown := range []bool{true, false, true} {
			access.let(func(_ kg.Principal, graph kg.Term) bool { return shown || graph != own.Graph })
			want := 3
			if shown {
				want = 4
			}
			for name, n := range map[string]int{"ordinary": counted(t, s, reads(stranger)) + want - 3, "all": counted(t, s, all), "pending": counted(t, s, pending), "named": counted(t, s, named) + 2} {
				if n != want {
					t.Errorf("shown %t, %s: sees %d, want %d", shown, name, n, want)
				}
			}
		}
	})
}

// TestKeptReaders: one reader too many is answered as well as any.
func TestKeptReaders(t *testing.T) {
	slowtest.Long(t)
	access := newAsked(new(atomic.Uint64))
	s := inGraphs(t, 2, kg.Options{Governor: kg.Governor{Access: access}})
	access.let(func(p kg.Principal, graph kg.Term) bool { return graph == numberedGraph(0) || p.ID == "agent://0" })
	for range 2 {
		for i := range 2 * kg.MaxCachedReaders {
			want := 1
			if i == 0 {
				want = 2
			}
			if n := counted(t, s, reads(kg.Principal{ID: kg.AgentID(fmt.Sprint("agent://", i)), Method: "key"})); n != want {
				t.Fatalf("reader %d sees %d, want %d", i, n, want)
			}
		}
	}
	if n, _ := s.Kept(); n == 0 || n > kg.MaxCachedReaders {
		t.Errorf("%d readers are kept, want at most %d", n, kg.MaxCachedReaders)
	}
}

// TestKeptGraphs: up to the bound no answer is requested again, past it only evicted ones,
// and the answers stay correct.
func TestKeptGraphs(t *testing.T) {
	slowtest.Long(t)
	for _, graphs := range []int{kg.MaxCachedGraphs, kg.MaxCachedGraphs + 1} {
		access := newAsked(new(atomic.Uint64))
		s := inGraphs(t, graphs, kg.Options{Governor: kg.Governor{Access: access}})
		access.let(func(_ kg.Principal, graph kg.Term) bool { return graph != numberedGraph(7) })
		before := access.asked.Load()
		for range 2 {
			if n := counted(t, s, reads(stranger)); n != graphs-1 {
				t.Fatalf("%d graphs: sees %d", graphs, n)
			}
		}
		_, kept := s.Kept()
		asked := access.asked.Load() - before
		if again := asked > int64(graphs); again != (graphs > kg.MaxCachedGraphs) || kept > kg.MaxCachedGraphs {
			t.Errorf("%d graphs: asked %d times, %d are kept", graphs, asked, kept)
		}
	}
}

// TestLogAnswersAreNew: answers cached for reading the log are dropped with the version.
func TestLogAnswersAreNew(t *testing.T) {
	version := new(atomic.Uint64)
	access := newAsked(version)
	s := inGraphs(t, 0, kg.Options{Governor: kg.Governor{Access: access}})
	from := s.Head()
	_, err := s.Update(within(t), kg.Meta{Principal: stranger}, func(tx *kg.Tx) error {
		for i := range 5 {
			q := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(i)), Graph: numberedGraph(0)}
			if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before := access.asked.Load()
	l, err := s.ReadLog(within(t), kg.Filter{View: reads(stranger)}, kg.LogRange{After: from, Until: s.Head()})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, err := range l.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 3 {
			if n := access.asked.Load() - before; n != 1 {
				t.Errorf("asked %d times about one graph", n)
			}
			access.let(func(kg.Principal, kg.Term) bool { return false })
			version.Add(1)
		}
	}
	if seen != 3 {
		t.Errorf("%d changes were told, want the 3 from before the graph was shut", seen)
	}
}
