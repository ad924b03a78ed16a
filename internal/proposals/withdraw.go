package proposals

import "koine/kg"

// WithdrawIn withdraws a proposal with a reason, in the commit of an update that retracts
// its origin. It reports false if the proposal has ended or does not exist.
func (s *Service) WithdrawIn(tx *kg.Tx, id, why string) (taken bool, err error) {
	p, err := readProposal(tx.MatchOwn, id, false)
	if err != nil || p == nil || p.statusAt(tx.Time()).Status != Pending {
		return false, err
	}
	if err := endProposal(tx, id, Withdrawn, kg.System); err != nil {
		return false, err
	}
	w := &writer{tx: tx, graph: graphOf(id), source: kg.System}
	w.addText(propConflict, why)
	return w.err == nil, w.err
}
