package scan_test

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"koine/channels"
)

// BenchmarkScanning publishes to stores without a scanner, with one that has neither rules
// nor a hook, with a rule that tags and with one that refuses, in turns. It reports the
// processor time of a message, and its ratio to that without a scanner.
func BenchmarkScanning(b *testing.B) {
	const messages, publishers = 400, 16
	kinds := []struct {
		name string
		options
	}{
		{"none", options{bare: true}},
		{"no-rules", options{}},
		{"tag", options{rules: `rules: [{name: loud, on: message, when: 'message.text.contains("!!!")', effect: tag, tags: [loud]}]`}},
		{"reject", options{rules: `rules: [{name: secret, on: message, when: 'message.text.contains("secret")', effect: reject, message: No secrets}]`}},
	}
	used := make([]time.Duration, len(kinds))
	servers := make([]*server, len(kinds))
	for i, k := range kinds {
		servers[i] = serve(b, k.options)
	}
	b.ResetTimer()
	for turn := range b.N {
		for i := range kinds {
			i = (i + turn) % len(kinds)
			s := servers[i]
			of := s.make(b, "bob")
			runtime.GC() // the garbage of the turn before is not this one's
			before := processorTime(b)
			var wg sync.WaitGroup
			for p := range publishers {
				wg.Go(func() {
					for n := range messages / publishers {
						if r, err := s.Publish(b.Context(), as("bob"), channels.Publication{Channel: of, Parts: text(fmt.Sprint("message ", turn, p, n))}); err != nil || r.Message == nil {
							b.Errorf("%+v, %v", r, err)
						}
					}
				})
			}
			wg.Wait()
			used[i] += processorTime(b) - before
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, k := range kinds {
		b.ReportMetric(float64(used[i].Microseconds())/float64(b.N*messages), "µs/"+k.name)
		if i > 0 {
			b.ReportMetric(float64(used[i])/float64(used[0]), k.name+"/none")
		}
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
