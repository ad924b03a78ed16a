package query

import "koine/kg"

// maxCachedDecisions bounds the ids for which a scan caches the result of one test.
// Beyond it only the last id is cached.
const maxCachedDecisions = 10_000

// decisionCache caches the results of a test by id.
type decisionCache struct {
	last  kg.ID
	holds bool           // for last
	known bool           // last is set
	all   map[kg.ID]bool // for predicates and graphs, of which there are few
}

// decideCached reports whether the test holds for a part of the statement. Equal ids
// are adjacent in a scan, and predicates and graphs are few: a term is decoded
// and tested only if its id is not cached.
func (f *testedStatement) decideCached(slot int, part statementPart, test termTest) (bool, error) {
	if f.snapshot == nil { // not part of a scan
		t, err := f.term(part)
		return err == nil && test(t), err
	}
	for slot >= len(f.decided) {
		f.decided = append(f.decided, decisionCache{})
	}
	d := &f.decided[slot]
	id, _ := part.of(&f.row, &f.quad)
	if d.known && d.last == id {
		return d.holds, nil
	}
	holds, remembered := d.all[id]
	if !remembered {
		if err := f.snapshot.Err(); err != nil { // a test may take long
			return false, err
		}
		t, err := f.term(part)
		if err != nil {
			return false, err
		}
		holds = test(t)
		if few := part == partPredicate || part == partGraph; few && len(d.all) < maxCachedDecisions {
			if d.all == nil {
				d.all = map[kg.ID]bool{}
			}
			d.all[id] = holds
		}
	}
	d.last, d.holds, d.known = id, holds, true
	return holds, nil
}
