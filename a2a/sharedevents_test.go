package a2a

import (
	"testing"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/operation"
	"koine/kg"
)

// What is not a single change without errors, of a small commit, is encoded for each stream.
func TestUnsharedEvents(t *testing.T) {
	commit := func(n int) *kg.Commit { return &kg.Commit{Changes: make([]kg.Change, n)} }
	for name, row := range map[string]struct {
		event operation.Event
		want  bool
	}{
		"a change":                      {operation.Event{Changes: []kg.Event{{Commit: commit(operation.MaxSharedChanges)}}}, true},
		"a larger commit":               {operation.Event{Changes: []kg.Event{{Commit: commit(operation.MaxSharedChanges + 1)}}}, false},
		"two changes":                   {operation.Event{Changes: make([]kg.Event, 2)}, false},
		"a statement of a snapshot":     {operation.Event{Snapshot: true, Changes: make([]kg.Event, 1)}, false},
		"a selection that is not whole": {operation.Event{Changes: []kg.Event{{Commit: commit(1)}}, Result: operation.Result{Errors: gqlerror.List{{}}}}, false},
	} {
		if got := isShared(&row.event); got != row.want {
			t.Errorf("%s is shared: %t, want %t", name, got, row.want)
		}
	}
}
