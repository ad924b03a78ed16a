package review

import "koine/kg"

// TakeBack withdraws a proposal in the commit of an update that takes back what it
// came with, and says why. One that has ended stays as it is, and so does one that
// is not there: it is not taken then.
func (s *Service) TakeBack(tx *kg.Tx, id, why string) (taken bool, err error) {
	p, err := read(tx.MatchOwn, id, false)
	if err != nil || p == nil || p.at(tx.Time()).Status != Pending {
		return false, err
	}
	if err := end(tx, id, Withdrawn, kg.System); err != nil {
		return false, err
	}
	w := &writer{tx: tx, graph: graphOf(id), source: kg.System}
	w.text(propConflict, why)
	return w.err == nil, w.err
}
