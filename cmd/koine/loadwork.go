package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// What a byte of a file costs in the parts of a load, as measured: reading it to check it,
// loading it, and writing the index of it. Only how they compare matters.
const (
	checkCost = 1
	loadCost  = 6
	indexCost = 2
)

// loadProgress is all that a load has to do, in one measure, so that the time that is left can be
// said from the beginning.
type loadProgress struct {
	began      time.Time
	loadBegan  time.Time     // zero until then
	statements atomic.Uint64 // that were loaded

	mu      sync.Mutex // guards what follows
	size    float64    // bytes of all files
	checked float64
	loaded  float64
	indexed float64
	round   indexRound
	bar     *progress
}

// indexRound is one writing of an index, of what was loaded since the one before.
type indexRound struct{ from, to, share float64 }

func newLoadProgress(sources []*source) *loadProgress {
	w := &loadProgress{began: time.Now()}
	for _, s := range sources {
		w.size += float64(s.size)
	}
	return w
}

// fileProgress is what a file has in one part of the load.
type fileProgress struct {
	w    *loadProgress
	part *float64 // of w
	from float64  // of the part, before the file
	size float64
}

func (w *loadProgress) startCheck(s *source) *fileProgress { return w.startFile(s, &w.checked) }
func (w *loadProgress) startLoad(s *source) *fileProgress {
	if w.loadBegan.IsZero() {
		w.loadBegan = time.Now()
	}
	return w.startFile(s, &w.loaded)
}

func (w *loadProgress) startFile(s *source, part *float64) *fileProgress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &fileProgress{w, part, *part, float64(s.size)}
}

// setBytesRead says how many bytes of the file were read.
func (f *fileProgress) setBytesRead(n int64) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	*f.part = f.from + min(float64(n), f.size)
}

// markDone says that the file needs no reading.
func (f *fileProgress) markDone() { f.setBytesRead(int64(f.size)) }

// timeLeft is how long the load will take from now on, 0 while that cannot be told.
func (w *loadProgress) timeLeft(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	done := checkCost*w.checked + loadCost*w.loaded + indexCost*w.indexed
	if done == 0 {
		return 0
	}
	all := (checkCost + loadCost + indexCost) * w.size
	return time.Duration(float64(now.Sub(w.began)) * (all - done) / done)
}

// indexReporter tells of the writing of the index.
func (w *loadProgress) indexReporter(t terminal) func(done, of uint64) {
	return func(done, of uint64) {
		w.mu.Lock()
		share := float64(done) / float64(max(of, 1))
		if w.bar == nil || share < w.round.share {
			w.round = indexRound{from: w.round.to, to: w.loaded}
			if w.bar != nil {
				w.bar.finish()
			}
			w.bar = newPart(t, "writing the index", nil, int64(of), &fileProgress{w: w})
			w.bar.rows = true
		}
		w.round.share = share
		w.indexed = w.round.from + share*(w.round.to-w.round.from)
		bar := w.bar
		w.mu.Unlock()
		bar.moveTo(int64(done))
	}
}

// finish takes the last bar away.
func (w *loadProgress) finish() {
	if w.bar != nil {
		w.bar.finish()
	}
}

func timeLeftText(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return fmt.Sprintf(", %s left", d.Round(time.Second))
}
