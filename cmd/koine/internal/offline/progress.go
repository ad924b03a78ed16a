package offline

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"koine/cmd/koine/internal/cli"
)

// reportEvery is the interval of progress messages without a terminal.
const reportEvery = 10 * time.Second

// progress reports how far a file is read: by a bar on a terminal, else by a line every
// reportEvery. It counts the bytes read through it, for the remaining time, and the
// statements, for the rate.
type progress struct {
	io.Reader
	t          cli.Terminal
	what       string
	size, read int64
	statements atomic.Uint64
	began      time.Time
	lastReport time.Time
	bar        *progressbar.ProgressBar

	work *fileProgress // the load that this is a part of, or nil
	rows bool          // counts rows instead of bytes
	all  chan struct{} // closed at the end of the input
}

// newProgress reports on the reading of an input of the given size, -1 if unknown.
func newProgress(t cli.Terminal, what string, in io.Reader, size int64) *progress {
	return newPart(t, what, in, size, nil)
}

// newPart is newProgress for a part of a load.
func newPart(t cli.Terminal, what string, in io.Reader, size int64, work *fileProgress) *progress {
	now := time.Now()
	p := &progress{Reader: in, t: t, what: what, size: size, began: now, lastReport: now, work: work, all: make(chan struct{})}
	if t.IsInteractive() {
		p.bar = progressbar.NewOptions64(size,
			progressbar.OptionSetWriter(t.Err),
			progressbar.OptionSetDescription(what),
			progressbar.OptionShowBytes(in != nil),
			progressbar.OptionSetPredictTime(work == nil),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	return p
}

// Read reads from the input and reports progress.
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
		p.bar.Describe(p.what + p.rateText(time.Now()) + ", read completely")
	} else {
		p.report(n)
	}
	return n, err
}

func (p *progress) allRead() {
	select {
	case <-p.all: // EOF may be read twice
	default:
		close(p.all)
	}
}

// serverReportDelay is the time after an upload until reportServerWork first reports.
const serverReportDelay = 2 * time.Second

// reportServerWork reports from time to time that the server still processes the whole input,
// until stop is called.
func (p *progress) reportServerWork(name string) (stop func()) {
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
				p.t.Notef("%s was sent; the server has been processing it for %s", name, time.Since(began).Round(time.Second))
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// moveTo sets the position directly, for progress that is not read through it.
func (p *progress) moveTo(done int64) {
	n := done - p.read
	p.read = done
	p.report(int(n))
}

// report shows the position; n is the number of new bytes or rows.
func (p *progress) report(n int) {
	switch now := time.Now(); {
	case p.bar != nil && p.work != nil:
		p.bar.Describe(p.what + p.rateText(now) + p.timeLeftText(now))
		p.bar.Add(n) // there is no place to report a terminal's error
	case p.bar != nil:
		p.bar.Describe(p.what + p.rateText(now))
		p.bar.Add(n)
	case now.Sub(p.lastReport) >= reportEvery:
		p.lastReport = now
		p.t.Notef("%s: %s%s%s", p.what, p.percentText(), p.rateText(now), p.timeLeftText(now))
	}
}

// setStatements sets the number of statements for the rate.
func (p *progress) setStatements(n uint64) { p.statements.Store(n) }

func (p *progress) percentText() string {
	if p.size <= 0 {
		return cli.FormatSize(p.read)
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
	return fmt.Sprintf(" %s statements, %s/s", cli.FormatCount(n), cli.FormatCount(uint64(float64(n)/seconds)))
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

// finish removes the bar.
func (p *progress) finish() {
	if p.bar != nil {
		p.bar.Finish()
	}
}
