package rdfdata_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"koine/internal/caller"
	"koine/internal/dialect/rdfdata"
	"koine/internal/policy"
	"koine/kg"
)

// meddled are graphs into which another caller writes after their creation.
type meddled struct {
	*policy.Graphs
	made func()
}

func (m *meddled) Create(ctx context.Context, meta kg.Meta, c policy.Creation) (policy.Policy, kg.Receipt, error) {
	p, r, err := m.Graphs.Create(ctx, meta, c)
	m.made()
	return p, r, err
}

// blind is a store that is read no more when something was loaded.
type blind struct {
	*kg.Store
	loaded, blinds bool
}

func (b *blind) Load(ctx context.Context, m kg.Meta, q iter.Seq2[kg.Quad, error], o kg.LoadOptions) (kg.LoadReport, error) {
	b.loaded = true
	return b.Store.Load(ctx, m, q, o)
}

func (b *blind) View(ctx context.Context, v kg.View) (*kg.Snapshot, error) {
	if b.loaded && b.blinds {
		return nil, errors.New("too many queries")
	}
	return b.Store.View(ctx, v)
}

// A document that fails removes a graph that was created again for it, but not the writes
// of others to it; and one that was written has not failed, whatever follows.
func TestDocumentForADeletedGraph(t *testing.T) {
	policies := policy.New(policy.Options{})
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: policies, OnSystemChange: policies.Follow}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	prefixes, err := kg.NewPrefixes(nil)
	if err != nil {
		t.Fatal(err)
	}
	graph, admin := kg.IRI("urn:g"), kg.Principal{ID: "agent://ann", Roles: []string{kg.RoleAdmin}, Method: kg.MethodOpen}
	graphs := &meddled{Graphs: policy.NewGraphs(store, policies)}
	view := &blind{Store: store}
	handler := rdfdata.NewHandler(rdfdata.Deps{Store: view, Prefixes: prefixes, Graphs: graphs}, rdfdata.Options{TempDir: t.TempDir()})
	post := func(text string) int {
		t.Helper()
		view.loaded = false
		r := httptest.NewRequest(http.MethodPost, "/data?graph=urn:g", strings.NewReader(text))
		r.Header.Set("Content-Type", "application/n-quads")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r.WithContext(caller.With(t.Context(), caller.Caller{Principal: admin})))
		return w.Code
	}
	write := func() {
		_, err := store.Update(t.Context(), kg.Meta{Principal: admin}, func(tx *kg.Tx) error {
			return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:other"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1), Graph: graph}})
		})
		if err != nil {
			t.Error(err)
		}
	}
	const good = "<urn:s> <urn:p> \"1\" <urn:g> .\n"
	bad := good + "<urn:s> <urn:p> \"1\" <" + kg.OwnGraphPrefix + "x> .\n"
	for _, row := range []struct {
		name, text   string
		others       bool
		blinds       bool
		status, want int
	}{
		{"one that fails", bad, false, false, http.StatusForbidden, 0},
		{"one that fails beside others", bad, true, false, http.StatusForbidden, 1},
		{"one that cannot be read back", good, false, true, http.StatusOK, 1},
	} {
		if _, err := store.Update(t.Context(), kg.Meta{Principal: admin}, func(tx *kg.Tx) error {
			return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(0), Graph: graph}})
		}); err != nil && kg.CodeOf(err) != kg.CodeGraphNotFound {
			t.Fatal(err)
		}
		if _, err := graphs.Delete(t.Context(), kg.Meta{Principal: admin}, graph); err != nil {
			t.Fatal(err)
		}
		view.blinds = row.blinds
		graphs.made = func() {}
		if row.others {
			graphs.made = write
		}
		if status := post(row.text); status != row.status {
			t.Errorf("%s: %d", row.name, status)
		}
		s, err := store.View(t.Context(), kg.View{Principal: admin, Graphs: []kg.Term{graph}})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.Count(kg.Pattern{Graph: graph}); err != nil || n != uint64(row.want) {
			t.Errorf("%s: the graph holds %d statements, %v", row.name, n, err)
		}
		s.Close()
		if there := graphs.Exists(admin, graph); there != (row.want > 0) {
			t.Errorf("%s: the graph is there: %v", row.name, there)
		}
	}
}
