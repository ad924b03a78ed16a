package pattern

import "koine/kg"

// Sample sizes, and the defaults where samples give no answer.
const (
	countedRows   = 64   // statements counted for a pattern with a term
	rangedRows    = 1024 // statements counted in ranges of objects
	rangedShare   = 4    // part of a predicate's statements where there are more in its ranges
	sampledRows   = 32   // statements read of a predicate
	sampledNodes  = 4    // subjects examined among those
	sampledFanOut = 16   // statements read of each such subject

	guessedFanOut     = 4  // statements per node, for any predicate
	guessedPredicates = 16 // selectivity of a bound predicate
	guessedGraphs     = 4
	seekCost          = 1.0
	rowCost           = 0.05 // cost of stepping to a row
)

// estimator estimates the number of rows of each step from the catalogue's counts
// and a small sample, which it reads once per predicate and per triple.
type estimator struct {
	snapshot *kg.Snapshot
	constant map[*boundTriple]float64 // rows that match the triple's own terms
	fanOuts  map[kg.ID]fanOut
	read     int64
	byTerms  *kg.Sweep // scans of patterns with a term
	first    *kg.Sweep // scans of the first statements of a predicate
}

// fanOut is the average number of statements of a predicate with the same subject,
// and with the same object.
type fanOut struct{ ofSubject, ofObject float64 }

func newEstimator(s *kg.Snapshot) *estimator {
	return &estimator{snapshot: s, constant: map[*boundTriple]float64{}, fanOuts: map[kg.ID]fanOut{}}
}

// estimateTriple estimates the rows of the triple per input row in which the given slots
// are bound, and the cost of finding them.
func (e *estimator) estimateTriple(t *boundTriple, bound *slots) (rows, cost float64, err error) {
	if t.dead {
		return 0, 0, nil
	}
	var known [4]bool
	for i, p := range t.nodes {
		known[i] = p.slot >= 0 && bound.has(p.slot)
	}
	if t.path != nil {
		return e.estimatePath(t, known)
	}
	if rows, err = e.countTerms(t); err != nil {
		return 0, 0, err
	}
	predicate, total := t.nodes[predicatePos].id, rows
	if known[predicatePos] {
		rows /= guessedPredicates
	}
	if known[graphPos] {
		rows /= guessedGraphs
	}
	if known[subjectPos] || known[objectPos] {
		f := fanOut{guessedFanOut, guessedFanOut}
		if !predicate.IsZero() {
			if f, err = e.fanOf(predicate); err != nil {
				return 0, 0, err
			}
		}
		if known[subjectPos] {
			rows = min(rows, max(rows/max(total, 1), 1e-3)*f.ofSubject)
			if known[objectPos] {
				rows = min(rows, 0.5)
			}
		} else {
			rows = min(rows, f.ofObject)
		}
		if known[subjectPos] && t.hasObject() || known[objectPos] && !t.nodes[subjectPos].id.IsZero() {
			rows = min(rows, 1, total/10)
		}
	}
	return rows, seekCost*float64(max(1, len(t.oneOf))) + rows*rowCost, nil
}

func (t *boundTriple) hasObject() bool { return t.oneOf != nil || !t.nodes[objectPos].id.IsZero() }

// estimatePath estimates a property path.
func (e *estimator) estimatePath(t *boundTriple, known [4]bool) (rows, cost float64, err error) {
	given := func(at int) bool { return known[at] || t.nodes[at].slot < 0 }
	n, err := t.path.Estimate(given(subjectPos), given(objectPos))
	rows = float64(n)
	if given(subjectPos) && given(objectPos) {
		return min(rows, 1), guessedFanOut * guessedFanOut * seekCost, err
	}
	return rows, seekCost * (guessedFanOut + rows), err
}

// countTerms returns the number of statements that match the triple's terms: from the
// catalogue if it knows, else by counting up to countedRows of them.
func (e *estimator) countTerms(t *boundTriple) (float64, error) {
	if n, ok := e.constant[t]; ok {
		return n, nil
	}
	p := kg.IDPattern{Subject: t.nodes[subjectPos].id, Predicate: t.nodes[predicatePos].id, Object: t.nodes[objectPos].id, Graph: t.nodes[graphPos].id}
	if t.oneOf != nil {
		p.Object = t.oneOf[0]
	}
	most, known, err := e.snapshot.Estimate(p)
	n := float64(most)
	if err == nil && t.selectsObjects(p) {
		if n, err = e.countObjects(p, t.objects, n); err == nil {
			e.constant[t] = n
		}
		return n, err
	}
	if err == nil && !known {
		var counted int
		if counted, err = e.countMatches(p, countedRows); counted < countedRows {
			n = float64(counted)
		} else {
			n = max(countedRows, min(n, countedRows*countedRows))
		}
	}
	n *= float64(max(1, len(t.oneOf)))
	e.constant[t] = n
	return n, err
}

// countObjects counts up to rangedRows of the statements with some objects. If there
// are more, they are taken to be a part of all.
func (e *estimator) countObjects(p kg.IDPattern, objects *kg.Objects, all float64) (float64, error) {
	if e.byTerms == nil {
		e.byTerms = e.snapshot.Sweep()
	}
	n := 0
	for e.byTerms.SeekObjects(p, objects, nil); n < rangedRows && e.byTerms.Next(); n++ {
		e.read++
	}
	if n < rangedRows {
		return float64(n), e.byTerms.Err()
	}
	return max(rangedRows, all/rangedShare), e.byTerms.Err()
}

func (e *estimator) countMatches(p kg.IDPattern, most int) (n int, err error) {
	if e.byTerms == nil {
		e.byTerms = e.snapshot.Sweep()
	}
	for e.byTerms.Seek(p, nil); n < most && e.byTerms.Next(); n++ {
		e.read++
	}
	return n, e.byTerms.Err()
}

// close closes the sweeps. The estimator can still be used.
func (e *estimator) close() {
	for _, w := range [...]**kg.Sweep{&e.byTerms, &e.first} {
		if *w != nil {
			(*w).Close()
			*w = nil
		}
	}
}

// fanOf samples the first statements of a predicate in object order, and the number
// of statements of the first subjects.
func (e *estimator) fanOf(predicate kg.ID) (fanOut, error) {
	if f, ok := e.fanOuts[predicate]; ok {
		return f, nil
	}
	var rows, objects int
	var last kg.ID
	var subjects []kg.ID
	if e.first == nil {
		e.first = e.snapshot.Sweep()
	}
	for e.first.Seek(kg.IDPattern{Predicate: predicate}, nil); rows < sampledRows && e.first.Next(); rows++ {
		row := e.first.Row()
		e.read++
		if row.Object != last {
			last = row.Object
			objects++
		}
		if k := len(subjects); k < sampledNodes && (k == 0 || subjects[k-1] != row.Subject) {
			subjects = append(subjects, row.Subject)
		}
	}
	if err := e.first.Err(); err != nil {
		return fanOut{}, err
	}
	f := fanOut{1, 1}
	if rows > 0 {
		f.ofObject = float64(rows) / float64(objects)
	}
	if objects == 1 && rows == sampledRows { // a very common value
		n, _, err := e.snapshot.Estimate(kg.IDPattern{Predicate: predicate})
		if err != nil {
			return f, err
		}
		f.ofObject = max(sampledRows, float64(n)/sampledRows)
	}
	// A subject with k statements is sampled k times as often as one with one.
	var shares float64
	for _, s := range subjects {
		n, err := e.countMatches(kg.IDPattern{Subject: s, Predicate: predicate}, sampledFanOut)
		if err != nil {
			return f, err
		}
		shares += 1 / float64(max(1, n))
	}
	if len(subjects) > 0 {
		f.ofSubject = float64(len(subjects)) / shares
	}
	e.fanOuts[predicate] = f
	return f, nil
}

// estimateGroup estimates the rows of a group per input row, with its cheapest elements
// first.
func (e *estimator) estimateGroup(s *scope, bound slots) (rows, cost float64, err error) {
	rows = 1
	left := s.joinElements()
	for len(left) > 0 {
		best, bestRows, bestCost := -1, 0.0, 0.0
		for i, x := range left {
			r, c, err := e.estimateElement(x, &bound)
			if err != nil {
				return 0, 0, err
			}
			if best < 0 || c+r < bestCost+bestRows {
				best, bestRows, bestCost = i, r, c
			}
		}
		cost += rows * bestCost
		rows *= bestRows
		bound.addAll(&left[best].binds)
		left[best] = left[len(left)-1]
		left = left[:len(left)-1]
	}
	return rows, cost, nil
}

// estimateElement estimates one triple, text or union.
func (e *estimator) estimateElement(x element, bound *slots) (rows, cost float64, err error) {
	if x.triple != nil {
		return e.estimateTriple(x.triple, bound)
	}
	if x.text != nil {
		rows, cost = e.estimateText(x.text, bound)
		return rows, cost, nil
	}
	for _, alternative := range x.union {
		r, c, err := e.estimateGroup(alternative, *bound)
		if err != nil {
			return 0, 0, err
		}
		rows, cost = rows+r, cost+c
	}
	return rows, cost, nil
}
