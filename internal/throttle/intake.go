package throttle

import (
	"io"
	"sync"
	"time"

	"koine/kg"
)

// Intake limits the memory for unanswered messages of clients, and the time for
// receiving them. Its zero value imposes no limit. It may be copied.
type Intake struct {
	Pool *Pool
	// Grace is the time that any message may take. A longer one must arrive at
	// BytesPerSecond on average.
	Grace          time.Duration
	BytesPerSecond int64
}

// Defaults of an Intake.
const (
	DefaultGrace          = 10 * time.Second
	DefaultBytesPerSecond = 16 << 10
)

// Deadline returns when further bytes must have arrived, for a message of which
// received bytes have arrived since began. It is the zero time if there is no deadline.
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

// Receive starts a message of the owner. Call Release when the message has been
// answered.
func (in Intake) Receive(o Owner) *Received { return &Received{pool: in.Pool, owner: o} }

// Received is a message that is being received or answered, and its share of memory.
type Received struct {
	pool  *Pool
	owner Owner

	mu       sync.Mutex // guards the following
	bytes    int64
	released bool
}

// Grow reserves n further bytes.
//
// Errors: CodeOverloaded if the owner's share is exhausted.
func (r *Received) Grow(n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.released || !r.pool.Acquire(r.owner, n) {
		return &kg.Error{Code: kg.CodeOverloaded, Message: "too many unanswered bytes",
			Hint: "Wait for answers before sending more, or send smaller messages.", RetryAfter: time.Second}
	}
	r.bytes += n
	return nil
}

// Release returns the reservation. It may be called more than once, and on nil.
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

// minBuffer is the initial buffer for a message of unknown size.
const minBuffer = 2 << 10

// ReadAll reads up to limit bytes and reserves the buffer before growing it. If the
// message is longer, it returns the first limit bytes and no error. hint is the
// announced size, which is not trusted beyond minBuffer; 0 or less means unknown.
// progress, if not nil, is called before each read with the number of bytes received.
func (r *Received) ReadAll(from io.Reader, limit, hint int64, progress func(received int64)) ([]byte, error) {
	size := min(limit, minBuffer)
	if hint > 0 {
		size = min(size, hint+1) // one more byte detects the end without growing
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

// ReadMessage reads a message that has begun to arrive, like ReadAll, and calls late if
// it arrives too slowly. late must make the reader fail. It may be called more than
// once.
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
