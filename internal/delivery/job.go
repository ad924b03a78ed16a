package delivery

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"koine/internal/jobs"
	"koine/kg"
)

// watchPause is the delay before following the log is retried.
const watchPause = time.Second

// Job makes the deliveries to the hooks of one sort. Init comes after its exported fields.
type Job struct {
	// Name names the deliveries in the log.
	Name   string
	Logger *slog.Logger
	// Watch loads what is to be delivered, and watches the log for more, under Context. It is
	// called again after an error.
	Watch func(context.Context) (*kg.Watcher, error)
	// Handle queues the deliveries of an event of the log.
	Handle func(*kg.Event) error
	// Save stores how far the deliveries are. It is called at intervals of SaveEvery.
	Save      func(context.Context)
	SaveEvery time.Duration

	jobs *jobs.Group
}

// Init prepares the job. It comes before all other calls.
func (j *Job) Init() { j.jobs = jobs.NewGroup(j.Logger) }

// Context returns the context of the deliveries. It ends with Close.
func (j *Job) Context() context.Context { return j.jobs.Context() }

// Start watches the log and makes the deliveries until Close. Nothing after Start is missed.
func (j *Job) Start(ctx context.Context) error {
	w, err := j.Watch(ctx)
	if err != nil {
		return err
	}
	j.jobs.Start("deliver", func(ctx context.Context) error { return j.follow(ctx, w) })
	j.jobs.Start("save progress", j.saveProgress)
	return nil
}

// Close stops the job and waits for the calls in progress. Then it stores the progress.
func (j *Job) Close() {
	j.jobs.Stop()
	j.Save(context.Background())
}

func (j *Job) saveProgress(ctx context.Context) error {
	for jobs.Wait(ctx, j.SaveEvery, nil) {
		j.Save(ctx)
	}
	return nil
}

// follow reads the log until ctx is done. After an error it watches anew.
func (j *Job) follow(ctx context.Context, w *kg.Watcher) error {
	for {
		err := j.readEvents(ctx, w)
		for w = nil; w == nil; {
			if ctx.Err() != nil || kg.CodeOf(err) == kg.CodeClosed {
				return nil
			}
			j.Logger.Warn(j.Name+" are interrupted; they restart following the log", "error", err)
			if !jobs.Wait(ctx, watchPause, nil) {
				return nil
			}
			j.Save(ctx)
			w, err = j.Watch(ctx)
		}
	}
}

func (j *Job) readEvents(ctx context.Context, w *kg.Watcher) error {
	defer w.Close()
	for e, err := range w.Events() {
		if err == nil {
			err = j.Handle(&e)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Line makes the deliveries to one hook, one after the other, in a goroutine that runs while
// something waits.
type Line struct {
	job     *Job
	ctx     context.Context
	cancel  context.CancelFunc
	running bool
}

// NewLine returns the line of a hook. It ends with the job.
func (j *Job) NewLine() Line {
	l := Line{job: j}
	l.ctx, l.cancel = context.WithCancel(j.jobs.Context())
	return l
}

// Context returns the context of the line's deliveries.
func (l *Line) Context() context.Context { return l.ctx }

// Stop ends the line. A delivery in progress may still complete.
func (l *Line) Stop() { l.cancel() }

// Wake makes the deliveries that next returns, until it returns nil. mu is held by the caller
// and when next is called.
func (l *Line) Wake(mu *sync.Mutex, next func() (deliver func())) {
	if l.running {
		return
	}
	l.running = true
	l.job.jobs.Start("deliver to a hook", func(context.Context) error {
		for {
			mu.Lock()
			var deliver func()
			if l.ctx.Err() == nil {
				deliver = next()
			}
			l.running = deliver != nil
			mu.Unlock()
			if deliver == nil {
				return nil
			}
			deliver()
		}
	})
}
