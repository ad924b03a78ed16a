package pattern

import "koine/kg"

// rangeWalk leads a sweep over the statements of a pattern through ranges of objects, by which the
// pattern's index is ordered.
type rangeWalk struct {
	sweep   *kg.Sweep
	pattern kg.IDPattern
	left    []kg.IDRange
}

// seek moves the sweep to the first range.
func (w *rangeWalk) seek() {
	w.sweep.Seek(w.pattern, nil)
	w.skip()
}

// skip moves the sweep forward to the next range.
func (w *rangeWalk) skip() {
	if len(w.left) > 0 {
		to := kg.IDQuad(w.pattern)
		to.Object = w.left[0].First
		w.sweep.To(to)
	}
}

// enter reports whether an object that the sweep has reached is in a range. If it is not, the
// sweep moves to the next range. more is false behind the last.
func (w *rangeWalk) enter(object kg.ID) (inside, more bool) {
	for len(w.left) > 0 && w.left[0].Last.Compare(object) < 0 {
		w.left = w.left[1:]
	}
	switch {
	case len(w.left) == 0:
		return false, false
	case w.left[0].First.Compare(object) <= 0:
		return true, true
	}
	w.skip()
	return false, true
}
