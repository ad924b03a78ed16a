package reputation_test

import (
	"fmt"
	"testing"

	"koine/internal/caller"
	"koine/internal/reputation"
	"koine/kg"
)

// The newest events count, up to the bound, whatever order the store has them in; past it
// the answer says so.
func TestNewestEventsCount(t *testing.T) {
	const looked, scanned = 12, 20
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	// The graphs come to be before the tasks, in another order than they.
	graph := func(i int) kg.Term { return kg.IRI(fmt.Sprint(kg.OwnGraphPrefix, "task:", i%3)) }
	n := 0
	task := func(state string) {
		t.Helper()
		subject := kg.IRI(fmt.Sprint("urn:koine:task:", n))
		if _, err := store.Update(t.Context(), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
			for name, object := range map[string]kg.Term{"taskHandler": kg.IRI("agent://ann"), "taskCreator": kg.IRI("agent://bob"), "taskState": kg.String(state)} {
				q := kg.Quad{Subject: subject, Predicate: kg.IRI(kg.OwnVocabulary + name), Object: object, Graph: graph(2 * n)}
				if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		n++
	}
	root := caller.Caller{Principal: kg.Principal{ID: "agent://root", Method: "key", Roles: []string{kg.RoleAdmin}}}
	s := reputation.NewBounded(store, looked, scanned)
	want := func(completed, failed int, partial bool) {
		t.Helper()
		r, err := s.Of(t.Context(), root, "agent://ann")
		if err != nil {
			t.Fatal(err)
		}
		if r.TasksCompleted != completed || r.TasksFailed != failed || r.Partial != partial {
			t.Errorf("after %d tasks: %d completed, %d failed, partial %v; want %d, %d, %v", n, r.TasksCompleted, r.TasksFailed, r.Partial, completed, failed, partial)
		}
	}
	for range looked {
		task("FAILED")
	}
	want(0, looked, false)
	task("COMPLETED")
	want(1, looked-1, true)
	for n < scanned {
		task("COMPLETED")
	}
	want(scanned-looked, 2*looked-scanned, true)
	s = reputation.NewBounded(store, 2*scanned, scanned)
	want(scanned-looked, looked, false)
	task("COMPLETED")
	if r, err := s.Of(t.Context(), root, "agent://ann"); err != nil || !r.Partial || r.Events() != scanned {
		t.Errorf("beyond the scan: %+v, %v", r, err)
	}
}
