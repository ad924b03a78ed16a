package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"koine/client"
)

// serverFlags holds the flags that select a server and the caller's identity.
type serverFlags struct {
	URL string `help:"Server to work on (default ${url})." placeholder:"URL" env:"KOINE_URL"`
	caFlag
	callerFlags
}

// requestTimeout bounds a short request, and the time until a stream begins.
const requestTimeout = 60 * time.Second

// maxAnswerBytes bounds an answer held in memory; exports stream.
const maxAnswerBytes = client.MaxResponseBytes

// openClient connects to the server with requestTimeout for each request.
func (s *serverFlags) openClient(ctx context.Context) (*client.Client, error) {
	return s.openWith(ctx, requestTimeout, nil, nil)
}

// openUnbounded connects without a timeout, for uploads and exports.
func (s *serverFlags) openUnbounded(ctx context.Context) (*client.Client, error) {
	return s.openWith(ctx, 0, nil, nil)
}

// openStream connects for a stream. A stream whose connection is lost resumes after its last
// event.
func (s *serverFlags) openStream(ctx context.Context, t terminal) (*client.Client, error) {
	return s.openWith(ctx, 0, func(h *http.Transport) { h.ResponseHeaderTimeout = requestTimeout }, func(cause error, wait time.Duration) {
		var refused *client.Error
		if errors.As(cause, &refused) && refused.Reason == "RESYNC" {
			t.sayf("the statements shown may be outdated (%s); rereading them in %s", refused.Message, wait.Round(time.Millisecond))
			return
		}
		t.sayf("connection lost (%v); reconnecting in %s", cause, wait.Round(time.Millisecond))
	})
}

// openWith connects to the server; timeout bounds each request including its answer (0: no
// limit).
func (s *serverFlags) openWith(ctx context.Context, timeout time.Duration, adjust func(*http.Transport), lost func(error, time.Duration)) (*client.Client, error) {
	transport, err := s.newTransport()
	if err != nil {
		return nil, err
	}
	if adjust != nil {
		adjust(transport)
	}
	c, err := client.Open(ctx, s.serverURL(), client.Options{
		Agent: s.As, Key: s.Key, UserAgent: userAgent(), HTTP: &http.Client{Transport: transport, Timeout: timeout}, Retry: client.Retry{FailFast: true, OnRetry: lost},
	})
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, client.Invalid):
		return nil, usageError{err}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, new(*url.Error)):
		return nil, s.unreachableError(err)
	case strings.Contains(err.Error(), plainHTTPAnswer):
		return nil, exitError{fmt.Errorf("the server at %s requires HTTPS: use a URL that begins with https://", s.serverURL()), exitUnreachable}
	}
	return nil, err
}

func (s *serverFlags) serverURL() string { return cmp.Or(s.URL, defaultURL) }

func userAgent() string { return "koine/" + versionText() }

// unreachableError explains why a server does not answer.
func (s *serverFlags) unreachableError(err error) error {
	format, hint := explainUnreachable(err)
	if hint != "" {
		hint = "\n" + hint
	}
	return exitError{fmt.Errorf(format+": %w%s", s.serverURL(), err, hint), exitUnreachable}
}

// streamError explains the error that ended a stream.
func (s *serverFlags) streamError(err error) error {
	if errors.As(err, new(*client.Error)) {
		return err
	}
	return s.unreachableError(err)
}
