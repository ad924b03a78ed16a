package delivery

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
	"koine/kg"
)

const (
	DefaultMaxConcurrent = 32
	DefaultTimeout       = 10 * time.Second
	// MaxBackoff is the maximum delay between two attempts.
	MaxBackoff = time.Minute

	maxResponseBytes = 4 << 10 // maximum length of a response that is read
)

// Options configures a Sender. The zero value of each field means its default.
type Options struct {
	// AllowPrivate permits hooks at private and loopback addresses.
	AllowPrivate bool
	// MaxConcurrent is the maximum number of concurrent calls; Timeout applies to each. An
	// agent gets at most half of the calls that the others leave.
	MaxConcurrent int
	Timeout       time.Duration
	// Unshared gives an agent all calls: they are made for the operator.
	Unshared bool
	// Streams limits Timeout to connecting: the context of a call bounds its response.
	Streams bool
}

// Sender calls hooks with bounded concurrency. It is safe for concurrent use.
type Sender struct {
	client *http.Client
	slots  *slots // one per concurrent call
}

// New returns a sender.
func New(o Options) *Sender {
	return &Sender{
		client: newClient(cmp.Or(o.Timeout, DefaultTimeout), o.AllowPrivate, o.Streams),
		slots:  newSlots(cmp.Or(o.MaxConcurrent, DefaultMaxConcurrent), o.Unshared),
	}
}

// Close closes idle connections.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// StatusError is a response with a status other than 2xx.
type StatusError struct{ Status int }

func (r StatusError) Error() string {
	return fmt.Sprintf("web hook responded with status %d", r.Status)
}

// IsRetryable reports whether the same call may succeed later.
func IsRetryable(err error) bool {
	var r StatusError
	if errors.As(err, &r) {
		return r.Status == http.StatusTooManyRequests || r.Status == http.StatusRequestTimeout || r.Status >= http.StatusInternalServerError
	}
	return !errors.Is(err, ErrPrivateAddress)
}

// Acquire waits for a slot for one call on behalf of an agent. An agent with fewer calls
// under way comes first. Call release once.
func (s *Sender) Acquire(ctx context.Context, agent kg.AgentID) (release func(), err error) {
	return s.slots.acquire(ctx, agent)
}

// Post calls a hook once with a JSON document and additional headers. The caller must
// hold a slot from Acquire. The error, a StatusError or another, does not reveal the
// URL.
func (s *Sender) Post(ctx context.Context, t *Target, more http.Header, body []byte) error {
	resp, err := s.send(ctx, t, more, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxResponseBytes) // allows reuse of the connection
	return checkStatus(resp)
}

// Call is like Post, and returns the body of the response, at most maxBytes of it. A
// longer one is ErrTooLong.
func (s *Sender) Call(ctx context.Context, t *Target, more http.Header, body []byte, maxBytes int) ([]byte, error) {
	resp, err := s.send(ctx, t, more, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(io.LimitReader(resp.Body, int64(maxBytes)+1))
	switch {
	case checkStatus(resp) != nil:
		return nil, checkStatus(resp)
	case err != nil:
		return nil, Sanitize(err)
	case len(out) > maxBytes:
		return nil, ErrTooLong
	}
	return out, nil
}

// ErrTooLong reports a response that is longer than its limit.
var ErrTooLong = errors.New("response of the web hook is too long")

// Request returns a request to a target, or to a path below it.
func Request(ctx context.Context, t *Target, method, path string, more http.Header, body []byte) (*http.Request, error) {
	at, err := url.Parse(t.URL)
	if err != nil {
		return nil, errUnreachable
	}
	if path != "" {
		at = at.JoinPath(path)
	}
	r, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, Sanitize(err)
	}
	maps.Copy(r.Header, more)
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("User-Agent", "koine")
	t.setHeaders(r.Header)
	return r, nil
}

// Client returns the client that sends requests under the rules of the sender. Its errors
// contain the URL.
func (s *Sender) Client() *http.Client { return s.client }

// send calls a hook.
func (s *Sender) send(ctx context.Context, t *Target, more http.Header, body []byte) (*http.Response, error) {
	r, err := Request(ctx, t, http.MethodPost, "", more, body)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return nil, Sanitize(err)
	}
	return resp, nil
}

// checkStatus returns a StatusError for a status other than 2xx.
func checkStatus(resp *http.Response) error {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return StatusError{resp.StatusCode}
	}
	return nil
}

// Sanitize removes the URL from an error of Client. It also replaces the text of foreign
// errors, which may contain names and addresses.
func Sanitize(err error) error {
	var at *url.Error
	switch {
	case errors.Is(err, ErrPrivateAddress):
		return ErrPrivateAddress
	case errors.As(err, &at) && at.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return errors.New("web hook did not respond in time")
	}
	return errUnreachable
}

var errUnreachable = errors.New("web hook cannot be reached")

// PublicMessage returns the part of an error of Post that the owner of the hook may
// see. It does not distinguish a private address from one that does not respond,
// because that would allow probing the server's network. The log has the difference.
func PublicMessage(err error) string {
	if errors.Is(err, ErrPrivateAddress) {
		return errUnreachable.Error()
	}
	return err.Error()
}

// Backoff waits before the next attempt of a hook after failed consecutive failures:
// first at first, then twice as long each time, up to MaxBackoff, with up to half of it
// as jitter. It reports false when ctx is done.
func Backoff(ctx context.Context, first time.Duration, failed int) bool {
	return backoff.Sleep(ctx, backoff.Waits{Min: first, Max: MaxBackoff}.After(failed-1, 0)) == nil
}
