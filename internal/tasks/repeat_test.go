package tasks_test

import (
	"testing"

	"koine/internal/slowtest"
	"koine/internal/tasks"
	"koine/kg"
)

// A report repeated by its key, its version, its offset or the id of its message is
// applied once, and returns the first result.
func TestRepeatedReports(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	offset := func(n int) tasks.Report {
		c := chunk("a", true, "x")
		c.Offset = &n
		return tasks.Report{Artifacts: []tasks.Chunk{c}}
	}
	for name, r := range map[string]func(t *tasks.Task) tasks.Report{
		"key": func(*tasks.Task) tasks.Report {
			return tasks.Report{Key: "k", Artifacts: []tasks.Chunk{chunk("a", true, "x")}}
		},
		"offset": func(*tasks.Task) tasks.Report { return offset(1) },
		"version": func(t *tasks.Task) tasks.Report {
			return tasks.Report{Version: t.Version, Artifacts: []tasks.Chunk{chunk("a", true, "x")}}
		},
		"message": func(*tasks.Task) tasks.Report {
			m := textMessage("so far")
			m.ID = "m"
			return tasks.Report{State: tasks.Working, Message: &m, Artifacts: []tasks.Chunk{chunk("a", true, "x")}}
		},
	} {
		task := b.send(ann, tasks.SendRequest{})
		task = b.report(task.ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", true, "x")}})
		report := r(task)
		first, err := b.SubmitReport(t.Context(), as(bot), task.ID, report, tasks.ReadAll)
		if err != nil {
			t.Fatal(name, err)
		}
		b.report(task.ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", true, "later")}})
		b.report(task.ID, tasks.Report{State: tasks.Completed})
		again, err := b.SubmitReport(t.Context(), as(bot), task.ID, r(task), tasks.ReadAll)
		if err != nil {
			t.Fatal(name, err)
		}
		if first.Replayed || !again.Replayed || again.Task.Version != first.Task.Version || show(again.Task.Artifacts[0].Parts) != show(first.Task.Artifacts[0].Parts) || again.Artifacts[0] != first.Artifacts[0] || first.Artifacts[0].Chunks != 2 {
			t.Errorf("%s: first %+v, again %+v", name, first, again)
		}
		if got := show(b.get(as(ann), task.ID).Artifacts[0].Parts); got != `[{"text":"x"},{"text":"x"},{"text":"later"}]` {
			t.Errorf("%s: %s", name, got)
		}
	}
	task := b.send(ann, tasks.SendRequest{})
	b.report(task.ID, tasks.Report{Key: "k", State: tasks.Working})
	_, err := b.Report(t.Context(), as(bot), task.ID, tasks.Report{Key: "k", State: tasks.Completed})
	wantCode(t, "the key of another report", err, kg.CodeIdempotencyConflict)
	_, err = b.Report(t.Context(), as(bot), task.ID, tasks.Report{Version: 1, State: tasks.Completed})
	wantCode(t, "another version", err, kg.CodeVersionConflict)
	_, err = b.Report(t.Context(), as(bot), task.ID, offset(1))
	wantCode(t, "an offset behind the end", err, kg.CodeVersionConflict)
	b.report(task.ID, offset(0))
	b.report(task.ID, offset(1))
	b.report(task.ID, offset(1)) // again
	if got := b.get(as(bot), task.ID).Artifacts[0].Parts; len(got) != 2 {
		t.Errorf("%d parts", len(got))
	}
	bad := offset(0)
	bad.Artifacts[0].Append = false
	_, err = b.Report(t.Context(), as(bot), task.ID, bad)
	wantCode(t, "an offset of what is not appended", err, kg.CodeInvalid)
	long := make([]byte, kg.MaxIdempotencyKeyBytes+1)
	_, err = b.Report(t.Context(), as(bot), task.ID, tasks.Report{Key: string(long), State: tasks.Working})
	wantCode(t, "a key that is too long", err, kg.CodeLimitExceeded)
}

// The first chunk creates the artifact, with or without append.
func TestFirstAppendMakesTheArtifact(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	task := b.send(ann, tasks.SendRequest{})
	st, err := b.FollowFrom(t.Context(), as(ann), task.ID, b.PositionAfter(task))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	b.report(task.ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", true, "1"), chunk("a", true, "2")}})
	var appended []bool
	for e, err := range st.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if appended = append(appended, e.Chunk.Append); len(appended) == 2 {
			break
		}
	}
	if appended[0] || !appended[1] {
		t.Errorf("told as appended: %v", appended)
	}
}

// The cost of an append does not depend on the size of the artifact.
func TestAppendsCostTheSame(t *testing.T) {
	slowtest.Long(t)
	b := open(t, tasks.Options{}, nil)
	task := b.send(ann, tasks.SendRequest{})
	allocated := func() float64 {
		return testing.AllocsPerRun(20, func() {
			if _, err := b.SubmitReport(t.Context(), as(bot), task.ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", true, "x")}}, tasks.ReadOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
	first := allocated()
	for range 20 {
		var many []tasks.Chunk
		for range tasks.MaxReportChunks {
			many = append(many, chunk("a", true, "x"))
		}
		if _, err := b.SubmitReport(t.Context(), as(bot), task.ID, tasks.Report{Artifacts: many}, tasks.ReadOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if last := allocated(); last > 1.5*first {
		t.Errorf("an append behind 2000 allocates %.0f times, one behind 1 %.0f times", last, first)
	}
}

// Raw content is one of the forms of base64.
func TestRawIsBase64(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	for raw, want := range map[string]bool{
		"": true, "aGk=": true, "aGk": true, "-_8=": true, "-_8": true, "+/8=": true,
		"no base64!": false, "aGk=\n": false, "a": false, "+_8=": false, "aGk==": false,
	} {
		_, err := b.Send(t.Context(), as(ann), tasks.SendRequest{To: bot, Message: tasks.Message{Parts: []tasks.Part{{Raw: &raw}}}})
		if want != (err == nil) || err != nil && kg.AsError(err).Field != "parts[0].raw" {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// A report that does not change the task leaves its version, also if it acknowledges
// letters; one that changes it increments the version.
func TestReportsThatChangeNothing(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	task := b.send(ann, tasks.SendRequest{})
	m := textMessage("which city?")
	for i, row := range []struct {
		report  tasks.Report
		changes bool
	}{
		{tasks.Report{State: tasks.Working, Metadata: []byte(`{"a": 1, "b": [2]}`)}, true},
		{tasks.Report{State: tasks.Working}, false},
		{tasks.Report{State: tasks.Working, Letters: []string{}}, false},
		{tasks.Report{Metadata: []byte(`{"b":[2],"none":null}`)}, false},
		{tasks.Report{State: tasks.Working, Metadata: []byte(`{"a":2}`)}, true},
		{tasks.Report{State: tasks.InputRequired, Message: &m}, true},
		{tasks.Report{State: tasks.InputRequired, Message: &m}, true}, // it says something again
		{tasks.Report{State: tasks.InputRequired}, true},              // and now nothing
		{tasks.Report{State: tasks.InputRequired}, false},
		{tasks.Report{Artifacts: []tasks.Chunk{chunk("a", true, "x")}}, true},
	} {
		was := task
		task = b.report(task.ID, row.report)
		if changed := task.Version != was.Version; changed != row.changes || !changed && !task.Updated.Equal(was.Updated) {
			t.Errorf("report %d: version %d of %v became %d of %v", i, was.Version, was.Updated, task.Version, task.Updated)
		}
	}
}
