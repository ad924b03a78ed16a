package transport

import (
	"context"
	"errors"
	"sync"
)

// MaxOperationID bounds the id of an operation, in bytes: each of its messages
// repeats it.
const MaxOperationID = 256

var (
	errDuplicate = errors.New("an operation with this id runs already")
	errTooMany   = errors.New("there are too many operations")
	errEnded     = errors.New("the connection has ended")
)

// operations are the operations on one connection, by client-chosen id. They
// end with the context under which they were started.
type operations struct {
	max int

	mu      sync.Mutex // guards byID and ended, and stopped of all operations
	byID    map[string]*running
	ended   bool           // no further operation may start
	running sync.WaitGroup // started operations that have not ended
}

// running is a started operation.
type running struct {
	id      string
	ctx     context.Context
	cancel  context.CancelFunc
	stopped bool // by the client: no further message is sent
}

func newOperations(max int) *operations {
	return &operations{max: max, byID: map[string]*running{}}
}

// startOperation registers an operation. end must be called for it. The error is
// errDuplicate, errTooMany or errEnded.
func (o *operations) startOperation(ctx context.Context, id string) (*running, error) {
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
	o.running.Add(1)
	return r, nil
}

// stopOperation ends the operation with the id, if it exists. No further message is
// sent and the id is free.
func (o *operations) stopOperation(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.byID[id]; r != nil {
		delete(o.byID, id)
		r.stopped = true
		r.cancel()
	}
}

// maySend reports whether a message of the operation may be sent. The last
// message frees the id and the slot: a client that has read it may reuse both.
func (o *operations) maySend(r *running, last bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last && o.byID[r.id] == r {
		delete(o.byID, r.id)
	}
	return !r.stopped
}

// endOperation must be called when an operation has ended.
func (o *operations) endOperation(r *running) {
	o.maySend(r, true)
	r.cancel()
	o.running.Done()
}

// waitAll prevents further starts and waits for all operations. The context under
// which they were started must be done.
func (o *operations) waitAll() {
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	o.running.Wait()
}
