package policy

import (
	"strings"

	"koine/kg"
)

// Write stores the policy of a graph within an update. The caller has checked that the
// change is allowed. Deleted and CreatedEmpty are written as given.
func Write(tx *kg.Tx, p Policy) error {
	if err := p.normalize(); err != nil {
		return err
	}
	wanted := map[kg.Quad]bool{}
	for _, q := range p.toStatements() {
		wanted[q] = true
	}
	stored, err := storedStatements(tx, p.Graph)
	if err != nil {
		return err
	}
	same := len(stored) == len(wanted)+1 // the revision of the last change
	for _, q := range stored {
		same = same && (wanted[q] || q.Predicate == changedIn)
	}
	if same {
		return nil
	}
	for _, q := range stored {
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

// writeRecreated stores the policy of a graph that is created again. All of its
// statements get the provenance of this update, as if there had been none before.
func writeRecreated(tx *kg.Tx, p Policy) error {
	stored, err := storedStatements(tx, p.Graph)
	if err != nil {
		return err
	}
	for _, q := range stored {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
			return err
		}
	}
	return Write(tx, p)
}

// storedStatements lists the stored statements of a graph's policy.
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

// checkGrantee returns an error if the statement names an agent with an impossible id.
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
