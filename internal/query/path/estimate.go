package path

import (
	"math"

	"koine/kg"
)

// Defaults where the catalogue has no counts.
const (
	guessedFanOut = 4  // statements with one predicate and one subject, or object
	guessedRounds = 8  // of a repetition without an upper bound
	guessedNodes  = 16 // statements per node

	enough = 1e15 // larger estimates make no difference
)

// Estimate estimates how many pairs the path relates, in total or with the given ends
// fixed to one node each. It uses the catalogue's counts of predicates and reads
// nothing. Use it to order joins only.
func (b *Bound) Estimate(from, to bool) (uint64, error) {
	e := estimator{b}
	pairs, err := e.estimatePairs(b.path.root)
	if err != nil {
		return 0, err
	}
	switch fan := fanOut(b.path.root); {
	case from && to:
		pairs = min(pairs, 1)
	case from || to:
		pairs = min(pairs, fan)
	}
	return uint64(min(math.Ceil(pairs), math.MaxInt64)), nil
}

// fanOut estimates the number of ends of an expression per start.
func fanOut(e expression) float64 {
	switch e := e.(type) {
	case negated:
		return guessedNodes
	case inverse:
		return fanOut(e.of)
	case sequence:
		n := 1.0
		for _, part := range e {
			n = min(n*fanOut(part), enough)
		}
		return n
	case alternative:
		n := 0.0
		for _, part := range e {
			n += fanOut(part)
		}
		return n
	case repeat:
		return min(max(1, fanOut(e.of)*repeatRounds(e)), enough)
	}
	return guessedFanOut
}

func repeatRounds(r repeat) float64 {
	if r.most == many {
		return float64(r.least + guessedRounds)
	}
	return float64(r.most)
}

type estimator struct{ *Bound }

// estimatePairs estimates the number of pairs that an expression relates.
func (e estimator) estimatePairs(x expression) (float64, error) {
	switch x := x.(type) {
	case link:
		id, known, err := e.snapshot.ID(x.predicate)
		if err != nil || !known {
			return 0, err
		}
		n, err := e.countStatements(&boundLabel{one: id})
		return float64(n), err
	case negated:
		n, err := e.countStatements(&boundLabel{})
		return float64(n), err
	case inverse:
		return e.estimatePairs(x.of)
	case sequence:
		return e.estimateSequence(x)
	case alternative:
		sum := 0.0
		for _, part := range x {
			n, err := e.estimatePairs(part)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return min(sum, enough), nil
	}
	r := x.(repeat)
	n, err := e.estimatePairs(r.of)
	n *= repeatRounds(r)
	if err == nil && r.least == 0 {
		var all uint64
		all, err = e.countStatements(&boundLabel{})
		n += float64(all) / guessedNodes
	}
	return min(n, enough), err
}

// estimateSequence starts from the part with the fewest pairs and multiplies outwards.
func (e estimator) estimateSequence(list sequence) (float64, error) {
	least := math.Inf(1)
	for i, part := range list {
		n, err := e.estimatePairs(part)
		if err != nil {
			return 0, err
		}
		for k, other := range list {
			if k != i {
				n = min(n*fanOut(other), enough)
			}
		}
		least = min(least, n)
	}
	return least, nil
}

// countStatements returns the catalogue's number of statements with the label.
func (b *Bound) countStatements(l *boundLabel) (uint64, error) {
	if l.dead {
		return 0, nil
	}
	n, _, err := b.snapshot.Estimate(kg.IDPattern{Predicate: l.one, Graph: b.graph})
	return n, err
}
