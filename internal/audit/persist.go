package audit

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"koine/internal/jobs"
)

// Limits of unwritten refusals.
const (
	// WriteInterval is the minimum time between two writes, each with a sync.
	WriteInterval = time.Second
	// MaxUnwritten is the maximum number of unwritten refusals; others are kept only in
	// memory, and counted (Unwritten).
	MaxUnwritten = 4096
)

// persister writes a Trail's refusals to the journal asynchronously.
type persister struct {
	trail         *Trail
	journal       journal
	wake          chan struct{} // capacity 1
	failing       bool          // the last write failed; only the writer uses it
	reportedDrops uint64

	// The following are guarded by the Trail's mutex.
	unwritten     []*Refusal // new and not yet written
	repeatedSince []*Refusal // written, and repeated since then
	dropped       uint64
}

// Persist keeps the refusals in the file FileName of a directory, which must have no
// other writer. It first adds the refusals of the file to the Trail as its oldest ones.
// A file that cannot be read or written is not an error: it is logged, and writing is
// retried while the Trail is in use.
//
// A refusal is written within WriteInterval, and its number of repetitions at the end
// of its RepeatWindow. stop writes all pending refusals and ends persistence. Persist
// must be called once, before the Trail is in use.
func (t *Trail) Persist(dir string) (stop func()) {
	k := &persister{trail: t, journal: journal{path: filepath.Join(dir, FileName), max: t.maxFile},
		wake: make(chan struct{}, 1)}
	list, broken, err := k.journal.readAll()
	if err != nil {
		unreadable := k.journal.path + ".unreadable"
		t.log.Warn("cannot read the file of refusals; renamed it", "file", unreadable, "error", errors.Join(err, os.Rename(k.journal.path, unreadable)))
	}
	if broken > 0 {
		t.log.Warn("skipped invalid lines in the file of refusals", "lines", broken)
	}
	t.mu.Lock()
	for _, r := range list {
		t.last = max(t.last, r.number)
		t.insertRefusal(r)
	}
	t.persister = k
	t.mu.Unlock()
	k.reportResult(k.rewriteJournal(), 0)
	background := jobs.NewGroup(t.log)
	background.Start("write refusals", k.run)
	return background.Stop
}

// enqueueNew queues a new refusal. The caller holds the Trail's mutex.
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

// enqueueRepeated queues a repetition. The caller holds the Trail's mutex.
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

// run writes queued refusals, at most once per WriteInterval, until ctx is done.
func (k *persister) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer k.journal.close()
	defer k.writePending(true)
	for {
		select {
		case <-k.wake:
		case <-ctx.Done():
			return nil
		}
		for more := true; more; { // at most once per WriteInterval
			more = k.writePending(false)
			timer.Reset(WriteInterval)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// writePending writes the queued refusals; with all, also those that may still be
// repeated. It reports whether refusals remain to be written later.
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

// takePending dequeues the refusals to write now.
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

// rewriteJournal rewrites the file with the content of the Trail.
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

// reportResult counts n refusals that could not be written, and logs the beginning and
// the end of an outage. Refusals that a later rewrite writes stay counted.
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
		t.log.Warn("cannot write refusals to the data directory; they are only in this log", "error", err)
	case err == nil && k.failing:
		t.log.Info("refusals are written to the data directory again")
	}
	if k.failing = err != nil; err == nil && dropped > k.reportedDrops {
		t.log.Warn("refusals arrived faster than they could be written; some are only in memory", "refusals", dropped-k.reportedDrops)
	}
	k.reportedDrops = dropped
}

// Unwritten returns the number of refusals that were not written to the file, because
// there were too many at a time or the file could not be written.
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
