package review

import "koine/kg"

// TakeBack withdraws a proposal with a reason, in the commit of an update that retracts
// its origin. It reports false if the proposal has ended or does not exist.
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
