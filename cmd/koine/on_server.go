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

// onServer says which server, and as whom.
type onServer struct {
	URL string `help:"The server (default ${url})." placeholder:"URL" env:"KOINE_URL"`
	caFlag
	as
}

// requestTimeout is how long a short request may take, and a stream until it begins.
const requestTimeout = 60 * time.Second

// maxAnswerBytes bounds what is read of one answer; exports stream.
const maxAnswerBytes = client.MaxResponseBytes

// openClient reaches the server, for short requests.
func (s *onServer) openClient(ctx context.Context) (*client.Client, error) {
	return s.openWith(ctx, requestTimeout, nil, nil)
}

// openUnbounded reaches it for what takes as long as it takes.
func (s *onServer) openUnbounded(ctx context.Context) (*client.Client, error) {
	return s.openWith(ctx, 0, nil, nil)
}

// openStream reaches it for a stream, which is asked for again behind what came when the
// connection is lost.
func (s *onServer) openStream(ctx context.Context, t terminal) (*client.Client, error) {
	return s.openWith(ctx, 0, func(h *http.Transport) { h.ResponseHeaderTimeout = requestTimeout }, func(cause error, wait time.Duration) {
		var refused *client.Error
		if errors.As(cause, &refused) && refused.Reason == "RESYNC" {
			t.sayf("what was told may not hold any more (%s); reading it anew in %s", refused.Message, wait.Round(time.Millisecond))
			return
		}
		t.sayf("connection lost (%v); again in %s", cause, wait.Round(time.Millisecond))
	})
}

// openWith opens the server; timeout bounds each request and its answer, 0 does not.
func (s *onServer) openWith(ctx context.Context, timeout time.Duration, adjust func(*http.Transport), lost func(error, time.Duration)) (*client.Client, error) {
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
	case strings.Contains(err.Error(), plainToTLS):
		return nil, exitError{fmt.Errorf("the server at %s speaks https: begin the address with https://", s.serverURL()), exitUnreachable}
	}
	return nil, err
}

func (s *onServer) serverURL() string { return cmp.Or(s.URL, defaultURL) }

func userAgent() string { return "koine/" + versionText() }

// unreachableError is the error of a server that does not answer.
func (s *onServer) unreachableError(err error) error {
	format, hint := whyUnreachable(err)
	if hint != "" {
		hint = "\n" + hint
	}
	return exitError{fmt.Errorf(format+": %w%s", s.serverURL(), err, hint), exitUnreachable}
}

// streamError is what the error means that ended a stream.
func (s *onServer) streamError(err error) error {
	if errors.As(err, new(*client.Error)) {
		return err
	}
	return s.unreachableError(err)
}
