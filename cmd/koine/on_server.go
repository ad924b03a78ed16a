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
	URL string `help:"The server (default ${url})." placeholder:"URL"`
	as
}

// patience is how long a server may think before it answers.
const patience = 60 * time.Second

// maxAnswerBytes bounds what is read of one answer; exports stream.
const maxAnswerBytes = client.MaxAnswerBytes

// open reaches the server, for short requests.
func (s *onServer) open(ctx context.Context) (*client.Client, error) {
	return s.reach(ctx, patience, nil)
}

// openForLong reaches it for what it answers when it is done.
func (s *onServer) openForLong(ctx context.Context) (*client.Client, error) {
	return s.reach(ctx, 0, nil)
}

// openStream reaches it for a stream, which is asked for again behind what came when the
// connection is lost.
func (s *onServer) openStream(ctx context.Context, t terminal) (*client.Client, error) {
	return s.reach(ctx, patience, func(cause error, wait time.Duration) {
		t.sayf("connection lost (%v); again in %s", cause, wait.Round(time.Millisecond))
	})
}

func (s *onServer) reach(ctx context.Context, patience time.Duration, lost func(error, time.Duration)) (*client.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // exports pass it through as they want
	transport.ResponseHeaderTimeout = patience
	c, err := client.Open(ctx, s.address(), client.Options{
		Agent: s.As, Key: s.Key, UserAgent: userAgent(), HTTP: &http.Client{Transport: transport},
		Retry: client.Retry{FailFirst: true, Retrying: lost},
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
