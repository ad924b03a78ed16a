package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/internal/caller"
	"koine/internal/observertest"
	"koine/internal/tasks"
	"koine/kg"
)

const (
	ann = kg.AgentID("agent://ann")
	bot = kg.AgentID("agent://bot")
	eve = kg.AgentID("agent://eve")
)

func as(agent kg.AgentID, roles ...string) caller.Caller {
	return caller.Caller{Principal: kg.Principal{ID: agent, Roles: roles, Method: "key"}}
}

// bench is a service over a store in a directory that outlasts it.
type bench struct {
	*tasks.Service
	t     *testing.T
	dir   string
	store *kg.Store
	work  map[kg.AgentID]tasks.Worker
	o     tasks.Options
}

func open(t *testing.T, o tasks.Options, workers map[kg.AgentID]tasks.Worker) *bench {
	t.Helper()
	if o.Known == nil {
		o.Known = func(id kg.AgentID) bool { return id == bot }
	}
	b := &bench{t: t, dir: t.TempDir(), work: workers, o: o}
	observertest.Replay(t, b.dir)
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *bench) start() {
	b.t.Helper()
	var err error
	if b.store, err = kg.Open(b.dir, kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: tasks.NewGuard(kg.AllowAll{})}}); err != nil {
		b.t.Fatal(err)
	}
	b.Service = tasks.New(b.o)
	for agent, w := range b.work {
		b.Handle(agent, w)
	}
	if err := b.Load(b.t.Context(), b.store); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) stop() {
	b.Close()
	if err := b.store.Close(); err != nil {
		b.t.Error(err)
	}
}

func (b *bench) send(by kg.AgentID, s tasks.SendRequest) *tasks.Task {
	b.t.Helper()
	if s.To == "" && s.Task == "" {
		s.To = bot
	}
	if s.Message.Parts == nil {
		s.Message.Parts = []tasks.Part{tasks.TextPart("do it")}
	}
	sent, err := b.Send(b.t.Context(), as(by), s)
	if err != nil {
		b.t.Fatal(err)
	}
	return sent.Task
}

func (b *bench) report(id tasks.TaskID, r tasks.Report) *tasks.Task {
	b.t.Helper()
	task, err := b.Report(b.t.Context(), as(bot), id, r)
	if err != nil {
		b.t.Fatal(err)
	}
	return task
}

func (b *bench) get(by caller.Caller, id tasks.TaskID) *tasks.Task {
	b.t.Helper()
	task, err := b.Get(b.t.Context(), by, id, tasks.ReadAll)
	if err != nil {
		b.t.Fatal(err)
	}
	return task
}

func wantCode(t *testing.T, what string, err error, code kg.Code) {
	t.Helper()
	if kg.CodeOf(err) != code || err == nil {
		t.Errorf("%s: got %v, want %s", what, err, code)
	}
}

func chunk(id string, more bool, texts ...string) tasks.Chunk {
	c := tasks.Chunk{Artifact: tasks.Artifact{ID: id}, Append: more}
	for _, text := range texts {
		c.Parts = append(c.Parts, tasks.TextPart(text))
	}
	return c
}

func show(parts []tasks.Part) string {
	raw, err := json.Marshal(parts)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// A task goes through its states, and contains all messages and artifacts exactly after
// a restart.
func TestLifeOfATask(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	parts := []tasks.Part{
		tasks.TextPart("weather?"), tasks.DataPart(json.RawMessage(`{"n":12345678901234567890.10,"x":null}`)), tasks.DataPart(json.RawMessage(`null`)),
	}
	task := b.send(ann, tasks.SendRequest{
		Message: tasks.Message{ID: "m1", Parts: parts, Metadata: json.RawMessage(`{"a":1}`), Extensions: []string{"urn:b", "urn:a"}, References: []tasks.TaskID{"t0"}},
		Context: "c1", User: "u1", Metadata: json.RawMessage(`{"k":"v","gone":1}`),
	})
	if task.Status.State != tasks.Submitted || task.Version != 1 || task.Creator != ann || task.Handler != bot || task.Context != "c1" {
		t.Fatalf("made as %+v", task)
	}
	b.report(task.ID, tasks.Report{State: tasks.Working, Metadata: json.RawMessage(`{"k":"w","gone":null}`)})
	b.report(task.ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("a/ö", false, "sunny "), chunk("a/ö", true, "with"), chunk("b", false, "x")}})
	b.report(task.ID, tasks.Report{State: tasks.InputRequired, Message: &tasks.Message{ID: "q", Parts: []tasks.Part{tasks.TextPart("where?")}}})
	again := b.send(ann, tasks.SendRequest{Task: task.ID, Message: tasks.Message{ID: "m2"}})
	if again.ID != task.ID || again.Status.State != tasks.Submitted {
		t.Errorf("after the answer it is %+v", again)
	}
	b.report(task.ID, tasks.Report{
		State: tasks.Completed, Artifacts: []tasks.Chunk{chunk("b", false, "y")}, Message: &tasks.Message{ID: "done", Parts: []tasks.Part{tasks.TextPart("bye")}},
	})
	b.stop()
	b.start()
	got := b.get(as(ann), task.ID)
	var said []string
	for _, m := range got.History {
		said = append(said, fmt.Sprintf("%s %s %s", m.Role, m.ID, m.Author))
	}
	if want := []string{"USER m1 agent://ann", "AGENT q agent://bot", "USER m2 agent://ann"}; !slices.Equal(said, want) {
		t.Errorf("history %q, want %q", said, want)
	}
	first := got.History[0]
	if show(first.Parts) != show(parts) || string(first.Metadata) != `{"a":1}` || !slices.Equal(first.Extensions, []string{"urn:b", "urn:a"}) || first.References[0] != "t0" {
		t.Errorf("the first message came back as %+v", first)
	}
	if got.Status.State != tasks.Completed || got.Status.Message.ID != "done" || string(got.Metadata) != `{"k":"w"}` || got.User != "u1" {
		t.Errorf("it ended as %+v", got)
	}
	var handed []string
	for _, a := range got.Artifacts {
		handed = append(handed, a.ID+show(a.Parts))
	}
	if want := []string{`a/ö[{"text":"sunny "},{"text":"with"}]`, `b[{"text":"y"}]`}; !slices.Equal(handed, want) {
		t.Errorf("artifacts %q, want %q", handed, want)
	}
	if short, err := b.Get(t.Context(), as(ann), task.ID, tasks.ReadOptions{History: 1}); err != nil || len(short.History) != 1 || short.History[0].ID != "m2" || short.Artifacts != nil {
		t.Errorf("the newest message alone: %+v, %v", short, err)
	}
	_, err := b.Report(t.Context(), as(bot), task.ID, tasks.Report{State: tasks.Working})
	wantCode(t, "a report of what has ended", err, kg.CodeTaskEnded)
	_, err = b.Cancel(t.Context(), as(ann), task.ID)
	wantCode(t, "to cancel what has ended", err, kg.CodeTaskEnded)
	_, err = b.Send(t.Context(), as(ann), tasks.SendRequest{Task: task.ID, Message: tasks.Message{Parts: parts}})
	wantCode(t, "a message to what has ended", err, kg.CodeTaskEnded)
}

// An agent without a part in a task does not find it, by any call or in statements.
func TestWhoSeesATask(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	task := b.send(ann, tasks.SendRequest{})
	absent := tasks.TaskID("01890a5d-ac96-774b-bcce-000000000000")
	calls := map[string]func(by caller.Caller, id tasks.TaskID) error{
		"get": func(by caller.Caller, id tasks.TaskID) error {
			_, err := b.Get(t.Context(), by, id, tasks.ReadAll)
			return err
		},
		"cancel": func(by caller.Caller, id tasks.TaskID) error { _, err := b.Cancel(t.Context(), by, id); return err },
		"delete": func(by caller.Caller, id tasks.TaskID) error { return b.Delete(t.Context(), by, id) },
		"report": func(by caller.Caller, id tasks.TaskID) error {
			_, err := b.Report(t.Context(), by, id, tasks.Report{State: tasks.Working})
			return err
		},
		"follow": func(by caller.Caller, id tasks.TaskID) error {
			_, _, err := b.Follow(t.Context(), by, id, tasks.ReadAll)
			return err
		},
		"send": func(by caller.Caller, id tasks.TaskID) error {
			_, err := b.Send(t.Context(), by, tasks.SendRequest{Task: id, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("x")}}})
			return err
		},
	}
	open := caller.Caller{Principal: kg.Principal{ID: eve, Roles: []string{kg.RoleAdmin}, ActFor: []kg.AgentID{kg.Anybody}, Method: "open"}}
	for name, call := range calls {
		want := call(as(ann), absent)
		wantCode(t, name+" of none", want, kg.CodeTaskNotFound)
		for who, by := range map[string]caller.Caller{"eve": as(eve), "eve in open mode": open} {
			if err := call(by, task.ID); err == nil || err.Error() != want.Error() {
				t.Errorf("%s by %s: %v, want %v", name, who, err, want)
			}
		}
	}
	if _, err := b.Get(t.Context(), as(eve, kg.RoleAdmin), task.ID, tasks.ReadAll); err != nil {
		t.Errorf("an administrator does not see it: %v", err)
	}
	acting := as(eve)
	acting.Principal.ActFor, acting.Actor = []kg.AgentID{ann}, ann
	if _, err := b.Get(t.Context(), acting, task.ID, tasks.ReadAll); err != nil {
		t.Errorf("who acts for its creator does not see it: %v", err)
	}
	for agent, n := range map[kg.AgentID]int{ann: 1, bot: 1, eve: 0} {
		snapshot, err := b.store.View(t.Context(), kg.View{Principal: as(agent).Principal, AllGraphs: true})
		if err != nil {
			t.Fatal(err)
		}
		count, err := snapshot.Count(kg.Pattern{Predicate: kg.IRI(kg.OwnVocabulary + "taskState")})
		if err != nil || int(count) != n {
			t.Errorf("%s counts %d tasks, %v; want %d", agent, count, err, n)
		}
		snapshot.Close()
		page, err := b.List(t.Context(), as(agent), tasks.Query{})
		if err != nil || page.Total != n {
			t.Errorf("%s lists %+v, %v; want %d", agent, page, err, n)
		}
	}
	_, err := b.Report(t.Context(), as(ann), task.ID, tasks.Report{State: tasks.Completed})
	wantCode(t, "a report of the creator's", err, kg.CodePermissionDenied)
	_, err = b.Report(t.Context(), as(ann), task.ID, tasks.Report{})
	wantCode(t, "an empty report of the creator's", err, kg.CodePermissionDenied)
	_, err = b.Report(t.Context(), as(ann), task.ID, tasks.Report{Metadata: json.RawMessage(`{"k":1}`), Artifacts: []tasks.Chunk{{Artifact: tasks.Artifact{ID: "a", Parts: []tasks.Part{tasks.TextPart("x")}}}}})
	wantCode(t, "an artifact of the creator's", err, kg.CodePermissionDenied)
	if got, err := b.Report(t.Context(), as(ann), task.ID, tasks.Report{Metadata: json.RawMessage(`{"k":1}`)}); err != nil || string(got.Metadata) != `{"k":1}` || got.Status.State != tasks.Submitted {
		t.Errorf("metadata of the creator's: %+v, %v", got, err)
	}
	_, err = b.Report(t.Context(), as(eve), task.ID, tasks.Report{Metadata: json.RawMessage(`{"k":2}`)})
	wantCode(t, "metadata of another's", err, kg.CodeTaskNotFound)
	wantCode(t, "the handler's to delete", b.Delete(t.Context(), as(bot), task.ID), kg.CodePermissionDenied)
	_, err = b.Send(t.Context(), as(bot), tasks.SendRequest{Task: task.ID, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("x")}}})
	wantCode(t, "a message of the handler's", err, kg.CodePermissionDenied)
	_, err = b.Send(t.Context(), as(ann), tasks.SendRequest{To: eve, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("x")}}})
	wantCode(t, "nobody of the name", err, kg.CodeAgentNotFound)
	if err := b.Delete(t.Context(), as(ann), task.ID); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "what was deleted", calls["get"](as(ann), task.ID), kg.CodeTaskNotFound)
}

// A stream yields each event once, from any position, also over restarts.
func TestStreamGoesOnBehindAnyEvent(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	task := b.send(ann, tasks.SendRequest{})
	b.report(task.ID, tasks.Report{State: tasks.Working})
	b.report(task.ID, tasks.Report{State: tasks.Working}) // changes nothing
	b.report(task.ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", false, "1"), chunk("b", false, "2"), chunk("a", true, "3")}, State: tasks.InputRequired, Message: &tasks.Message{Parts: []tasks.Part{tasks.TextPart("?")}}})
	b.send(ann, tasks.SendRequest{Task: task.ID, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("!")}}})
	b.report(task.ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", false, "1")}})
	b.report(task.ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", false, "1")}})
	b.report(task.ID, tasks.Report{State: tasks.Failed, Failure: &tasks.Failure{Code: "NO", Message: "no"}})
	b.stop()
	b.start()
	read := func(from kg.Position) (out []string, positions []kg.Position) {
		t.Helper()
		st, err := b.FollowFrom(t.Context(), as(ann), task.ID, from)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		for e, err := range st.Events() {
			if err != nil {
				t.Fatal(err)
			}
			positions = append(positions, e.Position)
			switch {
			case e.Status != nil:
				text := "status " + string(e.Status.State)
				if e.Status.Message != nil {
					text += show(e.Status.Message.Parts)
				}
				if e.Failure != nil {
					text += e.Failure.Code
				}
				out = append(out, text)
			case e.Chunk != nil:
				out = append(out, fmt.Sprintf("chunk %s %t%s", e.Chunk.ID, e.Chunk.Append, show(e.Chunk.Parts)))
			case e.Message != nil:
				out = append(out, "message"+show(e.Message.Parts))
			}
		}
		return out, positions
	}
	all, positions := read(kg.Position{Epoch: b.store.Epoch(), Index: kg.EndOfCommit})
	want := []string{
		`message[{"text":"do it"}]`, "status SUBMITTED", "status WORKING", `chunk a false[{"text":"1"}]`, `chunk a true[{"text":"3"}]`,
		`chunk b false[{"text":"2"}]`, `status INPUT_REQUIRED[{"text":"?"}]`, `message[{"text":"!"}]`, "status SUBMITTED",
		`chunk a false[{"text":"1"}]`, `chunk a false[{"text":"1"}]`, "status FAILEDNO",
	}
	if !slices.Equal(all, want) {
		t.Fatalf("told\n%s\nwant\n%s", strings.Join(all, "\n"), strings.Join(want, "\n"))
	}
	for i, p := range positions {
		token := b.store.FormatPosition(p)
		parsed, err := b.store.ParsePosition(token)
		if err != nil {
			t.Fatal(err)
		}
		if i == len(positions)-1 {
			break // nothing comes behind the last
		}
		if rest, _ := read(parsed); !slices.Equal(rest, want[i+1:]) {
			t.Errorf("behind %d: told %q, want %q", i, rest, want[i+1:])
		}
	}
}

// The stream of a task that is deleted ends with an error.
func TestStreamOfADeletedTask(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	task := b.send(ann, tasks.SendRequest{})
	_, st, err := b.Follow(t.Context(), as(bot), task.ID, tasks.ReadAll)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := b.Delete(t.Context(), as(ann), task.ID); err != nil {
		t.Fatal(err)
	}
	for _, err := range st.Events() {
		wantCode(t, "the end", err, kg.CodeTaskNotFound)
	}
}

// The same message creates one task, a different one another.
func TestTheSameMessageTwice(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	first := b.send(ann, tasks.SendRequest{Message: tasks.Message{ID: "m"}})
	sent, err := b.Send(t.Context(), as(ann), tasks.SendRequest{To: bot, Message: tasks.Message{ID: "m", Parts: []tasks.Part{tasks.TextPart("do it")}}})
	if err != nil || sent.Task.ID != first.ID || !sent.Replayed {
		t.Errorf("the same message: %+v, %v", sent, err)
	}
	for what, other := range map[string]tasks.SendRequest{
		"other parts": {Message: tasks.Message{ID: "m", Parts: []tasks.Part{tasks.TextPart("other")}}}, "another context": {Context: "c", Message: tasks.Message{ID: "m"}},
		"no id": {}, "no id again": {},
	} {
		if task := b.send(ann, other); task.ID == first.ID {
			t.Errorf("%s went to the first task", what)
		}
	}
	b.send(eve, tasks.SendRequest{Message: tasks.Message{ID: "m"}})
	again := open(t, tasks.Options{Repeats: true}, nil)
	once := again.send(ann, tasks.SendRequest{Message: tasks.Message{ID: "m"}})
	if again.send(ann, tasks.SendRequest{Message: tasks.Message{ID: "m"}}).ID == once.ID {
		t.Error("where messages repeat, the second went to the first task")
	}
	if a, b := b.send(ann, tasks.SendRequest{}).History[0].ID, b.send(ann, tasks.SendRequest{}).History[0].ID; a == "" || a == b {
		t.Errorf("messages without an id have %q and %q", a, b)
	}
}

func TestPagesOfTasks(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	var created []tasks.TaskID
	for i := range 7 {
		created = append(created, b.send(ann, tasks.SendRequest{Context: fmt.Sprint(i % 2)}).ID)
	}
	b.report(created[2], tasks.Report{State: tasks.Completed})
	var got []tasks.TaskID
	q := tasks.Query{First: 3}
	for {
		page, err := b.List(t.Context(), as(ann), q)
		if err != nil || page.Total != 7 {
			t.Fatal(page, err)
		}
		for i := range page.Tasks {
			got = append(got, page.Tasks[i].ID)
		}
		if page.Next == "" {
			break
		}
		q.After = page.Next
	}
	if len(got) != 7 || got[0] != created[2] || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 7 {
		t.Errorf("listed %v of %v", got, created)
	}
	for name, row := range map[string]struct {
		q tasks.Query
		n int
	}{
		"context": {tasks.Query{Context: "1"}, 3}, "state": {tasks.Query{States: []tasks.State{tasks.Completed}}, 1}, "handled": {tasks.Query{Handled: true}, 0},
		"created": {tasks.Query{Created: true}, 7}, "handler": {tasks.Query{Handler: eve}, 0}, "later": {tasks.Query{Since: time.Now().Add(time.Hour)}, 0},
		"far later": {tasks.Query{Since: time.Date(2999, 12, 31, 0, 0, 0, 0, time.UTC)}, 0}, "far earlier": {tasks.Query{Since: time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC)}, 7},
	} {
		if page, err := b.List(t.Context(), as(ann), row.q); err != nil || page.Total != row.n {
			t.Errorf("%s: %+v, %v; want %d", name, page, err, row.n)
		}
	}
	_, err := b.List(t.Context(), as(bot), q)
	wantCode(t, "another's token", err, kg.CodeCursorForeign)
}

// An artifact is a change but not a status: a list may use either order.
func TestTasksByTheirStatus(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	one, two := b.send(ann, tasks.SendRequest{}).ID, b.send(ann, tasks.SendRequest{}).ID
	b.report(one, tasks.Report{State: tasks.Working})
	status := b.report(two, tasks.Report{State: tasks.Working}).Status.Time
	changed := b.report(one, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", false, "x")}}).Updated
	for !changed.After(status) { // the clock may not have gone on
		changed = b.report(one, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", false, "x")}}).Updated
	}
	for name, row := range map[string]struct {
		q    tasks.Query
		want []tasks.TaskID
	}{
		"changed": {tasks.Query{}, []tasks.TaskID{one, two}}, "status": {tasks.Query{ByStatus: true}, []tasks.TaskID{two, one}},
		"changed since": {tasks.Query{Since: changed}, []tasks.TaskID{one}}, "status since": {tasks.Query{Since: changed, ByStatus: true}, nil},
	} {
		page, err := b.List(t.Context(), as(ann), row.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []tasks.TaskID
		for i := range page.Tasks {
			got = append(got, page.Tasks[i].ID)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

// echo is a worker that answers at once, works, or fails, as the message says.
type echo struct{ release chan struct{} }

func (e echo) CheckMessage(m *tasks.Message) error { return m.CheckTypes("text/*", "application/json") }

func (e echo) Answer(_ context.Context, _ caller.Caller, m *tasks.Message) (*tasks.Message, error) {
	switch *m.Parts[0].Text {
	case "answer":
		return &tasks.Message{ID: "a", Role: tasks.Agent, Parts: m.Parts}, nil
	case "refuse":
		return nil, kg.Errorf(kg.CodeInvalid, "no")
	}
	return nil, nil
}

func (e echo) Work(ctx context.Context, j *tasks.Job) error {
	switch *j.Message.Parts[0].Text {
	case "wait":
		select {
		case <-e.release:
		case <-ctx.Done():
			return ctx.Err()
		}
	case "ask":
		return j.Report(ctx, tasks.Report{State: tasks.InputRequired})
	case "break":
		return errors.New("secret")
	case "panic":
		panic("secret")
	case "invalid":
		return kg.Errorf(kg.CodeInvalid, "not like that")
	}
	return j.Report(ctx, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", false, "done")}})
}

func TestWorkers(t *testing.T) {
	release := make(chan struct{})
	b := open(t, tasks.Options{MaxWorking: 1, MaxQueued: 3}, map[kg.AgentID]tasks.Worker{kg.System: echo{release}})
	send := func(text string) (*tasks.SendResult, error) {
		return b.Send(t.Context(), as(ann), tasks.SendRequest{To: kg.System, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart(text)}}})
	}
	until := func(id tasks.TaskID, done func(tasks.State) bool) *tasks.Task {
		t.Helper()
		now, st, err := b.Follow(t.Context(), as(ann), id, tasks.ReadAll)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		if done(now.Status.State) {
			return now
		}
		for e, err := range st.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if e.Status != nil && done(e.Status.State) {
				break
			}
		}
		return b.get(as(ann), id)
	}
	if sent, err := send("answer"); err != nil || sent.Task != nil || sent.Answer.ID != "a" {
		t.Errorf("an answer at once: %+v, %v", sent, err)
	}
	_, err := send("refuse")
	wantCode(t, "what is refused", err, kg.CodeInvalid)
	for mediaType, taken := range map[string]bool{"": true, "text/markdown; charset=utf-8": true, "Application/JSON": true, "text": true, "image/png": false, "/": false} {
		text := tasks.TextPart("answer")
		text.MediaType = mediaType
		_, err := b.Send(t.Context(), as(ann), tasks.SendRequest{To: kg.System, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("answer"), text}}})
		switch {
		case !taken:
			wantCode(t, mediaType, err, kg.CodeContentType)
		case err != nil:
			t.Errorf("%q: %v", mediaType, err)
		}
	}
	for text, want := range map[string]string{
		"do": "COMPLETED ", "break": "FAILED INTERNAL", "panic": "FAILED INTERNAL", "invalid": "FAILED INVALID", "ask": "INPUT_REQUIRED ",
	} {
		sent, err := send(text)
		if err != nil {
			t.Fatal(text, err)
		}
		task := until(sent.Task.ID, func(s tasks.State) bool { return s.Ended() || s.AwaitsCreator() })
		got := string(task.Status.State) + " "
		if task.Failure != nil {
			got += task.Failure.Code
			if strings.Contains(show(task.Status.Message.Parts)+task.Failure.Message, "secret") {
				t.Errorf("%s: says what is internal", text)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	// One runs, one waits, and the third is past the sender's half of four.
	working, err := send("wait")
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := send("wait")
	if err != nil {
		t.Fatal(err)
	}
	_, err = send("wait")
	wantCode(t, "one too many", err, kg.CodeOverloaded)
	if page, err := b.List(t.Context(), as(ann), tasks.Query{States: []tasks.State{tasks.Submitted}}); err != nil || page.Total != 2 {
		t.Errorf("what was refused was written down: %+v, %v", page, err)
	}
	if _, err := b.Cancel(t.Context(), as(ann), working.Task.ID); err != nil {
		t.Fatal(err)
	}
	close(release)
	if task := until(waiting.Task.ID, tasks.State.Ended); task.Status.State != tasks.Completed {
		t.Errorf("the one behind: %+v", task.Status)
	}
	if task := b.get(as(ann), working.Task.ID); task.Status.State != tasks.Canceled {
		t.Errorf("what was canceled is %s", task.Status.State)
	}
}

// A wait past its deadline returns the present task.
func TestWaitWithoutTime(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	task := b.send(ann, tasks.SendRequest{})
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if now, err := b.Wait(ctx, as(ann), task, tasks.ReadOptions{}); err != nil || now.Status.State != tasks.Submitted {
		t.Errorf("%+v, %v", now, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := b.Wait(ended, as(ann), task, tasks.ReadOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait any more: %v", err)
	}
}

// A task that a worker was running when the server stopped has failed, with the reason;
// one that waits for its creator still waits.
func TestInterruptedTasks(t *testing.T) {
	b := open(t, tasks.Options{}, map[kg.AgentID]tasks.Worker{kg.System: echo{make(chan struct{})}})
	at := b.send(ann, tasks.SendRequest{To: kg.System, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("wait")}}})
	asks := b.send(ann, tasks.SendRequest{To: kg.System, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("ask")}}})
	others := b.send(ann, tasks.SendRequest{})
	if _, err := b.Wait(t.Context(), as(ann), asks, tasks.ReadOptions{}); err != nil {
		t.Fatal(err)
	}
	b.stop()
	b.start()
	if got := b.get(as(ann), at.ID); got.Status.State != tasks.Failed || got.Failure.Code != tasks.FailureInterrupted {
		t.Errorf("it is %+v, %+v", got.Status, got.Failure)
	}
	for id, want := range map[tasks.TaskID]tasks.State{asks.ID: tasks.InputRequired, others.ID: tasks.Submitted} {
		if got := b.get(as(ann), id).Status.State; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A start reads only the tasks of workers in this process.
func TestStartReadsItsWorkersTasks(t *testing.T) {
	b := open(t, tasks.Options{}, map[kg.AgentID]tasks.Worker{kg.System: echo{make(chan struct{})}})
	read := func() uint64 {
		b.stop()
		b.start()
		return b.store.Stats().KeysRead
	}
	b.send(ann, tasks.SendRequest{}) // the counts of its graph are read
	few := read()
	const waiting = 50
	for range waiting {
		b.send(ann, tasks.SendRequest{})
	}
	if many := read(); many > few+waiting/5 {
		t.Errorf("a start reads %d keys with %d more tasks of an agent elsewhere, and %d without", many, waiting, few)
	}
}
