package shapes

import (
	"maps"

	"koine/kg"
)

// MaxDepth is the largest number of nested node validations by recursive shapes.
const MaxDepth = 10_000

// pair is a question: does the node conform to the shape.
type pair struct {
	shape *shape
	node  kg.Term
}

// fixpoint answers recursive questions. While a pair is being decided, it has the assumed
// answer.
//
// An answer other than the assumed one is final if assumptions can only move answers
// towards the assumed one (shape.settles). An assumed answer may depend on pairs that are
// still open; it is then pending and valid as long as they are. Dependencies are tracked
// as in Tarjan's algorithm for components: low is the number of the oldest pair that an
// answer depends on.
type fixpoint struct {
	assumed  bool
	next     int           // numbers increase and are never reused
	open     map[pair]int  // being decided, with their numbers
	settled  map[pair]bool // final, with the assumed answer
	opposite map[pair]bool // with the other answer
	pending  map[pair]int  // assumed as long as the open pairs are, with their numbers
	trail    []pair        // pending pairs in order
	low      int
}

func newFixpoint(assumed bool) *fixpoint {
	return &fixpoint{assumed: assumed, open: map[pair]int{}, settled: map[pair]bool{}, opposite: map[pair]bool{}, pending: map[pair]int{}}
}

// lookUp returns a known answer.
func (x *fixpoint) lookUp(p pair) (answer, ok bool) {
	n, found := x.open[p]
	if !found {
		n, found = x.pending[p]
	}
	if found {
		x.low = min(x.low, n)
		return x.assumed, true
	}
	if x.settled[p] {
		return x.assumed, true
	}
	return !x.assumed, x.opposite[p]
}

// decidePair answers a question with ask, once if it may be remembered.
func (x *fixpoint) decidePair(p pair, remember bool, ask func() (bool, error)) (bool, error) {
	if answer, ok := x.lookUp(p); ok {
		return answer, nil
	}
	if len(x.open) >= MaxDepth {
		return false, tooDeep()
	}
	n, outer, mark := x.enterPair(p)
	answer, err := ask()
	low := x.low
	delete(x.open, p)
	x.low = outer
	switch {
	case err != nil:
		return false, err
	case !remember:
		x.low = min(outer, low)
	case answer != x.assumed:
		x.opposite[p] = true
		x.forgetPending(mark)
	case low >= n:
		x.settled[p] = true
		for _, inside := range x.trail[mark:] {
			x.settled[inside] = true
		}
		x.forgetPending(mark)
	default:
		x.pending[p] = n
		x.trail = append(x.trail, p)
		x.low = min(outer, low)
	}
	return answer, nil
}

func (x *fixpoint) enterPair(p pair) (n, outer, mark int) {
	n, outer, mark = x.next, x.low, len(x.trail)
	x.next++
	x.open[p], x.low = n, n
	return n, outer, mark
}

// forgetPending removes the pending pairs from a mark on.
func (x *fixpoint) forgetPending(mark int) {
	for _, p := range x.trail[mark:] {
		delete(x.pending, p)
	}
	x.trail = x.trail[:mark]
}

// withOpen runs a closer examination of a pair with the unexpected answer, with the pair
// open: answers that may depend on this one are computed again.
func (x *fixpoint) withOpen(p pair, run func() error) error {
	if len(x.open) >= MaxDepth {
		return tooDeep()
	}
	before := x.opposite
	x.opposite = map[pair]bool{}
	_, outer, mark := x.enterPair(p)
	err := run()
	delete(x.open, p)
	x.low = outer
	x.forgetPending(mark)
	maps.Copy(before, x.opposite)
	x.opposite = before
	return err
}

func tooDeep() error {
	e := kg.Errorf(kg.CodeJudgeLimit, "validation by recursive shapes is nested more than %d nodes deep", MaxDepth)
	e.Limit, e.Hint = "shapes.depth", "Ask an administrator for shapes that are not recursive, or for a path such as sh:zeroOrMorePath instead."
	return e
}

// size returns the number of remembered answers.
func (x *fixpoint) size() int { return len(x.settled) + len(x.opposite) }
