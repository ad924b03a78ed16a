//go:build unix

package agentchat_test

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"syscall"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/dialect/agentchat"
	"koine/internal/slowtest"
	"koine/kg"
)

// An idle socket costs less than 46 KiB of heap and stacks, and three goroutines. The clients
// are bare file descriptors, which use none of it. cmd/koine measures the program with 5,000 of
// them (BenchmarkChatSockets).
func TestIdleSocketsAreSmall(t *testing.T) {
	slowtest.WithoutRace(t)
	const count, bound = 200, 46 << 10
	s := startWith(t, agentchat.Options{Registration: agentchat.RegisterOpen}, channels.Options{Tiers: map[string]channels.Tier{}})
	members := []channel.Member{}
	for i := range count {
		members = append(members, channel.Member{Agent: kg.AgentID(fmt.Sprint("agent://a", i))})
	}
	c, err := s.channels.Create(t.Context(), as("owner"), channel.Draft{Visibility: channel.Public, Members: members})
	if err != nil {
		t.Fatal(err)
	}
	before := footprint()
	sockets := make([]int, count)
	for i := range sockets {
		sockets[i] = dialBare(t, s.Listener.Addr().String())
		writeBare(t, sockets[i], fmt.Sprintf("GET /ws HTTP/1.1\r\nHost: localhost\r\nX-Agent-ID: a%d\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", i))
		awaitBare(t, sockets[i], `"server_time"`)
	}
	s.must(nil, "owner", "POST", "/rooms/"+string(c.ID)+"/messages", `{"content":"the last"}`)
	for _, fd := range sockets {
		awaitBare(t, fd, "the last")
	}
	used := footprint()
	heap, stacks, goroutines := (used.heap-before.heap)/count, (used.stacks-before.stacks)/count, float64(used.goroutines-before.goroutines)/count
	t.Logf("a socket costs %d bytes of heap, %d of stacks, and %.1f goroutines", heap, stacks, goroutines)
	if heap+stacks > bound {
		t.Errorf("a socket costs %d bytes, want at most %d", heap+stacks, bound)
	}
	if goroutines > 3.1 {
		t.Errorf("a socket has %.1f goroutines, want 3", goroutines)
	}
}

// usage is memory in bytes, and goroutines.
type usage struct{ heap, stacks, goroutines int }

// footprint returns the usage of the process. Each collection halves a stack that is mostly
// unused.
func footprint() usage {
	for range 5 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{int(m.HeapAlloc), int(m.StackInuse), runtime.NumGoroutine()}
}

// dialBare returns a connected file descriptor, unknown to Go's network poller.
func dialBare(t *testing.T, address string) int {
	t.Helper()
	to, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}); err != nil {
		t.Fatal(err)
	}
	return fd
}

func writeBare(t *testing.T, fd int, text string) {
	t.Helper()
	if n, err := syscall.Write(fd, []byte(text)); err != nil || n != len(text) {
		t.Fatal(n, err)
	}
}

// awaitBare reads until the text has arrived.
func awaitBare(t *testing.T, fd int, want string) {
	t.Helper()
	var got []byte
	for buffer := make([]byte, 4<<10); !bytes.Contains(got, []byte(want)); {
		n, err := syscall.Read(fd, buffer)
		if err != nil || n <= 0 {
			t.Fatalf("%v after %.300s", err, got)
		}
		got = append(got, buffer[:n]...)
	}
}
