package valuewalk

import (
	"fmt"
	"slices"
	"testing"

	"koine/kg"
)

// A descending walk over very many statements of one value holds a chunk of them.
func TestChunksOfOneValue(t *testing.T) {
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	active := kg.IRI("urn:active")
	for _, row := range []struct {
		value kg.Term
		n     int
	}{{kg.Boolean(true), 5*maxChunk + 3}, {kg.Boolean(false), 2}, {kg.Integer(7), maxChunk}, {kg.Integer(8), maxChunk + 1}, {kg.Integer(9), 1}} {
		if _, err := store.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
			for i := range row.n {
				if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(fmt.Sprintf("urn:%s/%d", row.value.Value(), i)), Predicate: active, Object: row.value, Graph: kg.DefaultGraph}}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.View(t.Context(), kg.View{Principal: kg.SystemPrincipal()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ids, _, err := s.PatternIDs(kg.Pattern{Predicate: active})
	if err != nil {
		t.Fatal(err)
	}
	for _, descending := range []bool{false, true} {
		want := readSorted(t, s, ids.Predicate, descending, nil)
		w, err := newWalk(s, ids.Predicate, descending, nil, defaultBounds)
		if err != nil || w == nil {
			t.Fatal(w, err)
		}
		var got []Row
		for {
			row, more, err := w.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				break
			}
			got = append(got, row)
		}
		if !slices.EqualFunc(got, want, func(a, b Row) bool { return a.IDQuad == b.IDQuad }) {
			t.Errorf("descending %t: %d rows, want %d in another order", descending, len(got), len(want))
		}
	}
	for _, object := range []kg.Term{kg.Boolean(true), kg.Integer(8)} {
		of, _, err := s.PatternIDs(kg.Pattern{Predicate: active, Object: object})
		if err != nil {
			t.Fatal(err)
		}
		c := &objectChunks{snapshot: s, predicate: ids.Predicate, left: kg.IDRange{First: of.Object, Last: of.Object}, descending: true, width: 1}
		for n, read := 0, 1; read > 0; n += read {
			if err := c.read(); err != nil {
				t.Fatal(err)
			}
			if read = len(c.rows); read > maxChunk {
				t.Fatalf("%v: %d statements are read at once", object, read)
			}
		}
	}
}
