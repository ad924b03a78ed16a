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
	// WriteEvery is how often refusals are written, and synced, at most.
	WriteEvery = time.Second
	// MaxWaiting bounds the refusals that wait for that; those past it are in
	// memory only, and counted (Unwritten).
	MaxWaiting = 4096
)

// keeper writes a Trail's refusals down, behind the requests that they are of.
type keeper struct {
	trail   *Trail
	journal journal
	wake    chan struct{} // holds one
	stop    chan struct{}
	stopped chan struct{}
	failing bool // the file; only the writer uses it
	told    uint64

	// What follows is guarded by the Trail's mutex.
	waiting  []*Refusal // begun, and not written
	counting []*Refusal // written, and repeated since
	dropped  uint64
}

// Keep has the refusals outlast the process, in the file FileName of a directory,
// which nobody else writes to. It takes in those that are there, as older than all
// that the Trail has. A file that cannot be read or written is no error: it is
// logged, and tried again while the Trail is in use.
//
// A refusal is written within WriteEvery, and how often it was repeated when its
// time Together is over. stop writes what waits; after it nothing is kept. Keep is
// called once, before the Trail is in use.
func (t *Trail) Keep(dir string) (stop func()) {
	k := &keeper{trail: t, journal: journal{path: filepath.Join(dir, FileName), max: t.maxFile},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
	list, broken, err := k.journal.read()
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
		t.push(r)
	}
	t.keeper = k
	t.mu.Unlock()
	k.tell(k.renew(), 0)
	go k.run()
	return func() {
		close(k.stop)
		<-k.stopped
	}
}

// begun takes note of a new refusal. The Trail's mutex is held.
func (k *keeper) begun(r *Refusal) {
	if k == nil {
		return
	}
	if len(k.waiting) >= MaxWaiting {
		k.dropped++
	} else {
		k.waiting = append(k.waiting, r)
	}
	k.rouse()
}

func (k *keeper) rouse() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// repeated takes note of a repetition. The Trail's mutex is held.
func (k *keeper) repeated(r *Refusal) {
	if k == nil || r.noted {
		return
	}
	r.noted = true
	if len(k.counting) >= MaxWaiting {
		k.dropped++
		return
	}
	k.counting = append(k.counting, r)
	k.rouse()
}

func (k *keeper) run() {
	defer close(k.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-k.wake:
		case <-k.stop:
			k.write(true)
			k.journal.close()
			return
		}
		for more := true; more; { // not more often than each WriteEvery
			more = k.write(false)
			timer.Reset(WriteEvery)
			select {
			case <-timer.C:
			case <-k.stop:
				k.write(true)
				k.journal.close()
				return
			}
		}
	}
}

// write writes what waits, with all also what may still be repeated. It says
// whether something is left to write later.
func (k *keeper) write(all bool) (more bool) {
	lines, n, more := k.take(all)
	if n > 0 {
		full, err := k.journal.add(lines)
		if full {
			err = k.renew()
		}
		k.tell(err, n)
	}
	return more
}

// take takes what is to be written now.
func (k *keeper) take(all bool) (lines []byte, n int, more bool) {
	t := k.trail
	t.mu.Lock()
	var now []Refusal
	for _, r := range k.waiting {
		now = append(now, *r)
	}
	rest, began := k.counting[:0], t.clock()
	for _, r := range k.counting {
		if all || began.Sub(r.First) >= Together {
			now = append(now, *r)
		} else {
			rest = append(rest, r)
		}
	}
	clear(k.counting[len(rest):])
	k.waiting, k.counting = nil, rest
	more = len(rest) > 0
	t.mu.Unlock()
	var out bytes.Buffer
	for i := range now {
		out.Write(lineOf(&now[i]))
	}
	return out.Bytes(), len(now), more
}

// renew makes the file anew with what the Trail has.
func (k *keeper) renew() error {
	t := k.trail
	t.mu.Lock()
	list := make([]Refusal, 0, t.order.Len())
	for e := t.order.Back(); e != nil; e = e.Prev() {
		list = append(list, *e.Value.(*entry).refusal)
	}
	t.mu.Unlock()
	return k.journal.renew(list)
}

// tell counts n refusals that could not be written, and logs when that begins
// and ends. What a later renewal writes was counted all the same.
func (k *keeper) tell(err error, n int) {
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
	if k.failing = err != nil; err == nil && dropped > k.told {
		t.log.Warn("refusals came faster than they were written; some are only in memory", "refusals", dropped-k.told)
	}
	k.told = dropped
}

// Unwritten is how many refusals were not written to the file: too many at one
// time, or a file that cannot be written.
func (t *Trail) Unwritten() uint64 {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keeper == nil {
		return 0
	}
	return t.keeper.dropped
}
