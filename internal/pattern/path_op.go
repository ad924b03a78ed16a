package pattern

import (
	"iter"

	"koine/kg"
)

// pathOp follows a property path from the ends that the row binds.
type pathOp struct {
	m    *machine
	step *step
	next op

	known   knownEnds
	builder *builder
	node    kg.ID // that was asked for last, and whether it is one
	isNode  bool
}

// knownEnds are where the path led from the node that was followed last: rows
// that come one after the other often share it.
type knownEnds struct {
	from    kg.ID
	forward bool
	ends    []kg.ID
}

// maxKnownEnds bounds what is remembered; more is followed again.
const maxKnownEnds = 10_000

// follow yields where the path leads from a node, and remembers it once all of
// it was yielded.
func (k *knownEnds) follow(from kg.ID, forward bool, walk func(kg.ID) iter.Seq2[kg.ID, error]) iter.Seq2[kg.ID, error] {
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
			if len(k.ends) <= maxKnownEnds {
				k.ends = append(k.ends, end)
			}
			if !yield(end, err) || err != nil {
				return
			}
		}
		if len(k.ends) <= maxKnownEnds {
			k.from, k.forward = from, forward
		}
	}
}

func (o *pathOp) run() bool {
	o.step.runs++
	t := o.step.triple
	p, ok := t.pattern(o.m.row)
	if !ok {
		return true
	}
	if !o.m.look() {
		return false
	}
	before := t.path.StatementsRead()
	more := o.follow(t, p)
	read := int64(t.path.StatementsRead() - before)
	o.step.read += read
	if o.m.read += read; o.m.read > o.m.limits.Statements && o.m.err == nil {
		o.m.err = tooMuchRead("reads", "statements", o.m.limits.Statements)
	}
	return more && o.m.err == nil
}

func (o *pathOp) follow(t *boundTriple, p kg.IDPattern) bool {
	switch {
	case t.oneOf != nil:
		for _, to := range t.oneOf {
			p.Object = to
			if !o.ends(t, p) {
				return false
			}
		}
		return true
	case p.Subject.IsZero() && p.Object.IsZero():
		for pair, err := range t.path.Pairs() {
			if !o.hand(t, pair.From, pair.To, err) {
				return false
			}
		}
		return true
	}
	return o.ends(t, p)
}

// ends follows the path of which at least one end is bound.
func (o *pathOp) ends(t *boundTriple, p kg.IDPattern) bool {
	if !p.Subject.IsZero() && !p.Object.IsZero() {
		there, err := t.path.Connects(p.Subject, p.Object)
		if there && err == nil {
			there, err = o.relates(t, p.Subject, p.Object)
		}
		return err == nil && !there || o.hand(t, p.Subject, p.Object, err)
	}
	var ends iter.Seq2[kg.ID, error]
	forward := !p.Subject.IsZero()
	if forward {
		ends = o.known.follow(p.Subject, true, t.path.Forward)
	} else {
		ends = o.known.follow(p.Object, false, t.path.Backward)
	}
	for end, err := range ends {
		if start := p.Subject; err == nil {
			if !forward {
				start = p.Object
			}
			var related bool
			if related, err = o.relates(t, start, end); err == nil && !related {
				continue
			}
		}
		if forward {
			p.Object = end
		} else {
			p.Subject = end
		}
		if !o.hand(t, p.Subject, p.Object, err) {
			return false
		}
	}
	return true
}

// relates tells whether a path that leads from one end to the other may do so
// without a step: from a term that the pattern gives always, between variables
// where it is a node of the graph only (SPARQL 1.1, section 18.4). What is none
// has no step either.
func (o *pathOp) relates(t *boundTriple, start, end kg.ID) (bool, error) {
	if start != end || !t.of.Path.Nullable() || t.given[subjectPlace] || t.given[objectPlace] {
		return true, nil
	}
	if o.node == start {
		return o.isNode, nil
	}
	o.node, o.isNode = start, false
	graph := t.places[graphPlace].id
	var err error
	if start.IsResource() {
		o.isNode, err = o.builder.holds(kg.IDPattern{Subject: start, Graph: graph})
	}
	if err == nil && !o.isNode {
		o.isNode, err = o.builder.holds(kg.IDPattern{Object: start, Graph: graph})
	}
	return o.isNode, err
}

// hand binds both ends and goes on.
func (o *pathOp) hand(t *boundTriple, from, to kg.ID, err error) bool {
	if err != nil {
		o.m.err = err
		return false
	}
	s, p := t.places[subjectPlace].slot, t.places[objectPlace].slot
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
	more := !same || o.m.hand(o.step) && o.next.run()
	if p >= 0 && s != p {
		o.m.row[p] = was[1]
	}
	if s >= 0 {
		o.m.row[s] = was[0]
	}
	return more
}
