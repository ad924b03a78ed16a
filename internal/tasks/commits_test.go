package tasks_test

import (
	"slices"
	"testing"

	"koine/internal/tasks"
	"koine/kg"
)

// A page of the commits of a task reads a limited number of commits; the next page
// continues after them, also after those that the log no longer has.
func TestCommitsOfATask(t *testing.T) {
	b := open(t, tasks.Options{MaxCommits: 3}, nil)
	task := b.send(ann, tasks.SendRequest{})
	n := 0
	write := func(agent kg.AgentID, id tasks.TaskID) kg.Revision {
		t.Helper()
		n++
		r, err := b.store.Update(t.Context(), kg.Meta{Principal: as(agent).Principal, TaskID: string(id)}, func(tx *kg.Tx) error {
			return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(n))}})
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.Revision
	}
	first, second := write(bot, task.ID), write(ann, task.ID)
	for range 3 {
		write(eve, task.ID) // an agent without a part in it
	}
	write(bot, "")
	last := write(bot, task.ID)
	pages := func(limit int) (list [][]kg.Revision) {
		t.Helper()
		for after := kg.Revision(0); ; {
			page, err := b.Commits(t.Context(), as(ann), task.ID, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			var created []kg.Revision
			for _, c := range page.Commits {
				created = append(created, c.Revision)
			}
			list = append(list, created)
			if after = page.Next; after == 0 {
				return list
			}
		}
	}
	flat := func(list [][]kg.Revision) (all []kg.Revision) {
		for _, page := range list {
			all = append(all, page...)
		}
		return all
	}
	want := []kg.Revision{first, second, last}
	if got := pages(10); !slices.Equal(flat(got), want) || len(got) != 3 { // of nine commits
		t.Errorf("pages of three commits have %v, want %v", got, want)
	}
	if got := pages(1); !slices.Equal(flat(got), want) || len(got) != 3 {
		t.Errorf("pages of one have %v, want %v", got, want)
	}
	_, err := b.Commits(t.Context(), as(eve), task.ID, 0, 10)
	wantCode(t, "of another", err, kg.CodeTaskNotFound)
	if err := b.store.Maintenance().CutLog(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if got := flat(pages(10)); !slices.Equal(got, want[1:]) {
		t.Errorf("behind a cut log there are %v, want %v", got, want[1:])
	}
}
