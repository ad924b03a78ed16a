package shapes

import (
	"maps"

	"koine/kg"
)

// MaxDepth bounds how many nodes may be under judgement in each other, by recursive
// shapes.
const MaxDepth = 10_000

// pair is a question about a node.
type pair struct {
	shape *shape
	node  kg.Term
}

// fixpoint answers questions that lead back to themselves: while a pair is under
// judgement, the answer to it is the assumed one.
//
// An answer that differs from the assumption is final where the answers can only
// become more assumed by it (shape.settles). One that is as assumed may rest on pairs
// that are still under judgement; then it is pending, and good as long as they are.
// They are found as Tarjan's algorithm finds components: low is the number of the
// oldest pair that something rests on.
type fixpoint struct {
	assumed bool
	next    int           // numbers are given in order, and never again
	open    map[pair]int  // under judgement, with their numbers
	settled map[pair]bool // as assumed, whatever else
	others  map[pair]bool // otherwise than assumed
	pending map[pair]int  // as assumed, while what is open stays so, with their numbers
	trail   []pair        // those pending, in order
	low     int
}

func newFixpoint(assumed bool) *fixpoint {
	return &fixpoint{assumed: assumed, open: map[pair]int{}, settled: map[pair]bool{}, others: map[pair]bool{}, pending: map[pair]int{}}
}

// known gives an answer that there is.
func (x *fixpoint) known(p pair) (answer, ok bool) {
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
	return !x.assumed, x.others[p]
}

// decide answers by ask, once where it may be remembered.
func (x *fixpoint) decide(p pair, remember bool, ask func() (bool, error)) (bool, error) {
	if answer, ok := x.known(p); ok {
		return answer, nil
	}
	if len(x.open) >= MaxDepth {
		return false, tooDeep()
	}
	n, outer, mark := x.enter(p)
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
		x.others[p] = true
		x.forget(mark)
	case low >= n:
		x.settled[p] = true
		for _, inside := range x.trail[mark:] {
			x.settled[inside] = true
		}
		x.forget(mark)
	default:
		x.pending[p] = n
		x.trail = append(x.trail, p)
		x.low = min(outer, low)
	}
	return answer, nil
}

func (x *fixpoint) enter(p pair) (n, outer, mark int) {
	n, outer, mark = x.next, x.low, len(x.trail)
	x.next++
	x.open[p], x.low = n, n
	return n, outer, mark
}

// forget drops what is pending from a mark on.
func (x *fixpoint) forget(mark int) {
	for _, p := range x.trail[mark:] {
		delete(x.pending, p)
	}
	x.trail = x.trail[:mark]
}

// during runs what looks closer at a pair that was answered otherwise than assumed,
// with the pair under judgement: other such answers, which may rest on this one, are
// asked for anew.
func (x *fixpoint) during(p pair, run func() error) error {
	if len(x.open) >= MaxDepth {
		return tooDeep()
	}
	before := x.others
	x.others = map[pair]bool{}
	_, outer, mark := x.enter(p)
	err := run()
	delete(x.open, p)
	x.low = outer
	x.forget(mark)
	maps.Copy(before, x.others)
	x.others = before
	return err
}

func tooDeep() error {
	e := kg.Errorf(kg.CodeJudgeLimit, "judging by recursive shapes would go more than %d nodes deep", MaxDepth)
	e.Limit, e.Hint = "shapes.depth", "Ask an administrator for shapes that are not recursive, or for a path such as sh:zeroOrMorePath instead."
	return e
}

// size is how much is remembered.
func (x *fixpoint) size() int { return len(x.settled) + len(x.others) }
