package query

import (
	"iter"
	"slices"

	"koine/kg"
)

// quantification is the number of a path's ends that must fit.
type quantification struct {
	quantifier Quantifier       // "" for any number
	count      func(int64) bool // nil for none
	most       int64            // count is constant for greater numbers
}

func newQuantification(f *PathFilter) quantification {
	q := quantification{count: testLong(f.Count)}
	switch {
	case f.Quantifier != nil:
		q.quantifier = *f.Quantifier
	case f.Count == nil:
		q.quantifier = Some
	}
	if c := f.Count; c != nil {
		for _, n := range []*int64{c.Eq, c.Ne, c.Lt, c.Lte, c.Gt, c.Gte} {
			if n != nil {
				q.most = max(q.most, *n)
			}
		}
		q.most = slices.Max(append(slices.Concat(c.In, c.Nin), q.most))
	}
	return q
}

// needsOne reports whether the condition requires an end that fits.
func (q quantification) needsOne() bool {
	return q.quantifier == Some || q.quantifier == Single || q.count != nil && !q.count(0)
}

// evaluate tests ends until the result is known.
func (q quantification) evaluate(ends iter.Seq2[kg.ID, error], fits func(kg.ID) (bool, error)) (bool, error) {
	n := int64(0)
	for id, err := range ends {
		if err != nil {
			return false, err
		}
		ok, err := fits(id)
		if err != nil {
			return false, err
		}
		switch {
		case !ok && q.quantifier == Every:
			return false, nil
		case !ok:
			continue
		}
		n++
		if q.isSettled(n) {
			break
		}
	}
	return q.allowsCount(n), nil
}

// isSettled reports whether the result for n fitting ends, at least one, is
// final.
func (q quantification) isSettled(n int64) bool {
	switch {
	case q.quantifier == None, q.quantifier == Single && n > 1:
		return true
	case q.quantifier == Every:
		return false // an end that does not fit may follow
	}
	return (q.quantifier != Single) && (q.count == nil || n > q.most)
}

// allowsCount reports whether n fitting ends meet the condition.
func (q quantification) allowsCount(n int64) bool {
	if q.count != nil && !q.count(n) {
		return false
	}
	switch q.quantifier {
	case Some:
		return n >= 1
	case None:
		return n == 0
	case Single:
		return n == 1
	}
	return true
}
