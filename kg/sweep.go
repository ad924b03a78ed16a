package kg

import (
	"bytes"
	"context"
	"errors"
	"time"

	"koine/kg/internal/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
	"koine/kg/internal/wal"
)

// Sweep reads many patterns one after the other in one walk over the index:
// "of these subjects the statements". Sought in ascending order, patterns that
// lie close together cost the keys between them instead of a seek each. It
// belongs to one goroutine and must be closed before its snapshot.
//
//	sweep := snapshot.Sweep()
//	defer sweep.Close()
//	for _, id := range subjects {
//		for sweep.Seek(IDPattern{Subject: id}, nil); sweep.Next(); {
//			use(sweep.Row())
//		}
//	}
//	return sweep.Err()
type Sweep struct {
	sc scanner
	// spare is where the next prefix is made: the cursors hold on to this one.
	spare []byte
	// target is the key of To, made in the same place each time.
	target []byte
}

// Sweep begins a walk. Nothing is read before the first Seek.
func (s *Snapshot) Sweep() *Sweep {
	return &Sweep{sc: scanner{s: s, states: !s.view.AdmitsAll()}}
}

// SweepAsserted is a Sweep whose rows hold their assertions, so that asking for
// those costs no look-up. For subjects, whose index holds them, that is cheap.
func (s *Snapshot) SweepAsserted() *Sweep {
	return &Sweep{sc: scanner{s: s, states: true}}
}

// Seek goes to the quads that fit the pattern, which Next then gives as
// MatchIDs does: in the order of the index, behind after where that is set.
// After an error it does nothing.
func (w *Sweep) Seek(p IDPattern, after *IDQuad) {
	sc := &w.sc
	if sc.err != nil {
		return
	}
	q := IDQuad(p)
	var there bool
	if q.Graph, there = sc.s.toIndex(q.Graph); !there {
		sc.close()
		sc.predicates = nil
		return
	}
	if sc.present == nil || after != nil || keys.NeedsPredicates(q) || keys.Choose(q) != sc.order {
		w.reopen(q, after)
		return
	}
	sc.pattern, sc.predicates = q, nil
	prefix, _ := sc.order.AppendPrefix(w.spare[:0], q)
	w.spare, sc.prefix = sc.prefix, prefix
	sc.present.Move(prefix)
	if sc.past != nil {
		past := bytes.Clone(prefix)
		past[0] = byte(sc.order.Past())
		sc.past.Move(past)
	}
}

// reopen begins anew, in the order that the pattern needs.
func (w *Sweep) reopen(p IDQuad, after *IDQuad) {
	sc := &w.sc
	sc.close()
	sc.pattern, sc.after, sc.predicates = p, after, nil
	sc.prefix = nil // may still be held by what a cursor was made of
	sc.startScan()
}

// To goes on to the first quad at or behind this one, which must fit the pattern
// as far as that is in front in its order; zero ids come before all others. It
// never goes back. Merging two walks is cheap with it: what lies close is passed
// one by one, the rest by a seek.
func (w *Sweep) To(q IDQuad) {
	sc := &w.sc
	if keys.NeedsPredicates(sc.pattern) {
		for sc.err == nil && sc.present != nil && bytes.Compare(sc.prefix[1:1+keys.IDSize], q.Predicate[:]) < 0 {
			if !sc.nextPredicate() {
				sc.close()
			}
		}
	}
	if sc.err != nil || sc.present == nil {
		return
	}
	if graph, ok := sc.s.toIndex(q.Graph); ok {
		q.Graph = graph
	}
	w.target = sc.order.Append(w.target[:0], q)
	if !bytes.HasPrefix(w.target, sc.prefix) {
		return // of a predicate before this one
	}
	seekForward(sc.present, w.target)
	if sc.past != nil {
		w.target[0] = byte(sc.order.Past())
		seekForward(sc.past, w.target)
	}
}

// seekForward moves a cursor to the first key at or behind this one, unless it is
// there already.
func seekForward(c index.Cursor, key []byte) {
	for range index.MaxSteps {
		if !c.Valid() || bytes.Compare(c.Key(), key) >= 0 {
			return
		}
		c.Next()
	}
	c.Seek(key)
}

// Next moves to the next quad of the pattern, false when there is none.
func (w *Sweep) Next() bool { return w.sc.next() }

// Row is the quad that Next moved to. It is valid until the next one.
func (w *Sweep) Row() *Row { return &w.sc.row }

// Err is what ended the walk early, nil if nothing did.
func (w *Sweep) Err() error { return w.sc.err }

// Close ends the walk.
func (w *Sweep) Close() { w.sc.close() }

// Count is the number of quads that the view shows of the pattern. The
// catalogue answers where it knows; otherwise the walk goes over them.
func (w *Sweep) Count(p IDPattern) (n uint64, err error) {
	if w.sc.s.hasExactCounts() {
		if _, _, ok := w.sc.s.catalogueKey(p); ok {
			return w.sc.s.CountIDs(p)
		}
	}
	for w.Seek(p, nil); w.Next(); {
		n++
	}
	return n, w.Err()
}

// Opening waits for the log to be read through, so that it is known to be whole, or to be
// damaged, before the first update: for at most scrubWait, and not where the log is larger
// than scrubbedFirst.
const (
	scrubWait     = time.Second
	scrubbedFirst = 16 << 20
)

func (s *Store) awaitScrub() {
	if s.wal.UsedBytes() > scrubbedFirst {
		return
	}
	timeout := time.NewTimer(scrubWait)
	defer timeout.Stop()
	select {
	case <-s.scrubbed:
	case <-timeout.C:
	}
}

// checkDelay is how long a large store is not checked: whoever opens it has the processors
// for what has to be done before it answers.
const checkDelay = 2 * time.Second

// startIsOver waits for checkDelay; false when the store is closed before.
func (s *Store) startIsOver() bool {
	timer := time.NewTimer(checkDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.stop:
		return false
	}
}

// scrubLog reads the log once beside everything else when the store has been
// opened: opening itself reads only the newest part, and old damage would
// otherwise be noticed by whoever comes across it. Damage ends updates.
func (s *Store) scrubLog() {
	defer s.stopped.Done()
	defer close(s.scrubbed)
	if s.wal.UsedBytes() > scrubbedFirst && !s.startIsOver() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.wal.Verify(ctx, nil) }()
	var err error
	select {
	case err = <-done:
	case <-s.stop:
		cancel()
		<-done
		return
	}
	if errors.Is(err, wal.ErrDamaged) {
		_ = s.noteDamage(base.ErrLog(err)) // it refuses updates, which is all that there is to do
	} else if err != nil {
		s.log.Warn("the log could not be read through", "error", err)
	}
}
