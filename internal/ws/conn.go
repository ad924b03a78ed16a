package ws

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/coder/websocket"

	"koine/internal/caller"
	"koine/internal/sse"
	"koine/internal/throttle"
	"koine/kg"
)

// Conn is a connection. Its goroutines are the caller of Serve, one that reads, and those of
// the protocol (Go). While it is idle, it has no others.
type Conn struct {
	server      *Server
	conn        *websocket.Conn
	place       *sse.Stream     // among the streams to shut down
	ctx         context.Context // its cause is the reason of the end
	cancel      context.CancelCauseFunc
	writing     context.Context // ends a grace period after ctx
	stopWriting context.CancelFunc
	all         sync.WaitGroup
	pinger      *time.Timer // calls ping

	// Used by the reading goroutine only, once it runs.
	owner    throttle.Owner
	admitted bool
	first    *time.Timer
	settle   func() // releases the place among the connections that are not admitted
	leave    func() // releases the place among the streams
}

// Context returns the context of the connection. Its cause is the reason of the end.
func (c *Conn) Context() context.Context { return c.ctx }

// End ends the connection. The first cause counts.
func (c *Conn) End(cause error) { c.cancel(cause) }

// Admit takes the connection's place among the streams, once the client has introduced itself.
// The limits of other messages hold from then on. Only the handler of messages may call it. A
// second call has no effect.
func (c *Conn) Admit(who caller.Caller) error {
	if c.admitted {
		return nil
	}
	leave, err := c.server.options.Streams.Acquire(caller.With(c.ctx, who))
	if err != nil {
		return err
	}
	c.leave, c.owner, c.admitted = leave, throttle.OwnerOf(who), true
	c.settle()
	c.conn.SetReadLimit(c.server.options.MaxBytes)
	c.first.Stop()
	return nil
}

// Serve reads messages and passes them to handle until the connection ends. handle must release
// what it is given; its error ends the connection. When Serve returns, the client was told the
// reason, and all functions of Go have returned.
func (c *Conn) Serve(handle func(kind websocket.MessageType, text []byte, received *throttle.Received) error) {
	o := &c.server.options
	defer c.free()
	defer c.stopWriting()
	// A message that is being written when the connection ends has a grace period.
	defer context.AfterFunc(c.ctx, func() { time.AfterFunc(sse.DefaultLastTimeout, c.stopWriting) })()
	if !c.admitted {
		c.first = time.AfterFunc(o.FirstTimeout, func() { c.cancel(o.ErrFirst) })
		defer c.first.Stop()
	}
	c.Go(func() error { return c.readMessages(handle) })
	c.pinger.Reset(o.PingInterval)
	defer c.pinger.Stop()
	<-c.ctx.Done()
	c.tellReason()
	c.all.Wait()
}

// Go calls f in a goroutine of the connection. An error or a panic of f ends the connection.
func (c *Conn) Go(f func() error) {
	c.all.Go(func() {
		defer func() {
			if p := recover(); p != nil { // it would end the process
				c.cancel(c.server.options.Panicked(p))
			}
		}()
		if err := f(); err != nil {
			c.cancel(err)
		}
	})
}

func (c *Conn) readMessages(handle func(websocket.MessageType, []byte, *throttle.Received) error) error {
	o := &c.server.options
	for {
		// The connection's context is not used: cancelling a read makes the library close
		// the connection, and the reason would be lost.
		kind, from, err := c.conn.Reader(context.Background())
		if err != nil {
			return sse.ErrClientGone
		}
		if c.ctx.Err() != nil {
			if _, err := io.Copy(io.Discard, from); err != nil {
				return sse.ErrClientGone
			}
			continue // until the client's close frame
		}
		// Two bytes beyond the bound let the library report a message that is too large.
		text, received, err := o.Intake.ReadMessage(c.owner, from, o.MaxBytes+2, func() { c.cancel(o.ErrLate) })
		switch {
		case kg.CodeOf(err) == kg.CodeOverloaded:
			return err
		case err != nil:
			return sse.ErrClientGone
		}
		if err := handle(kind, text, received); err != nil {
			c.cancel(err)
		}
	}
}

// ping pings the client, ends the connection if it does not answer, and otherwise calls
// itself again after an interval. No goroutine waits for that.
func (c *Conn) ping() {
	// As for a read, the connection's context is not used.
	ctx, cancel := context.WithTimeout(context.Background(), c.server.options.PongTimeout)
	defer cancel()
	if err := c.conn.Ping(ctx); err != nil {
		c.cancel(sse.ErrClientGone) // unless there is a reason already
	} else if c.ctx.Err() == nil {
		c.pinger.Reset(c.server.options.PingInterval)
	}
}

// Write sends a message within the time limit. A client that barely meets it ends as too slow.
// One that does not is disconnected, because nothing can follow half a message.
func (c *Conn) Write(text []byte) error {
	limit := c.server.options.WriteTimeout
	ctx, cancel := context.WithTimeout(c.writing, limit+sse.DefaultLastTimeout)
	defer cancel()
	began := time.Now()
	if err := c.conn.Write(ctx, websocket.MessageText, text); err != nil {
		return sse.ErrClientGone
	}
	if time.Since(began) > limit {
		return sse.ErrSlowConsumer
	}
	return nil
}

// tellReason sends the client the reason of the end, if it can be reached.
func (c *Conn) tellReason() {
	if code, reason := c.server.options.CloseReason(context.Cause(c.ctx)); code != 0 {
		_ = c.conn.Close(code, reason) // ends the read too
		return
	}
	_ = c.conn.CloseNow()
}

// free releases all that the connection holds.
func (c *Conn) free() {
	if c.conn != nil {
		_ = c.conn.CloseNow()
	}
	if c.cancel != nil {
		c.cancel(nil)
	}
	if c.place != nil {
		c.place.Close()
	}
	c.settle()
	c.leave()
}
