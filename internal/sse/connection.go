package sse

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"time"

	r3labs "github.com/r3labs/sse/v2"
)

// connection is one connection of a subscription: a client of r3labs/sse that is
// used once. That client parses events; the request and the body that it sees
// come from RoundTrip, and the decision to connect again is Subscribe's.
type connection struct {
	options ClientOptions
	yield   func(Event, error) bool
	request *http.Request

	last     string // the last id seen
	streamed bool   // the answer was a stream
	events   int    // how many events came
	stopped  bool   // the caller has stopped
	touch    func() // resets the idle timer
}

// readStream reads the stream to its end, which is always an error.
func (c *connection) readStream(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	var err error
	if c.request, err = c.options.Request(ctx, c.last); err != nil {
		return &requestError{err}
	}
	c.touch = func() {}
	if idle := c.options.IdleTimeout; idle > 0 {
		timer := time.AfterFunc(idle, func() { cancel(ErrIdle) })
		defer timer.Stop()
		c.touch = func() { timer.Reset(idle) }
	}
	client := r3labs.NewClient(c.request.URL.String(), r3labs.ClientMaxBufferSize(c.options.MaxEventBytes+1))
	client.Connection = &http.Client{Transport: c, CheckRedirect: noRedirect}
	client.ReconnectStrategy = once{}
	client.ResponseValidator = func(_ *r3labs.Client, response *http.Response) error { return c.checkResponse(response) }
	client.LastEventID.Store([]byte(c.last))
	err = client.SubscribeRawWithContext(ctx, func(msg *r3labs.Event) {
		if !c.stopped && !c.deliverEvent(msg) {
			c.stopped = true
			cancel(nil) // the library reads until its context ends
		}
	})
	if context.Cause(ctx) == ErrIdle {
		return ErrIdle
	}
	if outer := (*url.Error)(nil); errors.As(err, &outer) {
		return outer.Err // RoundTrip's own error has the method and the address
	}
	if err == nil {
		return ErrEnded
	}
	return err
}

// deliverEvent passes an event on and reports whether the caller wants more. The library makes
// an event of each comment, with the last id; deliverEvent ignores it.
func (c *connection) deliverEvent(msg *r3labs.Event) bool {
	event := Event{ID: string(msg.ID), Name: string(msg.Event), Data: msg.Data}
	if event.Name == "" && len(event.Data) == 0 && event.ID == c.last {
		return true
	}
	c.events++
	c.last = event.ID
	return c.yield(event, nil)
}

// RoundTrip answers the library's GET with the response to the subscription's
// own request, whose body it cuts into whole blocks.
func (c *connection) RoundTrip(*http.Request) (*http.Response, error) {
	response, err := c.options.HTTP.Do(c.request)
	if err != nil {
		return nil, err
	}
	response.Body = newBlockReader(response.Body, c.options.MaxEventBytes, c.touch)
	return response, nil
}

func (c *connection) checkResponse(response *http.Response) error {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if response.StatusCode == http.StatusOK && err == nil && kind == "text/event-stream" {
		c.streamed = true
		return nil
	}
	response.Body = response.Body.(*blockReader).body // as it is
	return readRefusal(response, c.options.Refused)
}

// noRedirect leaves redirects to the inner client.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// once is the library's back-off without retries: the library's own checks neither the
// context nor the status.
type once struct{}

func (once) NextBackOff() time.Duration { return -1 }
func (once) Reset()                     {}
