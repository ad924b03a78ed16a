package pattern

import (
	"iter"

	"koine/kg"
)

// pathOp follows a property path from the bound ends.
type pathOp struct {
	m    *execution
	step *step
	next op

	cache   endsCache
	builder *builder
	node    kg.ID // cached result of relates for the last node
	isNode  bool
}

// endsCache caches the ends of the path from the node that was followed last:
// successive rows often share it.
type endsCache struct {
	from    kg.ID
	forward bool
	ends    []kg.ID
}

// maxCachedEnds is the largest number of cached ends.
const maxCachedEnds = 10_000

// followCached yields the ends of the path from a node. It caches them once all were
// yielded.
func (k *endsCache) followCached(from kg.ID, forward bool, walk func(kg.ID) iter.Seq2[kg.ID, error]) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		if k.from == from && k.forward == forward {
			for _, end := range k.ends {
				if !yield(end, nil) {
					return
				}
			}
			return
		}
		k.from, k.ends = kg.ID{}, k.ends[:0]
		for end, err := range walk(from) {
			if len(k.ends) <= maxCachedEnds {
				k.ends = append(k.ends, end)
			}
			if !yield(end, err) || err != nil {
				return
			}
		}
		if len(k.ends) <= maxCachedEnds {
			k.from, k.forward = from, forward
		}
	}
}

func (o *pathOp) processRow() bool {
	o.step.runs++
	t := o.step.triple
	p, ok := t.patternFor(o.m.row)
	if !ok {
		return true
	}
	if !o.m.countSeek() {
		return false
	}
	before := t.path.StatementsRead()
	more := o.followPath(t, p)
	read := int64(t.path.StatementsRead() - before)
	o.step.read += read
	if o.m.read += read; o.m.read > o.m.limits.Statements && o.m.err == nil {
		o.m.err = tooMuchRead("reads", "statements", o.m.limits.Statements)
	}
	return more && o.m.err == nil
}

func (o *pathOp) followPath(t *boundTriple, p kg.IDPattern) bool {
	switch {
	case t.oneOf != nil:
		for _, to := range t.oneOf {
			p.Object = to
			if !o.followBoundEnds(t, p) {
				return false
			}
		}
		return true
	case p.Subject.IsZero() && p.Object.IsZero():
		for pair, err := range t.path.Pairs() {
			if !o.emitPair(t, pair.From, pair.To, err) {
				return false
			}
		}
		return true
	}
	return o.followBoundEnds(t, p)
}

// followBoundEnds follows a path with at least one bound end.
func (o *pathOp) followBoundEnds(t *boundTriple, p kg.IDPattern) bool {
	if !p.Subject.IsZero() && !p.Object.IsZero() {
		there, err := t.path.Connects(p.Subject, p.Object)
		if there && err == nil {
			there, err = o.allowsZeroLength(t, p.Subject, p.Object)
		}
		return err == nil && !there || o.emitPair(t, p.Subject, p.Object, err)
	}
	var ends iter.Seq2[kg.ID, error]
	forward := !p.Subject.IsZero()
	if forward {
		ends = o.cache.followCached(p.Subject, true, t.path.Forward)
	} else {
		ends = o.cache.followCached(p.Object, false, t.path.Backward)
	}
	for end, err := range ends {
		if start := p.Subject; err == nil {
			if !forward {
				start = p.Object
			}
			var related bool
			if related, err = o.allowsZeroLength(t, start, end); err == nil && !related {
				continue
			}
		}
		if forward {
			p.Object = end
		} else {
			p.Subject = end
		}
		if !o.emitPair(t, p.Subject, p.Object, err) {
			return false
		}
	}
	return true
}

// allowsZeroLength reports whether a path that connects the two ends may have length zero
// there. From a term of the pattern it always may; between variables, only at a
// node of the graph (SPARQL 1.1, section 18.4). A term that is not a node has no
// longer path to itself either.
func (o *pathOp) allowsZeroLength(t *boundTriple, start, end kg.ID) (bool, error) {
	if start != end || !t.source.Path.Nullable() || t.given[subjectPos] || t.given[objectPos] {
		return true, nil
	}
	if o.node == start {
		return o.isNode, nil
	}
	o.node, o.isNode = start, false
	graph := t.nodes[graphPos].id
	var err error
	if start.IsResource() {
		o.isNode, err = o.builder.hasMatch(kg.IDPattern{Subject: start, Graph: graph})
	}
	if err == nil && !o.isNode {
		o.isNode, err = o.builder.hasMatch(kg.IDPattern{Object: start, Graph: graph})
	}
	return o.isNode, err
}

// emitPair binds both ends and passes the row on.
func (o *pathOp) emitPair(t *boundTriple, from, to kg.ID, err error) bool {
	if err != nil {
		o.m.err = err
		return false
	}
	s, p := t.nodes[subjectPos].slot, t.nodes[objectPos].slot
	var was [2]kg.ID
	if s >= 0 {
		was[0] = o.m.row[s]
		o.m.row[s] = from
	}
	same := true
	if p >= 0 {
		if s == p {
			same = from == to
		} else {
			was[1] = o.m.row[p]
			o.m.row[p] = to
		}
	}
	more := !same || o.m.countRow(o.step) && o.next.processRow()
	if p >= 0 && s != p {
		o.m.row[p] = was[1]
	}
	if s >= 0 {
		o.m.row[s] = was[0]
	}
	return more
}
