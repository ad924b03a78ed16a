package throttle

import (
	"io"
	"sync"
	"time"

	"koine/kg"
)

// Intake bounds the bytes that clients have sent and that are not answered yet,
// and how slowly they may come. Its zero value bounds nothing; it is copied.
type Intake struct {
	Pool *Pool
	// Grace is how long a message may take however small it is; one that takes
	// longer has to come with BytesPerSecond on the average.
	Grace          time.Duration
	BytesPerSecond int64
}

// The default pace of an Intake.
const (
	DefaultGrace          = 10 * time.Second
	DefaultBytesPerSecond = 16 << 10
)

// Deadline returns when more has to have come of a message of which received
// bytes came since it began. It is the zero time where there is none.
func (in Intake) Deadline(began time.Time, received int64) time.Time {
	if in.Grace <= 0 {
		return time.Time{}
	}
	at := began.Add(in.Grace)
	if in.BytesPerSecond > 0 {
		at = at.Add(time.Duration(received) * time.Second / time.Duration(in.BytesPerSecond))
	}
	return at
}

// Receive begins a message of the owner. Its Release must be called when the
// message has been answered.
func (in Intake) Receive(o Owner) *Received { return &Received{pool: in.Pool, owner: o} }

// Received is a message that has been received in part or as a whole, and what
// is held in memory for it.
type Received struct {
	pool  *Pool
	owner Owner

	mu       sync.Mutex // guards what follows
	bytes    int64
	released bool
}

// Grow accounts for n further bytes.
//
// Errors: CodeOverloaded where the owner has no share left.
func (r *Received) Grow(n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.released || !r.pool.Acquire(r.owner, n) {
		return &kg.Error{Code: kg.CodeOverloaded, Message: "too much that was sent is not answered yet",
			Hint: "Wait for answers before sending more, or send smaller messages.", RetryAfter: time.Second}
	}
	r.bytes += n
	return nil
}

// Release gives back what the message took. It may be called again, and of nil.
func (r *Received) Release() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.released = true
	if r.bytes > 0 {
		r.pool.Release(r.owner, r.bytes)
		r.bytes = 0
	}
}

// minBuffer is what a message of unknown size is first given to be read into.
const minBuffer = 2 << 10

// ReadAll reads up to limit bytes, and accounts for the buffer before it grows.
// Of a longer message it returns the first limit bytes and no error. hint is how
// long the message says it is, and not believed past minBuffer; 0 or less is
// unknown. progress, if set, is called before each read with the bytes that came.
func (r *Received) ReadAll(from io.Reader, limit, hint int64, progress func(received int64)) ([]byte, error) {
	size := min(limit, minBuffer)
	if hint > 0 {
		size = min(size, hint+1) // one more, to find the end without growing
	}
	if err := r.Grow(size); err != nil {
		return nil, err
	}
	buf := make([]byte, 0, size)
	for int64(len(buf)) < limit {
		if len(buf) == cap(buf) {
			next := min(limit, int64(cap(buf))*2)
			if hint >= int64(cap(buf)) && hint < next {
				next = hint + 1
			}
			if err := r.Grow(next - int64(cap(buf))); err != nil {
				return buf, err
			}
			buf = append(make([]byte, 0, next), buf...)
		}
		if progress != nil {
			progress(int64(len(buf)))
		}
		n, err := from.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// ReadMessage reads a message of which the first bytes are there, as ReadAll does,
// and calls late when it does not come fast enough. late has to make the reader
// fail; it may be called more than once.
func (in Intake) ReadMessage(o Owner, from io.Reader, limit int64, late func()) ([]byte, *Received, error) {
	received, progress := in.Receive(o), func(int64) {}
	if in.Grace > 0 {
		began := time.Now()
		timer := time.AfterFunc(in.Grace, late)
		defer timer.Stop()
		progress = func(n int64) { timer.Reset(time.Until(in.Deadline(began, n))) }
	}
	text, err := received.ReadAll(from, limit, 0, progress)
	if err != nil {
		received.Release()
		return nil, nil, err
	}
	return text, received, nil
}
