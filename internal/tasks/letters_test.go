package tasks_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"koine/internal/tasks"
	"koine/kg"
)

// forget removes a property that older builds do not state.
func (b *bench) forget(property, subject, graph kg.Term) {
	b.t.Helper()
	_, err := b.store.Update(b.t.Context(), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
		for st, err := range tx.MatchOwn(kg.Pattern{Subject: subject, Predicate: property, Graph: graph}) {
			if err != nil {
				return err
			}
			return tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: st.Quad})
		}
		return fmt.Errorf("there is no %v of %v", property, subject)
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// uncount makes an artifact look like one of an older build.
func (b *bench) uncount(task *tasks.Task, id string) {
	b.forget(tasks.BytesProperty, task.ID.ArtifactEntity(id), task.Graph())
}

// waits lists the mailbox of the bot without delivering it.
func (b *bench) waits() (out []string) {
	b.t.Helper()
	list, _, err := b.Notices(b.t.Context(), bot)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, n := range list {
		l, err := b.ReadLetter(b.t.Context(), n)
		if err != nil || l == nil {
			b.t.Fatalf("%+v: %+v %v", n, l, err)
		}
		out = append(out, *l.Message.Parts[0].Text)
	}
	return out
}

func (b *bench) wantWaiting(what string, want ...string) {
	b.t.Helper()
	if got := b.waits(); !slices.Equal(got, want) {
		b.t.Errorf("%s: %q wait, want %q", what, got, want)
	}
}

func textMessage(text string) tasks.Message {
	return tasks.Message{Parts: []tasks.Part{tasks.TextPart(text)}}
}

func (b *bench) more(t *tasks.Task, text string) {
	b.t.Helper()
	b.send(ann, tasks.SendRequest{Task: t.ID, Message: textMessage(text)})
}

// A letter stays until a report names it or it is acknowledged, also after the task has
// ended.
func TestLettersAreAcknowledged(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	task := b.send(ann, tasks.SendRequest{Message: textMessage("1")})
	other := b.send(ann, tasks.SendRequest{Message: textMessage("other")})
	for i := 2; i <= 5; i++ {
		b.more(task, fmt.Sprint(i))
	}
	id := func(n int) string { return tasks.LetterID(task.ID, n) }
	b.report(task.ID, tasks.Report{State: tasks.Working, Letters: []string{id(1), id(3)}})
	b.wantWaiting("two named", "other", "2", "4", "5")
	b.report(task.ID, tasks.Report{State: tasks.Working, Letters: []string{}})
	b.wantWaiting("none named", "other", "2", "4", "5")
	version := b.report(task.ID, tasks.Report{Artifacts: []tasks.Chunk{chunk("a", false, "x")}}).Version
	if got := b.report(task.ID, tasks.Report{Letters: []string{id(2)}}).Version; got != version {
		t.Errorf("an acknowledgement makes version %d of %d", got, version)
	}
	b.stop()
	b.start()
	b.wantWaiting("after a restart", "other", "4", "5")
	b.report(task.ID, tasks.Report{State: tasks.Completed, Letters: []string{id(1)}})
	b.wantWaiting("the end of the task", "other", "4", "5")
	for range 2 { // once more is the same
		if err := b.Acknowledge(t.Context(), as(bot), id(4)); err != nil {
			t.Fatal(err)
		}
	}
	b.wantWaiting("acknowledged", "other", "5")
	_, err := b.Report(t.Context(), as(bot), task.ID, tasks.Report{State: tasks.Working, Letters: []string{id(5)}})
	wantCode(t, "a report that comes too late", err, kg.CodeTaskEnded)
	b.wantWaiting("named too late", "other")
	for _, letter := range []string{id(6), id(0) + "x", "x", string(task.ID), tasks.LetterID("0198f0a0-0000-7000-8000-000000000000", 1)} {
		wantCode(t, letter, b.Acknowledge(t.Context(), as(bot), letter), kg.CodeTaskNotFound)
	}
	wantCode(t, "of who asked", b.Acknowledge(t.Context(), as(ann), tasks.LetterID(other.ID, 1)), kg.CodePermissionDenied)
	wantCode(t, "of nobody", b.Acknowledge(t.Context(), as(eve), tasks.LetterID(other.ID, 1)), kg.CodeTaskNotFound)
	_, err = b.Report(t.Context(), as(bot), other.ID, tasks.Report{State: tasks.Working, Letters: []string{id(1)}})
	wantCode(t, "the letter of another task", err, kg.CodeInvalid)
	_, err = b.Report(t.Context(), as(bot), other.ID, tasks.Report{Letters: slices.Repeat([]string{tasks.LetterID(other.ID, 1)}, tasks.MaxReportLetters+1)})
	wantCode(t, "too many named", err, kg.CodeLimitExceeded)
	b.report(other.ID, tasks.Report{Letters: slices.Repeat([]string{tasks.LetterID(other.ID, 1)}, tasks.MaxReportLetters)})
	b.wantWaiting("all acknowledged")
}

// A report without letters acknowledges those that were delivered to the agent, and the
// first message of the task. A letter that arrived meanwhile stays.
func TestReportsWithoutLetters(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	task := b.send(ann, tasks.SendRequest{Message: textMessage("1")})
	b.more(task, "2")
	b.report(task.ID, tasks.Report{State: tasks.InputRequired})
	b.wantWaiting("nobody was told of the second", "2")
	box, err := b.Mail(t.Context(), as(bot))
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	for l, err := range box.Letters() {
		if err != nil {
			t.Fatal(err)
		}
		switch l.Number {
		case 2: // it is told when the next is asked for
			b.more(task, "3")
			continue
		case 3:
		default:
			t.Fatalf("told of %d", l.Number)
		}
		break
	}
	b.report(task.ID, tasks.Report{State: tasks.InputRequired})
	b.wantWaiting("told of the second", "3")
	// Repeating the report after a lost answer acknowledges no new letter.
	b.report(task.ID, tasks.Report{State: tasks.InputRequired})
	b.wantWaiting("a repeated question", "3")
	b.report(task.ID, tasks.Report{State: tasks.Completed})
	b.wantWaiting("the end", "3")
	// A restarted server knows of no deliveries.
	b.MarkDelivered(bot, b.store.Head().Revision)
	b.stop()
	b.start()
	_, err = b.Report(t.Context(), as(bot), task.ID, tasks.Report{State: tasks.Completed})
	wantCode(t, "after the end", err, kg.CodeTaskEnded)
	b.wantWaiting("a report of the new server", "3")
	b.MarkDelivered(bot, b.store.Head().Revision)
	_, err = b.Report(t.Context(), as(bot), task.ID, tasks.Report{State: tasks.Completed})
	wantCode(t, "after the end", err, kg.CodeTaskEnded)
	b.wantWaiting("told, and answered too late")
}

// A report during the delivery of a letter acknowledges it once the call is accepted.
func TestReportsDuringACall(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	for _, taken := range []bool{false, true} {
		task := b.send(ann, tasks.SendRequest{Message: textMessage("1")})
		b.report(task.ID, tasks.Report{State: tasks.InputRequired})
		b.more(task, "2")
		b.more(task, "3")
		list, _, err := b.Notices(t.Context(), bot)
		if err != nil || len(list) != 2 {
			t.Fatalf("%v %v", list, err)
		}
		call := b.StartDelivery(bot, list[0])
		b.report(task.ID, tasks.Report{State: tasks.Working})
		b.wantWaiting("while the call is open", "2", "3")
		if err := call.Done(t.Context(), taken); err != nil {
			t.Fatal(err)
		}
		if taken {
			b.wantWaiting("a call that was taken", "3")
		} else {
			b.wantWaiting("a call that was not", "2", "3")
		}
		b.report(task.ID, tasks.Report{State: tasks.Completed, Letters: []string{tasks.LetterID(task.ID, 2), tasks.LetterID(task.ID, 3)}})
	}
}

// A call may end while a report on its letter is being committed.
func TestCallsThatEndDuringAReport(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	for i := range 50 {
		task := b.send(ann, tasks.SendRequest{Message: textMessage("1")})
		b.report(task.ID, tasks.Report{State: tasks.InputRequired})
		b.more(task, "2")
		list, _, err := b.Notices(t.Context(), bot)
		if err != nil || len(list) != 1 {
			t.Fatalf("%v %v", list, err)
		}
		call := b.StartDelivery(bot, list[0])
		ended := make(chan error, 1)
		go func() {
			time.Sleep(time.Duration(i) * 20 * time.Microsecond) // at all moments of the commit
			ended <- call.Done(t.Context(), true)
		}()
		b.report(task.ID, tasks.Report{State: tasks.Completed})
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		b.wantWaiting("both have ended")
	}
}

// Letters among the agent's own messages, and in a store of an older build, which does
// not record the first waiting one.
func TestLettersAmongMessages(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	says := func(text string) *tasks.Message { return &tasks.Message{Parts: textMessage(text).Parts} }
	task := b.send(ann, tasks.SendRequest{Message: textMessage("1")})
	b.report(task.ID, tasks.Report{State: tasks.InputRequired, Message: says("which?")})
	b.more(task, "3")
	b.more(task, "4")
	b.more(task, "5")
	b.wantWaiting("all", "3", "4", "5")
	b.report(task.ID, tasks.Report{State: tasks.Working, Message: says("well"), Letters: []string{}})
	b.wantWaiting("none acknowledged", "3", "4", "5")
	b.more(task, "7")
	if _, err := b.Report(t.Context(), as("agent://root", kg.RoleAdmin), task.ID, tasks.Report{State: tasks.Working, Message: says("wait")}); err != nil {
		t.Fatal(err)
	}
	b.wantWaiting("what others report", "3", "4", "5", "7")
	b.report(task.ID, tasks.Report{Letters: []string{tasks.LetterID(task.ID, 4)}})
	b.wantWaiting("one acknowledged", "3", "5", "7")
	b.report(task.ID, tasks.Report{State: tasks.Completed, Letters: []string{tasks.LetterID(task.ID, 3), tasks.LetterID(task.ID, 5), tasks.LetterID(task.ID, 7)}})
	b.wantWaiting("all acknowledged")
	older := b.send(ann, tasks.SendRequest{Message: textMessage("older")})
	b.more(older, "older too")
	b.wantWaiting("of an older build", "older", "older too")
	b.report(older.ID, tasks.Report{State: tasks.Completed, Letters: []string{tasks.LetterID(older.ID, 1)}})
	b.wantWaiting("of an older build", "older too")
}

// A cancellation is a letter that replaces those of the task; the handler gets none for
// its own.
func TestCancelIsALetter(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	task := b.send(ann, tasks.SendRequest{Message: textMessage("1")})
	own := b.send(ann, tasks.SendRequest{Message: textMessage("own")})
	b.report(task.ID, tasks.Report{State: tasks.Working, Letters: []string{tasks.LetterID(task.ID, 1)}})
	b.more(task, "2")
	if _, err := b.Cancel(t.Context(), as(ann), task.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Cancel(t.Context(), as(bot), own.ID); err != nil {
		t.Fatal(err)
	}
	b.stop()
	b.start()
	box, err := b.Mail(t.Context(), as(bot))
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	for l, err := range box.Letters() {
		if err != nil {
			t.Fatal(err)
		}
		if !l.Canceled() || l.ID() != string(task.ID)+".cancel" || l.Task.Status.State != tasks.Canceled || len(l.Message.Parts) != 1 {
			t.Errorf("told %+v", l)
		}
		if err := b.Acknowledge(t.Context(), as(bot), l.ID()); err != nil {
			t.Fatal(err)
		}
		break
	}
	b.wantWaiting("acknowledged")
}

// When an agent leaves, its tasks wait for its return and then fail; the creators are
// notified, and the mailbox is empty.
func TestDeparture(t *testing.T) {
	now := time.Now()
	registered := true
	b := open(t, tasks.Options{LeaveGrace: time.Hour, Clock: func() time.Time { return now }, Registered: func(kg.AgentID) bool { return registered }}, nil)
	leave := func() {
		t.Helper()
		registered = false
		if _, err := b.store.Update(t.Context(), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error { return tasks.RecordDeparture(tx, bot) }); err != nil {
			t.Fatal(err)
		}
	}
	round := func(later time.Duration, want tasks.State, id tasks.TaskID) {
		t.Helper()
		now = time.Now().Add(later)
		if err := b.FailAbandoned(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := b.get(as(ann), id).Status.State; got != want {
			t.Errorf("after %v it is %s, want %s", later, got, want)
		}
	}
	task := b.send(ann, tasks.SendRequest{Message: textMessage("1")})
	b.report(task.ID, tasks.Report{State: tasks.Working})
	leave()
	round(59*time.Minute, tasks.Working, task.ID)
	registered = true
	round(2*time.Hour, tasks.Working, task.ID) // it came back
	registered = false
	round(2*time.Hour, tasks.Working, task.ID) // and nothing is noted any more
	leave()
	_, st, err := b.Follow(t.Context(), as(ann), task.ID, tasks.ReadAll)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	b.more(task, "is anybody there?")
	round(61*time.Minute, tasks.Failed, task.ID)
	var last tasks.Event
	for e, err := range st.Events() {
		if err != nil {
			t.Fatal(err)
		}
		last = e
	}
	if last.Failure == nil || last.Failure.Code != tasks.FailureLeft {
		t.Errorf("the last event is %+v", last)
	}
	b.wantWaiting("of an agent that left")
}

// Agents that left a store of an older build are recorded when it is opened.
func TestDepartureBefore(t *testing.T) {
	b := open(t, tasks.Options{}, nil)
	task := b.send(ann, tasks.SendRequest{})
	b.report(task.ID, tasks.Report{State: tasks.Working})
	b.stop()
	b.o.LeaveGrace, b.o.Registered, b.o.Unregistered = time.Millisecond, func(kg.AgentID) bool { return false }, func() []kg.AgentID { return []kg.AgentID{eve, bot} }
	b.start()
	_, st, err := b.Follow(t.Context(), as(ann), task.ID, tasks.ReadAll)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, err := range st.Events() {
		if err != nil {
			t.Fatal(err)
		}
	}
	if f := b.get(as(ann), task.ID).Failure; f == nil || f.Code != tasks.FailureLeft {
		t.Errorf("it failed of %+v", f)
	}
}
