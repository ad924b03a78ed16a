//go:build unix

package a2a_test

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"syscall"
	"testing"

	"koine/kg"
)

// BenchmarkOpenStreams measures the cost of an open knowledge/subscribe for the server
// over real sockets: heap, stacks and goroutines. Each stream follows another subject
// and has had one event. An op opens all of them. The clients are bare file
// descriptors, which use none of the measured memory.
func BenchmarkOpenStreams(b *testing.B) {
	const streams = 5000
	needFiles(b, 2*streams+200)
	var used usage
	for range b.N {
		s := startBench(b)
		for i := range 5 { // the memory of the store itself for such a commit
			s.setAll(b, streams, -i)
		}
		clients := make([]socket, 0, streams)
		before := footprint()
		for i := range streams {
			clients = append(clients, openSocket(b, s.addr))
			clients[i].ask(b, subscription(i))
		}
		s.setAll(b, streams, 1)
		for i, c := range clients {
			c.await(b, fmt.Appendf(nil, `data: {"jsonrpc":"2.0","id":%d,"result":{"op":"replace"`, i))
		}
		used.since(before)
		for _, c := range clients {
			c.close(b)
		}
	}
	used.report(b, streams*b.N)
}

// setAll gives all subjects another value, in one commit.
func (s *benchServer) setAll(b *testing.B, subjects, value int) {
	b.Helper()
	if err := s.apply(subjects, func(i int) []kg.Patch { return []kg.Patch{valued(i, value)} }); err != nil {
		b.Fatal(err)
	}
}

// needFiles skips a benchmark if the process may not open that many files. (Go raises
// the soft limit to the hard one by itself.)
func needFiles(b *testing.B, n uint64) {
	b.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		b.Fatal(err)
	}
	if uint64(limit.Cur) < n {
		b.Skipf("needs %d open files; the limit is %d (ulimit -Hn)", n, limit.Cur)
	}
}

// usage is memory in use, in bytes, and goroutines.
type usage struct{ heap, stacks, goroutines int }

// since adds the growth of usage.
func (u *usage) since(before usage) {
	now := footprint()
	u.heap += now.heap - before.heap
	u.stacks += now.stacks - before.stacks
	u.goroutines += now.goroutines - before.goroutines
}

// report reports the usage of each stream.
func (u *usage) report(b *testing.B, streams int) {
	each := func(total int) float64 { return float64(total) / float64(streams) }
	b.ReportMetric(each(u.heap+u.stacks)/1024, "KiB/stream")
	b.ReportMetric(each(u.stacks)/1024, "stack-KiB/stream")
	b.ReportMetric(each(u.goroutines), "goroutines/stream")
}

// footprint is the usage of the process. Each collection halves a stack that is
// mostly unused; a server that is left alone has seen several.
func footprint() usage {
	var m runtime.MemStats
	for range 5 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return usage{int(m.HeapAlloc), int(m.StackInuse), runtime.NumGoroutine()}
}

// socket is a connected file descriptor, unknown to Go's network poller.
type socket int

func openSocket(b *testing.B, addr string) socket {
	b.Helper()
	to, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		b.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		b.Fatal(err)
	}
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}); err != nil {
		b.Fatal(err)
	}
	return socket(fd)
}

// ask sends the request for a stream and waits until it is established.
func (s socket) ask(b *testing.B, request []byte) {
	b.Helper()
	if n, err := syscall.Write(int(s), request); err != nil || n != len(request) {
		b.Fatal(n, err)
	}
	s.await(b, []byte("HTTP/1.1 200 OK\r\n"))
}

// await reads until the text has arrived.
func (s socket) await(b *testing.B, want []byte) {
	b.Helper()
	var got []byte
	for buffer := make([]byte, 4<<10); !bytes.Contains(got, want); {
		n, err := syscall.Read(int(s), buffer)
		if err != nil || n == 0 {
			b.Fatalf("%v after %s", err, got)
		}
		got = append(got, buffer[:n]...)
	}
}

func (s socket) close(b *testing.B) {
	if err := syscall.Close(int(s)); err != nil {
		b.Error(err)
	}
}
