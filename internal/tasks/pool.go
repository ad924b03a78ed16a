package tasks

import (
	"context"
	"sync"

	"koine/internal/caller"
	"koine/kg"
)

// desk runs the workers in this process. It bounds the number of jobs that run and of
// those that wait.
type desk struct {
	ctx    context.Context
	cancel context.CancelFunc
	chairs chan struct{} // holds a token for each running job
	most   int           // maximum of running and waiting jobs
	done   sync.WaitGroup

	mu   sync.Mutex                             // guards here and jobs
	here int                                    // number of running, waiting and reserved jobs
	jobs map[TaskID]map[*Job]context.CancelFunc // running and waiting
}

func newDesk(o Options) *desk {
	d := &desk{chairs: make(chan struct{}, o.MaxWorking), most: o.MaxWorking + o.MaxQueued, jobs: map[TaskID]map[*Job]context.CancelFunc{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// place is a reservation for a job that is about to start.
type place struct {
	desk *desk
	used bool
}

// reserve reserves a place. Call it before writing anything that needs one.
func (d *desk) reserve() (*place, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.here == d.most {
		return nil, kg.Errorf(kg.CodeOverloaded, "%d tasks are running or queued already; try again later", d.most)
	}
	d.here++
	return &place{desk: d}, nil
}

// release returns an unused reservation.
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

// work starts a job, or queues it until a running one ends.
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

// stop cancels the jobs of a task.
func (d *desk) stop(id TaskID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, cancel := range d.jobs[id] {
		cancel()
	}
}

// close cancels all jobs and waits for them.
func (d *desk) close() {
	d.cancel()
	d.done.Wait()
}
