package graph

import "koine/kg"

// factPart is a part of a statement that a test is about.
type factPart uint8

const (
	partSubject factPart = iota
	partPredicate
	partObject
	partGraph
)

// maxDecided bounds the ids for which a scan remembers what one test decided:
// of more only the last.
const maxDecided = 10_000

// decided is what a test decided about the ids that it met.
type decided struct {
	last  kg.ID
	holds bool           // for last
	known bool           // last is set
	all   map[kg.ID]bool // of the predicates or graphs, of which there are few
}

// decide tells whether the test holds for a part of the statement. Equal ids
// come in a row, and of predicates and graphs there are few: a term is decoded
// and tested only when its id is another one.
func (f *fact) decide(slot int, part factPart, test termTest) (bool, error) {
	if f.snapshot == nil { // not of a scan
		t, err := f.part(part)
		return err == nil && test(t), err
	}
	for slot >= len(f.decided) {
		f.decided = append(f.decided, decided{})
	}
	d, id := &f.decided[slot], f.id(part)
	if d.known && d.last == id {
		return d.holds, nil
	}
	holds, remembered := d.all[id]
	if !remembered {
		if err := f.snapshot.Err(); err != nil { // a test may take long
			return false, err
		}
		t, err := f.part(part)
		if err != nil {
			return false, err
		}
		holds = test(t)
		if few := part == partPredicate || part == partGraph; few && len(d.all) < maxDecided {
			if d.all == nil {
				d.all = map[kg.ID]bool{}
			}
			d.all[id] = holds
		}
	}
	d.last, d.holds, d.known = id, holds, true
	return holds, nil
}

func (f *fact) id(part factPart) kg.ID {
	switch part {
	case partSubject:
		return f.row.Subject
	case partPredicate:
		return f.row.Predicate
	case partObject:
		return f.row.Object
	}
	return f.row.Graph
}

func (f *fact) part(part factPart) (kg.Term, error) {
	switch part {
	case partSubject:
		return f.subject()
	case partPredicate:
		return f.predicate()
	case partObject:
		return f.object()
	}
	return f.graph()
}
