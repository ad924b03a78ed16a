package kg

import (
	"bytes"
	"context"
	"errors"
	"time"

	"koine/kg/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
	"koine/kg/internal/wal"
)

// Sweep reads many patterns in one walk over the index, such as the statements of a list of
// subjects. With patterns in ascending order, close ones cost the keys between them instead of
// a seek each. It belongs to one goroutine and is closed before its snapshot.
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
	// spare is memory for the next prefix: the cursors hold the present one.
	spare []byte
	// target is memory for the key of To.
	target  []byte
	objects objectWalk
}

// Sweep begins a walk. It reads nothing before the first Seek.
func (s *Snapshot) Sweep() *Sweep {
	return &Sweep{sc: scanner{s: s, states: !s.view.AdmitsAll()}}
}

// SweepAsserted is Sweep with the assertions decoded in each row, so that Assertions needs no
// lookup. That is cheap for patterns with a subject, whose index holds them.
func (s *Snapshot) SweepAsserted() *Sweep {
	return &Sweep{sc: scanner{s: s, states: true}}
}

// Seek positions the walk before the quads that match the pattern, in the order of MatchIDs,
// behind after if it is set. After an error it does nothing.
func (w *Sweep) Seek(p IDPattern, after *IDQuad) {
	sc := &w.sc
	sc.objects = nil
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

// SeekObjects is Seek for the quads with some objects; nil are all. The walk steps over the quads
// between them, and does not count these as read. It returns all quads of the pattern where the
// index does not have them in the order of their objects: see HasObjectOrder.
func (w *Sweep) SeekObjects(p IDPattern, objects *Objects, after *IDQuad) {
	w.Seek(p, after)
	sc := &w.sc
	if objects == nil || !HasObjectOrder(p) || sc.err != nil {
		return
	}
	if w.objects.of != objects || w.objects.predicate != p.Predicate {
		if w.objects, sc.err = sc.s.walkObjects(objects, p.Predicate); sc.err != nil {
			return
		}
	}
	w.objects.left = w.objects.ranges
	sc.objects = &w.objects
	sc.skipToRange()
}

// HasObjectOrder reports whether the index has the quads of the pattern in the order of their
// objects: those of a predicate.
func HasObjectOrder(p IDPattern) bool {
	return p.Subject.IsZero() && !p.Predicate.IsZero() && p.Object.IsZero()
}

// objectWalk restricts a walk to some objects.
type objectWalk struct {
	of        *Objects
	predicate ID
	ranges    []IDRange
	test      func(Term) bool // of literals of the dictionary; nil: the ranges have no others

	left   []IDRange // not passed yet
	skip   bool      // the walk is before left
	tested ID        // the last literal that was tested, and the result
	fits   bool
}

// admitsObject reports whether the walk returns the quads with an object.
func (sc *scanner) admitsObject(object ID) bool {
	w := sc.objects
	if w == nil {
		return true
	}
	for len(w.left) > 0 && w.left[0].Last.Compare(object) < 0 {
		w.left = w.left[1:]
	}
	if w.skip = len(w.left) == 0 || object.Compare(w.left[0].First) < 0; w.skip {
		return false
	}
	if w.test == nil || object.Tag() != keys.TagLiteral {
		return true
	}
	if object != w.tested {
		var t Term
		if t, sc.err = sc.s.dict.Term(object); sc.err != nil {
			return false
		}
		w.tested, w.fits = object, w.test(t)
	}
	return w.fits
}

// skipToRange moves forward to the next range of objects, and ends the walk behind the last one.
func (sc *scanner) skipToRange() {
	w := sc.objects
	w.skip = false
	if sc.present == nil {
		return
	}
	if len(w.left) == 0 {
		sc.close()
		return
	}
	to := append(bytes.Clone(sc.prefix), w.left[0].First[:]...)
	seekForward(sc.present, to)
	if sc.past != nil {
		to[0] = byte(sc.order.Past())
		seekForward(sc.past, to)
	}
}

// reopen begins another walk, in the order that the pattern needs.
func (w *Sweep) reopen(p IDQuad, after *IDQuad) {
	sc := &w.sc
	sc.close()
	sc.pattern, sc.after, sc.predicates = p, after, nil
	sc.prefix, w.spare = nil, nil // either may be the scanner's room
	sc.startScan()
}

// To moves forward to the first quad at or behind q, which must match the pattern in the
// leading parts of its order; zero ids come first. It never goes back. It makes merging two
// walks cheap: it steps over near keys and seeks far ones.
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

// seekForward moves a cursor to the first key at or behind key, unless it is there already.
func seekForward(c index.Cursor, key []byte) {
	for range index.MaxStepsBeforeSeek {
		if !c.Valid() || bytes.Compare(c.Key(), key) >= 0 {
			return
		}
		c.Next()
	}
	c.Seek(key)
}

// Next moves to the next quad of the pattern. It returns false if there is none.
func (w *Sweep) Next() bool { return w.sc.next() }

// Row returns the current quad, valid until the next call of Next.
func (w *Sweep) Row() *Row { return &w.sc.row }

// Err returns the error that ended the walk, or nil.
func (w *Sweep) Err() error { return w.sc.err }

// Close ends the walk.
func (w *Sweep) Close() { w.sc.close() }

// Count returns the number of visible quads of the pattern. It uses the catalogue if it can,
// and counts the quads otherwise.
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

// checkDelay is how long the check of a large store waits, so that the program that opens it
// has the processors for its own start.
const checkDelay = 2 * time.Second

// waitForStart waits for checkDelay. It returns false if the store is closed before, or the checks
// are left out.
func (s *Store) waitForStart() bool {
	if s.options.SkipChecks {
		return false
	}
	timer := time.NewTimer(checkDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.stop:
		return false
	}
}

// scrubLog reads the whole log once in the background after opening. Opening reads the newest
// part only; without a scrub, old damage would surface in some later read. Damage makes the
// store read-only.
func (s *Store) scrubLog(ctx context.Context) error {
	defer close(s.scrubbed)
	if s.wal.UsedBytes() > scrubbedFirst && !s.waitForStart() {
		return nil
	}
	err := s.wal.Verify(ctx, nil)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, wal.ErrDamaged):
		_ = s.noteDamage(base.ErrLog(err)) // makes the store read-only; there is no caller to tell
	case err != nil:
		s.log.Warn("the log could not be read to its end", "error", err)
	}
	return nil
}
