package tasks_test

import (
	"context"
	"testing"
	"time"

	"koine/internal/caller"
	"koine/internal/slowtest"
	"koine/internal/tasks"
	"koine/kg"
)

// countLookups returns the number of term lookups of do, which grows with the statements
// read.
func (b *bench) countLookups(do func()) int {
	before := b.store.Stats()
	do()
	after := b.store.Stats()
	return int(after.CacheHits + after.CacheMisses - before.CacheHits - before.CacheMisses)
}

// life runs a task from its message to its end.
func (b *bench) life() {
	b.t.Helper()
	task := b.send(ann, tasks.SendRequest{})
	b.report(task.ID, tasks.Report{State: tasks.Working})
	b.send(ann, tasks.SendRequest{Task: task.ID})
	b.report(task.ID, tasks.Report{State: tasks.Completed, Artifacts: []tasks.Chunk{chunk("a", false, "x")}})
	if _, err := b.Wait(b.t.Context(), as(ann), b.get(as(ann), task.ID), tasks.ReadAll); err != nil {
		b.t.Fatal(err)
	}
}

// The cost of a task does not depend on the number of others that wait for the same
// handler.
func TestTasksByTheThousand(t *testing.T) {
	slowtest.Long(t)
	b := open(t, tasks.Options{}, nil)
	const few, many = 20, 1500
	for range few {
		b.send(ann, tasks.SendRequest{})
	}
	alone := b.countLookups(b.life)
	for range many {
		b.send(ann, tasks.SendRequest{})
	}
	if among := b.countLookups(b.life); among > 2*alone+100 {
		t.Errorf("a task took %d terms among %d others, and %d among %d", alone, few, among, many)
	}
	var due []tasks.TaskID
	unclaimed := func(before time.Time) func() {
		return func() {
			var err error
			if due, err = b.Unclaimed(t.Context(), before); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := b.countLookups(unclaimed(time.Now().Add(-time.Hour))); n > 100 || len(due) > 0 {
		t.Errorf("to find that none of them is due, %d terms were looked up; due are %d", n, len(due))
	}
	if unclaimed(time.Now().Add(time.Hour))(); len(due) != 1000 {
		t.Errorf("an hour later %d are due, want as many as expire in one round", len(due))
	}
}

// quick is a worker that ends at once.
type quick struct{}

func (quick) CheckMessage(*tasks.Message) error { return nil }

func (quick) Answer(context.Context, caller.Caller, *tasks.Message) (*tasks.Message, error) {
	return nil, nil
}

func (quick) Work(context.Context, *tasks.Job) error { return nil }

// Ended tasks use no memory.
func TestDeskIsCleared(t *testing.T) {
	b := open(t, tasks.Options{}, map[kg.AgentID]tasks.Worker{bot: quick{}})
	for range 100 {
		task := b.send(ann, tasks.SendRequest{})
		if _, err := b.Wait(t.Context(), as(ann), task, tasks.ReadOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(time.Minute)
	for b.AtDesk() > 0 { // the last goes when it has told of its end
		if time.Now().After(end) {
			t.Fatalf("%d tasks that have ended are kept", b.AtDesk())
		}
		time.Sleep(time.Millisecond)
	}
}
