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
	err := w.walkPattern(IDQuad(p))
	w.countReads()
	if w.err != nil {
		return w.err
	}
	return err
}

// walkPattern reads the quads from the cache of runs, if it has them, and else the keys. The pattern is
// that of the caller, with the graph's name.
func (w *keyWalk) walkPattern(p IDQuad) error {
	s := w.s
	s.scans.Add(1)
	key, name, touched, cached, err := s.runOf(p)
	if err != nil {
		return err
	}
	if cached {
		if r := s.runs.lookUp(key, touched); r != nil {
			return w.walkRun(key, r)
		}
		if r := s.runs.beginRun(key, name, touched); r != nil {
			return w.walkAndKeep(r)
		}
	}
	return w.walkKeys()
}

// walkAndKeep is walkKeys, and adds the run to the cache if it was read to its end.
func (w *keyWalk) walkAndKeep(r *cachedRun) (err error) {
	complete := false
	defer func() { w.s.runs.endRun(r, complete) }() // also if fn panics
	w.run = r
	err = w.walkKeys()
	complete = err == nil && w.err == nil && w.run != nil
	return err
}

// walkKeys reads the keys of the pattern.
func (w *keyWalk) walkKeys() error {
	w.order = keys.Choose(w.pattern)
	w.prefix, _ = w.order.AppendPrefix(nil, w.pattern)
	return w.s.kv.Walk(w.prefix, w.takeKey)
}

// WalksKeys reports whether WalkIDs reads keys and nothing else, for patterns without a literal
// object or with a predicate.
func WalksKeys(s *Snapshot) bool { return s.hasExactCounts() }

// keyWalk is a walk over the keys of one order. It admits them as a scanner does.
type keyWalk struct {
	scanner
	fn    func(q *IDQuad) error
	reads int64 // not counted yet
	// run are the quads so far of its graph, to be cached; nil: they are not. It does not
	// depend on the rights of the reader, which may change meanwhile.
	run *cachedRun
}

// takeKey passes a key on. It returns false to end the walk.
func (w *keyWalk) takeKey(key []byte) bool {
	q := &w.row.IDQuad
	if !w.order.ParseInto(q, key) {
		w.err = Errorf(CodeInternal, "a key of the index cannot be read: %x", key)
		return false
	}
	if w.run != nil && q.Graph == w.run.key.graph && !w.s.runs.appendQuad(w.run, q) {
		w.run = nil
	}
	if !keys.Matches(w.pattern, *q) || !w.admitsRow(q) {
		return w.err == nil && w.keepPace()
	}
	q.Graph = w.name
	return w.pass(q)
}

// keepPace is called for each quad.
func (w *keyWalk) keepPace() bool {
	if w.steps++; w.steps%index.PaceInterval == 0 {
		w.countReads()
		w.err = w.s.waitForPace()
	}
	return w.err == nil
}

// pass counts a quad as read and passes it on. It returns false to end the walk.
func (w *keyWalk) pass(q *IDQuad) bool {
	if !w.keepPace() {
		return false
	}
	if w.s.meter != nil {
		w.err = w.s.countRead()
	} else {
		w.reads++
	}
	if w.err == nil {
		w.err = w.fn(q)
	}
	return w.err == nil
}

// countReads counts the statements that were read since the last call.
func (w *keyWalk) countReads() {
	w.s.read.Add(w.reads)
	w.reads = 0
}
