package kg_test

import (
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

// TestRetryAfterTheLogWasCut proves that a retry is answered as such when the log no longer
// has the commit that it repeats.
func TestRetryAfterTheLogWasCut(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	update := func() (kg.Receipt, error) {
		return s.Update(within(t), kg.Meta{IdempotencyKey: "k"}, func(tx *kg.Tx) error {
			return tx.Apply(kg.Patch{Op: kg.Add, Quad: integer(1)})
		})
	}
	first, err := update()
	if err != nil {
		t.Fatal(err)
	}
	if err := addOne(s.Store, within(t), integer(2)); err != nil {
		t.Fatal(err)
	}
	if err := s.Maintenance().CutLog(within(t), s.Head().Revision); err != nil {
		t.Fatal(err)
	}
	again, err := update()
	if err != nil || !again.Replayed || !again.Committed || again.Revision != first.Revision || !again.Time.Equal(first.Time) {
		t.Errorf("got %+v, %v, want the answer from revision %d", again, err, first.Revision)
	}
	if head := s.Head().Revision; head != 2 {
		t.Errorf("the retry made revision %d", head)
	}
}
