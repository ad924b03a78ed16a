package tasks_test

import (
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/internal/tasks"
	"koine/kg"
)

// A feed yields the waiting letters, and then the events of its agent's tasks, as
// creator and as handler, in order, and nothing of others.
func TestFeed(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	waits := b.send(ann, tasks.SendRequest{})
	received := map[kg.AgentID]func(n int) []string{}
	for _, agent := range []kg.AgentID{ann, bot, eve} {
		f, err := b.OpenFeed(t.Context(), as(agent))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		received[agent] = func(n int) (out []string) {
			for h, err := range f.Events() {
				switch {
				case err != nil:
					t.Fatal(err)
				case h.Letter != nil:
					out = append(out, fmt.Sprintf("letter %d of %s", h.Letter.Number, h.Letter.Task.Creator))
				default:
					out = append(out, fmt.Sprintf("%d events, from %s", len(h.Events), h.Task.Creator))
				}
				if len(out) == n {
					break
				}
			}
			return out
		}
	}
	b.report(waits.ID, tasks.Report{State: tasks.Working, Artifacts: []tasks.Chunk{chunk("a", false, "x")}})
	b.send(eve, tasks.SendRequest{})
	b.send(ann, tasks.SendRequest{Task: waits.ID, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("more")}}})
	for agent, want := range map[kg.AgentID][]string{
		ann: {"2 events, from agent://ann", "1 events, from agent://ann"},
		eve: {"2 events, from agent://eve"},
	} {
		if got := received[agent](len(want)); !slices.Equal(got, want) {
			t.Errorf("%s was told %q, want %q", agent, got, want)
		}
	}
	// The letter that waited was acknowledged before the feed read it.
	got := received[bot](5)
	slices.Sort(got) // a letter and its task are told of in one commit
	if want := []string{"1 events, from agent://ann", "2 events, from agent://ann", "2 events, from agent://eve", "letter 1 of agent://eve", "letter 2 of agent://ann"}; !slices.Equal(got, want) {
		t.Errorf("bot was told %q, want %q", got, want)
	}
}

// A slow reader gets an error, and loses nothing by starting a new feed.
func TestFeedOfASlowReader(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	task := b.send(ann, tasks.SendRequest{})
	f, err := b.OpenFeed(t.Context(), as(bot))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	witness, err := b.OpenFeed(t.Context(), as(ann))
	if err != nil {
		t.Fatal(err)
	}
	defer witness.Close()
	n := 0
	next, stop := pull(witness)
	defer stop()
	// If the witness has an event, the other feed has it or is about to: one more, and
	// all earlier ones reached both.
	for i := range tasks.MaxNotes + 2 {
		b.report(task.ID, tasks.Report{State: []tasks.State{tasks.Working, tasks.InputRequired}[i%2]})
		if _, err := next(); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range f.Events() {
		if n++; err != nil {
			wantCode(t, "the end", err, kg.CodeResync)
			break
		}
	}
	if n != 1 {
		t.Errorf("told %d things, and not that it ends", n)
	}
}

// Closing the service ends all feeds.
func TestFeedsEndWithTheService(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	f, err := b.OpenFeed(t.Context(), as(bot))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b.Close()
	for _, err := range f.Events() {
		wantCode(t, "the end", err, kg.CodeClosed)
	}
	_, err = b.OpenFeed(t.Context(), as(bot))
	wantCode(t, "one more", err, kg.CodeClosed)
}

func pull(f *tasks.Feed) (next func() (tasks.FeedEvent, error), stop func()) {
	pull, stop := iter.Pull2(f.Events())
	return func() (tasks.FeedEvent, error) {
		h, err, ok := pull()
		if !ok {
			return h, kg.Errorf(kg.CodeClosed, "no more")
		}
		return h, err
	}, stop
}

// Missed tasks are read when they are yielded: a feed does not hold the artifacts of
// all tasks that changed before it started.
func TestMissedTasksAreReadAsTheyAreTold(t *testing.T) {
	slowtest.Long(t)
	b := open(t, tasks.Options{}, nil)
	after := b.store.Head()
	const count, size = 64, 250 << 10
	for range count {
		b.report(b.send(ann, tasks.SendRequest{}).ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", false, strings.Repeat("x", size))}})
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	f, err := b.OpenFeedFrom(t.Context(), as(ann), after)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if held := heap() - before; held > count*size/4 {
		t.Errorf("the feed holds %d bytes of %d", held, count*size)
	}
	received := 0
	for h, err := range f.Events() {
		if err != nil || h.Task == nil || len(h.Task.Artifacts) != 1 || len(h.Task.Artifacts[0].Parts) != 1 {
			t.Fatalf("told %+v, %v", h, err)
		}
		if received++; received == count {
			break
		}
	}
}
