package tasks

import (
	"context"
	"slices"
	"sync"
	"time"

	"koine/internal/caller"
	"koine/internal/jobs"
	"koine/internal/throttle"
	"koine/kg"
)

// workerPool runs the workers in this process. It bounds the number of jobs that run and of
// those that wait. Of both, a sender gets at most half of the part that the others leave, so
// that no sender keeps the workers from the others.
type workerPool struct {
	group  *jobs.Group    // also of the background work of the service
	places *throttle.Pool // of running, waiting and reserved jobs
	slots  *throttle.Pool // of running jobs

	mu      sync.Mutex                             // guards the following
	jobs    map[TaskID]map[*Job]context.CancelFunc // running and waiting
	waiting map[throttle.Owner][]turn              // the oldest first
	owners  []throttle.Owner                       // of waiting, in the order of their turns
}

// turn is closed when a waiting job gets its slot.
type turn chan struct{}

func newWorkerPool(o Options) *workerPool {
	return &workerPool{
		group: jobs.NewGroup(o.Logger), jobs: map[TaskID]map[*Job]context.CancelFunc{}, waiting: map[throttle.Owner][]turn{},
		places: throttle.NewPool(int64(o.MaxWorking + o.MaxQueued)), slots: throttle.NewPool(int64(o.MaxWorking)),
	}
}

// reservation is a place for a job that is about to start.
type reservation struct {
	pool  *workerPool
	owner throttle.Owner
	used  bool
}

// placeRetryAfter is the RetryAfter if another job must end first.
const placeRetryAfter = time.Second

// reservePlace reserves a place for the sender. Call it before writing anything that needs one.
func (d *workerPool) reservePlace(by caller.Caller) (*reservation, error) {
	owner := throttle.OwnerOf(by)
	if !d.places.Acquire(owner, 1) {
		err := kg.Errorf(kg.CodeOverloaded, "caller has used its share of the %d tasks that run or wait: try again when one has ended", d.places.Size())
		err.RetryAfter = placeRetryAfter
		return nil, err
	}
	return &reservation{pool: d, owner: owner}, nil
}

// releaseUnused returns an unused reservation.
func (p *reservation) releaseUnused() {
	if !p.used {
		p.pool.places.Release(p.owner, 1)
	}
}

// startJob starts a job, or queues it until the sender's turn for a free slot.
func (p *reservation) startJob(s *Service, w Worker, by caller.Caller, t *Task, m Message) {
	p.used = true
	d, j := p.pool, &Job{By: by, Task: t, Message: m, service: s}
	ctx, cancel := context.WithCancel(d.group.Context())
	mine := make(turn)
	d.mu.Lock()
	if d.jobs[t.ID] == nil {
		d.jobs[t.ID] = map[*Job]context.CancelFunc{}
	}
	d.jobs[t.ID][j] = cancel
	d.queueTurn(p.owner, mine)
	d.grantSlots()
	d.mu.Unlock()
	d.group.Start("task", func(context.Context) error {
		defer d.places.Release(p.owner, 1)
		defer d.removeJob(j)
		defer cancel()
		select {
		case <-ctx.Done():
			if d.leaveQueue(p.owner, mine) {
				return nil
			}
		case <-mine:
		}
		defer d.freeSlot(p.owner)
		if ctx.Err() == nil {
			j.run(ctx, w)
		}
		return nil
	})
}

// queueTurn appends the turn of a waiting job. The caller holds mu.
func (d *workerPool) queueTurn(o throttle.Owner, t turn) {
	if len(d.waiting[o]) == 0 {
		d.owners = append(d.owners, o)
	}
	d.waiting[o] = append(d.waiting[o], t)
}

// grantSlots gives the free slots to waiting jobs. Senders take turns: one that sent few
// messages does not wait for all of one that sent many. The caller holds mu.
func (d *workerPool) grantSlots() {
	for i := 0; i < len(d.owners); {
		o := d.owners[i]
		if !d.slots.Acquire(o, 1) {
			i++
			continue
		}
		first := d.waiting[o][0]
		d.removeTurn(o, 0)
		if d.owners = slices.Delete(d.owners, i, i+1); len(d.waiting[o]) > 0 {
			d.owners = append(d.owners, o)
		}
		close(first)
	}
}

// removeTurn removes the turn of a waiting job. The caller holds mu, and updates owners.
func (d *workerPool) removeTurn(o throttle.Owner, i int) {
	if d.waiting[o] = slices.Delete(d.waiting[o], i, i+1); len(d.waiting[o]) == 0 {
		delete(d.waiting, o)
	}
}

// leaveQueue removes the turn of a canceled job. It reports false if the job has a slot.
func (d *workerPool) leaveQueue(o throttle.Owner, t turn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.waiting[o], t)
	if i < 0 {
		return false
	}
	if d.removeTurn(o, i); len(d.waiting[o]) == 0 {
		d.owners = slices.DeleteFunc(d.owners, func(one throttle.Owner) bool { return one == o })
	}
	return true
}

// freeSlot returns the slot of a job that has ended.
func (d *workerPool) freeSlot(o throttle.Owner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slots.Release(o, 1)
	d.grantSlots()
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
