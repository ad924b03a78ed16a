package fanoutbench

import (
	"bytes"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
)

// clients are the sockets of a side's streams. One loop reads them all: a goroutine for each
// would take as much of the processors as the server.
type clients struct {
	epoll   int
	streams []*stream
	buffer  []byte
	ready   []syscall.EpollEvent
}

// stream is a connected file descriptor, unknown to Go's network poller.
type stream struct {
	fd     int
	last   time.Duration // when the last event came
	events int
	size   int    // bytes of the last event
	tail   []byte // what an event that comes in pieces begins with
}

var dataLine = []byte("data: ")

// openClients opens streams with the requests that request returns.
func openClients(b *testing.B, address string, n int, request func(i int) string) *clients {
	b.Helper()
	epoll, err := syscall.EpollCreate1(0)
	if err != nil {
		b.Fatal(err)
	}
	c := &clients{epoll: epoll, buffer: make([]byte, 64<<10), ready: make([]syscall.EpollEvent, 512)}
	to, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { syscall.Close(fd) })
		if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}); err != nil {
			b.Fatal(err)
		}
		if _, err := syscall.Write(fd, []byte(request(i))); err != nil {
			b.Fatal(err)
		}
		c.awaitHeader(b, fd)
		if err := syscall.EpollCtl(epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(i)}); err != nil {
			b.Fatal(err)
		}
		c.streams = append(c.streams, &stream{fd: fd})
	}
	return c
}

// awaitHeader reads the header of a stream, so that it is open.
func (c *clients) awaitHeader(b *testing.B, fd int) {
	b.Helper()
	var got []byte
	for !bytes.Contains(got, []byte("\r\n\r\n")) {
		n, err := syscall.Read(fd, c.buffer)
		if err != nil || n == 0 {
			b.Fatalf("%v after %q", err, got)
		}
		got = append(got, c.buffer[:n]...)
	}
	if !bytes.HasPrefix(got, []byte("HTTP/1.1 200")) {
		b.Fatalf("a stream is answered %s", got)
	}
}

// await reads until all streams have one event more, and returns when each came after began.
func (c *clients) await(began time.Time, limit time.Duration) ([]time.Duration, error) {
	missing := len(c.streams)
	for missing > 0 {
		n, err := syscall.EpollWait(c.epoll, c.ready, 100)
		if err != nil && err != syscall.EINTR {
			return nil, err
		}
		at := time.Since(began)
		if at > limit {
			return nil, fmt.Errorf("%d of %d streams have no event after %v", missing, len(c.streams), at)
		}
		for i := range max(n, 0) {
			s := c.streams[c.ready[i].Fd]
			came, err := s.read(c.buffer)
			if err != nil {
				return nil, err
			}
			if came > 1 {
				return nil, fmt.Errorf("%d events at a time", came)
			}
			if came == 1 {
				s.events, s.last = s.events+1, at
				missing--
			}
		}
	}
	took := make([]time.Duration, len(c.streams))
	for i, s := range c.streams {
		if took[i] = s.last; s.events != c.streams[0].events {
			return nil, fmt.Errorf("stream %d has %d events, stream 0 has %d", i, s.events, c.streams[0].events)
		}
	}
	return took, nil
}

// read reads what has come and returns how many events began in it.
func (s *stream) read(buffer []byte) (events int, err error) {
	kept := copy(buffer, s.tail)
	n, err := syscall.Read(s.fd, buffer[kept:])
	if err != nil || n == 0 {
		return 0, fmt.Errorf("a stream ended: %v", err)
	}
	got := buffer[:kept+n]
	if events = bytes.Count(got, dataLine); events > 0 {
		s.size = n
	}
	// A line that came whole must not be counted again.
	at := max(bytes.LastIndex(got, dataLine)+len(dataLine), len(got)-len(dataLine)+1, 0)
	s.tail = append(s.tail[:0], got[min(at, len(got)):]...)
	return events, nil
}
