package offline

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"koine/cmd/koine/internal/cli"
)

// Relative cost of a byte in each part of a load, as measured: parsing it, loading it, and
// writing its index entries.
const (
	checkCost = 1
	loadCost  = 6
	indexCost = 2
)

// loadProgress estimates the time that remains for a whole load, over all of its files and
// parts.
type loadProgress struct {
	began      time.Time
	loadBegan  time.Time     // zero until the first file loads
	statements atomic.Uint64 // loaded so far

	mu      sync.Mutex // guards the fields below
	size    float64    // bytes of all files
	checked float64
	loaded  float64
	indexed float64
	round   indexRound
	bar     *progress
}

// indexRound is one writing of the index, for the statements loaded since the round before.
type indexRound struct{ from, to, share float64 }

func newLoadProgress(sources []*source) *loadProgress {
	w := &loadProgress{began: time.Now()}
	for _, s := range sources {
		w.size += float64(s.size)
	}
	return w
}

// fileProgress is the share of one file in one part of a load.
type fileProgress struct {
	w    *loadProgress
	part *float64 // counter in w
	from float64  // value of part before the file
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

// setBytesRead sets the number of bytes read from the file.
func (f *fileProgress) setBytesRead(n int64) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	*f.part = f.from + min(float64(n), f.size)
}

// markDone counts the file as read.
func (f *fileProgress) markDone() { f.setBytesRead(int64(f.size)) }

// timeLeft estimates the remaining time of the load. It returns 0 as long as there is no
// estimate.
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

// indexReporter returns a callback that shows the progress of index writes.
func (w *loadProgress) indexReporter(t cli.Terminal) func(done, of uint64) {
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

// finish removes the progress bar.
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
