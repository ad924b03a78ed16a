package main

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
)

// reportEvery is how often progress is told where there is no terminal.
const reportEvery = 10 * time.Second

// progress tells how far the reading of a file has come: by a bar where a
// person watches, by a line now and then where output goes to a file. It
// counts the bytes that are read through it, for the time that is left, and
// the statements, for the rate.
type progress struct {
	io.Reader
	t          terminal
	what       string
	size, read int64
	statements atomic.Uint64
	began      time.Time
	told       time.Time
	bar        *progressbar.ProgressBar

	work *fileProgress // what this is a part of, nil for a whole of its own
	rows bool          // they are counted, and not bytes
	all  chan struct{} // closed when all is read
}

// newProgress watches the reading of an input of this size, -1 if unknown.
func newProgress(t terminal, what string, in io.Reader, size int64) *progress {
	return newPart(t, what, in, size, nil)
}

// newPart is newProgress of a part of a larger work.
func newPart(t terminal, what string, in io.Reader, size int64, work *fileProgress) *progress {
	now := time.Now()
	p := &progress{Reader: in, t: t, what: what, size: size, began: now, told: now, work: work, all: make(chan struct{})}
	if t.isInteractive() {
		p.bar = progressbar.NewOptions64(size,
			progressbar.OptionSetWriter(t.err),
			progressbar.OptionSetDescription(what),
			progressbar.OptionShowBytes(in != nil),
			progressbar.OptionSetPredictTime(work == nil),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	return p
}

// Read passes on what it reads and tells of it.
func (p *progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.read += int64(n)
	if errors.Is(err, io.EOF) {
		p.allRead()
	}
	if p.work != nil {
		p.work.setBytesRead(p.read)
	}
	if p.bar != nil && errors.Is(err, io.EOF) {
		p.bar.Describe(p.what + p.rateText(time.Now()) + ", all read")
	} else {
		p.report(n)
	}
	return n, err
}

func (p *progress) allRead() {
	select {
	case <-p.all: // an end may be read again
	default:
		close(p.all)
	}
}

// serverReportDelay is how long a server may be at work on what was sent before that is told.
const serverReportDelay = 2 * time.Second

// tellServerWorks tells now and then that a server is at work on all of the input, until
// stop is called.
func (p *progress) tellServerWorks(name string) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-quit:
			return
		case <-p.all:
		}
		began := time.Now()
		for next := serverReportDelay; ; next = reportEvery {
			select {
			case <-quit:
				return
			case <-time.After(next):
				p.t.sayf("%s is sent; the server has been at work on it for %s", name, time.Since(began).Round(time.Second))
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// moveTo tells of what is not read.
func (p *progress) moveTo(done int64) {
	n := done - p.read
	p.read = done
	p.report(int(n))
}

// report says how far it has come, of which the last n is new.
func (p *progress) report(n int) {
	switch now := time.Now(); {
	case p.bar != nil && p.work != nil:
		p.bar.Describe(p.what + p.rateText(now) + p.timeLeftText(now))
		p.bar.Add(n) // it has nowhere to report a failing terminal to
	case p.bar != nil:
		p.bar.Describe(p.what + p.rateText(now))
		p.bar.Add(n)
	case now.Sub(p.told) >= reportEvery:
		p.told = now
		p.t.sayf("%s: %s%s%s", p.what, p.percentText(), p.rateText(now), p.timeLeftText(now))
	}
}

// setStatements says how many statements there have been.
func (p *progress) setStatements(n uint64) { p.statements.Store(n) }

func (p *progress) percentText() string {
	if p.size <= 0 {
		return sizeText(p.read)
	}
	return fmt.Sprintf("%d%%", p.read*100/p.size)
}

func (p *progress) rateText(now time.Time) string {
	n, began := p.statements.Load(), p.began
	if p.work != nil && !p.rows {
		n, began = p.work.w.statements.Load(), p.work.w.loadBegan
	}
	seconds := now.Sub(began).Seconds()
	if n == 0 || seconds < 0.1 {
		return ""
	}
	return fmt.Sprintf(" %s statements, %s/s", countText(n), countText(uint64(float64(n)/seconds)))
}

func (p *progress) timeLeftText(now time.Time) string {
	if p.work != nil {
		return timeLeftText(p.work.w.timeLeft(now))
	}
	if p.size <= 0 || p.read == 0 {
		return ""
	}
	return timeLeftText(time.Duration(float64(now.Sub(p.began)) * float64(p.size-p.read) / float64(p.read)))
}

// finish takes the bar away.
func (p *progress) finish() {
	if p.bar != nil {
		p.bar.Finish()
	}
}

// countText writes a number with thousands apart: 1,234,567.
func countText(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func sizeText(n int64) string {
	const unit = 1 << 10
	f, suffix := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for f >= unit && len(suffix) > 1 {
		f, suffix = f/unit, suffix[1:]
	}
	return fmt.Sprintf("%.3g %s", f, suffix[0])
}
