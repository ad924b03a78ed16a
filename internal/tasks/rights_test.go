package tasks_test

import (
	"context"
	"sync/atomic"
	"testing"

	"koine/internal/caller"
	"koine/internal/tasks"
	"koine/kg"
)

// noting is a worker that notes the roles of each sender, and works until it is released.
type noting struct {
	echo
	begun chan []string
	step  bool // the work has a second step
}

func (n noting) Answer(context.Context, caller.Caller, *tasks.Message) (*tasks.Message, error) {
	return nil, nil
}

func (n noting) Work(ctx context.Context, j *tasks.Job) error {
	n.begun <- j.By.Principal.Roles
	select {
	case <-n.release:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !n.step {
		return nil
	}
	if err := j.RenewRights(); err != nil {
		return err
	}
	n.begun <- j.By.Principal.Roles
	return nil
}

// rights are the current rights of a sender: those of its message until a test sets others.
type rights struct {
	now atomic.Pointer[func(kg.Principal) (kg.Principal, error)]
}

func (r *rights) current(p kg.Principal) (kg.Principal, error) {
	if now := r.now.Load(); now != nil {
		return (*now)(p)
	}
	return p, nil
}

func (r *rights) set(now func(kg.Principal) (kg.Principal, error)) { r.now.Store(&now) }

func revoked(kg.Principal) (kg.Principal, error) {
	return kg.Principal{}, kg.Errorf(kg.CodeUnauthenticated, "the key was revoked")
}

func narrowed(p kg.Principal) (kg.Principal, error) {
	p.Roles = p.Roles[:1]
	return p, nil
}

// A message that waits is worked on with the rights that its sender has when the work begins,
// and not at all if it has none.
func TestQueuedTaskHasTheRightsOfItsBeginning(t *testing.T) {
	for name, row := range map[string]struct {
		now  func(kg.Principal) (kg.Principal, error)
		want string // state and failure
	}{"revoked": {revoked, "FAILED UNAUTHENTICATED"}, "narrowed": {narrowed, "COMPLETED "}} {
		t.Run(name, func(t *testing.T) {
			var now rights
			worker := noting{echo: echo{make(chan struct{})}, begun: make(chan []string, 2)}
			b := open(t, tasks.Options{MaxWorking: 1, CurrentRights: now.current}, map[kg.AgentID]tasks.Worker{kg.System: worker})
			send := func() tasks.TaskID {
				t.Helper()
				sent, err := b.Send(t.Context(), as(ann, "a", "b"), tasks.SendRequest{To: kg.System, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("do")}}})
				if err != nil {
					t.Fatal(err)
				}
				return sent.Task.ID
			}
			first := send()
			if roles := <-worker.begun; len(roles) != 2 {
				t.Errorf("the first task has the roles %v", roles)
			}
			second := send()
			now.set(row.now)
			close(worker.release)
			b.wantEnd(first, "COMPLETED ")
			b.wantEnd(second, row.want)
			select {
			case roles := <-worker.begun:
				if name == "revoked" || len(roles) != 1 {
					t.Errorf("the work began with the roles %v", roles)
				}
			default:
				if name != "revoked" {
					t.Error("the work did not begin")
				}
			}
		})
	}
}

// A worker renews the rights of the sender for a further step.
func TestRightsAreRenewedDuringWork(t *testing.T) {
	for name, row := range map[string]struct {
		now  func(kg.Principal) (kg.Principal, error)
		want string
	}{"revoked": {revoked, "FAILED UNAUTHENTICATED"}, "narrowed": {narrowed, "COMPLETED "}} {
		t.Run(name, func(t *testing.T) {
			var now rights
			worker := noting{echo: echo{make(chan struct{})}, begun: make(chan []string, 2), step: true}
			b := open(t, tasks.Options{CurrentRights: now.current}, map[kg.AgentID]tasks.Worker{kg.System: worker})
			sent, err := b.Send(t.Context(), as(ann, "a", "b"), tasks.SendRequest{To: kg.System, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("do")}}})
			if err != nil {
				t.Fatal(err)
			}
			<-worker.begun
			now.set(row.now)
			close(worker.release)
			b.wantEnd(sent.Task.ID, row.want)
			if name == "narrowed" {
				if roles := <-worker.begun; len(roles) != 1 {
					t.Errorf("the second step has the roles %v", roles)
				}
			}
		})
	}
}

// wantEnd waits for the end of ann's task and compares its state and the code of its failure.
func (b *bench) wantEnd(id tasks.TaskID, want string) {
	b.t.Helper()
	task, err := b.Wait(b.t.Context(), as(ann), b.get(as(ann), id), tasks.ReadAll)
	if err != nil {
		b.t.Fatal(err)
	}
	got := string(task.Status.State) + " "
	if task.Failure != nil {
		got += task.Failure.Code
	}
	if got != want {
		b.t.Errorf("the task is %s, want %s", got, want)
	}
}
