package policy_test

import (
	"context"
	"testing"

	"koine/internal/observertest"
	"koine/internal/policy"
	"koine/kg"
)

var (
	admin = kg.Principal{ID: "agent://root", Roles: []string{kg.RoleAdmin}, Method: "key"}
	dora  = kg.Principal{ID: "agent://dora", Roles: []string{"scribe"}, Method: "key"}
	eve   = kg.Principal{ID: "agent://eve", Method: "key"}
	local = kg.SystemPrincipal()
)

// bench is a store with policies.
type bench struct {
	t      testing.TB
	dir    string
	store  *kg.Store
	graphs *policy.Graphs
}

func newBench(t testing.TB, o policy.Options) *bench {
	b := &bench{t: t, dir: t.TempDir()}
	observertest.Replay(t, b.dir)
	b.open(o)
	t.Cleanup(func() { b.close() })
	return b
}

func (b *bench) open(o policy.Options) {
	b.t.Helper()
	policies := policy.New(o)
	store, err := kg.Open(b.dir, kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: policies, OnSystemChange: policies.Follow}})
	if err == nil {
		err = policies.Load(context.Background(), store)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.store, b.graphs = store, policy.NewGraphs(store, policies)
}

func (b *bench) close() {
	if err := b.store.Close(); err != nil {
		b.t.Error(err)
	}
}

func meta(p kg.Principal) kg.Meta { return kg.Meta{Principal: p} }

func iri(text string) kg.Term { return kg.IRI(text) }

// add adds a statement to the graph and returns the code of the result.
func (b *bench) add(p kg.Principal, graph kg.Term, text string) error {
	return b.apply(p, kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: iri("urn:s"), Predicate: iri("urn:p"), Object: kg.String(text), Graph: graph}})
}

func (b *bench) apply(principal kg.Principal, patches ...kg.Patch) error {
	_, err := b.store.Update(context.Background(), meta(principal), func(tx *kg.Tx) error {
		for _, p := range patches {
			if err := tx.Apply(p); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// count counts the statements that the principal reads in the graph.
func (b *bench) count(p kg.Principal, graph kg.Term) uint64 {
	b.t.Helper()
	return b.countAt(p, graph, 0)
}

func (b *bench) countAt(p kg.Principal, graph kg.Term, at kg.Revision) uint64 {
	b.t.Helper()
	s, err := b.store.View(context.Background(), kg.View{Principal: p, Graphs: []kg.Term{graph}, At: at})
	b.must(err)
	defer s.Close()
	n, err := s.Count(kg.Pattern{})
	b.must(err)
	return n
}

// set changes a policy.
func (b *bench) set(p kg.Principal, a policy.PolicyUpdate) error {
	_, _, err := b.graphs.Set(context.Background(), meta(p), a)
	return err
}

func yes() *bool { v := true; return &v }
func no() *bool  { v := false; return &v }

func wantCode(t testing.TB, what string, err error, want kg.Code) {
	t.Helper()
	if got := kg.CodeOf(err); got != want {
		t.Errorf("%s: got %q (%v), want %q", what, got, err, want)
	}
}

func withGraph(graph kg.Term, a policy.PolicyUpdate) policy.PolicyUpdate {
	a.Graph = graph
	return a
}
