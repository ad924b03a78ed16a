package policy

import (
	"strings"

	"koine/kg"
)

// Write makes the policy that of its graph, within an update of whoever decided
// that this may be. Deleted and Made are written as they are.
func Write(tx *kg.Tx, p Policy) error {
	if err := p.normalise(); err != nil {
		return err
	}
	wanted := map[kg.Quad]bool{}
	for _, q := range p.toStatements() {
		wanted[q] = true
	}
	there, err := storedStatements(tx, p.Graph)
	if err != nil {
		return err
	}
	same := len(there) == len(wanted)+1 // and when it changed
	for _, q := range there {
		same = same && (wanted[q] || q.Predicate == changedIn)
	}
	if same {
		return nil
	}
	for _, q := range there {
		if wanted[q] {
			delete(wanted, q)
			continue
		}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
			return err
		}
	}
	for _, q := range append(p.toStatements(), policyStatement(p.Graph, changedIn, kg.Integer(int64(tx.Revision())))) {
		if !wanted[q] && q.Predicate != changedIn {
			continue
		}
		if err := checkGrantee(tx, q); err != nil {
			return err
		}
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
			return err
		}
	}
	return nil
}

// writeRecreated is Write of the policy of a graph that is made again: all of it is of this
// update, as if there had been none.
func writeRecreated(tx *kg.Tx, p Policy) error {
	there, err := storedStatements(tx, p.Graph)
	if err != nil {
		return err
	}
	for _, q := range there {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
			return err
		}
	}
	return Write(tx, p)
}

// storedStatements lists the statements of a graph's policy.
func storedStatements(tx *kg.Tx, graph kg.Term) (out []kg.Quad, err error) {
	for st, err := range tx.MatchOwn(kg.Pattern{Subject: subjectOf(graph), Graph: kg.SystemGraph}) {
		if err != nil {
			return nil, err
		}
		if isPolicyPredicate(st.Predicate) || st.Predicate == typeOf && st.Object == classTerm {
			out = append(out, st.Quad)
		}
	}
	return out, nil
}

// checkGrantee refuses to name an agent that there cannot be.
func checkGrantee(tx *kg.Tx, q kg.Quad) error {
	name := q.Object.Value()
	field := map[kg.Term]string{owner: "owners", writer: "writers", reader: "readers"}[q.Predicate]
	if field == "" || name == string(Everybody) || strings.HasPrefix(name, rolePrefix) {
		return nil
	}
	if err := tx.CheckAgent(kg.AgentID(name)); err != nil {
		return kg.AsError(err).At(field)
	}
	return nil
}
