package kg

import (
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// WalkIDs calls fn for each visible quad that matches the pattern, in the order of MatchIDs,
// until it fails. The quad is valid during the call. It is MatchIDs for patterns with very many
// quads: of the newest revision, and under a view that admits all assertions, it reads keys and
// nothing else.
func WalkIDs(s *Snapshot, p IDPattern, fn func(q *IDQuad) error) error {
	if !WalksKeys(s) || keys.NeedsPredicates(IDQuad(p)) {
		sc := newScanner(s, IDQuad(p), nil, !s.view.AdmitsAll())
		defer sc.close()
		for sc.next() {
			if err := fn(&sc.row.IDQuad); err != nil {
				return err
			}
		}
		return sc.err
	}
	w := keyWalk{scanner: scanner{s: s, pattern: IDQuad(p)}, fn: fn}
	if !w.resolveGenerations() {
		return w.err
	}
	w.order = keys.Choose(w.pattern)
	w.prefix, _ = w.order.AppendPrefix(nil, w.pattern)
	s.scans.Add(1)
	err := s.kv.Walk(w.prefix, w.takeKey)
	w.countReads()
	if w.err != nil {
		return w.err
	}
	return err
}

// WalksKeys reports whether WalkIDs reads keys and nothing else, for patterns without a literal
// object or with a predicate.
func WalksKeys(s *Snapshot) bool { return s.hasExactCounts() }

// keyWalk is a walk over the keys of one order. It admits them as a scanner does.
type keyWalk struct {
	scanner
	fn    func(q *IDQuad) error
	reads int64 // not counted yet
}

// takeKey passes a key on. It returns false to end the walk.
func (w *keyWalk) takeKey(key []byte) bool {
	if w.steps++; w.steps%index.PaceInterval == 0 {
		w.countReads()
		if w.err = w.s.waitForPace(); w.err != nil {
			return false
		}
	}
	q := &w.row.IDQuad
	if !w.order.ParseInto(q, key) {
		w.err = Errorf(CodeInternal, "a key of the index cannot be read: %x", key)
		return false
	}
	if !keys.Matches(w.pattern, *q) || !w.admitsRow(q) {
		return w.err == nil
	}
	if w.s.meter != nil {
		w.err = w.s.countRead()
	} else {
		w.reads++
	}
	if w.err == nil {
		q.Graph = w.name
		w.err = w.fn(q)
	}
	return w.err == nil
}

// countReads counts the statements that were read since the last call.
func (w *keyWalk) countReads() {
	w.s.read.Add(w.reads)
	w.reads = 0
}
