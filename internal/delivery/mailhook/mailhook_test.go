package mailhook_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/delivery"
	"koine/internal/delivery/mailhook"
	"koine/internal/slowtest"
	"koine/internal/tasks"
	"koine/kg"
)

// When a hook is set, the waiting letters are sent first, then new ones, in order, each
// letter once, with the credentials of the server and an id of its own. Letters to other
// agents, and acknowledged ones, are not.
func TestCarried(t *testing.T) {
	f, d := newOffice(t, open()), newDoor(t, nil)
	f.report(bob, f.send(bob, "done before"), tasks.Working)
	first := f.send(bob, "1")
	f.send(bob, "2", first)
	f.send(carol, "carol's")
	f.set(bob, delivery.Target{URL: d.URL + "/hook", Token: "the-token", Scheme: "Bearer", Credentials: "the-credentials"})
	f.send(bob, "3")
	for i := 4; i < 20; i++ {
		f.send(bob, fmt.Sprint(i))
	}
	var want []string
	for i := 1; i < 20; i++ {
		want = append(want, fmt.Sprint(i))
	}
	d.expect(want...)
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, want := range map[string]string{
		"X-A2A-Notification-Token": "the-token", "A2A-Notification-Token": "the-token", "Authorization": "Bearer the-credentials", "Content-Type": "application/json",
		"Idempotency-Key": string(first) + ".1",
	} {
		if got := d.calls[0].header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	keys := map[string]bool{}
	for _, c := range d.calls {
		keys[c.key] = true
	}
	if len(keys) != len(d.calls) || !keys[string(first)+".2"] {
		t.Errorf("the ids are %v", keys)
	}
}

// Every answer other than success is retried, with the same id, and later letters wait.
func TestTriedAgain(t *testing.T) {
	statuses := []int{500, 404, 302, 408, 429, 204}
	f := newOffice(t, open())
	d := newDoor(t, func(text string, times int) int {
		if text == "1" {
			return statuses[times-1]
		}
		return 200
	})
	f.set(bob, delivery.Target{URL: d.URL + "/secret-path", Token: "secret-token", Scheme: "Bearer", Credentials: "secret-credentials"})
	f.send(bob, "1")
	f.send(bob, "2")
	d.expect("1", "2")
	d.mu.Lock()
	if n := len(d.calls); n != len(statuses)+1 {
		t.Errorf("%d calls", n)
	}
	for i, c := range d.calls[:len(statuses)] {
		if c.text != "1" || c.key != d.calls[0].key {
			t.Errorf("call %d is %q with %q", i, c.text, c.key)
		}
	}
	d.mu.Unlock()
	text := f.log.String()
	if !strings.Contains(text, "status 500") || !strings.Contains(text, "works again") {
		t.Errorf("the log says %s", text)
	}
	if strings.Contains(text, "secret") || strings.Contains(text, d.URL) {
		t.Errorf("the log has secrets: %s", text)
	}
}

// A letter that fails too often lets those of other tasks pass, and not those of its own;
// it is tried again behind them.
func TestPassed(t *testing.T) {
	f := newOffice(t, open())
	heal := make(chan struct{})
	d := newDoor(t, func(text string, _ int) int {
		select {
		case <-heal:
			return 200
		default:
		}
		if text == "poison" {
			return 500
		}
		return 200
	})
	id := f.send(bob, "poison")
	f.send(bob, "behind poison", id)
	f.send(bob, "1")
	f.send(bob, "2")
	f.set(bob, d.target())
	d.expect("1", "2")
	d.mu.Lock()
	before := 0
	for i, c := range d.calls {
		if c.text == "1" {
			before = i
			break
		}
	}
	if before != mailhook.MaxTries {
		t.Errorf("passed after %d tries, want %d", before, mailhook.MaxTries)
	}
	d.mu.Unlock()
	f.waits(bob, 2)
	close(heal)
	d.expect("1", "2", "poison", "behind poison")
}

// A hook that fails for long loses nothing: its letters wait in the mailbox. Letters that
// the agent acknowledged meanwhile, or whose tasks ended, are not sent any more.
func TestAwayForLong(t *testing.T) {
	f := newOffice(t, open())
	d := newDoor(t, func(string, int) int { return 503 })
	f.set(bob, d.target())
	first := f.send(bob, "1")
	f.send(bob, "2")
	third := f.send(bob, "3")
	f.eventually("the first was tried often, and another one too", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.times["1"] >= mailhook.MaxTries && d.times["2"] > 0
	})
	s, err := f.mailhook.State(t.Context(), bob)
	if err != nil || s.Pending != 3 || s.FailingSince.IsZero() || s.Failure != "web hook responded with status 503" {
		t.Errorf("got %+v, %v", s, err)
	}
	f.report(bob, first, tasks.Working)
	if _, err := f.tasks.Cancel(t.Context(), alice, third); err != nil {
		t.Fatal(err)
	}
	list, _, err := f.tasks.Notices(t.Context(), bob.Principal.ID)
	if err != nil || len(list) != 2 {
		t.Errorf("in the mailbox are %v, %v", list, err)
	}
	d.answers(nil)
	f.waits(bob, 0)
	all := d.accepted()
	if slices.Sort(all); !slices.Equal(all, []string{"2", "The task was canceled."}) {
		t.Errorf("got %q", all)
	}
	if s, err := f.mailhook.State(t.Context(), bob); err != nil || !s.FailingSince.IsZero() || s.Failure != "" {
		t.Errorf("got %+v, %v", s, err)
	}
}

// A message that comes during a call whose handler reports is the next letter: the report
// is not about it.
func TestMessageDuringACall(t *testing.T) {
	f := newOffice(t, open())
	var id tasks.TaskID
	d := newDoor(t, func(text string, _ int) int {
		if text == "1" {
			f.send(bob, "2", id)
			f.report(bob, id, tasks.Working)
		}
		return 200
	})
	sent := make(chan struct{})
	answer := d.answer
	d.answers(func(text string, times int) int {
		<-sent // the id is known
		return answer(text, times)
	})
	f.set(bob, d.target())
	id = f.send(bob, "1")
	close(sent)
	d.expect("1", "2")
	f.eventually("the first was reported on and is gone", func() bool {
		list, _, err := f.tasks.Notices(t.Context(), bob.Principal.ID)
		return err == nil && len(list) == 1 && list[0].Number == 2
	})
	f.report(bob, id, tasks.Completed) // perhaps before the call with the second has ended
	f.eventually("the second was reported on and is gone", func() bool {
		list, _, err := f.tasks.Notices(t.Context(), bob.Principal.ID)
		return err == nil && len(list) == 0
	})
}

// After a restart it continues after the last delivery, including the letters of the
// downtime.
func TestGoesOnAfterARestart(t *testing.T) {
	o := open()
	o.FlushEvery = time.Hour
	f, d := newOffice(t, o), newDoor(t, nil)
	f.set(bob, d.target())
	f.set(carol, d.target())
	f.send(bob, "1")
	f.send(bob, "2")
	d.expect("1", "2")
	f.waits(bob, 0) // and it is known that they were taken
	f.mailhook.Close()
	f.send(bob, "3") // and no mailhook delivers it
	f.tasks.Close()
	if err := f.store.Close(); err != nil {
		t.Fatal(err)
	}
	f.open(open())
	d.expect("1", "2", "3")
	f.send(carol, "4")
	d.expect("1", "2", "3", "4")
	// How far it came is written down while it goes on, too.
	f.eventually("it is written down", func() bool {
		s, err := f.store.View(t.Context(), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		n := 0
		for range s.Match(kg.Pattern{Predicate: kg.IRI(kg.OwnVocabulary + "mailHookTold")}) {
			n++
		}
		return n == 2
	})
}

// A delivery that fails when the server ends is repeated when it is up again.
func TestFailsOverARestart(t *testing.T) {
	f := newOffice(t, open())
	d := newDoor(t, func(text string, _ int) int {
		if text == "2" {
			return 500
		}
		return 200
	})
	f.set(bob, d.target())
	f.send(bob, "1")
	id := f.send(bob, "2")
	f.send(bob, "3", id)
	d.expect("1")
	f.eventually("2 was tried", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.times["2"] > 0
	})
	f.close()
	d.answers(nil)
	f.open(open())
	d.expect("1", "2", "3")
}

// deaf is a store whose watchers can be interrupted.
type deaf struct {
	mailhook.Store
	mu      sync.Mutex
	stop    context.CancelFunc
	refuses int // so many watchers
}

func (d *deaf) Watch(ctx context.Context, f kg.Filter, from kg.Position) (*kg.Watcher, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuses > 0 {
		d.refuses--
		return nil, kg.Errorf(kg.CodeResync, "not now")
	}
	ctx, d.stop = context.WithCancel(ctx)
	return d.Store.Watch(ctx, f, from)
}

// If the log cannot be followed, letters in between are found in the mailboxes, and nothing
// is delivered twice.
func TestLogIsInterrupted(t *testing.T) {
	slowtest.Long(t)
	f, d := newOffice(t, open()), newDoor(t, nil)
	f.mailhook.Close()
	store := &deaf{Store: f.store}
	o := open()
	o.Body = func(l *tasks.Letter) ([]byte, error) { return []byte(*l.Message.Parts[0].Text), nil }
	f.mailhook = mailhook.New(o)
	if err := f.mailhook.Load(t.Context(), store, f.tasks); err != nil {
		t.Fatal(err)
	}
	f.set(bob, d.target())
	f.send(bob, "1")
	d.expect("1")
	store.mu.Lock()
	store.refuses = 1
	store.stop()
	store.mu.Unlock()
	f.send(bob, "2")
	d.expect("1", "2")
	f.send(bob, "3")
	d.expect("1", "2", "3")
}

// Addresses of private networks are refused, and one that is there already, as a name may
// lead there, is looked at when it is dialed.
func TestPrivateAddressesAreNotCalled(t *testing.T) {
	f, d := newOffice(t, mailhook.Options{}), newDoor(t, nil)
	for _, host := range []string{"127.0.0.1", "[::1]", "localhost", "10.1.2.3", "169.254.169.254", "[fc00::1]"} {
		_, err := f.mailhook.Set(t.Context(), bob, delivery.Target{URL: "http://" + host + "/"})
		code(t, err, kg.CodeInvalid)
	}
	f.close()
	f.open(open())
	f.set(bob, d.target())
	f.close()
	f.open(mailhook.Options{})
	f.send(bob, "1")
	f.eventually("it fails", func() bool { return strings.Contains(f.log.String(), "address is not public") })
	if len(d.accepted()) > 0 {
		t.Error("a private address was called")
	}
	f.waits(bob, 1)
	// The agent learns no more than of an unreachable address.
	f.eventually("the failure is told", func() bool {
		s, err := f.mailhook.State(t.Context(), bob)
		return err == nil && s.Failure == "web hook cannot be reached"
	})
}

// No call begins after the commit by which the agent deregisters or removes the hook, also
// if a retry is waiting.
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(*office) error{
		"deregistered": func(f *office) error { return f.agents.Deregister(t.Context(), bob, bob.Principal.ID) },
		"taken away":   func(f *office) error { return f.mailhook.Delete(t.Context(), bob) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newOffice(t, open())
			d := newDoor(t, func(string, int) int { return 500 })
			f.set(bob, d.target())
			id := f.send(bob, "1")
			f.eventually("it was tried", func() bool {
				d.mu.Lock()
				defer d.mu.Unlock()
				return len(d.calls) > 2
			})
			if err := end(f); err != nil {
				t.Fatal(err)
			}
			_, err := f.mailhook.State(t.Context(), bob)
			code(t, err, kg.CodeNotFound)
			code(t, f.mailhook.Delete(t.Context(), bob), kg.CodeNotFound)
			d.answers(nil)
			before := len(d.accepted())
			f.send(bob, "2", id)
			f.set(carol, d.target())
			f.send(carol, "carol's") // by then bob's would have come
			f.eventually("carol's came", func() bool { return slices.Contains(d.accepted(), "carol's") })
			if got := d.accepted(); len(got)-before > 2 || slices.Contains(got, "2") {
				t.Errorf("carried %q", got)
			}
			// Nor does it exist after a restart; the letters are in the mailbox.
			f.close()
			f.open(open())
			list, _, err := f.tasks.Notices(t.Context(), bob.Principal.ID)
			if err != nil || len(list) != 2 {
				t.Errorf("in the mailbox are %v, %v", list, err)
			}
			if strings.Contains(f.text(), `agent://bob> <urn:koine:vocab:mailHook`) {
				t.Error("the hook is still written down")
			}
		})
	}
}

// A hook that is set anew takes the place of the one before it, also of one that fails,
// and begins with all that waits.
func TestSetAnew(t *testing.T) {
	f := newOffice(t, open())
	old, d := newDoor(t, func(text string, _ int) int {
		if text == "1" {
			return 200
		}
		return 500
	}), newDoor(t, nil)
	f.set(bob, old.target())
	f.send(bob, "1")
	f.send(bob, "2")
	f.eventually("it fails", func() bool {
		s, err := f.mailhook.State(t.Context(), bob)
		return err == nil && !s.FailingSince.IsZero()
	})
	f.set(bob, d.target())
	d.expect("1", "2")
	f.send(bob, "3")
	d.expect("1", "2", "3")
	old.expect("1")
}

// A suspended agent is not called; its letters wait.
func TestSuspended(t *testing.T) {
	f, d := newOffice(t, open()), newDoor(t, nil)
	f.set(bob, d.target())
	f.shut.Store(true)
	f.send(bob, "1")
	f.eventually("it is noted", func() bool {
		s, err := f.mailhook.State(t.Context(), bob)
		return err == nil && s.Failure == "agent is suspended"
	})
	if len(d.accepted()) > 0 {
		t.Error("it was called")
	}
	f.shut.Store(false)
	d.expect("1")
}

// An agent that fails keeps no other one waiting, and many that are sent to at once get
// each their own, in order.
func TestSideBySide(t *testing.T) {
	f := newOffice(t, open())
	hold := make(chan struct{})
	slow, d := newDoor(t, func(string, int) int { <-hold; return 200 }), newDoor(t, nil)
	f.set(bob, slow.target())
	f.set(carol, d.target())
	var all sync.WaitGroup
	for _, who := range []string{"bob", "carol"} {
		all.Go(func() {
			to := bob
			if who == "carol" {
				to = carol
			}
			for i := range 30 {
				f.send(to, fmt.Sprint(i))
			}
		})
	}
	all.Wait()
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprint(i))
	}
	d.expect(want...)
	close(hold)
	slow.expect(want...)
}

// Stored, shown and logged data contain no address and no secret of a hook.
func TestSealed(t *testing.T) {
	f := newOffice(t, open())
	s, err := f.mailhook.Set(t.Context(), bob, delivery.Target{URL: "http://127.0.0.1:1/secret?key=secret", Token: "secret-token", Scheme: "Bearer", Credentials: "secret-credentials"})
	if err != nil || s.Origin != "http://127.0.0.1:1" || s.Scheme != "Bearer" || s.Set.IsZero() {
		t.Errorf("got %+v, %v", s, err)
	}
	f.send(bob, "1")
	f.eventually("it fails", func() bool { return strings.Contains(f.log.String(), "cannot be reached") })
	s, err = f.mailhook.State(t.Context(), bob)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"what is stated": f.text(), "the log": f.log.String(), "the state": fmt.Sprintf("%+v", s)} {
		if strings.Contains(text, "secret") || what != "the state" && strings.Contains(text, "127.0.0.1:1") {
			t.Errorf("%s: %s", what, text)
		}
	}
}

// In a restored store the hook is lost, and so it is known which server calls it.
func TestRestored(t *testing.T) {
	f, d := newOffice(t, open()), newDoor(t, nil)
	f.set(bob, d.target())
	var backup bytes.Buffer
	if _, err := f.store.Maintenance().Backup(t.Context(), &backup, kg.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(backup.String(), d.URL) {
		t.Error("the backup has the address")
	}
	f.close()
	f.dir = t.TempDir()
	if _, err := kg.Restore(t.Context(), f.dir, []io.Reader{&backup}, kg.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	f.open(open())
	_, err := f.mailhook.State(t.Context(), bob)
	code(t, err, kg.CodeNotFound)
	f.eventually("it is said", func() bool { return strings.Contains(f.log.String(), "sealed by another store") })
	f.send(bob, "1")
	f.set(carol, d.target())
	f.send(carol, "2")
	d.expect("2")
	f.set(bob, d.target())
	d.expect("2", "1")
}

// No more calls are under way than there are places.
func TestMaxConcurrent(t *testing.T) {
	o := open()
	o.MaxConcurrent = 1
	f := newOffice(t, o)
	var now, most atomic.Int32
	d := newDoor(t, func(string, int) int {
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(time.Millisecond)
		now.Add(-1)
		return 200
	})
	f.set(bob, d.target())
	f.set(carol, d.target())
	for range 10 {
		f.send(bob, "x")
		f.send(carol, "x")
	}
	f.eventually("all came", func() bool { return len(d.accepted()) == 20 })
	if most.Load() != 1 {
		t.Errorf("%d calls at a time", most.Load())
	}
}

func TestBounds(t *testing.T) {
	o := open()
	o.MaxHooks = 1
	f := newOffice(t, o)
	base := "http://127.0.0.1:1/"
	for _, row := range []struct {
		name   string
		target delivery.Target
		want   kg.Code
	}{
		{"an address at the bound", delivery.Target{URL: base + strings.Repeat("x", delivery.MaxURLBytes-len(base))}, ""},
		{"an address past it", delivery.Target{URL: base + strings.Repeat("x", delivery.MaxURLBytes-len(base)+1)}, kg.CodeLimitExceeded},
		{"a token at the bound", delivery.Target{URL: base, Token: strings.Repeat("x", delivery.MaxTokenBytes)}, ""},
		{"a token past it", delivery.Target{URL: base, Token: strings.Repeat("x", delivery.MaxTokenBytes+1)}, kg.CodeLimitExceeded},
		{"no address", delivery.Target{}, kg.CodeInvalid},
		{"credentials without a scheme", delivery.Target{URL: base, Credentials: "x"}, kg.CodeInvalid},
	} {
		_, err := f.mailhook.Set(t.Context(), bob, row.target)
		if kg.CodeOf(err) != row.want {
			t.Errorf("%s: got %v, want %s", row.name, err, row.want)
		}
	}
	_, err := f.mailhook.Set(t.Context(), carol, delivery.Target{URL: base})
	code(t, err, kg.CodeOverloaded)
	_, err = f.mailhook.Set(t.Context(), alice, delivery.Target{URL: base}) // has not registered
	code(t, err, kg.CodeAgentNotFound)
	code(t, f.mailhook.Delete(t.Context(), bob), "")
	f.set(carol, delivery.Target{URL: base})
}
