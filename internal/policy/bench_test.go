package policy_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"koine/internal/policy"
	"koine/kg"
)

// exchangeable is an Access that is exchanged between rounds, so that all are
// measured over one store and pay the same for being so.
type exchangeable struct {
	kg.Access
	version atomic.Uint64 // moves on with each exchange
}

func (e *exchangeable) Version() *atomic.Uint64 { return &e.version }

func (e *exchangeable) exchange(a kg.Access) {
	e.Access = a
	e.version.Add(1)
}

// BenchmarkAccess measures the cost that policies add to reads: without policies
// (kg.AllowAll), and with 1 and with 100 policies, which admit the reader by name or by
// role. An op is some hundred or thousand reads. Aim: at most 10 % more than AllowAll.
// scripts/bench-access.sh runs it in turns and compares.
func BenchmarkAccess(b *testing.B) {
	access := &exchangeable{Access: kg.AllowAll{}}
	store, err := kg.Open(b.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: access}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	const subjects, graphs = 2000, 100
	subject := func(i int) kg.Term { return iri(fmt.Sprint("https://bench.example/subject/", i)) }
	graph := func(i int) kg.Term { return iri(fmt.Sprint("https://bench.example/graph/", i)) }
	quads := func(yield func(kg.Quad, error) bool) {
		for i := range subjects * 10 {
			q := kg.Quad{Subject: subject(i % subjects), Predicate: iri(fmt.Sprint("https://bench.example/p", i/subjects)), Object: kg.Integer(int64(i)), Graph: kg.DefaultGraph}
			if i/subjects >= 8 {
				q.Object = subject((i * 7) % subjects)
			}
			if !yield(q, nil) {
				return
			}
		}
		for i := range graphs * 20 {
			if !yield(kg.Quad{Subject: subject(i / graphs), Predicate: iri("https://bench.example/in"), Object: kg.Integer(int64(i)), Graph: graph(i % graphs)}, nil) {
				return
			}
		}
	}
	if _, err := store.Load(context.Background(), kg.Meta{Principal: local}, quads, kg.LoadOptions{}); err != nil {
		b.Fatal(err)
	}
	policed := func(n int) kg.Access {
		ps := policy.New(policy.Options{NewGraphs: policy.ReadOnly})
		c := &kg.Commit{Revision: 1}
		for i := range n {
			say := func(predicate, object string) {
				c.Changes = append(c.Changes, kg.Change{Quad: kg.Quad{Subject: graph(i), Predicate: iri(kg.OwnVocabulary + predicate), Object: kg.String(object), Graph: kg.SystemGraph}, After: []kg.Assertion{{}}})
			}
			say("graphVisibility", "private")
			say("graphOwner", "agent://owner")
			for j := range 5 {
				say("graphReader", fmt.Sprint("agent://a", j))
			}
			say("graphReader", []string{"role:scribe", "agent://dora"}[i%2])
		}
		ps.Follow(c)
		return ps
	}
	kinds := []struct {
		name   string
		access kg.Access
	}{{"all", kg.AllowAll{}}, {"1", policed(1)}, {"100", policed(graphs)}}
	read := func(s *kg.Snapshot, p kg.Pattern) (n int) {
		for _, err := range s.Match(p) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		return n
	}
	view := func() *kg.Snapshot {
		s, err := store.View(context.Background(), kg.View{Principal: dora})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	for _, work := range []struct {
		name  string
		reads int
		do    func()
	}{
		{"subject in one snapshot", 4000, func() {
			s := view()
			defer s.Close()
			for i := range 4000 {
				read(s, kg.Pattern{Subject: subject(i % subjects)})
			}
		}},
		{"subject in a snapshot each", 4000, func() {
			for i := range 4000 {
				s := view()
				read(s, kg.Pattern{Subject: subject(i%(subjects-20) + 20)})
				s.Close()
			}
		}},
		{"two hops in a snapshot each", 1000, func() {
			for i := range 1000 {
				s := view()
				for st, err := range s.Match(kg.Pattern{Subject: subject(i), Predicate: iri("https://bench.example/p8")}) {
					if err != nil {
						b.Fatal(err)
					}
					read(s, kg.Pattern{Subject: st.Object})
				}
				s.Close()
			}
		}},
		{"100 graphs in a snapshot each", 200, func() {
			for i := range 200 {
				s := view()
				if n := read(s, kg.Pattern{Subject: subject(i % 20), Predicate: iri("https://bench.example/in")}); n != graphs {
					b.Fatal(n)
				}
				s.Close()
			}
		}},
		{"counts of predicates", 400, func() {
			for range 400 {
				s := view()
				if _, err := s.Predicates(); err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		}},
		{"changes of the log", 22_000, func() {
			l, err := store.ReadLog(context.Background(), kg.Filter{View: kg.View{Principal: dora}}, kg.LogRange{After: store.Oldest(), Until: store.Head()})
			if err != nil {
				b.Fatal(err)
			}
			for _, err := range l.Events() {
				if err != nil {
					b.Fatal(err)
				}
			}
		}},
	} {
		for _, kind := range kinds {
			b.Run(work.name+"/access="+kind.name, func(b *testing.B) {
				access.exchange(kind.access)
				work.do() // answers are cached, as in all reads but the first
				b.ReportAllocs()
				began := processorTime(b)
				for b.Loop() {
					work.do()
				}
				reads := float64(b.N * work.reads)
				b.ReportMetric(float64(processorTime(b)-began)/reads, "cpu-ns/read")
				b.ReportMetric(float64(b.Elapsed())/reads, "ns/read")
				b.ReportMetric(0, "ns/op") // an op is many reads
			})
		}
	}
}

// processorTime is the processor time of this process, without others on the machine.
func processorTime(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
