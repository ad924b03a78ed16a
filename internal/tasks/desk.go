package tasks

import (
	"context"
	"sync"

	"koine/internal/caller"
	"koine/kg"
)

// desk is where workers in this process work: so many at a time, and so many that
// wait.
type desk struct {
	ctx    context.Context
	cancel context.CancelFunc
	chairs chan struct{} // one for each that works
	most   int           // that work or wait
	done   sync.WaitGroup

	mu   sync.Mutex                             // guards what follows
	here int                                    // that work or wait
	jobs map[TaskID]map[*Job]context.CancelFunc // that were begun or wait
}

func newDesk(o Options) *desk {
	d := &desk{chairs: make(chan struct{}, o.MaxWorking), most: o.MaxWorking + o.MaxQueued, jobs: map[TaskID]map[*Job]context.CancelFunc{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// place is one of those at the desk, kept for a job that is about to come.
type place struct {
	desk *desk
	used bool
}

// reserve keeps a place, before anything is written down that needs one.
func (d *desk) reserve() (*place, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.here == d.most {
		return nil, kg.Errorf(kg.CodeOverloaded, "%d tasks are worked on or wait already", d.most)
	}
	d.here++
	return &place{desk: d}, nil
}

// release gives a place back that was not used.
func (p *place) release() {
	if !p.used {
		p.desk.leave()
	}
}

func (d *desk) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.here--
}

// work begins a job, or lets it wait until a chair is free.
func (p *place) work(s *Service, w Worker, by caller.Caller, t *Task, m Message) {
	p.used = true
	d, j := p.desk, &Job{By: by, Task: t, Message: m, service: s}
	ctx, cancel := context.WithCancel(d.ctx)
	d.mu.Lock()
	if d.jobs[t.ID] == nil {
		d.jobs[t.ID] = map[*Job]context.CancelFunc{}
	}
	d.jobs[t.ID][j] = cancel
	d.mu.Unlock()
	d.done.Go(func() {
		defer d.leave()
		defer d.forget(j)
		defer cancel()
		select {
		case <-ctx.Done():
			return
		case d.chairs <- struct{}{}:
		}
		defer func() { <-d.chairs }()
		j.run(ctx, w)
	})
}

func (d *desk) forget(j *Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.jobs[j.Task.ID], j)
	if len(d.jobs[j.Task.ID]) == 0 {
		delete(d.jobs, j.Task.ID)
	}
}

// stop ends the work on a task.
func (d *desk) stop(id TaskID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, cancel := range d.jobs[id] {
		cancel()
	}
}

// close ends all work, and waits for it.
func (d *desk) close() {
	d.cancel()
	d.done.Wait()
}
