package kg_test

import (
	"strings"
	"testing"

	"koine/kg"
)

// A check finds a number of a journal that is missing, and one that exists twice; other
// graphs number freely.
func TestCheckSequences(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		graph   string
		numbers []int64
		want    string
	}{
		{kg.JournalGraphPrefix + "x", []int64{1, 2, 3}, ""},
		{kg.JournalGraphPrefix + "x", []int64{1, 3}, "has number 3 where 2 comes next"},
		{kg.JournalGraphPrefix + "x", []int64{1, 2, 2}, "has number 2 where 3 comes next"},
		{kg.OwnGraphPrefix + "x", []int64{7, 7}, ""},
	} {
		s := openStore(t, t.TempDir(), tinyLog())
		_, err := s.Update(within(t), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
			for i, n := range row.numbers {
				q := kg.Quad{Subject: kg.IRI("urn:s" + string(rune('a'+i))), Predicate: kg.Sequence, Object: kg.Integer(n), Graph: kg.IRI(row.graph)}
				if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Maintenance().Check(within(t), kg.CheckOptions{})
		if err != nil || r.Clean() != (row.want == "") || !r.Clean() && !strings.HasSuffix(r.Problems[0], row.want) {
			t.Errorf("%v in %s: %+v, %v", row.numbers, row.graph, r, err)
		}
		mustClose(t, s)
	}
}
