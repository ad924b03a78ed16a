package webhook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"koine/internal/backoff"
)

const (
	DefaultMaxConcurrent = 32
	DefaultTimeout       = 10 * time.Second
	// MaxBackoff is the longest that a hook is left alone between two tries.
	MaxBackoff = time.Minute

	maxResponseBytes = 4 << 10 // that are read of what a hook answers
)

// Options of a Sender. The zero value of each means its default.
type Options struct {
	// AllowPrivate calls hooks at private and loopback addresses too.
	AllowPrivate bool
	// MaxConcurrent bounds the calls at a time, Timeout each of them.
	MaxConcurrent int
	Timeout       time.Duration
}

// Sender calls hooks, so many at a time. It is safe for concurrent use.
type Sender struct {
	client *http.Client
	slots  chan struct{} // one for each call at a time
}

// New makes a sender.
func New(o Options) *Sender {
	return &Sender{
		client: newClient(cmp.Or(o.Timeout, DefaultTimeout), o.AllowPrivate),
		slots:  make(chan struct{}, cmp.Or(o.MaxConcurrent, DefaultMaxConcurrent)),
	}
}

// Close gives back connections that are idle.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// StatusError is an answer that is not 2xx.
type StatusError struct{ Status int }

func (r StatusError) Error() string { return fmt.Sprintf("the web hook answered %d", r.Status) }

// IsRetryable tells whether another try of the same may help.
func IsRetryable(err error) bool {
	var r StatusError
	if errors.As(err, &r) {
		return r.Status == http.StatusTooManyRequests || r.Status == http.StatusRequestTimeout || r.Status >= http.StatusInternalServerError
	}
	return !errors.Is(err, ErrPrivateAddress)
}

// Acquire waits for one of the places for calls.
func (s *Sender) Acquire(ctx context.Context) (release func(), err error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	}
}

// Post calls a hook once with a JSON document and further headers, from a Place. Its
// error, a Refusal or another, says nothing of where to.
func (s *Sender) Post(ctx context.Context, t *Target, more http.Header, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(body))
	if err != nil {
		return sanitizeError(err)
	}
	maps.Copy(r.Header, more)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "koine")
	t.setHeaders(r.Header)
	resp, err := s.client.Do(r)
	if err != nil {
		return sanitizeError(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxResponseBytes) // so that the connection is kept
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return StatusError{resp.StatusCode}
	}
	return nil
}

// sanitizeError is the error without the address, and, but for what is of our own, without
// what it says: names and addresses stand there too.
func sanitizeError(err error) error {
	var at *url.Error
	switch {
	case errors.Is(err, ErrPrivateAddress):
		return ErrPrivateAddress
	case errors.As(err, &at) && at.Timeout():
		return errors.New("the web hook did not answer in time")
	}
	return errUnreachable
}

var errUnreachable = errors.New("the web hook cannot be reached")

// PublicMessage returns what whoever named the hook may know of an error of Post. It does not
// tell an address that is not of the public network from one that does not answer: else
// names of the server's own network could be found out. The log has the difference.
func PublicMessage(err error) string {
	if errors.Is(err, ErrPrivateAddress) {
		return errUnreachable.Error()
	}
	return err.Error()
}

// Backoff waits before the next try of a hook that has failed so many times in a row:
// first as long as said, then twice as long each time, up to MaxPause; less up to a half,
// because not all that failed at once are to come back at once. It tells whether the
// context is still there.
func Backoff(ctx context.Context, first time.Duration, failed int) bool {
	return Sleep(ctx, backoff.Waits{Min: first, Max: MaxBackoff}.After(failed-1, 0))
}

// Sleep waits, and tells whether the context is still there.
func Sleep(ctx context.Context, d time.Duration) bool { return backoff.Sleep(ctx, d) == nil }
