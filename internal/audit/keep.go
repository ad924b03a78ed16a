package audit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// Bounds of what is on its way to the file.
const (
	// WriteInterval is how often refusals are written, and synced, at most.
	WriteInterval = time.Second
	// MaxUnwritten bounds the refusals that wait for that; those past it are in
	// memory only, and counted (Unwritten).
	MaxUnwritten = 4096
)

// persister writes a Trail's refusals down, behind the requests that they are of.
type persister struct {
	trail         *Trail
	journal       journal
	wake          chan struct{} // holds one
	stop          chan struct{}
	stopped       chan struct{}
	failing       bool // the file; only the writer uses it
	reportedDrops uint64

	// What follows is guarded by the Trail's mutex.
	unwritten     []*Refusal // begun, and not written
	repeatedSince []*Refusal // written, and repeated since
	dropped       uint64
}

// Persist has the refusals outlast the process, in the file FileName of a directory,
// which nobody else writes to. It takes in those that are there, as older than all
// that the Trail has. A file that cannot be read or written is no error: it is
// logged, and tried again while the Trail is in use.
//
// A refusal is written within WriteEvery, and how often it was repeated when its
// time Together is over. stop writes what waits; after it nothing is kept. Keep is
// called once, before the Trail is in use.
func (t *Trail) Persist(dir string) (stop func()) {
	k := &persister{trail: t, journal: journal{path: filepath.Join(dir, FileName), max: t.maxFile},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
	list, broken, err := k.journal.readAll()
	if err != nil {
		aside := k.journal.path + ".unreadable"
		t.log.Warn("the refusals of before cannot be read, and are put aside", "file", aside, "error", errors.Join(err, os.Rename(k.journal.path, aside)))
	}
	if broken > 0 {
		t.log.Warn("lines in the file of refusals cannot be read, and are left out", "lines", broken)
	}
	t.mu.Lock()
	for _, r := range list {
		t.last = max(t.last, r.number)
		t.insert(r)
	}
	t.persister = k
	t.mu.Unlock()
	k.reportResult(k.rewriteJournal(), 0)
	go k.run()
	return func() {
		close(k.stop)
		<-k.stopped
	}
}

// enqueueNew takes note of a new refusal. The Trail's mutex is held.
func (k *persister) enqueueNew(r *Refusal) {
	if k == nil {
		return
	}
	if len(k.unwritten) >= MaxUnwritten {
		k.dropped++
	} else {
		k.unwritten = append(k.unwritten, r)
	}
	k.wakeWriter()
}

func (k *persister) wakeWriter() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// enqueueRepeated takes note of a repetition. The Trail's mutex is held.
func (k *persister) enqueueRepeated(r *Refusal) {
	if k == nil || r.queued {
		return
	}
	r.queued = true
	if len(k.repeatedSince) >= MaxUnwritten {
		k.dropped++
		return
	}
	k.repeatedSince = append(k.repeatedSince, r)
	k.wakeWriter()
}

func (k *persister) run() {
	defer close(k.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-k.wake:
		case <-k.stop:
			k.writePending(true)
			k.journal.close()
			return
		}
		for more := true; more; { // not more often than each WriteEvery
			more = k.writePending(false)
			timer.Reset(WriteInterval)
			select {
			case <-timer.C:
			case <-k.stop:
				k.writePending(true)
				k.journal.close()
				return
			}
		}
	}
}

// writePending writes what waits, with all also what may still be repeated. It says
// whether something is left to write later.
func (k *persister) writePending(all bool) (more bool) {
	lines, n, more := k.takePending(all)
	if n > 0 {
		full, err := k.journal.appendLines(lines)
		if full {
			err = k.rewriteJournal()
		}
		k.reportResult(err, n)
	}
	return more
}

// takePending takes what is to be written now.
func (k *persister) takePending(all bool) (lines []byte, n int, more bool) {
	t := k.trail
	t.mu.Lock()
	var now []Refusal
	for _, r := range k.unwritten {
		now = append(now, *r)
	}
	rest, began := k.repeatedSince[:0], t.clock()
	for _, r := range k.repeatedSince {
		if all || began.Sub(r.First) >= RepeatWindow {
			now = append(now, *r)
		} else {
			rest = append(rest, r)
		}
	}
	clear(k.repeatedSince[len(rest):])
	k.unwritten, k.repeatedSince = nil, rest
	more = len(rest) > 0
	t.mu.Unlock()
	var out bytes.Buffer
	for i := range now {
		out.Write(lineOf(&now[i]))
	}
	return out.Bytes(), len(now), more
}

// rewriteJournal makes the file anew with what the Trail has.
func (k *persister) rewriteJournal() error {
	t := k.trail
	t.mu.Lock()
	list := make([]Refusal, 0, t.order.Len())
	for e := t.order.Back(); e != nil; e = e.Prev() {
		list = append(list, *e.Value.(*entry).refusal)
	}
	t.mu.Unlock()
	return k.journal.rewriteFile(list)
}

// reportResult counts n refusals that could not be written, and logs when that begins
// and ends. What a later renewal writes was counted all the same.
func (k *persister) reportResult(err error, n int) {
	t := k.trail
	t.mu.Lock()
	if err != nil {
		k.dropped += uint64(n)
	}
	dropped := k.dropped
	t.mu.Unlock()
	switch {
	case err != nil && !k.failing:
		t.log.Warn("refusals are not written to the data directory, only to this log", "error", err)
	case err == nil && k.failing:
		t.log.Info("refusals are written to the data directory again")
	}
	if k.failing = err != nil; err == nil && dropped > k.reportedDrops {
		t.log.Warn("refusals came faster than they were written; some are only in memory", "refusals", dropped-k.reportedDrops)
	}
	k.reportedDrops = dropped
}

// Unwritten is how many refusals were not written to the file: too many at one
// time, or a file that cannot be written.
func (t *Trail) Unwritten() uint64 {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.persister == nil {
		return 0
	}
	return t.persister.dropped
}
