package path_test

import (
	"context"
	"log/slog"
	"testing"

	"koine/internal/query/path"
	"koine/kg"
)

const ex = "https://example.org/"

func iri(name string) kg.Term { return kg.IRI(ex + name) }

// prefixes returns the built-in prefixes and ex:.
func prefixes(t testing.TB) *kg.Prefixes {
	t.Helper()
	p, err := kg.NewPrefixes(map[string]string{"ex": ex})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustParse(t testing.TB, text string) *path.Path {
	t.Helper()
	p, err := path.Parse(text, prefixes(t))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// quad returns a statement of the default graph.
func quad(s, p, o kg.Term) kg.Quad {
	return kg.Quad{Subject: s, Predicate: p, Object: o, Graph: kg.DefaultGraph}
}

// snapshotOf returns a snapshot of a new store with these statements.
func snapshotOf(t testing.TB, quads ...kg.Quad) *kg.Snapshot {
	t.Helper()
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	write(t, store, quads...)
	s, err := store.View(context.Background(), kg.View{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func write(t testing.TB, store *kg.Store, quads ...kg.Quad) {
	t.Helper()
	_, err := store.Update(context.Background(), kg.Meta{Principal: kg.Principal{ID: "agent://writer"}}, func(tx *kg.Tx) error {
		for _, q := range quads {
			if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func idOf(t testing.TB, s *kg.Snapshot, term kg.Term) kg.ID {
	t.Helper()
	id, _, err := s.ID(term)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func termOf(t testing.TB, s *kg.Snapshot, id kg.ID) kg.Term {
	t.Helper()
	term, err := s.Term(id)
	if err != nil {
		t.Fatal(err)
	}
	return term
}

func bind(t testing.TB, s *kg.Snapshot, text string, o path.Options) *path.Bound {
	t.Helper()
	b, err := mustParse(t, text).Bind(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
