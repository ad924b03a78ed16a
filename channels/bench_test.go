package channels_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"koine/channels"
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
			c := s.make(b, channels.Private)
			b.ResetTimer()
			inParallel(publishers, b.N, func(i int) {
				if _, err := s.Publish(b.Context(), as("ann"), channels.Publication{Channel: c.ID, Parts: benchParts(i)}); err != nil {
					b.Error(err)
				}
			})
		})
	}
}
