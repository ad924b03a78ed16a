package tasks_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/tasks"
)

// A mailbox yields the unacknowledged letters of its handler in order, then new ones,
// and none of others. A cancellation replaces the letters of its task.
func TestMailbox(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	text := func(s string) tasks.Message { return tasks.Message{Parts: []tasks.Part{tasks.TextPart(s)}} }
	first := b.send(ann, tasks.SendRequest{Message: text("1")})
	done := b.send(ann, tasks.SendRequest{Message: text("done")})
	b.send(eve, tasks.SendRequest{Message: text("2")})
	b.send(ann, tasks.SendRequest{Task: first.ID, Message: text("3")})
	canceled := b.send(ann, tasks.SendRequest{Message: text("canceled")})
	deleted := b.send(ann, tasks.SendRequest{Message: text("deleted")})
	b.report(done.ID, tasks.Report{State: tasks.Working})
	if _, err := b.Cancel(t.Context(), as(ann), canceled.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), as(ann), deleted.ID); err != nil {
		t.Fatal(err)
	}
	b.stop()
	b.start()
	box, err := b.Mail(t.Context(), as(bot))
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	// One was claimed before it is read, another arrives before the mailbox is read.
	late := b.send(ann, tasks.SendRequest{Message: text("4")})
	b.report(b.send(ann, tasks.SendRequest{Message: text("claimed")}).ID, tasks.Report{State: tasks.Working})
	var got []string
	for l, err := range box.Letters() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s", l.Task.Creator, *l.Message.Parts[0].Text))
		if len(got) == 5 {
			b.report(late.ID, tasks.Report{State: tasks.InputRequired})
			b.send(ann, tasks.SendRequest{Task: late.ID, Message: text("5")})
		}
		if len(got) == 6 {
			break
		}
	}
	if want := []string{"agent://ann 1", "agent://eve 2", "agent://ann 3", "agent://ann The task was canceled.", "agent://ann 4", "agent://ann 5"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if others, err := b.Mail(t.Context(), as(ann)); err != nil {
		t.Error(err)
	} else {
		others.Close()
	}
}

// An unclaimed task fails in time; a claimed one does not.
func TestUnclaimedTasksExpire(t *testing.T) {
	var ahead atomic.Int64 // of the time of day; the clock stands behind it at first
	ahead.Store(-int64(time.Hour))
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	b := open(t, tasks.Options{Expiry: 50 * time.Millisecond, Clock: clock}, nil)
	claimed := b.send(ann, tasks.SendRequest{})
	b.report(claimed.ID, tasks.Report{State: tasks.Working})
	task := b.send(ann, tasks.SendRequest{})
	_, st, err := b.Follow(t.Context(), as(ann), task.ID, tasks.ReadAll)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ahead.Store(int64(time.Hour))
	for e, err := range st.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Failure == nil || e.Failure.Code != tasks.FailureExpired {
			t.Errorf("it became %+v", e)
		}
	}
	if got := b.get(as(bot), claimed.ID).Status.State; got != tasks.Working {
		t.Errorf("what was claimed is %s", got)
	}
}

// The default expiry is a day.
func TestUnclaimedTasksExpireAfterADay(t *testing.T) {
	var ahead atomic.Int64 // of the time of day
	b := open(t, tasks.Options{Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}, nil)
	id := b.send(ann, tasks.SendRequest{}).ID
	for _, row := range []struct {
		later time.Duration
		want  tasks.State
	}{
		{23 * time.Hour, tasks.Submitted}, // however long the test takes
		{24 * time.Hour, tasks.Failed},
	} {
		ahead.Store(int64(row.later))
		if err := b.ExpireDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := b.get(as(ann), id).Status.State; got != row.want {
			t.Errorf("%v later it is %s, want %s", row.later, got, row.want)
		}
	}
	if f := b.get(as(ann), id).Failure; f == nil || f.Code != tasks.FailureExpired {
		t.Errorf("it failed of %+v", f)
	}
}
