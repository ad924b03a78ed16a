package httpd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"koine/internal/sse"
	"koine/internal/throttle"
)

// Limits of connections.
const (
	// DefaultMaxConnections is the limit if the process may open enough files.
	DefaultMaxConnections = 16_384
	// MinConnections is the limit with very few files.
	MinConnections = 8
	// MaxSpareConnections bounds the connections beyond the shares, which are served
	// probes only.
	MaxSpareConnections = 64

	// freshAge is how long a new connection without a request is protected from
	// eviction.
	freshAge = time.Second
	// evictBatch bounds the connections closed at a time to make room, and evictPause
	// is the pause after a search that found none.
	evictBatch = 64
	evictPause = 100 * time.Millisecond
)

// connections shares the connections among their owners. A connection counts for its
// address until a request is authenticated, and for that principal from then on; a
// connection of a trusted proxy counts for no owner. If an owner has no share left, its
// idle connections are closed to make room. Failing that, a new connection is a spare:
// it is served probes and refused everything else, and the oldest spare is closed when
// there are too many.
type connections struct {
	pool   *throttle.Pool
	trusts func(netip.Addr) bool

	mu       sync.Mutex // guards the fields below
	open     map[*connection]struct{}
	spares   []*connection // oldest first
	maxSpare int
	barren   map[throttle.Owner]time.Time // time of the last failed search for room, by owner
}

type connection struct {
	net.Conn
	all    *connections
	proxy  bool // of a trusted proxy
	spare  bool
	closed sync.Once

	state atomic.Int32 // an http.ConnState
	since atomic.Int64 // start of the state, in Unix nanoseconds

	owner throttle.Owner // guarded by all.mu
}

func newConnections(size int, trusts func(netip.Addr) bool) *connections {
	return &connections{
		pool: throttle.NewPool(int64(size)), trusts: trusts, open: map[*connection]struct{}{},
		maxSpare: min(MaxSpareConnections, 4+size/8), barren: map[throttle.Owner]time.Time{},
	}
}

// SetWriteBuffer serves sse.BoundSendBuffer.
func (c *connection) SetWriteBuffer(size int) error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.SetWriteBuffer(size)
	}
	return nil
}

// CloseWrite lets net/http end a connection without losing the answer.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection and releases its place.
func (c *connection) Close() error {
	err := c.Conn.Close()
	c.closed.Do(func() { c.all.releaseConn(c) })
	return err
}

// admitConn gives a connection a place, or makes it a spare.
func (all *connections) admitConn(conn net.Conn) *connection {
	c := &connection{Conn: conn, all: all}
	c.setState(http.StateNew)
	var addr netip.Addr
	if at, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
		addr = at.Addr().Unmap().WithZone("")
	}
	c.owner, c.proxy = throttle.OwnerAt(addr), all.trusts(addr)
	all.mu.Lock()
	oldest := all.placeConn(c)
	all.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // its server notices
	}
	return c
}

// placeConn is called with all.mu held. The caller must close the returned spare.
func (all *connections) placeConn(c *connection) (oldest *connection) {
	take := func() bool {
		if c.proxy {
			return all.pool.AcquireFree(c.owner, 1)
		}
		return all.pool.Acquire(c.owner, 1)
	}
	if !take() && !(all.makeRoom(c.owner) && take()) {
		c.spare = true
		if len(all.spares) >= all.maxSpare {
			oldest = all.spares[0]
			all.spares = slices.Delete(all.spares, 0, 1)
		}
		all.spares = append(all.spares, c)
		return oldest
	}
	all.open[c] = struct{}{}
	return nil
}

// claimConn assigns a connection to its authenticated owner. It returns false if that owner
// has no share left.
func (all *connections) claimConn(c *connection, owner throttle.Owner) bool {
	if c.spare || c.proxy || !owner.Known() {
		return true
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if _, open := all.open[c]; !open || c.owner == owner {
		return true
	}
	if !all.pool.Move(c.owner, owner, 1) && !(all.makeRoom(owner) && all.pool.Move(c.owner, owner, 1)) {
		return false
	}
	c.owner = owner
	return true
}

// releaseConn releases the place of a connection.
func (all *connections) releaseConn(c *connection) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if c.spare {
		all.spares = slices.DeleteFunc(all.spares, func(s *connection) bool { return s == c })
	} else if _, open := all.open[c]; open {
		delete(all.open, c)
		all.pool.Release(c.owner, 1)
	}
}

// makeRoom closes the longest idle connections of the owner, or of all owners if no
// place is free at all. It is called with all.mu held.
func (all *connections) makeRoom(owner throttle.Owner) bool {
	now := time.Now()
	if now.Sub(all.barren[owner]) < evictPause {
		return false
	}
	full := all.pool.InUse() >= all.pool.Size()
	var waiting []*connection
	for c := range all.open {
		if (full || c.owner == owner) && c.isWaiting(now) {
			waiting = append(waiting, c)
		}
	}
	if len(waiting) == 0 {
		clear(all.barren) // keeps the map small
		all.barren[owner] = now
		return false
	}
	slices.SortFunc(waiting, func(a, b *connection) int { return cmp.Compare(a.since.Load(), b.since.Load()) })
	for _, c := range waiting[:min(len(waiting), evictBatch)] {
		all.evictConn(c)
	}
	return true
}

// evictConn closes a connection and frees its place. It is called with all.mu held.
func (all *connections) evictConn(c *connection) {
	delete(all.open, c)
	all.pool.Release(c.owner, 1)
	_ = c.Conn.Close() // its server notices, and calls Close
}

// isWaiting reports whether the connection is idle.
func (c *connection) isWaiting(now time.Time) bool {
	switch http.ConnState(c.state.Load()) {
	case http.StateIdle:
		return true
	case http.StateNew:
		return now.UnixNano()-c.since.Load() > int64(freshAge)
	}
	return false
}

func (c *connection) setState(state http.ConnState) {
	c.since.Store(time.Now().UnixNano())
	c.state.Store(int32(state))
}

// stateChanged serves http.Server.ConnState.
func stateChanged(conn net.Conn, state http.ConnState) {
	if c := connectionBelow(conn); c != nil {
		c.setState(state)
	}
}

// connectionBelow returns the connection below TLS; nil if it is not a *connection.
func connectionBelow(conn net.Conn) *connection {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, _ := conn.(*connection)
	return c
}

type connectionKey struct{}

// connContext serves http.Server.ConnContext.
func connContext(ctx context.Context, conn net.Conn) context.Context {
	if c := connectionBelow(conn); c != nil {
		ctx = context.WithValue(ctx, connectionKey{}, c)
	}
	return sse.ConnContext(ctx, conn)
}

// connectionOf returns the connection of a request; nil if it is not a *connection.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

// sharedListener accepts connections into their shares.
type sharedListener struct {
	net.Listener
	all *connections
}

// Accept waits for a connection. If the process cannot open a file for it, idle
// connections are closed to make room.
func (l sharedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			l.all.closeIdle()
		}
		return nil, err // http.Server retries after a delay
	}
	return l.all.admitConn(conn), nil
}

// closeIdle closes idle connections of any owner.
func (all *connections) closeIdle() {
	all.mu.Lock()
	defer all.mu.Unlock()
	now, closed := time.Now(), 0
	for c := range all.open {
		if closed < evictBatch && c.isWaiting(now) {
			all.evictConn(c)
			closed++
		}
	}
}
