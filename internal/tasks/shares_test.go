package tasks_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"koine/internal/caller"
	"koine/internal/tasks"
	"koine/kg"
)

// watched is a worker that tells which sender's work begins, and ends it when it is told to.
type watched struct {
	echo
	begun chan kg.AgentID
}

func newWatched() watched {
	return watched{echo{make(chan struct{})}, make(chan kg.AgentID, 2000)}
}

func (w watched) Answer(context.Context, caller.Caller, *tasks.Message) (*tasks.Message, error) {
	return nil, nil
}

func (w watched) Work(ctx context.Context, j *tasks.Job) error {
	w.begun <- j.By.Principal.ID
	select {
	case <-w.release:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wantBegun waits for the beginnings of work, in any order.
func (w watched) wantBegun(t *testing.T, want ...kg.AgentID) {
	t.Helper()
	var got []kg.AgentID
	for range want {
		select {
		case agent := <-w.begun:
			got = append(got, agent)
		case <-time.After(time.Minute):
			t.Fatalf("work began for %s, want %s", got, want)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("work began for %s, want %s", got, want)
	}
}

// order sends koine a message.
func (b *bench) order(by kg.AgentID) (tasks.TaskID, error) {
	sent, err := b.Send(b.t.Context(), as(by), tasks.SendRequest{To: kg.System, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("do")}}})
	if err != nil {
		return "", err
	}
	return sent.Task.ID, nil
}

func (b *bench) mustOrder(by kg.AgentID) tasks.TaskID {
	b.t.Helper()
	id, err := b.order(by)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// A sender has at most half of the tasks that may run or wait, and half of those that run;
// the next one half of the rest.
func TestSharesOfWorkers(t *testing.T) {
	worker := newWatched()
	b := open(t, tasks.Options{}, map[kg.AgentID]tasks.Worker{kg.System: worker})
	total := tasks.DefaultMaxWorking + tasks.DefaultMaxQueued
	for _, row := range []struct {
		agent          kg.AgentID
		share, running int
	}{{ann, total / 2, tasks.DefaultMaxWorking / 2}, {eve, total / 4, tasks.DefaultMaxWorking / 4}} {
		for range row.share {
			b.mustOrder(row.agent)
		}
		_, err := b.order(row.agent)
		wantCode(t, "past the share of "+string(row.agent), err, kg.CodeOverloaded)
		if kg.AsError(err).RetryAfter <= 0 {
			t.Errorf("%v has no time to wait", err)
		}
		worker.wantBegun(t, slices.Repeat([]kg.AgentID{row.agent}, row.running)...)
	}
	b.mustOrder(bot)
	worker.wantBegun(t, bot)
	select {
	case agent := <-worker.begun:
		t.Errorf("%s has more than its share of the workers", agent)
	default:
	}
	b.stop() // with hundreds of tasks that wait
	b.start()
}

// Senders take turns: one message does not wait for all of a sender that sent many.
func TestTurnsOfWaitingTasks(t *testing.T) {
	worker := newWatched()
	b := open(t, tasks.Options{MaxWorking: 1}, map[kg.AgentID]tasks.Worker{kg.System: worker})
	for range 5 {
		b.mustOrder(ann)
	}
	b.mustOrder(eve)
	worker.wantBegun(t, ann)
	for _, next := range []kg.AgentID{ann, eve, ann, ann, ann} {
		worker.release <- struct{}{}
		worker.wantBegun(t, next)
	}
	worker.release <- struct{}{}
}

// A canceled task leaves the queue, and its place is free; what runs gives its slot back.
func TestCanceledTasksFreeTheirPlaces(t *testing.T) {
	worker := newWatched()
	b := open(t, tasks.Options{MaxWorking: 1, MaxQueued: 5}, map[kg.AgentID]tasks.Worker{kg.System: worker})
	running := b.mustOrder(ann)
	worker.wantBegun(t, ann)
	for range 3 {
		list := []tasks.TaskID{b.mustOrder(ann), b.mustOrder(ann)}
		for _, id := range list {
			if _, err := b.Cancel(t.Context(), as(ann), id); err != nil {
				t.Fatal(err)
			}
		}
		for deadline := time.Now().Add(time.Minute); b.Places() > 1; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d places are taken after the tasks were canceled", b.Places())
			}
		}
	}
	b.mustOrder(eve)
	if _, err := b.Cancel(t.Context(), as(ann), running); err != nil {
		t.Fatal(err)
	}
	worker.wantBegun(t, eve)
	worker.release <- struct{}{}
}
