package tasks

import (
	"context"
	"sync"

	"koine/internal/caller"
	"koine/internal/jobs"
	"koine/kg"
)

// workerPool runs the workers in this process. It bounds the number of jobs that run and of
// those that wait.
type workerPool struct {
	group    *jobs.Group   // also of the background work of the service
	slots    chan struct{} // holds a token for each running job
	capacity int           // maximum of running and waiting jobs

	mu       sync.Mutex                             // guards occupied and jobs
	occupied int                                    // number of running, waiting and reserved jobs
	jobs     map[TaskID]map[*Job]context.CancelFunc // running and waiting
}

func newWorkerPool(o Options) *workerPool {
	return &workerPool{group: jobs.NewGroup(o.Logger), slots: make(chan struct{}, o.MaxWorking), capacity: o.MaxWorking + o.MaxQueued, jobs: map[TaskID]map[*Job]context.CancelFunc{}}
}

// reservation is a place for a job that is about to start.
type reservation struct {
	pool *workerPool
	used bool
}

// reserve reserves a place. Call it before writing anything that needs one.
func (d *workerPool) reserve() (*reservation, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.occupied == d.capacity {
		return nil, kg.Errorf(kg.CodeOverloaded, "%d tasks are running or queued already; try again later", d.capacity)
	}
	d.occupied++
	return &reservation{pool: d}, nil
}

// release returns an unused reservation.
func (p *reservation) release() {
	if !p.used {
		p.pool.freePlace()
	}
}

func (d *workerPool) freePlace() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.occupied--
}

// startJob starts a job, or queues it until a running one ends.
func (p *reservation) startJob(s *Service, w Worker, by caller.Caller, t *Task, m Message) {
	p.used = true
	d, j := p.pool, &Job{By: by, Task: t, Message: m, service: s}
	ctx, cancel := context.WithCancel(d.group.Context())
	d.mu.Lock()
	if d.jobs[t.ID] == nil {
		d.jobs[t.ID] = map[*Job]context.CancelFunc{}
	}
	d.jobs[t.ID][j] = cancel
	d.mu.Unlock()
	d.group.Start("task", func(context.Context) error {
		defer d.freePlace()
		defer d.removeJob(j)
		defer cancel()
		select {
		case <-ctx.Done():
			return nil
		case d.slots <- struct{}{}:
		}
		defer func() { <-d.slots }()
		j.run(ctx, w)
		return nil
	})
}

func (d *workerPool) removeJob(j *Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.jobs[j.Task.ID], j)
	if len(d.jobs[j.Task.ID]) == 0 {
		delete(d.jobs, j.Task.ID)
	}
}

func (d *workerPool) cancelJobs(id TaskID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, cancel := range d.jobs[id] {
		cancel()
	}
}
