package channels_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

// benchParts are those of message i, of a length that is usual in a conversation.
func benchParts(i int) []json.RawMessage {
	return []json.RawMessage{fmt.Appendf(nil, `{"type":"text","text":"message %d: %s"}`, i, strings.Repeat("words of it ", 20))}
}

// inParallel calls work for 0 … n-1, each once, from so many goroutines.
func inParallel(goroutines, n int, work func(i int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := range next {
				work(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// BenchmarkPublish publishes durably. internal/jetstreambench has it beside others.
func BenchmarkPublish(b *testing.B) {
	for _, publishers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("publishers=%d", publishers), func(b *testing.B) {
			s := serve(b, channels.Options{}, kg.Options{})
			c := s.make(b, channel.Private)
			b.ResetTimer()
			inParallel(publishers, b.N, func(i int) {
				if _, err := s.Publish(b.Context(), as("ann"), channels.Publication{Channel: c.ID, Parts: benchParts(i)}); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// BenchmarkFanOut publishes to a channel that 1,000 streams follow, and measures the time
// until each has the message and the memory of an open stream with its goroutine.
func BenchmarkFanOut(b *testing.B) {
	const streams = 1000
	s := serve(b, channels.Options{}, kg.Options{})
	c := s.make(b, channel.Public)
	before := held()
	type arrival struct {
		m  *message.Message
		at time.Time
	}
	arrivals := make(chan arrival, streams)
	var wg sync.WaitGroup
	open := make([]*channels.Stream, streams)
	for i := range open {
		st, err := s.Stream(b.Context(), as(fmt.Sprintf("reader%d", i)), c.ID, nil)
		if err != nil {
			b.Fatal(err)
		}
		open[i] = st
		wg.Go(func() {
			for m, err := range st.Messages() {
				if err != nil {
					return
				}
				arrivals <- arrival{m, time.Now()}
			}
		})
	}
	var took []time.Duration
	for i := range b.N {
		start := time.Now()
		if _, err := s.Publish(b.Context(), as("ann"), channels.Publication{Channel: c.ID, Parts: benchParts(i)}); err != nil {
			b.Fatal(err)
		}
		for range streams {
			took = append(took, (<-arrivals).at.Sub(start))
		}
	}
	b.ReportMetric(float64(held()-before)/streams/1024, "KiB/stream")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
	for _, st := range open {
		st.Close()
	}
	wg.Wait()
}

// held is the size of heap and stacks.
func held() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
