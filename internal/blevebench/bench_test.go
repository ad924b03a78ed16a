package blevebench

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// engine is an index of texts in a directory.
type engine interface {
	add(t text) error
	// finish makes the texts durable and searchable.
	finish() error
	// search returns the number of hits, at most ten.
	search(query string) (int, error)
	close() error
}

// clients is how many searches there are at a time.
const clients = 16

// queriesEach is how many queries a client makes.
const queriesEach = 125

// BenchmarkTexts indexes texts with both engines, then searches them in turns.
func BenchmarkTexts(b *testing.B) {
	for _, g := range graphs(b) {
		b.Run(g.name, func(b *testing.B) {
			count, bytes := 0, 0
			for t := range g.texts {
				count, bytes = count+1, bytes+len(t.value)
			}
			queries := drawQueries(g.texts, clients*queriesEach)
			engines := map[string]engine{}
			for _, name := range []string{"koine", "bleve"} {
				dir := b.TempDir()
				e := openEngine(b, name, dir)
				engines[name] = e
				debug.FreeOSMemory()
				_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak begins anew
				before, start := processorTime(b), time.Now()
				for t := range g.texts {
					if err := e.add(t); err != nil {
						b.Fatal(err)
					}
				}
				if err := e.finish(); err != nil {
					b.Fatal(err)
				}
				took, used := time.Since(start), processorTime(b)-before
				b.ReportMetric(float64(count)/took.Seconds(), name+"-texts/s")
				b.ReportMetric(used.Seconds()*1e6/float64(count), name+"-cpu-µs/text")
				b.ReportMetric(float64(sizeOf(b, dir))/float64(bytes), name+"-size/text")
				b.ReportMetric(float64(peak(b))/1e6, name+"-peak-MB")
			}
			latencies := map[string][]time.Duration{}
			used := map[string]time.Duration{}
			const turns = 5
			for turn := range turns {
				for i := range 2 {
					name := []string{"koine", "bleve"}[(turn+i)%2]
					before := processorTime(b)
					latencies[name] = append(latencies[name], searchAll(b, engines[name], queries[turn*len(queries)/turns:(turn+1)*len(queries)/turns])...)
					used[name] += processorTime(b) - before
				}
			}
			for name, list := range latencies {
				slices.Sort(list)
				for _, p := range []int{50, 99} {
					b.ReportMetric(list[len(list)*p/100].Seconds()*1e3, fmt.Sprint(name, "-p", p, "-ms"))
				}
				b.ReportMetric(used[name].Seconds()*1e3/float64(len(list)), name+"-cpu-ms/query")
			}
			b.ReportMetric(float64(count), "texts")
			b.ReportMetric(0, "ns/op")
			for _, e := range engines {
				if err := e.close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// searchAll makes queries by all clients, each without a pause, and returns how long each took.
func searchAll(b *testing.B, e engine, queries []string) []time.Duration {
	out := make([]time.Duration, len(queries))
	var next atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(queries); n = int(next.Add(1)) - 1 {
				start := time.Now()
				if hits, err := e.search(queries[n]); err != nil || hits == 0 {
					b.Errorf("%q has %d hits, %v", queries[n], hits, err)
				}
				out[n] = time.Since(start)
			}
		})
	}
	all.Wait()
	return out
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak returns the most resident memory that the process had, in bytes.
func peak(b *testing.B) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	return n << 10
}

func sizeOf(b *testing.B, dir string) (size int64) {
	if err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			info, err := e.Info()
			if err != nil {
				return err
			}
			size += info.Size()
		}
		return err
	}); err != nil {
		b.Fatal(err)
	}
	return size
}
