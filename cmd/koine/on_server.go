package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"koine/client"
)

// onServer says which server, and as whom.
type onServer struct {
	URL string `help:"The server (default ${url})." placeholder:"URL" env:"KOINE_URL"`
	as
}

// patience is how long a short request may take, and a stream until it begins.
const patience = 60 * time.Second

// maxAnswerBytes bounds what is read of one answer; exports stream.
const maxAnswerBytes = client.MaxAnswerBytes

// open reaches the server, for short requests.
func (s *onServer) open(ctx context.Context) (*client.Client, error) {
	return s.reach(ctx, &http.Client{Transport: newTransport(), Timeout: patience}, nil)
}

// openForLong reaches it for what takes as long as it takes.
func (s *onServer) openForLong(ctx context.Context) (*client.Client, error) {
	return s.reach(ctx, &http.Client{Transport: newTransport()}, nil)
}

// openStream reaches it for a stream, which is asked for again behind what came when the
// connection is lost.
func (s *onServer) openStream(ctx context.Context, t terminal) (*client.Client, error) {
	transport := newTransport()
	transport.ResponseHeaderTimeout = patience
	return s.reach(ctx, &http.Client{Transport: transport}, func(cause error, wait time.Duration) {
		t.sayf("connection lost (%v); again in %s", cause, wait.Round(time.Millisecond))
	})
}

func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true // exports pass it through as they want
	return t
}

func (s *onServer) reach(ctx context.Context, over *http.Client, lost func(error, time.Duration)) (*client.Client, error) {
	c, err := client.Open(ctx, s.address(), client.Options{
		Agent: s.As, Key: s.Key, UserAgent: userAgent(), HTTP: over, Retry: client.Retry{FailFirst: true, Retrying: lost},
	})
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, client.Invalid):
		return nil, usageError{err}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, new(*url.Error)):
		return nil, s.unreachable(err)
	}
	return nil, err
}

func (s *onServer) address() string { return cmp.Or(s.URL, defaultURL) }

func userAgent() string { return "koine/" + versionText() }

// unreachable is the error of a server that does not answer.
func (s *onServer) unreachable(err error) error {
	return exitError{fmt.Errorf("no server answers at %s: %w\nIs it running? Start one with: koine serve --demo", s.address(), err), exitUnreachable}
}

// lost is what the error means that ended a stream.
func (s *onServer) lost(err error) error {
	if errors.As(err, new(*client.Error)) {
		return err
	}
	return s.unreachable(err)
}
