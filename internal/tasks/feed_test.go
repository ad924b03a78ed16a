package tasks_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"koine/internal/tasks"
	"koine/kg"
)

// A feed tells what waits, and then what happens to the tasks of its agent, as the
// creator and as the handler, in order, and nothing of others.
func TestFeed(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	waits := b.send(ann, tasks.Sending{})
	told := map[kg.AgentID]func(n int) []string{}
	for _, agent := range []kg.AgentID{ann, bot, eve} {
		f, err := b.Concerning(t.Context(), as(agent))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		told[agent] = func(n int) (out []string) {
			for h, err := range f.Happenings() {
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
	b.send(eve, tasks.Sending{})
	b.send(ann, tasks.Sending{Task: waits.ID, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("more")}}})
	for agent, want := range map[kg.AgentID][]string{
		ann: {"2 events, from agent://ann", "1 events, from agent://ann"},
		eve: {"2 events, from agent://eve"},
	} {
		if got := told[agent](len(want)); !slices.Equal(got, want) {
			t.Errorf("%s was told %q, want %q", agent, got, want)
		}
	}
	// The letter that waited was dealt with before anybody looked.
	got := told[bot](5)
	slices.Sort(got) // a letter and its task are told of in one commit
	if want := []string{"1 events, from agent://ann", "2 events, from agent://ann", "2 events, from agent://eve", "letter 1 of agent://eve", "letter 2 of agent://ann"}; !slices.Equal(got, want) {
		t.Errorf("bot was told %q, want %q", got, want)
	}
}

// Who does not read is told so, and loses nothing by beginning anew.
func TestFeedOfASlowReader(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	task := b.send(ann, tasks.Sending{})
	f, err := b.Concerning(t.Context(), as(bot))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	witness, err := b.Concerning(t.Context(), as(ann))
	if err != nil {
		t.Fatal(err)
	}
	defer witness.Close()
	n := 0
	next, stop := pull(witness)
	defer stop()
	// What the witness is told of, the other was told of or is about to be: one more, and
	// all before it was told to both.
	for i := range tasks.MaxNotes + 2 {
		b.report(task.ID, tasks.Report{State: []tasks.State{tasks.Working, tasks.InputRequired}[i%2]})
		if _, err := next(); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range f.Happenings() {
		if n++; err != nil {
			wants(t, "the end", err, kg.CodeResync)
			break
		}
	}
	if n != 1 {
		t.Errorf("told %d things, and not that it ends", n)
	}
}

// At the end of the service all feeds end.
func TestFeedsEndWithTheService(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	f, err := b.Concerning(t.Context(), as(bot))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b.Close()
	for _, err := range f.Happenings() {
		wants(t, "the end", err, kg.CodeClosed)
	}
	_, err = b.Concerning(t.Context(), as(bot))
	wants(t, "one more", err, kg.CodeClosed)
}

func pull(f *tasks.Feed) (next func() (tasks.Happening, error), stop func()) {
	pull, stop := iter.Pull2(f.Happenings())
	return func() (tasks.Happening, error) {
		h, err, ok := pull()
		if !ok {
			return h, kg.Errorf(kg.CodeClosed, "no more")
		}
		return h, err
	}, stop
}
