package agentapi_test

import (
	"fmt"
	"net/http"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// BenchmarkIdleSockets opens idle sockets and reports the memory of each (both ends,
// heap and stacks) and the processor time of all; then each receives an event of a task
// that it created.
func BenchmarkIdleSockets(b *testing.B) {
	const count = 5000
	s := start(b)
	before := memory()
	conns := make([]*websocket.Conn, 0, count)
	began := time.Now()
	for i := range count {
		conn, _, err := websocket.Dial(b.Context(), s.URL+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-ID": {fmt.Sprint("a", i)}}})
		if err != nil {
			b.Fatal(err)
		}
		conns = append(conns, conn)
	}
	b.ReportMetric(float64(count)/time.Since(began).Seconds(), "opened/s")
	b.ReportMetric(float64(memory()-before)/count/1024, "KiB/socket")
	for range b.N {
		used, at := processorTime(), time.Now()
		time.Sleep(2 * time.Second) // measured, not waited for
		b.ReportMetric(100*float64(processorTime()-used)/float64(time.Since(at)), "%cpu-idle")
	}
	for _, conn := range conns {
		if err := conn.Write(b.Context(), websocket.MessageText, []byte(`{"type":"message","agentId":"bot","message":[{"type":"text","content":"x"}]}`)); err != nil {
			b.Fatal(err)
		}
	}
	began = time.Now()
	for _, conn := range conns {
		if _, _, err := conn.Read(b.Context()); err != nil {
			b.Fatal(err)
		}
		_ = conn.CloseNow()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(count)/time.Since(began).Seconds(), "answers/s")
}

func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
