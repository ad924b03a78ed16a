package tasks_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"koine/internal/slowtest"
	"koine/internal/tasks"
	"koine/kg"
)

// limitReads opens the service again with another bound of the bytes that are read of a task.
func (b *bench) limitReads(most int) {
	b.t.Helper()
	b.stop()
	b.o.MaxReadBytes = most
	b.start()
}

// bytesRead is the number of bytes that reading a part of a task counts.
func (b *bench) bytesRead(id tasks.TaskID, r tasks.ReadOptions) int {
	b.t.Helper()
	n, err := b.BytesRead(b.t.Context(), as(ann), id, r)
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// grown is a task with n chunks of an artifact and n messages, of size bytes each.
func (b *bench) grown(n, size int) tasks.TaskID {
	b.t.Helper()
	text := strings.Repeat("x", size)
	id := b.send(ann, tasks.SendRequest{}).ID
	for range n {
		b.report(id, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", true, text)}})
		b.send(ann, tasks.SendRequest{Task: id, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart(text)}}})
	}
	return id
}

// A task is read whole at MaxReadBytes. Past it, reading is an error, and the answer to a change
// leaves out messages and artifacts, because the change is made.
func TestBoundOfReads(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	id := b.grown(3, 1000)
	most := b.bytesRead(id, tasks.ReadAll)
	if head := b.bytesRead(id, tasks.ReadOptions{}); most < head+6*1000 {
		t.Fatalf("all of the task counts %d bytes, without its parts %d", most, head)
	}
	b.limitReads(most)
	if got := b.get(as(ann), id); len(got.History) != 4 || len(got.Artifacts) != 1 || got.Partial {
		t.Errorf("at the bound: %d messages, %d artifacts, partial %t", len(got.History), len(got.Artifacts), got.Partial)
	}
	b.limitReads(most - 1)
	refused := func(what string, err error) {
		t.Helper()
		wantCode(t, what, err, kg.CodeLimitExceeded)
		if err != nil && kg.AsError(err).Hint == "" {
			t.Errorf("%s: the error %q names no way out", what, err)
		}
	}
	ctx := t.Context()
	_, err := b.Get(ctx, as(ann), id, tasks.ReadAll)
	refused("to read it", err)
	_, _, err = b.Follow(ctx, as(ann), id, tasks.ReadAll)
	refused("to follow it", err)
	for _, r := range []tasks.ReadOptions{{}, {History: 4}, {Artifacts: true}} {
		if got, err := b.Get(ctx, as(ann), id, r); err != nil || got.Partial || len(got.History) != r.History || (len(got.Artifacts) == 1) != r.Artifacts {
			t.Errorf("a part, %+v: %+v, %v", r, got, err)
		}
	}
	partial := func(what string, got *tasks.Task, err error) {
		t.Helper()
		if err != nil || !got.Partial || got.History != nil || got.Artifacts != nil || got.ID != id {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	got, err := b.Get(ctx, as(ann), id, tasks.ReadFitting)
	partial("what fits", got, err)
	message := tasks.Message{ID: "again", Parts: []tasks.Part{tasks.TextPart("x")}}
	for _, what := range []string{"the answer to a message", "the answer to its repetition"} {
		sent, err := b.Send(ctx, as(ann), tasks.SendRequest{Task: id, Message: message})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		partial(what, sent.Task, nil)
	}
	got, err = b.Report(ctx, as(bot), id, tasks.Report{State: tasks.Working})
	partial("the answer to a report", got, err)
	got, err = b.Cancel(ctx, as(ann), id)
	partial("the answer to a cancellation", got, err)
}

// Messages and artifacts that are read alone have the same bound.
func TestBoundOfReadParts(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	id := b.grown(2, 1000)
	head := b.bytesRead(id, tasks.ReadOptions{})
	read := map[string]func() error{
		"messages": func() error { _, err := b.Messages(t.Context(), as(ann), id, 1, 2); return err },
		"artifact": func() error { _, err := b.Artifact(t.Context(), as(ann), id, "a"); return err },
	}
	for what, most := range map[string]int{
		"messages": b.bytesRead(id, tasks.ReadOptions{History: 2}) - head, "artifact": b.bytesRead(id, tasks.ReadOptions{Artifacts: true}) - head,
	} {
		b.limitReads(most)
		if err := read[what](); err != nil {
			t.Errorf("%s at the bound: %v", what, err)
		}
		b.limitReads(most - 1)
		wantCode(t, what+" past the bound", read[what](), kg.CodeLimitExceeded)
	}
}

// Of a task that is refused, whatever its size, about as much is read as the bound.
func TestRefusedTasksAreNotRead(t *testing.T) {
	const size, most = 10_000, 3 * 10_000
	b := open(t, tasks.Options{MaxReadBytes: most}, nil)
	id := b.grown(10, size)
	for _, r := range []tasks.ReadOptions{{Artifacts: true}, {History: -1}} {
		n, err := b.BytesRead(t.Context(), as(ann), id, r)
		wantCode(t, fmt.Sprintf("%+v", r), err, kg.CodeLimitExceeded)
		if n > most+2*size {
			t.Errorf("%+v: %d bytes are read, and the bound is %d", r, n, most)
		}
	}
}

// Parts without content count, because they take memory.
func TestPartsCount(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	many := make([]tasks.Part, tasks.MaxParts)
	for i := range many {
		many[i] = tasks.TextPart("")
	}
	id := b.send(ann, tasks.SendRequest{Message: tasks.Message{Parts: many}}).ID
	b.report(id, tasks.Report{Artifacts: []tasks.Chunk{{Artifact: tasks.Artifact{ID: "a", Parts: many}}}})
	head := b.bytesRead(id, tasks.ReadOptions{})
	for _, r := range []tasks.ReadOptions{{Artifacts: true}, {History: 1}} {
		if n := b.bytesRead(id, r) - head; n < tasks.MaxParts*tasks.PartOverhead {
			t.Errorf("%+v: %d parts count %d bytes", r, tasks.MaxParts, n)
		}
	}
}

// A page ends before the task with which it would be too large, and the next one begins there; a
// task that is too large alone is listed without its parts.
func TestBytesOfPages(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	var ids []tasks.TaskID // the last changed first, as they are listed
	for _, n := range []int{1, 1, 5, 1, 1} {
		ids = append([]tasks.TaskID{b.grown(n, 10_000)}, ids...)
	}
	one := b.bytesRead(ids[0], tasks.ReadAll)
	for _, row := range []struct {
		most  int
		pages string
	}{{2*one + 100, "[2 2* 1]"}, {2*one - 100, "[1 1 2* 1]"}} {
		b.limitReads(row.most)
		var pages []string
		var got []tasks.TaskID
		for after := ""; ; {
			page, err := b.List(t.Context(), as(ann), tasks.Query{Reading: tasks.ReadAll, After: after})
			if err != nil {
				t.Fatal(err)
			}
			if page.Total != len(ids) {
				t.Errorf("the total is %d", page.Total)
			}
			what := fmt.Sprint(len(page.Tasks))
			for i := range page.Tasks {
				got = append(got, page.Tasks[i].ID)
				if page.Tasks[i].Partial {
					what += "*"
				} else if len(page.Tasks[i].Artifacts) != 1 {
					t.Errorf("a task that fits has %d artifacts", len(page.Tasks[i].Artifacts))
				}
			}
			if pages = append(pages, what); page.Next == "" {
				break
			}
			after = page.Next
		}
		if fmt.Sprint(pages) != row.pages || fmt.Sprint(got) != fmt.Sprint(ids) {
			t.Errorf("with %d bytes the pages are %v, want %s; they have %v, want %v", row.most, pages, row.pages, got, ids)
		}
	}
}

// An event of a feed has the artifacts of a task up to MaxFeedBytes, and those of a task that has
// ended up to MaxReadBytes.
func TestBytesOfFeeds(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	id := b.send(ann, tasks.SendRequest{}).ID
	b.report(id, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", true, "0123456789")}})
	most := b.bytesRead(id, tasks.ReadOptions{Artifacts: true}) - b.bytesRead(id, tasks.ReadOptions{})
	for _, row := range []struct {
		most    int
		partial bool
		state   tasks.State
	}{{most, false, tasks.Working}, {most - 1, true, tasks.InputRequired}} {
		b.stop()
		b.o.MaxFeedBytes = row.most
		b.start()
		f, err := b.OpenFeed(t.Context(), as(ann))
		if err != nil {
			t.Fatal(err)
		}
		next, stop := pull(f)
		b.report(id, tasks.Report{State: row.state})
		h, err := next()
		if err != nil || h.Task.Partial != row.partial || (len(h.Task.Artifacts) == 0) != row.partial {
			t.Errorf("with %d bytes: told %+v, %v", row.most, h.Task, err)
		}
		if row.partial {
			b.report(id, tasks.Report{State: tasks.Completed})
			if h, err := next(); err != nil || h.Task.Partial || len(h.Task.Artifacts) != 1 {
				t.Errorf("of the end: told %+v, %v", h.Task, err)
			}
		}
		stop()
		f.Close()
	}
}

// Neither a stream nor a wait holds the task with which it began.
func TestStreamsHoldNoTask(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	id := b.grown(1, 1000)
	first := make(chan weak.Pointer[tasks.Task], 2)
	st := func() *tasks.Stream {
		task, st, err := b.Follow(t.Context(), as(ann), id, tasks.ReadAll)
		if err != nil {
			t.Fatal(err)
		}
		first <- weak.Make(task)
		return st
	}()
	defer st.Close()
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error)
	go func() {
		task, err := b.Get(ctx, as(ann), id, tasks.ReadAll)
		if err == nil {
			first <- weak.Make(task)
			_, err = b.Wait(ctx, as(ann), task, tasks.ReadOptions{})
		}
		waited <- err
	}()
	for range 2 {
		held, end := <-first, time.Now().Add(10*time.Second)
		for held.Value() != nil {
			if time.Now().After(end) {
				t.Fatal("the task is held")
			}
			time.Sleep(time.Millisecond)
			runtime.GC()
		}
	}
	if st.About().ID != id {
		t.Errorf("the stream is about %+v", st.About())
	}
	cancel()
	<-waited
}

// By default a task of any artifacts that the bounds of reports allow is read up to 16 MiB.
func TestDefaultBoundOfReads(t *testing.T) {
	slowtest.Long(t)
	b := open(t, tasks.Options{}, nil)
	id := b.send(ann, tasks.SendRequest{}).ID
	text := strings.Repeat("x", tasks.MaxMessageBytes)
	add := func() {
		t.Helper()
		if _, err := b.SubmitReport(t.Context(), as(bot), id, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", true, text)}}, tasks.ReadOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for range tasks.DefaultMaxReadBytes/tasks.MaxMessageBytes - 1 {
		add()
	}
	b.get(as(ann), id)
	add()
	_, err := b.Get(t.Context(), as(ann), id, tasks.ReadAll)
	wantCode(t, "16 MiB and what is about them", err, kg.CodeLimitExceeded)
}
