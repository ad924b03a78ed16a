package kg

import (
	"slices"
	"sync/atomic"
	"time"
)

// Histogram is how often values fell below each of its bounds.
type Histogram struct {
	// Bounds are the upper ends of the buckets, in ascending order; a value that
	// is a bound belongs below it. Not to be changed.
	Bounds []float64
	// Counts has one more: the last one is of the values above all bounds. They
	// are not added up.
	Counts []uint64
	Sum    float64
}

// Count is how many values there were.
func (h Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Cumulative is the counts added up by bound, as Prometheus has them.
func (h Histogram) Cumulative() map[float64]uint64 {
	m := make(map[float64]uint64, len(h.Bounds))
	n := uint64(0)
	for i, b := range h.Bounds {
		n += h.Counts[i]
		m[b] = n
	}
	return m
}

// Bounds of the store's histograms.
var (
	// latencyBounds are in seconds, from a group in a memory file system to a disk
	// that hangs.
	latencyBounds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	// groupBounds are in commits.
	groupBounds = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
	// lagBounds are in revisions; a watcher that is at the head is in the first.
	lagBounds = []float64{0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000}
)

// maxBuckets bounds the buckets of a histogram.
const maxBuckets = 16

// distribution is a histogram under observation. One goroutine at a time observes, any
// number read; observing allocates nothing and takes no lock.
type distribution struct {
	counts [maxBuckets]atomic.Uint64
	sum    atomic.Uint64 // in the unit of its observer: nanoseconds, or commits
}

func (d *distribution) observe(bounds []float64, v float64, sum uint64) {
	i, _ := slices.BinarySearch(bounds, v)
	d.counts[i].Add(1)
	d.sum.Add(sum)
}

func (d *distribution) took(t time.Duration) { d.observe(latencyBounds, t.Seconds(), uint64(t)) }

func (d *distribution) size(n int) { d.observe(groupBounds, float64(n), uint64(n)) }

// histogram is what was observed so far, in units of so many of the sum's.
func (d *distribution) histogram(bounds []float64, unit float64) Histogram {
	h := Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1), Sum: float64(d.sum.Load()) / unit}
	for i := range h.Counts {
		h.Counts[i] = d.counts[i].Load()
	}
	return h
}
