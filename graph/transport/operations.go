package transport

import (
	"context"
	"errors"
	"sync"
)

// MaxOperationID bounds the id that a client gives an operation, in bytes: each
// of its messages repeats it.
const MaxOperationID = 256

var (
	errDuplicate = errors.New("there is an operation with this id")
	errTooMany   = errors.New("there are too many operations")
	errEnded     = errors.New("the connection has ended")
)

// operations are those that share one connection, by the ids that the client
// gave them. They end with the context that they were started under.
type operations struct {
	max int

	mu    sync.Mutex // guards byID and ended, and stopped of all of them
	byID  map[string]*running
	ended bool           // no more are started
	all   sync.WaitGroup // those that were started and have not ended
}

// running is one of them.
type running struct {
	id      string
	ctx     context.Context
	cancel  context.CancelFunc
	stopped bool // by the client, which wants nothing more of it
}

func newOperations(max int) *operations {
	return &operations{max: max, byID: map[string]*running{}}
}

// start takes an id and a place; end must be called. The error is errDuplicate,
// errTooMany or errEnded.
func (o *operations) start(ctx context.Context, id string) (*running, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.ended:
		return nil, errEnded
	case o.byID[id] != nil:
		return nil, errDuplicate
	case len(o.byID) >= o.max:
		return nil, errTooMany
	}
	r := &running{id: id}
	r.ctx, r.cancel = context.WithCancel(ctx)
	o.byID[id] = r
	o.all.Add(1)
	return r, nil
}

// stop ends the operation with the id, if there is one: nothing more is sent of
// it, and its id is free.
func (o *operations) stop(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.byID[id]; r != nil {
		delete(o.byID, id)
		r.stopped = true
		r.cancel()
	}
}

// passes tells whether a message of the operation may still go out. The last one
// gives its id and its place back: a client that has read it may use both.
func (o *operations) passes(r *running, last bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last && o.byID[r.id] == r {
		delete(o.byID, r.id)
	}
	return !r.stopped
}

// end is for when an operation has ended.
func (o *operations) end(r *running) {
	o.passes(r, true)
	r.cancel()
	o.all.Done()
}

// wait lets no more be started, and waits for those that are. The context that
// they were started under must have ended.
func (o *operations) wait() {
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	o.all.Wait()
}
