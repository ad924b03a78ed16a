package tasks_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"koine/internal/slowtest"
	"koine/internal/tasks"
	"koine/kg"
)

// The cost of a page depends on its content only, however many tasks there are: of the
// whole list, of a rare state, and of pages far behind.
func TestAPageCostsAPage(t *testing.T) {
	slowtest.Long(t)
	b := open(t, tasks.Options{}, nil)
	const many, page = 1200, 50
	const each = 24 // a task is a dozen statements, and found by as many at most
	var created []tasks.TaskID
	for i := range many {
		q := tasks.SendRequest{Context: "all"}
		if i%100 == 0 {
			q.Context = "few"
		}
		created = append(created, b.send(ann, q).ID)
	}
	for i, id := range created {
		if i%100 == 1 {
			b.report(id, tasks.Report{State: tasks.Completed})
		}
	}
	last := tasks.Query{First: page}
	for range 20 {
		got, err := b.List(t.Context(), as(ann), last)
		if err != nil {
			t.Fatal(err)
		}
		last.After = got.Next
	}
	now := b.get(as(ann), created[many-30]).Updated
	for name, row := range map[string]struct {
		who   kg.AgentID
		q     tasks.Query
		size  int
		total int
	}{
		"all": {ann, tasks.Query{}, page, many}, "the handler's": {bot, tasks.Query{Handled: true}, page, many}, "far behind": {ann, last, page, many},
		"those of one agent": {ann, tasks.Query{Handler: bot}, page, many}, "rare": {ann, tasks.Query{States: []tasks.State{tasks.Completed}}, many / 100, many / 100},
		"frequent": {ann, tasks.Query{States: []tasks.State{tasks.Submitted}}, page, many - many/100},
		"a few":    {ann, tasks.Query{Context: "few"}, many / 100, many / 100},
		"lately":   {ann, tasks.Query{States: []tasks.State{tasks.Submitted}, Since: now}, -1, -1}, "by status": {ann, tasks.Query{ByStatus: true, Handler: bot, States: []tasks.State{tasks.Submitted}}, page, many - many/100}, "nobody's": {eve, tasks.Query{}, 0, 0},
	} {
		if row.q.First == 0 {
			row.q.First = page
		}
		got, reads, err := b.ListReads(t.Context(), as(row.who), row.q)
		if err != nil || row.size >= 0 && (len(got.Tasks) != row.size || got.Total != row.total) {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		if reads > int64(each*(len(got.Tasks)+1)) {
			t.Errorf("%s: %d statements were read for %d tasks", name, reads, len(got.Tasks))
		}
	}
}

// While tasks are created, changed and deleted, no page repeats a task, and unchanged
// tasks come once, in the order of their last change.
func TestPagesAmongChanges(t *testing.T) {
	slowtest.Long(t)
	b := open(t, tasks.Options{Known: func(kg.AgentID) bool { return true }}, nil)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	send := func() tasks.TaskID {
		to := []kg.AgentID{bot, eve, ann}[r.IntN(3)]
		return b.send(ann, tasks.SendRequest{To: to, Context: fmt.Sprint(r.IntN(2))}).ID
	}
	for round := range 6 {
		var stay, others []tasks.TaskID
		for i := range 60 {
			if id := send(); i%2 == 0 {
				stay = append(stay, id)
			} else {
				others = append(others, id)
			}
		}
		q := tasks.Query{First: 1 + r.IntN(9)}
		if round%2 == 1 {
			q.Context = "1"
		}
		if round%3 == 2 {
			q.States = []tasks.State{tasks.Submitted, tasks.Working}
		}
		q.ByStatus = r.IntN(2) == 0
		var seen []tasks.TaskID
		before := time.Now().Add(time.Hour)
		for {
			page, err := b.List(t.Context(), as(ann), q)
			if err != nil {
				t.Fatal(err)
			}
			for i := range page.Tasks {
				task := &page.Tasks[i]
				if slices.Contains(seen, task.ID) {
					t.Fatalf("task %s came twice", task.ID)
				}
				at := task.Updated
				if q.ByStatus {
					at = task.Status.Time
				}
				if at.After(before) {
					t.Errorf("%s of %s comes behind %s", task.ID, at, before)
				}
				seen, before = append(seen, task.ID), at
			}
			if page.Next == "" {
				break
			}
			q.After = page.Next
			send()
			change := others[r.IntN(len(others))]
			switch r.IntN(3) {
			case 0:
				task, err := b.Get(t.Context(), as(ann), change, tasks.ReadOptions{})
				if err != nil || task.Status.State.Ended() {
					continue
				}
				report := tasks.Report{State: []tasks.State{tasks.Working, tasks.Completed, ""}[r.IntN(3)], Artifacts: []tasks.Chunk{chunk("a", false, "x")}}
				_, err = b.Report(t.Context(), as(task.Handler), change, report)
				if err != nil {
					t.Fatal(err)
				}
			case 1:
				if err := b.Delete(t.Context(), as(ann), change); err != nil && kg.CodeOf(err) != kg.CodeTaskNotFound {
					t.Fatal(err)
				}
			}
		}
		for _, id := range stay {
			want := 1
			if task := b.get(as(ann), id); q.Context != "" && task.Context != q.Context {
				want = 0
			}
			if n := len(slices.DeleteFunc(slices.Clone(seen), func(other tasks.TaskID) bool { return other != id })); n != want {
				t.Errorf("round %d: %s came %d times, want %d", round, id, n, want)
			}
		}
	}
}

// The limit of tasks that a list reads holds, at the limit and above.
func TestBoundOfAList(t *testing.T) {
	b := open(t, tasks.Options{MaxListed: 5, Known: func(kg.AgentID) bool { return true }}, nil)
	for range 5 {
		b.send(ann, tasks.SendRequest{Context: "c"})
	}
	if page, err := b.List(t.Context(), as(ann), tasks.Query{Context: "c"}); err != nil || page.Total != 5 {
		t.Errorf("at the bound: %+v, %v", page, err)
	}
	b.send(ann, tasks.SendRequest{Context: "c"})
	_, err := b.List(t.Context(), as(ann), tasks.Query{Context: "c"})
	wantCode(t, "past the bound", err, kg.CodeLimitExceeded)
	if page, err := b.List(t.Context(), as(ann), tasks.Query{}); err != nil || page.Total != 6 {
		t.Errorf("without the context: %+v, %v", page, err)
	}
	for i := range 4 {
		b.send(ann, tasks.SendRequest{To: kg.AgentID(fmt.Sprint("agent://", i))})
	}
	if page, err := b.List(t.Context(), as(ann), tasks.Query{}); err != nil || page.Total != 10 {
		t.Errorf("with five agents: %+v, %v", page, err)
	}
	b.send(ann, tasks.SendRequest{To: eve})
	_, err = b.List(t.Context(), as(ann), tasks.Query{})
	wantCode(t, "with six agents", err, kg.CodeLimitExceeded)
	if page, err := b.List(t.Context(), as(ann), tasks.Query{Handler: eve}); err != nil || page.Total != 1 {
		t.Errorf("those of one agent: %+v, %v", page, err)
	}
}
