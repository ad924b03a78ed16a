package graph_test

import (
	"iter"
	"runtime"
	"testing"
	"time"
	"weak"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/tasks"
	"koine/kg"
)

// A subscription to a task does not hold the task with which it began.
func TestTaskSubscriptionsHoldNoTask(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id, _ := c.asks("count", "")
	by := tasks.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}
	next, stop, first := func() (func() bool, func(), weak.Pointer[tasks.Task]) {
		task, st, err := c.tasks.Follow(t.Context(), by, tasks.TaskID(id), tasks.ReadAll)
		if err != nil {
			t.Fatal(err)
		}
		next, stop := iter.Pull2(graph.TaskEvents(c.store, task, st))
		return func() bool { _, err, ok := next(); return ok && err == nil }, func() { st.Close(); stop() }, weak.Make(task)
	}()
	defer stop()
	c.reports(id, ", state: WORKING")
	for range 2 { // the task, and its event
		if !next() {
			t.Fatal("the subscription ended")
		}
	}
	for end := time.Now().Add(10 * time.Second); first.Value() != nil; runtime.GC() {
		if time.Now().After(end) {
			t.Fatal("the task is held")
		}
	}
}
